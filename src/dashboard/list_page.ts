/** The page of a list, read off its operation: filters, columns, pages, a file, and what makes a new record. */
import { z } from 'zod';
import { type Schema, typesOf } from '../core/description/json_schema.ts';
import type { Operation } from '../core/resource/operation.ts';
import { cursorsBeside } from '../pages/cursors.ts';
import { typedOf, withZone } from '../pages/form.ts';
import { counted, words } from '../pages/format.ts';
import { type Html, html } from '../pages/html.ts';
import { type Field, fieldsOf } from '../pages/schema_fields.ts';
import { type Column, table } from '../pages/table.ts';
import { actionTitle, type Catalog, createsOf, paramsOf, schemaOf } from './catalog.ts';
import { mayDo } from './roles.ts';
import { hrefOf, type Record_, shortId, shown } from './values.ts';
import type { DashboardVisit } from './visit.ts';

/** Parameters that the page itself sets. */
const own_parameters = new Set([
  'limit',
  'starting_after',
  'ending_before',
  'format',
  'bom',
  'expand',
  'include',
  'program_id',
]);

/** What people know a record by: the first of these that a list has leads to the record, else the end of its id does. */
const names = 'name email title label code value subject url key'.split(' ');
const first_columns =
  'handle kind type event_type operation status state severity amount_minor destination_url partner_id customer_id occurred_at'.split(
    ' ',
  );
const most_columns = 6;
/** What a table has no room for. */
const left_out = new Set(['object', 'metadata', 'program_id', 'updated_at', 'organization_id']);

export interface ListReply {
  data: Record_[];
  has_more: boolean;
  total_count?: number;
}

/** The filters of a list, as fields of a form. */
export const filtersOf = (operation: Operation): Field[] => {
  const { properties = {}, required = [] } = schemaOf(operation, 'query');
  const others = Object.fromEntries(Object.entries(properties).filter(([name]) => !own_parameters.has(name)));
  return fieldsOf({ type: 'object', properties: others, required });
};

/** A query with the times of its filters as the API takes them. */
export function withZones(operation: Operation, query: Record<string, string>): Record<string, string> {
  const times = filtersOf(operation).filter(({ kind }) => kind === 'time');
  const zoned = times.flatMap(({ name }) => (query[name] === undefined ? [] : [[name, withZone(query[name])]]));
  return { ...query, ...Object.fromEntries(zoned) };
}

/** The relations that a list shows by name, and not by id. */
const shown_relations = ['partner', 'customer', 'group', 'program'];
export function expansionOf(operation: Operation): { expand?: string } {
  const offered = (schemaOf(operation, 'query').properties?.expand?.items?.enum ?? []).map(String);
  const chosen = operation.name.endsWith('.get') ? offered : shown_relations.filter((name) => offered.includes(name));
  return chosen.length > 0 ? { expand: chosen as never } : {};
}

/**
 * The columns of a list: those that tell records apart, and when each was made.
 * @param of fields that are the same in all rows: what the list was narrowed by
 */
export function columnsOf(visit: DashboardVisit, operation: Operation, of: string[] = []): Column<Record_>[] {
  const properties = schemaOf(operation, 'reply').properties?.data?.items?.properties ?? {};
  const has_amount = Object.keys(properties).some((name) => name.endsWith('_minor'));
  const isShown = (name: string, schema: Schema) =>
    !left_out.has(name) && !of.includes(name) && !(has_amount && name === 'currency') && isSimple(schema);
  const simple = Object.entries(properties)
    .filter(([name, schema]) => isShown(name, schema))
    .map(([name]) => name);
  const head = names.find((name) => simple.includes(name));
  const first = first_columns.filter((name) => simple.includes(name));
  const rest = simple.filter(
    (name) => name !== head && !first.includes(name) && name !== 'id' && name !== 'created_at',
  );
  const others = [...first, ...rest].slice(0, most_columns);
  if (simple.includes('created_at') && !others.includes('occurred_at')) others.push('created_at');
  return [
    { title: words(head ?? 'id'), cell: (row) => linked(visit, row, head) },
    ...others.map((name) => ({
      title: words(name.replace(/_id$/, '')),
      is_number: typesOf(properties[name] ?? {}).some((type) => type === 'integer' || type === 'number'),
      cell: (row: Record_) => shown(visit, name, row[name], row, true),
    })),
  ];
}

const isSimple = (schema: Schema): boolean =>
  [schema, ...(schema.anyOf ?? [])].every((one) => !typesOf(one).some((type) => type === 'object' || type === 'array'));

