/** Rows that name several people at pages of one site: it may be a site of many, which is not known as one. */
import sql from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { hashesOf } from '../contact/address.ts';
import { registrableDomain } from '../pages/key.ts';
import { fold } from '../pages/page.ts';
import { keyedHash } from '../prospects/keyed_hash.ts';
import type { PreparedRow, Row } from './row.ts';
import type { Fault } from './rows.ts';

/** A person at a page of a site. */
interface Sight {
  path: string;
  name: string;
  addresses: string[];
  /** True if the address belongs to the site. */
  is_of_site: boolean;
}

export class OneSite {
  readonly #first = new Map<string, Sight & { line: number }>();

  /** The row; refused where it names somebody else than an earlier one, at another page of their site. */
  checked(row: Row): Row {
    const { prospect, email, line } = row;
    const path = pathOf(row);
    if (!prospect || path === '') return row;
    const is_of_site = registrableDomain(email?.split('@')[1] ?? '') === prospect.key;
    const sight = { line, path, name: fold(prospect.name ?? ''), addresses: email ? [email] : [], is_of_site };
    const first = this.#first.get(prospect.key);
    if (first === undefined) this.#first.set(prospect.key, sight);
    else if (areInConflict(first, sight)) return { line, fault: faultOf(`line ${first.line}`) };
    return row;
  }
}

/** A row of a prospect that exists. */
interface Known {
  id: string;
  row: PreparedRow;
}

/** Rows that name somebody else than the prospect that their site has, from whatever it was added. @returns why, by row */
export async function conflictsOf(tx: Tx, vault: Vault, known: Known[]): Promise<Map<PreparedRow, Fault>> {
  const checked = known.filter(({ row }) => pathOf(row) !== '');
  if (checked.length === 0) return new Map();
  const hash = await keyedHash(tx, vault);
  const stored = await tx.all<{ id: string; url: string | null; name: string | null } & Hashes>(sql`
    select t.id, t.url, t.name, array(${hashesIn('address_hmac')}) as addresses, array(${hashesIn('domain_hmac')}) as domains
    from recruitment.prospect t
    where ${tenant(tx)} and t.id = any(${checked.map(({ id }) => id)})`);
  const by_id = new Map(stored.map((one) => [one.id, one]));
  const conflicts = new Map<PreparedRow, Fault>();
  for (const { id, row } of checked) {
    const { url = null, name, addresses = [], domains = [] } = by_id.get(id) ?? {};
    const site = hashesOf(hash, `site@${row.prospect?.key}`).domain_hmac.toString('hex');
    const there = { path: pathIn(url), name: fold(name ?? ''), addresses, is_of_site: domains.includes(site) };
    const { address_hmac, domain_hmac } = row.address ?? {};
    const sight = {
      ...{ path: pathOf(row), name: fold(row.prospect?.name ?? '') },
      ...{
        addresses: address_hmac ? [address_hmac.toString('hex')] : [],
        is_of_site: domain_hmac?.toString('hex') === site,
      },
    };
    if (there.path !== '' && areInConflict(there, sight)) conflicts.set(row, faultOf(`the prospect ${id}`));
  }
  return conflicts;
}

interface Hashes {
  addresses: string[];
  domains: string[];
}

const hashesIn = (column: 'address_hmac' | 'domain_hmac') => sql`
  select encode(${column === 'address_hmac' ? sql`a.address_hmac` : sql`a.domain_hmac`}, 'hex')
  from recruitment.email_address a
  where a.organization_id = t.organization_id and a.prospect_id = t.id`;

/** The page of a site that a row names; empty where it names the site, an account, or none. */
function pathOf({ has_url, prospect }: Row): string {
  if (!has_url || !prospect?.url) return '';
  return registrableDomain(URL.parse(prospect.url)?.hostname ?? '') === prospect.key ? pathIn(prospect.url) : '';
}

const pathIn = (url: string | null): string => (url && URL.parse(url)?.pathname.replace(/\/$/, '')) || '';

function areInConflict(one: Sight, other: Sight): boolean {
  if (one.path === other.path || one.is_of_site || other.is_of_site) return false;
  const is_named_otherwise = one.name !== '' && other.name !== '' && one.name !== other.name;
  const has_other_address =
    one.addresses.length > 0 &&
    other.addresses.length > 0 &&
    !other.addresses.some((address) => one.addresses.includes(address));
  return is_named_otherwise || has_other_address;
}

const faultOf = (whom: string): Fault => ({
  field: 'url',
  reason: `belongs to the site of ${whom}, which has another name or address. A site is one prospect: send the URL of their own site or profile`,
});
