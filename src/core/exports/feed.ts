import type { RowStream } from '../formats/row_stream.ts';
import type { Tx } from '../postgres/transaction.ts';
import { type AnyResource, readScope } from '../resource/resource.ts';
import { hasScope } from '../resource/scope.ts';
import { withoutEmailsIn } from '../values/texts/without_emails.ts';
import { changesOf } from './changes.ts';

/** The export of a product. */
export interface Feed {
  resources: AnyResource[];
  /** Resources with emails, names and other personal data: an export needs a scope for them where the key may not read them one by one. */
  personal: AnyResource[];
  /** Fields with ids that merchants set, which are shown as they are. In every other text or URL, emails are personal data. */
  own_id_fields: string[];
  /** Fields that are personal data, of resources that are not. */
  personal_fields: Record<string, string[]>;
}

export const personal_scope = 'data:personal';

/** Returns whether a caller with these scopes sees the personal data of a resource. */
export const seesPersonal = (scopes: string[], resource: AnyResource): boolean =>
  hasScope(scopes, readScope(resource)) || hasScope(scopes, personal_scope);

/**
 * An export of a resource: see `changesOf`. Who sees no personal data gets `hidden` for each email in a text, and null for a personal field.
 * @throws Problem invalid_position, once it is read
 */
export function linesOf(
  tx: Tx,
  feed: Feed,
  resource: AnyResource,
  { since, sees_personal }: { since: string | undefined; sees_personal: boolean },
): RowStream {
  const changes = changesOf(tx, resource, since);
  const rows = sees_personal ? changes : withoutPersonal(changes, feed, resource.plural);
  return { name: resource.plural, columns: [], rows };
}

async function* withoutPersonal(
  batches: AsyncIterable<object[]>,
  { own_id_fields, personal_fields }: Feed,
  plural: string,
): AsyncGenerator<object[]> {
  const personal = personal_fields[plural] ?? [];
  const shown = (field: string, value: unknown): unknown => {
    if (personal.includes(field)) return null;
    return own_id_fields.includes(field) ? value : withoutEmailsIn(value);
  };
  for await (const rows of batches)
    yield rows.map((row) =>
      Object.fromEntries(Object.entries(row).map(([field, value]) => [field, shown(field, value)])),
    );
}
