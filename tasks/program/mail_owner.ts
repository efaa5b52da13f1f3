import { z } from 'zod';
import { ownerEmail } from '../../src/core/access/organization.ts';
import { service_opening, taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { transaction } from '../../src/core/postgres/transaction.ts';
import { queueMail } from '../../src/mail/outgoing.ts';

/** Emails the owner of an organization: in the service's own name, because tenants cannot write mail. */
export default taskOutsideTransaction({
  payload: z.object({ organization_id: z.string(), id: z.string(), subject: z.string(), text: z.string() }),
  run: ({ payload, store }) =>
    transaction(store, service_opening, async (tx) => {
      await queueMail(tx, { ...payload, recipient: await ownerEmail(tx, payload.organization_id) });
    }),
});
