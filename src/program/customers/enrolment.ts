import type { Tx } from '../../core/postgres/transaction.ts';
import { Problem } from '../../core/values/problem.ts';
import { event } from '../events/catalogue.ts';
import { groupToJoin } from '../partners/group.ts';
import { createPartner } from '../partners/partner.ts';
import type { Program } from '../programs/program.ts';
import type { Customer } from './customer.ts';

/**
 * "Paying customer became a partner on the first sale when the program's auto-enrol switch is on; `affiliate.created` for the same partner
 * precedes it." A customer who has no email, or is a partner already, stays what they are. Where the program says `application_required`,
 * nobody becomes an active partner without a person's decision: whom no merchant added by hand waits in the review queue.
 */
export async function enrolCustomer(tx: Tx, of: Program, { id: customer_id, email }: Customer): Promise<void> {
  if (!of.auto_enrol_customers || email === null) return;
  const program_id = of.id;
  const group_id = await groupToJoin(tx, program_id, undefined);
  const status = of.application_required ? 'pending' : 'active';
  const enrolled = await createPartner(tx, { program_id, email, group_id, status }).catch(nobodyNew);
  if (!enrolled) return;
  const { id: partner_id, handle } = enrolled;
  tx.emit(
    event('customer.enrolled_as_partner', program_id, {
      customer_id,
      partner_id,
      handle,
      email,
      group_id,
      source: 'auto_enrol',
    }),
  );
}

function nobodyNew(error: unknown): undefined {
  if (error instanceof Problem && error.code === 'resource_already_exists') return undefined;
  throw error;
}
