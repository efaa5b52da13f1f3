import { z } from 'zod';
import { runExclusive } from '../../src/core/jobs/concurrency.ts';
import { batchTask } from '../../src/core/jobs/task.ts';
import { assessClicks } from '../../src/program/risk/click.ts';
import { attributeWaiting } from '../../src/program/tracking/attribution.ts';

const most = 1_000;

/** Turns the clicks of an organization that wait into referrals, and checks them for fraud. */
export default batchTask({
  payload: z.object({ organization_id: z.string() }),
  most,
  run: ({ tx }) =>
    runExclusive(tx, 'program/attribute_clicks', async () => {
      const clicks = await attributeWaiting(tx, most);
      await assessClicks(tx, clicks);
      return clicks.length;
    }),
});
