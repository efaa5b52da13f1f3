/** Records that a field of a form names: chosen by their names where there are few, and found by an email address where there are many. */
import type { Operation } from '../core/resource/operation.ts';
import { known_scopes } from '../core/resource/scope.ts';
import { Problem } from '../core/values/problem.ts';
import { insteadOf, type Use } from '../pages/run.ts';
import type { Field, Typed } from '../pages/schema_fields.ts';
import { nounOfTag, schemaOf, scopeFor } from './catalog.ts';
import { titleOf } from './named.ts';
import { mayDo } from './roles.ts';
import type { Record_ } from './values.ts';
import type { DashboardVisit } from './visit.ts';

/** Ids and the names that people know them by. */
export type Choices = ReadonlyMap<string, Record<string, string>>;

const most_choices = 50;

/** `partner` of `partner_id`, and of `partner_ids`. */
const nounIn = ({ name }: Pick<Field, 'name'>): string | undefined => /(?:^|\.)(\w+)_ids?$/.exec(name)?.[1];

/** The list that has the records which a field names. */
function listFor({ catalog, role }: DashboardVisit, field: Field): Operation | undefined {
  const noun = nounIn(field);
  if (noun === undefined) return undefined;
  return [...catalog.operations.values()].find(
    ({ name, tag, scope, path }) =>
      name === `${tag}.list` && !path.includes('{') && mayDo(role, scope) && nounOfTag(catalog, tag) === noun,
  );
}

/**
 * Reads the records to choose from, by the names of the fields. Of one with more than 50 there are none.
 * @param scope the program and the brand that they are of
 */
export async function choicesFor(
  visit: DashboardVisit,
  use: Use,
  fields: Field[],
  scope: Record<string, string | undefined>,
): Promise<Choices> {
  const choices = new Map<string, Record<string, string>>();
  for (const field of fields) {
    if (field.name === 'scopes')
      choices.set(field.name, Object.fromEntries([...known_scopes].sort().map((one) => [one, one])));
    const list = listFor(visit, field);
    if (!list) continue;
    const query = scopeFor(list, scope);
    if (schemaOf(list, 'query').required?.some((one) => !(one in query))) continue;
    const { data, has_more } = await use(list.name, { query: { ...query, limit: most_choices } });
    const names = namesOf(visit, list.tag, data);
    // Names that are not each one's own, such as the day of a click, are no choice.
    const are_told_apart = new Set(Object.values(names)).size === data.length;
    if (!has_more && data.length > 0 && are_told_apart) choices.set(field.name, names);
  }
  return choices;
}

const namesOf = (visit: DashboardVisit, tag: string, records: Record_[]): Record<string, string> =>
  Object.fromEntries(records.map((record) => [String(record.id), titleOf(visit, tag, record)]));

/** The fields with what there is to choose from. What is there already stays a choice. */
export const withChoices = (fields: Field[], choices: Choices, typed: Typed): Field[] =>
  fields.map((field) => {
    const names = choices.get(field.name);
    if (!names)
      return field.kind === 'text' && isFound(field)
        ? { ...field, description: `${field.description} ${found_by}`.trim() }
        : field;
    // Those first that are chosen, in their order: a list that nobody changes stays as it is.
    const there = (typed[field.name] ?? '').split(/\s+/).filter((id) => id !== '');
    const kind = field.kind === 'list' ? 'choices' : 'choice';
    const label = field.label.replace(/ IDs?$/, field.kind === 'list' ? 's' : '');
    const description = field.name === 'program_id' ? '' : field.description;
    return { ...field, kind, label, description, options: [...new Set([...there, ...Object.keys(names)])], names };
  });

const found_by = 'An ID or an email address.';
const by_email = new Set(['partner', 'customer', 'user', 'inbox']);
export const isFound = (field: Pick<Field, 'name'>): boolean => by_email.has(nounIn(field) ?? '');

/** Returns whether a field that names a record has an email address in it. */
export const hasEmails = (fields: Field[], typed: Typed): boolean =>
  fields.some((field) => isFound(field) && typed[field.name]?.includes('@'));

/** Puts ids in place of the email addresses that were typed. @throws Problem that names the field */
export async function withFound(
  visit: DashboardVisit,
  use: Use,
  fields: Field[],
  typed: Typed,
  program_id: string | undefined,
): Promise<Typed> {
  const ids: Typed = {};
  for (const field of fields) {
    const list = hasEmails([field], typed) ? listFor(visit, field) : undefined;
    if (!list) continue;
    const lines = (typed[field.name] ?? '').split('\n').map((line) => line.trim());
    const found = await Promise.all(
      lines.map(async (email) => {
        if (!email.includes('@')) return email;
        const query = { email, limit: 1, ...scopeFor(list, { program_id }) };
        // A text that is no address belongs to nobody either.
        const { data } = await use(list.name, { query }).catch(insteadOf(400, { data: [] }));
        if (data[0]) return data[0].id;
        throw new Problem('invalid_parameter', `Nobody has the email address “${email}”.`, { param: field.name });
      }),
    );
    ids[field.name] = found.join('\n');
  }
  return { ...typed, ...ids };
}
