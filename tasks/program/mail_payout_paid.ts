import { z } from 'zod';
import { taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { mailPaid } from '../../src/program/payouts/paid_mail.ts';

/** Numbers the statement of a payout that was paid, and emails it to the partner. */
export default taskOutsideTransaction({
  payload: z.object({ organization_id: z.string(), id: z.string(), paid_at: z.string() }),
  run: ({ payload: { organization_id, id }, store }) => mailPaid(store, organization_id, id),
});
