import { domainOf } from '../../core/values/fields.ts';
import type { Prospect } from '../prospects/prospect.ts';
import type { NewAddress } from './insert_address.ts';

/** Addresses that were found come behind all that people added. */
export const first_found_rank = 100;
/** Behind the others that people added. */
const disposable_rank = 50;

/**
 * An address that a person or the API names. Several of a prospect are ranked as those that a reveal finds. Nobody is asked about it. The
 * lists are loaded at the first need of them.
 */
export async function byHand(
  email: string,
  { id: prospect_id, key }: Pick<Prospect, 'id' | 'key'>,
): Promise<NewAddress> {
  const [{ verificationByLists }, { isAt, placeOf }] = await Promise.all([
    import('../addresses/verify.ts'),
    import('../addresses/place.ts'),
  ]);
  const address = email.toLowerCase();
  const verification = await verificationByLists(domainOf(address));
  const rank = placeOf(address, isAt(address, key)) + (verification === 'disposable' ? disposable_rank : 0);
  return { prospect_id, email, source: 'manual', source_url: null, rank, verification };
}
