import type { Tx } from '../../core/postgres/transaction.ts';
import { Problem } from '../../core/values/problem.ts';
import type { Catalogue } from '../events/catalogue.ts';
import { type EventPolicy, subjectNoun } from '../events/policy.ts';

/** "A partner subscribes only to the `referral.*`, `commission.*` and `payout.*` families": those that the catalogue names, as a list. */
export function postbackFamilies(catalogue: Catalogue): string[] {
  const types = Object.keys(catalogue).filter((type) => catalogue[type]?.postback !== false);
  return [...new Set(types.map((type) => `${type.split('.')[0]}.*`))];
}

/** `a, b and c` */
export const listed = (words: string[]): string =>
  words.length > 1 ? `${words.slice(0, -1).join(', ')} and ${words.at(-1)}` : words.join();

/** The owner must be of the subject that the endpoint listens to. @throws Problem resource_not_found, invalid_parameter */
export async function requirePostback(
  tx: Tx,
  policy: EventPolicy,
  { owner_id, subject_id, event_types }: { owner_id: string; subject_id: string; event_types: string[] },
): Promise<void> {
  const { subject, owner, catalogue } = policy;
  if (!owner) throw new Error('The product has no postbacks.');
  const { field, resource } = owner;
  const record = (await resource.get(tx, owner_id, { param: field })) as Record<string, unknown>;
  if (subject && record[subject.field] !== subject_id) {
    const noun = resource.object.replaceAll('_', ' ');
    throw new Problem('resource_not_found', `No ${noun} with the id '${owner_id}' in this ${subjectNoun(policy)}.`, {
      param: field,
    });
  }
  requirePostbackTypes(catalogue, event_types);
}

/** @throws Problem invalid_parameter */
export function requirePostbackTypes(catalogue: Catalogue, event_types: string[], param = 'event_types'): void {
  const refused = event_types.find((type) => catalogue[type]?.postback === false);
  if (refused === undefined) return;
  const families = listed(postbackFamilies(catalogue));
  throw new Problem('invalid_parameter', `A postback cannot receive '${refused}', only ${families} events.`, {
    param,
  });
}
