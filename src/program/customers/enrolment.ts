import type { Tx } from '../../core/postgres/transaction.ts';
import { allows } from '../../core/resource/states.ts';
import { email } from '../../core/values/fields.ts';
import { Problem } from '../../core/values/problem.ts';
import { event } from '../events/event.ts';
import { createPartner } from '../partners/create_partner.ts';
import { groupToJoin } from '../partners/group.ts';
import { mailPartner } from '../partners/mails/mail_partner.ts';
import { type Program, program_states } from '../programs/program.ts';
import type { Customer } from './customer.ts';

/**
 * Makes a customer a partner on the first sale, if the program's `auto_enrol_customers` is on: "`affiliate.created` for the same partner
 * precedes" `customer.enrolled_as_partner`. A customer who has no email address that mail can be sent to, or who is already a partner, is not enrolled, nor is anybody
 * while the program is paused. If the
 * program's `application_required` is on, the new partner is pending: only a person's decision activates a partner whom the merchant did
 * not create.
 */
export async function enrolCustomer(tx: Tx, program: Program, customer: Customer): Promise<void> {
  const address = customer.email;
  if (!program.auto_enrol_customers || !canBeWrittenTo(address) || !allows(program_states, program.status, 'join'))
    return;
  const program_id = program.id;
  const group_id = await groupToJoin(tx, program_id, undefined);
  const status = program.application_required ? 'pending' : 'active';
  const partner = await createPartner(tx, { program_id, email: address, group_id, status }).catch(undefinedIfExists);
  if (!partner) return;
  if (status === 'active') mailPartner(tx, partner.id, { kind: 'welcome' });
  tx.emit(event('customer.enrolled_as_partner', partner, { customer_id: customer.id, source: 'auto_enrol' }));
}

const canBeWrittenTo = (address: string | null): address is string => email.safeParse(address).success;

function undefinedIfExists(error: unknown): undefined {
  if (error instanceof Problem && error.code === 'resource_already_exists') return undefined;
  throw error;
}
