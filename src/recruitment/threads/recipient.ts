import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { Problem } from '../../core/values/problem.ts';
import { usable } from '../contact/email_status.ts';
import type { Prospect } from '../prospects/prospect.ts';

/**
 * The address of a prospect that a person's email goes to: the best one that mail can be delivered to.
 * @param first hashes of addresses that come before the others
 * @returns its id
 * @throws Problem suppressed; invalid_state_transition where there is none
 */
export async function recipientOf(tx: Tx, prospect: Prospect, first: Buffer[] = []): Promise<string> {
  requireContactable(prospect);
  const address = await tx.maybe<{ id: string }>(sql`
    select a.id
    from recruitment.email_address a
    where a.organization_id = ${tx.organization_id} and a.prospect_id = ${prospect.id} and ${usable}
    order by array_position(${first}::bytea[], a.address_hmac), a.rank, a.id
    limit 1`);
  if (address) return address.id;
  throw new Problem(
    'invalid_state_transition',
    `No usable email address of the prospect is known. Add one: POST /recruitment/v1/prospects/${prospect.id}/emails.`,
  );
}

/** "A person's own answers and invitations obey all layers." */
function requireContactable({ id, do_not_contact, unsubscribed_at }: Prospect): void {
  if (do_not_contact !== null) {
    throw new Problem(
      'suppressed',
      `The prospect is marked Do not contact (${do_not_contact.reason}). Lift the mark first: POST /recruitment/v1/prospects/${id}/do_not_contact/lift.`,
    );
  }
  if (unsubscribed_at !== null) {
    throw new Problem(
      'suppressed',
      'The prospect unsubscribed, so no email is sent to them from here. If their reply was misread, correct it: POST /recruitment/v1/messages/{id}/reclassify. If they wrote to you again, answer from your own mail program.',
    );
  }
}
