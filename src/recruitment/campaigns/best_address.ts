/**
 * The address of a prospect that is written to: the best usable one (lowest rank); without `allow_risky` none that is disposable or at a domain that accepts any.
 * Who has none fails with what is nearest: `risky_address` before `suppressed` before `invalid_address` before `no_address`. Who unsubscribed is `suppressed`.
 */
import sql, { type Sql } from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { domainOf } from '../../core/values/fields.ts';
import { normaliseDomain } from '../contact/address.ts';
import { usable } from '../contact/email_status.ts';
import type { SendFailure } from '../sequences/sequence.ts';

/** A prospect that is to be written to, as far as it is known. */
export interface Reached {
  id: string;
  timezone: string | null;
  country_code: string | null;
  address: ChosenAddress | null;
  /** The reason why there is no address. */
  reason: SendFailure | null;
}

export interface ChosenAddress {
  email_address_id: string;
  address_hmac: Buffer;
  domain_hmac: Buffer;
  /** Null: a provider of free mailboxes. */
  company_hmac: Buffer | null;
}

const risky = sql`a.verification in ('disposable', 'accept_all')`;

/**
 * The best address of each prospect that can be written to, or why there is none: "At its turn no address, suppressed …: failed". Suppressions
 * are held by the caller.
 */
export async function bestAddresses(
  tx: Tx,
  vault: Vault,
  prospect_ids: string[],
  allow_risky: boolean,
): Promise<Map<string, Reached>> {
  type Row = Omit<Reached, 'address'> & {
    email_address_id: string | null;
    address: Buffer;
    address_hmac: Buffer;
    domain_hmac: Buffer;
    verification: string;
  };
  const rows = await tx.all<Row>(sql`
    select p.id, p.timezone, p.country_code,
      best.id as email_address_id, best.address, best.address_hmac, best.domain_hmac, best.verification,
      ${why_not} as reason
    from recruitment.prospect p
    ${bestOf(allow_risky)}
    where p.organization_id = ${tx.organization_id} and p.id = any(${prospect_ids})`);
  const { isFree } = await import('../addresses/verify.ts');
  const reached = rows.map(
    ({ email_address_id, address, address_hmac, domain_hmac, verification, ...row }): Reached => {
      if (email_address_id === null || row.reason !== null) return { ...row, address: null };
      const is_free = verification === 'webmail' || isFree(companyOf(vault.decrypt(address, email_address_id)));
      const company_hmac = is_free ? null : domain_hmac;
      return { ...row, address: { email_address_id, address_hmac, domain_hmac, company_hmac } };
    },
  );
  return new Map(reached.map((one) => [one.id, one]));
}

/** Joins the best address of a prospect `p` as `best`. */
export const bestOf = (allow_risky: boolean): Sql => sql`
  left join lateral (
    select a.id, a.address, a.address_hmac, a.domain_hmac, a.verification, a.source_url
    from recruitment.email_address a
    where a.organization_id = p.organization_id and a.prospect_id = p.id and ${usable} and (${allow_risky} or not ${risky})
    order by a.rank, a.id
    limit 1
  ) best on true`;

const why_none = sql`
  select case
    when count(*) = 0 then 'no_address'
    when bool_or(${usable}) then 'risky_address'
    when bool_or(a.verification <> 'invalid' and a.bounced_at is null) then 'suppressed'
    else 'invalid_address'
  end
  from recruitment.email_address a
  where a.organization_id = p.organization_id and a.prospect_id = p.id`;

/** The reason why a prospect `p` cannot be written to. Null: it can, at its address `best`. */
export const why_not = sql`case
  when p.do_not_contact_reason is not null then 'do_not_contact'
  when p.unsubscribed_at is not null then 'suppressed'
  when best.id is null then (${why_none})
end`;

const companyOf = (address: string): string => normaliseDomain(domainOf(address));
