import type { RowStream } from '../formats/row_stream.ts';
import type { Tx } from '../postgres/transaction.ts';
import { type AnyResource, readScope } from '../resource/resource.ts';
import { hasScope } from '../resource/scope.ts';
import { withoutEmails } from '../values/without_emails.ts';
import { changesOf } from './changes.ts';

/** What a product exports. */
export interface Feed {
  resources: AnyResource[];
  /** Those with emails, names and other personal data: who may not read them one by one needs a scope for that. */
  personal: AnyResource[];
  /** Fields with the URLs of visitors, by the plural of their resource. Emails in them are personal data. */
  url_fields: Record<string, string[]>;
}

export const personal_scope = 'data:personal';

/** Whether a caller with these scopes sees the personal data of a resource. */
export const seesPersonal = (scopes: string[], resource: AnyResource): boolean =>
  hasScope(scopes, readScope(resource)) || hasScope(scopes, personal_scope);

/**
 * An export of a resource: see `changesOf`. Emails in URLs are `hidden` from who sees no personal data.
 * @throws Problem invalid_position, once it is read
 */
export function linesOf(
  tx: Tx,
  { url_fields }: Feed,
  resource: AnyResource,
  { since, sees_personal }: { since: string | undefined; sees_personal: boolean },
): RowStream {
  const changes = changesOf(tx, resource, since);
  const fields = url_fields[resource.plural];
  const rows = fields === undefined || sees_personal ? changes : withoutEmailsIn(fields, changes);
  return { name: resource.plural, columns: [], rows };
}

async function* withoutEmailsIn(fields: string[], batches: AsyncIterable<object[]>): AsyncGenerator<object[]> {
  for await (const rows of batches) yield rows.map((row) => hideEmails(row as Record<string, unknown>, fields));
}

const hideEmails = (row: Record<string, unknown>, fields: string[]): object => ({
  ...row,
  ...Object.fromEntries(fields.filter((field) => field in row).map((field) => [field, hidden(row[field])])),
});

/** Of a text, or of an object of texts. */
function hidden(value: unknown): unknown {
  if (typeof value === 'string') return withoutEmails(value);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [withoutEmails(name), hidden(inner)]));
}
