import { domainOf } from '../../core/values/fields.ts';
import { registrableDomain } from '../pages/key.ts';
import { domainHash } from '../prospects/barred_site.ts';
import type { KeyedHash } from '../prospects/keyed_hash.ts';

/** The hashes by which an address is found and barred without being stored in the clear. */
export interface AddressHashes {
  address_hmac: Buffer;
  domain_hmac: Buffer;
}

export const hashesOf = (hash: KeyedHash, email: string): AddressHashes => ({
  address_hmac: hash(`address ${normaliseAddress(email)}`),
  domain_hmac: hashOfDomain(hash, domainOf(email)),
});

/** Returns the hash of the registrable domain, so that barring a domain bars its subdomains. */
export const hashOfDomain = (hash: KeyedHash, domain: string): Buffer => domainHash(hash, normaliseDomain(domain));

export function normaliseDomain(domain: string): string {
  const folded = domain.trim().toLowerCase().replace(/\.$/, '');
  return registrableDomain(folded) ?? folded;
}

const gmail = ['gmail.com', 'googlemail.com'];

/** One text for all spellings of a mailbox: letter case and plus tags are ignored, and dots at Gmail. For comparison only, never to send to. */
export function normaliseAddress(email: string): string {
  const folded = email.trim().toLowerCase();
  const at = folded.lastIndexOf('@');
  const [local, host] = [folded.slice(0, at), folded.slice(at + 1)];
  const untagged = local.replace(/\+.*/s, '') || local;
  return gmail.includes(host) ? `${untagged.replaceAll('.', '') || untagged}@gmail.com` : `${untagged}@${host}`;
}
