import { z } from 'zod';
import { service_opening, taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { transaction } from '../../src/core/postgres/transaction.ts';
import { mailPaid } from '../../src/program/payouts/paid_mail.ts';

/** Emails a partner that a payout was paid: in the service's own name, because tenants cannot write mail. */
export default taskOutsideTransaction({
  payload: z.object({ organization_id: z.string(), id: z.string(), paid_at: z.string() }),
  run: ({ payload: { organization_id, id }, store }) =>
    transaction(store, service_opening, (tx) => mailPaid(tx, organization_id, id)),
});