/** The first cell leads to the record. */
function linked(visit: DashboardVisit, row: Record_, name: string | undefined): Html | string {
  const { id } = row;
  const known_as = [name ?? '', ...names].find((one) => typeof row[one] === 'string' && row[one] !== '');
  const text = known_as === undefined ? undefined : row[known_as];
  const href = typeof id === 'string' ? hrefOf(visit.catalog, id) : undefined;
  if (!href) return name === undefined ? String(id ?? '') : shown(visit, name, text, row, true);
  return html`<a href="${href}">${typeof text === 'string' && text !== '' ? text : shortId(id as string)}</a>`;
}

/** A table of the records of a list. */
export const listTable = (
  visit: DashboardVisit,
  operation: Operation,
  rows: Record_[],
  none: unknown,
  of: string[] = [],
): Html => table(operation.summary, columnsOf(visit, operation, of), rows, none);

export function listContent(
  visit: DashboardVisit,
  operation: Operation,
  query: Record<string, string>,
  { data, has_more, total_count }: ListReply,
  of?: Record<string, string>,
): Html {
  const { catalog, reader } = visit;
  const path = addressOf(catalog, operation);
  const given = { ...of, ...query };
  const creates =
    paramsOf(operation).length > 0
      ? []
      : createsOf(catalog, operation.tag).filter(({ scope }) => mayDo(visit.role, scope));
  const { previous, next } = cursorsBeside({ data, has_more }, query);
  const page = (cursor: Record<string, string>) =>
    `${path}?${new URLSearchParams({ ...withoutCursor(given), ...cursor })}`;
  return html`${creates.length > 0 && html`<ul class="actions">${creates.map((one) => html`<li><a class="button" href="/dashboard/do/${one.name}">${actionTitle(catalog, one)}</a></li>`)}</ul>`}
${filterForm(visit, operation, query, of)}
${listTable(visit, operation, data, nothing(catalog, creates, Object.keys(withoutCursor(query)).length > 0))}
<p class="pages">${total_count !== undefined && html`<span>${counted(total_count, reader)} in all</span>`}
${previous && html`<a href="${page(previous)}">Previous page</a>`}
${next && html`<a href="${page(next)}">Next page</a>`}
${operation.stream && data.length > 0 && html`<a href="/dashboard/file/${operation.name}?${new URLSearchParams({ ...withoutCursor(given), format: 'csv' })}">All as CSV</a>`}</p>`;
}

const withoutCursor = ({
  starting_after,
  ending_before,
  limit,
  ...rest
}: Record<string, string>): Record<string, string> => rest;

/** Where a list or a view is. */
export const addressOf = (catalog: Catalog, { name, tag }: Operation): string =>
  name === `${tag}.list` && paramsOf(catalog.operations.get(name) as Operation).length === 0
    ? `/dashboard/${tag}`
    : `/dashboard/see/${name}`;

const nothing = (catalog: Catalog, creates: Operation[], is_filtered: boolean): Html | string => {
  if (is_filtered) return 'Nothing matches these filters. Change or clear them.';
  const [first] = creates;
  return first
    ? html`There is nothing here yet. <a href="/dashboard/do/${first.name}">${actionTitle(catalog, first)}</a>`
    : 'There is nothing here yet.';
};

/** The filters, folded unless one is set. */
function filterForm(
  visit: DashboardVisit,
  operation: Operation,
  query: Record<string, string>,
  of: Record<string, string> = {},
): Html | false {
  const fields = filtersOf(operation);
  if (fields.length === 0) return false;
  const is_set = fields.some(({ name }) => query[name]);
  const shown = typedOf(fields, query);
  return html`<details class="filters"${is_set && html` open`}><summary>Filters</summary>
<form class="inline" action="${addressOf(visit.catalog, operation)}">
${Object.entries(of).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
${fields.map(({ name, label, options, kind }) => {
  const id = `filter-${name}`;
  const choices = kind === 'boolean' ? ['true', 'false'] : options;
  return html`<div class="field"><label for="${id}">${label}${kind === 'time' && ' (UTC)'}</label>${
    choices.length > 0
      ? html`<select id="${id}" name="${name}"><option value="">Any</option>${choices.map((one) => html`<option${one === query[name] && html` selected`}>${one}</option>`)}</select>`
      : html`<input id="${id}" name="${name}" value="${shown[name]}"${kind === 'time' && html` type="datetime-local" step="any"`}>`
  }</div>`;
})}
<button>Filter</button><a href="${addressOf(visit.catalog, operation)}?${new URLSearchParams(of)}">Clear</a>
</form></details>`;
}

/** The query of a page: texts that are not empty, each once. */
export const queryOf = (query: unknown): Record<string, string> => {
  const parsed = z.record(z.string(), z.unknown()).parse(query);
  return Object.fromEntries(
    Object.entries(parsed).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string' && entry[1] !== '',
    ),
  );
};
