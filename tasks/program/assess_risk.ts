import { z } from 'zod';
import { task } from '../../src/core/jobs/task.ts';
import { assessClick } from '../../src/program/risk/click.ts';
import { assessCustomer, assessPartner, assessSale } from '../../src/program/risk/risk.ts';

const assessments = { click: assessClick, customer: assessCustomer, sale: assessSale, partner: assessPartner };

/** Looks at what has just happened, and raises risk flags. */
export default task({
  payload: z.object({
    organization_id: z.string(),
    request_id: z.string().nullable(),
    subject: z.enum(['click', 'customer', 'sale', 'partner']),
    id: z.string(),
  }),
  run: ({ tx, payload: { subject, id } }) => assessments[subject](tx, id),
});
