import { service_opening, taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { transaction } from '../../src/core/postgres/transaction.ts';
import { PartnerMail, writePartnerMail } from '../../src/program/partners/mails/partner_mail.ts';

/** Emails a partner: in the service's own name, because tenants cannot write mail. */
export default taskOutsideTransaction({
  payload: PartnerMail,
  run: ({ payload, store, services }) =>
    transaction(store, service_opening, (tx) => writePartnerMail(tx, services, payload)),
});
