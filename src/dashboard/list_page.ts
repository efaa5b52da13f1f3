/** The page of a list, read off its operation: filters, columns, pages, a file, and what makes a new record. */
import { z } from 'zod';
import { type Schema, typesOf } from '../core/description/json_schema.ts';
import type { Operation } from '../core/resource/operation.ts';
import type { Problem } from '../core/values/problem.ts';
import { cursorsBeside } from '../pages/cursors.ts';
import { counted, words } from '../pages/format.ts';
import { type Html, html } from '../pages/html.ts';
import { type Column, table } from '../pages/table.ts';
import { actionTitle, addressOf, type Catalog, createsOf, paramsOf, schemaOf } from './catalog.ts';
import type { Choices } from './choices.ts';
import { filterForm } from './filters.ts';
import type { Picking } from './pick_prospects.ts';
import { mayDo } from './roles.ts';
import { hrefOf, type Record_, shown } from './values.ts';
import type { DashboardVisit } from './visit.ts';

/** The fields that people know a record by: the first of these that a list has leads to the record. The others tell apart what has no name. */
const names = 'name email title label code value subject url key'.split(' ');
const instead_of_names = 'amount_minor event_type type operation kind occurred_at created_at'.split(' ');
const first_columns =
  'handle kind type event_type operation status state stage score severity amount_minor destination_url partner_id customer_id occurred_at'.split(
    ' ',
  );
const most_columns = 5;
/** The fields that a table has no room for. */
const left_out = new Set(['object', 'metadata', 'program_id', 'updated_at', 'organization_id', 'request_id']);

export interface ListReply {
  data: Record_[];
  has_more: boolean;
  total_count?: number;
}

/** The relations of a record, or those that the columns of a list show by name. */
export function expansionOf(operation: Operation, of: string[] = []): { expand?: string } {
  const offered = (schemaOf(operation, 'query').properties?.expand?.items?.enum ?? []).map(String);
  const is_record = operation.name.endsWith('.get');
  const columns = is_record ? [] : columnNames(operation, of);
  const chosen = is_record ? offered : offered.filter((name) => columns.includes(`${name}_id`));
  return chosen.length > 0 ? { expand: chosen as never } : {};
}

const rowOf = (operation: Operation): Record<string, Schema> =>
  schemaOf(operation, 'reply').properties?.data?.items?.properties ?? {};

/**
 * The fields that the columns of a list show: those that tell records apart, and when each was made. The first leads to the record.
 * @param of fields that are the same in all rows: what the list was narrowed by
 */
export function columnNames(operation: Operation, of: string[] = []): string[] {
  const properties = rowOf(operation);
  const has_amount = Object.keys(properties).some((name) => name.endsWith('_minor'));
  const isShown = (name: string, schema: Schema) =>
    !left_out.has(name) && !of.includes(name) && !(has_amount && name === 'currency') && isSimple(schema);
  const simple = Object.entries(properties)
    .filter(([name, schema]) => isShown(name, schema))
    .map(([name]) => name);
  const head = [...names, ...instead_of_names].find((name) => simple.includes(name)) ?? 'id';
  const first = first_columns.filter((name) => simple.includes(name) && name !== head);
  const rest = simple.filter(
    (name) => name !== head && !first.includes(name) && name !== 'id' && name !== 'created_at',
  );
  const columns = [head, ...[...first, ...rest].slice(0, most_columns)];
  const has_time = columns.some((name) => name === 'occurred_at' || name === 'created_at');
  return simple.includes('created_at') && !has_time ? [...columns, 'created_at'] : columns;
}

/** The columns of a list. */
export function columnsOf(visit: DashboardVisit, operation: Operation, of: string[] = []): Column<Record_>[] {
  const [head = 'id', ...others] = columnNames(operation, of);
  const properties = rowOf(operation);
  return [
    { title: words(head), cell: (row) => linked(visit, row, head) },
    ...others.map((name) => ({
      title: words(name.replace(/_id$/, '')),
      is_number: typesOf(properties[name] ?? {}).some((type) => type === 'integer' || type === 'number'),
      cell: (row: Record_) => cell(visit, name, row),
    })),
  ];
}

/** An object, a list, or what may be anything has no room in a table. */
const isSimple = (schema: Schema): boolean =>
  [schema, ...(schema.anyOf ?? [])].every((one) => {
    const types = typesOf(one);
    const is_said = [one.type, one.anyOf, one.enum, one.const].some((said) => said !== undefined);
    return is_said && !types.some((type) => type === 'object' || type === 'array');
  });

/** A value of a row. */
const cell = (visit: DashboardVisit, name: string, row: Record_): Html | string =>
  operationOrFields(visit, name, row[name]) ?? shown(visit, name, row[name], row, true);

