/** Rows of one file that name several people at pages of one site: it may be a site of many, which is not known as one. */
import { registrableDomain } from '../pages/key.ts';
import { fold } from '../pages/page.ts';
import type { Row } from './row.ts';

interface Sight {
  line: number;
  path: string;
  name: string;
  email: string;
}

export class OneSite {
  readonly #first = new Map<string, Sight>();

  /** The row; refused where it names somebody else than an earlier one, at another page of their site. */
  judged(row: Row): Row {
    const { prospect, email = '', line } = row;
    const url = row.has_url && prospect?.url ? URL.parse(prospect.url) : null;
    if (!prospect || url === null || registrableDomain(url.hostname) !== prospect.key) return row;
    const sight = { line, path: url.pathname.replace(/\/$/, ''), name: fold(prospect.name ?? ''), email };
    if (sight.path === '') return row;
    const first = this.#first.get(prospect.key);
    if (first === undefined) this.#first.set(prospect.key, sight);
    else if (areStrangers(first, sight, prospect.key)) return { line, fault: faultOf(first) };
    return row;
  }
}

function areStrangers(one: Sight, other: Sight, domain: string): boolean {
  if (one.path === other.path) return false;
  const differ = (field: 'name' | 'email') => one[field] !== '' && other[field] !== '' && one[field] !== other[field];
  const is_of_site = [one, other].some(({ email }) => registrableDomain(email.split('@')[1] ?? '') === domain);
  return !is_of_site && (differ('name') || differ('email'));
}

const faultOf = ({ line }: Sight) => ({
  field: 'url',
  reason: `is another page of the site of line ${line}, with another name or address, and a site is one prospect: give the address of a site or a profile of their own`,
});
