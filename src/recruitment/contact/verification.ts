import { domainOf } from '../../core/values/fields.ts';
import type { Verification } from './email_address.ts';

/** What an address shows by itself: nobody is asked. The lists are loaded at the first need of them. */
export async function verificationOf(address: string): Promise<Verification> {
  const { verificationByLists } = await import('../addresses/verify.ts');
  return verificationByLists(domainOf(address).toLowerCase());
}