/** In the audit log, an operation is named as its button is, and fields as forms have them. */
export function operationOrFields({ catalog }: DashboardVisit, name: string, value: unknown): string | undefined {
  const operation = name === 'operation' ? catalog.operations.get(String(value)) : undefined;
  if (operation) return actionTitle(catalog, operation);
  return name === 'fields' && Array.isArray(value) ? value.map((one) => words(String(one))).join(', ') : undefined;
}

/** The first cell leads to the record. */
function linked(visit: DashboardVisit, row: Record_, name: string): Html | string {
  const { id } = row;
  const known_as = [name, ...names, ...instead_of_names].find(
    (one) => row[one] !== null && row[one] !== undefined && row[one] !== '',
  );
  const href = typeof id === 'string' ? hrefOf(visit.catalog, id) : undefined;
  const text = cell(visit, known_as ?? 'id', row);
  // A link in a link is none.
  return href ? html`<a href="${href}">${names.includes(known_as ?? '') ? row[known_as ?? ''] : text}</a>` : text;
}

/** A table of the records of a list. */
export const listTable = (
  visit: DashboardVisit,
  operation: Operation,
  rows: Record_[],
  none: unknown,
  of: string[] = [],
): Html => table(operation.summary, columnsOf(visit, operation, of), rows, none);

interface ListState {
  query: Record<string, string>;
  /** Parameters of the path. */
  of?: Record<string, string>;
  choices?: Choices;
  /** The problem of a filter. */
  problem?: Problem;
  /** Adds the rows that are ticked to something. */
  picking?: Picking | undefined;
}

export function listContent(
  visit: DashboardVisit,
  operation: Operation,
  { data, has_more, total_count }: ListReply,
  { query, of = {}, choices = new Map(), problem, picking }: ListState,
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
  const rows = (first: Column<Record_>[]) =>
    table(
      operation.summary,
      [...first, ...columnsOf(visit, operation)],
      data,
      nothing(catalog, operation, creates, given, is_filtered),
    );
  const is_filtered = Object.keys(withoutCursor(query)).some((name) => name !== 'brand_id');
  return html`${creates.length > 0 && html`<ul class="actions">${creates.map((one) => html`<li><a class="button" href="${formAddress(one, given)}">${actionTitle(catalog, one)}</a></li>`)}</ul>`}
${filterForm(visit, operation, { query, of, choices, problem })}
${!problem && (picking && data.length > 0 ? picking.around(rows([picking.column])) : rows([]))}
<p class="pages">${data.length > 0 && total_count !== undefined && html`<span>${counted(total_count, reader)} in all</span>`}
${previous && html`<a href="${page(previous)}">Previous page</a>`}
${next && html`<a href="${page(next)}">Next page</a>`}
${operation.stream && data.length > 0 && html`<a href="/dashboard/file/${operation.name}?${new URLSearchParams({ ...withoutCursor(given), format: 'csv' })}">All as CSV</a>`}</p>`;
}

/** The form that makes a record of a list, which belongs to what the list was narrowed to. */
export function formAddress(create: Operation, given: Record<string, string>): string {
  const { properties = {} } = schemaOf(create, 'body');
  const own = Object.entries(given).filter(([name]) => name.endsWith('_id') && properties[name]);
  return `/dashboard/do/${create.name}${own.length > 0 ? `?${new URLSearchParams(own)}` : ''}`;
}

const withoutCursor = ({
  starting_after,
  ending_before,
  limit,
  ...rest
}: Record<string, string>): Record<string, string> => rest;

/** Where records come from that people seldom make by hand. */
const come_from: Record<string, string> = {
  sales: 'Sales come from your billing processor, from your server, or from the form above.',
  refunds: 'A sale is refunded on its page.',
  commissions: 'Sales of partners earn them, by the rules.',
  payouts: 'The payout run creates them.',
  clicks: 'They are counted when visitors follow the links of partners.',
  referrals: 'Visitors who follow a link of a partner become referrals.',
  customers: 'Visitors who sign up become customers, once your website or your server says so.',
  risk_flags: 'They are raised by themselves when something looks wrong.',
  events: 'Everything that happens is listed here.',
  processor_events: 'What a billing processor sends is listed here, once one is connected.',
  sequences: 'Each prospect of a launched campaign has one.',
  threads: 'A conversation begins when a campaign is launched.',
};

function nothing(
  catalog: Catalog,
  { tag }: Operation,
  creates: Operation[],
  given: Record<string, string>,
  is_filtered: boolean,
): Html | string {
  if (is_filtered) return 'Nothing matches these filters. Change or clear them.';
  const [first] = creates;
  const said = come_from[tag];
  if (said !== undefined) return `There is nothing here yet. ${said}`;
  return first
    ? html`There is nothing here yet. <a href="${formAddress(first, given)}">${actionTitle(catalog, first)}</a>`
    : 'There is nothing here yet.';
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
