import { z } from 'zod';
import { task } from '../../src/core/jobs/task.ts';
import { replayNext } from '../../src/webhooks/deliveries/replay.ts';

const batch = 500;

/** Queues the replays of a window, one batch a job. */
export default task({
  payload: z.object({
    organization_id: z.string(),
    endpoint_id: z.string(),
    from: z.iso.datetime(),
    to: z.iso.datetime(),
    failed_only: z.boolean(),
    after_position: z.int(),
    key: z.string(),
  }),
  run: ({ tx, payload }) => replayNext(tx, payload, batch),
});
