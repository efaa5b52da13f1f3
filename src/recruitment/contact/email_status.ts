import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';

/**
 * Selects addresses that can be written to: mail to them has not bounced, they are not known to be invalid, and neither they nor their
 * domain is barred.
 */
export const usable = sql`(
  a.verification <> 'invalid' and a.bounced_at is null
  and not exists (
    select from recruitment.suppression s
    where s.organization_id = a.organization_id and s.hmac in (a.address_hmac, a.domain_hmac) and s.lifted_at is null
  ))`;

/** Sets what the records of prospects say of their addresses, each worked out once: without statistics a join would do so for every pair. */
export async function refreshEmailStatus(tx: Tx, prospect_ids: string[]): Promise<void> {
  if (prospect_ids.length === 0) return;
  await tx.all(sql`
    with status as materialized (
      select given.id, case
        when bool_or(${usable} and a.verification = 'valid') then 'verified'
        when bool_or(${usable}) then 'found'
        when bool_or(a.bounced_at is not null) then 'bounced'
        else 'none'
      end as email_status
      from unnest(${prospect_ids}::text[]) as given (id)
      left join recruitment.email_address a on a.organization_id = ${tx.organization_id} and a.prospect_id = given.id and a.prospect_id = any(${prospect_ids})
      group by given.id
    )
    update recruitment.prospect t set email_status = s.email_status, updated_at = ${tx.now}::timestamptz
    from status s
    where ${tenant(tx)} and t.id = any(${prospect_ids}) and t.id = s.id and t.email_status <> s.email_status`);
}

/** The ids of the addresses of a prospect that can be written to. */
export async function usableAddresses(tx: Tx, prospect_id: string): Promise<Set<string>> {
  const rows = await tx.all<{ id: string }>(sql`
    select a.id from recruitment.email_address a
    where a.organization_id = ${tx.organization_id} and a.prospect_id = ${prospect_id} and ${usable}`);
  return new Set(rows.map(({ id }) => id));
}
