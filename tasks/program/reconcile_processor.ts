import { z } from 'zod';
import { taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { reconcile } from '../../src/program/processors/reconcile.ts';

/** Takes in the events of one connection that its processor sent in vain. */
export default taskOutsideTransaction({
  payload: z.object({ organization_id: z.string(), id: z.string(), tick: z.iso.datetime() }),
  async run({ payload: { tick, ...connection }, ...context }) {
    const missing = await reconcile(connection, tick, context);
    if (missing > 0) context.log.warn({ ...connection, missing }, 'events of a billing processor were missing');
  },
});
