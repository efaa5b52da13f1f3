import sql, { type Sql } from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';

/**
 * Selects the hashes of the addresses that messages of a prospect went to or came from, each once: one look-up by `message_addresses` for each,
 * however many messages there are.
 * @param prospect_id an expression of the query around it
 */
export function addressesOfMessages(tx: Tx, prospect_id: Sql): Sql {
  const first = (after: Sql) => sql`
    select m.address_hmac from recruitment.message m
    where m.organization_id = ${tx.organization_id} and m.prospect_id = ${prospect_id} and ${after}
    order by m.address_hmac
    limit 1`;
  return sql`
    with recursive address (hmac) as (
      (${first(sql`m.address_hmac is not null`)})
      union all
      select (${first(sql`m.address_hmac > address.hmac`)}) from address where address.hmac is not null
    )
    select address.hmac from address where address.hmac is not null`;
}
