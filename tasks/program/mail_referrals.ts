import { z } from 'zod';
import { service_opening, taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { transaction } from '../../src/core/postgres/transaction.ts';
import { mailReferrals } from '../../src/program/partners/mails/referral_mails.ts';

/** Emails the partners of an organization about their new referrals: in the service's own name, because tenants cannot write mail. */
export default taskOutsideTransaction({
  payload: z.object({ organization_id: z.string() }),
  run: ({ payload, store, services }) =>
    transaction(store, service_opening, (tx) => mailReferrals(tx, services, payload.organization_id)),
});
