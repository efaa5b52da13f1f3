import { domainOf } from '../../core/values/fields.ts';
import type { Prospect } from '../prospects/prospect.ts';
import type { NewAddress } from './insert_address.ts';

/** Addresses that were found come behind all that people added. */
export const first_found_rank = 100;
/** Behind the others that people added. */
const disposable_rank = 50;

type ByHand = (email: string, holder: Pick<Prospect, 'id' | 'key'>) => NewAddress;

/** An address that a person or the API names. Several of a prospect are ranked as those that a reveal finds. Nobody is asked about it. */
export const byHand = async (...given: Parameters<ByHand>): Promise<NewAddress> => (await openByHand())(...given);

/** `byHand` of many. The lists are loaded at the first need of them. */
export async function openByHand(): Promise<ByHand> {
  const [{ openLists }, { isAt, placeOf }] = await Promise.all([
    import('../addresses/verify.ts'),
    import('../addresses/place.ts'),
  ]);
  const verificationOf = await openLists();
  return (email, { id: prospect_id, key }) => {
    const address = email.toLowerCase();
    const verification = verificationOf(domainOf(address));
    const rank = placeOf(address, isAt(address, key)) + (verification === 'disposable' ? disposable_rank : 0);
    return { prospect_id, email, source: 'manual', source_url: null, rank, verification };
  };
}
