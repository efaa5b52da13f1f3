import { registrableDomain } from '../pages/key.ts';
import { domainOf, mailboxOf } from './address.ts';
import { isFree } from './verify.ts';

const mailboxes = ['person', 'business', 'general', 'other'] as const;
type Mailbox = ReturnType<typeof mailboxOf>;

/** Whether an address is at the registrable domain of a site. */
export const isAt = (email: string, domain: string | undefined): boolean =>
  domain !== undefined && registrableDomain(domainOf(email)) === domain;

/** The lower, the better: the site's own domain, then free providers, then others; people before mailboxes of many. */
export function placeOf(email: string, is_own_domain: boolean, mailbox: Mailbox = mailboxOf(email)): number {
  // Of a free provider it is the owner's rather than that of somebody who is only named.
  const domain = is_own_domain ? 0 : isFree(domainOf(email)) ? 1 : 2;
  return domain * mailboxes.length + mailboxes.indexOf(mailbox);
}
