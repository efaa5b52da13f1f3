import sql, { empty, join, raw, type Sql } from 'sql-template-tag';
import { z } from 'zod';
import type { StreamFormat } from '../formats/format.ts';
import type { RowStream } from '../formats/row_stream.ts';
import type { Tx } from '../postgres/transaction.ts';
import { Problem } from '../values/problem.ts';
import { enrich } from './enrich.ts';
import {
  columnOf,
  default_limit,
  type Filter,
  type Finder,
  filtersOf,
  type ListOptions,
  parentField,
  querySchema,
  type Total,
} from './list_query.ts';
import { type AnyResource, id_of_few, type Row, tenant } from './resource.ts';

interface Page {
  data: Row[];
  has_more: boolean;
  total_count: number;
}

/** A list's query, as its schema gives it. */
interface Query {
  limit?: number;
  starting_after?: string;
  ending_before?: string;
  expand: string[];
  include: string[];
  /** The parent's id, and filters. */
  [name: string]: unknown;
}

interface Cursor {
  param: 'starting_after' | 'ending_before';
  id: string;
}

/** A list of a resource: its query schema, its reply schema, and how a page of it, or all of it, is read. */
export function list(options: ListOptions) {
  const filters = filtersOf(options);
  return {
    query: querySchema(options, filters),
    reply: replySchema(options.resource),
    /** @param counts_to how far the total is counted where that takes counting: one more stands for all that is more. Exact where left out. */
    page: (tx: Tx, query: Record<string, unknown>, scopes: string[], counts_to?: number): Promise<Page> =>
      readPage(tx, options, filters, query as Query, scopes, counts_to),
    /** The whole list. */
    stream: (tx: Tx, query: Record<string, unknown>, scopes: string[], format: StreamFormat): Promise<RowStream> =>
      streamList(tx, options, filters, query as Query, scopes, format),
  };
}

const replySchema = (resource: AnyResource) =>
  z.object({
    data: z.array(resource.schema as z.ZodType<Row>).describe('The objects of the page, in the order of the list.'),
    has_more: z.boolean().describe('Whether more objects follow in the direction of the page.'),
    total_count: z.number().int().describe('How many objects match the filters, on all pages.'),
  });

async function readPage(
  tx: Tx,
  options: ListOptions,
  filters: Record<string, Filter>,
  query: Query,
  scopes: string[],
  counts_to: number | undefined,
): Promise<Page> {
  const { resource, within, shown: condition } = options;
  const { limit = default_limit } = query;
  const cursor = cursorOf(query);
  const where = wheresOf(tx, options, filters, query, await condition?.(tx));
  const statements = statementsOf(tx, options, where, { cursor, limit, counts_to });
  const [position, { rows, count }] = await Promise.all([
    statements.position && tx.maybe<Position>(statements.position),
    options.finder && !condition
      ? readByFinder(tx, options, options.finder, where, statements, query)
      : readBoth(tx, statements),
    within?.get(tx, query[parentField(within)] as string, { param: parentField(within) }),
  ]);
  if (cursor && !position?.is_listed) throw invalidCursor(resource, cursor);
  const shown = rows.slice(0, limit);
  if (isBackwards(cursor)) shown.reverse();
  return {
    data: await enrich(tx, resource, shown, query, scopes),
    has_more: rows.length > limit,
    total_count: count,
  };
}

async function readBoth(tx: Tx, { page, count }: Pick<Statements, 'page' | 'count'>): Promise<Counted> {
  const [rows, counted] = await Promise.all([tx.all<Row>(page), tx.one<{ count: number }>(count)]);
  return { rows, count: counted.count };
}

/** The rows of a page and one more, and how many match on all pages. */
interface Counted {
  rows: Row[];
  count: number;
}

/** By the finder where it is the shorter way to the page, which the total may decide. */
async function readByFinder(
  tx: Tx,
  { resource, order, totals }: ListOptions,
  finder: Finder,
  { used }: Wheres,
  statements: Statements,
  query: Query,
): Promise<Counted> {
  const { limit = default_limit } = query;
  const is_known = totals && used.every((name) => totals.by.includes(name));
  const total = is_known ? await tx.one<Total>(totals.read(tx, query as never)) : undefined;
  if (total?.count === 0) return { rows: [], count: 0 };
  if (!finder.suits(used, total, limit)) {
    return total ? { rows: await tx.all<Row>(statements.page), count: total.count } : readBoth(tx, statements);
  }
  const cursor = cursorOf(query);
  const ascending = (order?.oldest_first === true) !== isBackwards(cursor);
  const cut = { beyond: cursor?.id ?? null, ascending, most: limit + 1 };
  const { ids, count } = await tx.one<{ ids: string[]; count: number }>(finder.page(query as never, cut));
  const rows = await tx.all<Row>(sql`
    select ${resource.columns} from ${resource.from}
    where ${tenant(tx)} and t.id = any(${ids}) order by ${orderedBy(undefined, ascending)}`);
  return { rows, count: total?.count ?? count };
}

/** @throws Problem invalid_parameter when a page is asked for, invalid_expand when CSV is to show related objects */
async function streamList(
  tx: Tx,
  options: ListOptions,
  filters: Record<string, Filter>,
  query: Query,
  scopes: string[],
  format: StreamFormat,
): Promise<RowStream> {
  const { resource, within, order, shown: condition } = options;
  refusePages(query, format);
  if (format === 'csv') refuseExpansion(query);
  await within?.get(tx, query[parentField(within)] as string, { param: parentField(within) });
  const { shown } = wheresOf(tx, options, filters, query, await condition?.(tx));
  const ordered = orderedBy(order?.by, order?.oldest_first === true);
  const all = sql`select ${resource.columns} from ${resource.from} where ${shown} order by ${ordered}`;
  return {
    name: resource.plural,
    columns: columnsOf(resource, query),
    rows: enriched(tx, resource, all, query, scopes),
  };
}

async function* enriched(tx: Tx, resource: AnyResource, all: Sql, query: Query, scopes: string[]) {
  await enrich(tx, resource, [], query, scopes); // a scope that is missing is said of an empty list too
  for await (const rows of tx.batches<Row>(all)) yield await enrich(tx, resource, rows, query, scopes);
}

function refusePages(query: Query, format: StreamFormat): void {
  const param = ['limit', 'starting_after', 'ending_before'].find((name) => query[name] !== undefined);
  if (param === undefined) return;
  throw new Problem(
    'invalid_parameter',
    `'${param}' applies to pages, and ${format} returns the whole list. Leave it out.`,
    {
      param,
    },
  );
}

function refuseExpansion({ expand }: Query): void {
  if (expand.length === 0) return;
  throw new Problem('invalid_expand', "'expand' is not supported in csv. Use ndjson, or leave it out.", {
    param: 'expand',
  });
}

/** The record's fields, in their order, and the stats where they are asked for. */
const columnsOf = ({ fields, stats }: AnyResource, { include }: Query): string[] => [
  ...Object.keys(fields),
  ...(include.includes('stats') ? Object.keys(stats?.fields ?? {}).map((field) => `stats.${field}`) : []),
];

/** @throws Problem invalid_parameter when both cursors are given */
function cursorOf({ starting_after, ending_before }: Query): Cursor | undefined {
  if (starting_after !== undefined && ending_before !== undefined) {
    throw new Problem('invalid_parameter', 'Send either starting_after or ending_before, not both.', {
      param: 'ending_before',
    });
  }
  if (starting_after !== undefined) return { param: 'starting_after', id: starting_after };
  return ending_before === undefined ? undefined : { param: 'ending_before', id: ending_before };
}

const isBackwards = (cursor: Cursor | undefined): boolean => cursor?.param === 'ending_before';

/** The conditions of a list: on whose objects it has, on those that it shows, and on those that a cursor may name. */
interface Wheres {
  parent: string | undefined;
  scope: Sql;
  shown: Sql;
  cursor: Sql;
  /** The number of rows that it shows, where that is known without counting. */
  total: Sql | undefined;
  /** The names of its filters. */
  used: string[];
  /** True if a filter leaves a few at most. */
  is_of_few: boolean;
}

function wheresOf(
  tx: Tx,
  { resource, within }: ListOptions,
  filters: Record<string, Filter>,
  query: Query,
  condition: Sql | undefined,
): Wheres {
  const parent = within && (query[parentField(within)] as string);
  const scope = within ? sql`${tenant(tx)} and ${columnOf(resource, parentField(within))} = ${parent}` : tenant(tx);
  const used = Object.entries(filters).filter(([name]) => query[name] !== undefined);
  const wheres = used.map(([name, { where }]) => where(query[name] as never, query as never));
  const absent = Object.entries(filters).flatMap(([name, filter]) =>
    query[name] === undefined ? (filter.absent ?? []) : [],
  );
  const all = [
    scope,
    resource.alive,
    ...(condition ? [condition] : []),
    ...absent.map(({ where }) => where),
    ...wheres,
  ];
  const of_cursor = used.flatMap(([name, filter]) => filter.cursor?.(query[name] as never) ?? []);
  // The total behind two defaults is unknown.
  const total = absent[0]?.total ?? resource.total;
  const is_known = !condition && used.length === 0 && absent.length <= 1;
  return {
    parent,
    scope,
    shown: join(all, ' and '),
    cursor: join([scope, ...of_cursor], ' and '),
    total: is_known ? total?.(tx, parent ?? tx.organization_id) : undefined,
    used: used.map(([name]) => name),
    is_of_few: used.some(([, filter]) => filter.is_of_few),
  };
}

interface Statements {
  position: Sql | undefined;
  page: Sql;
  count: Sql;
}

/** Builds the statements of a page: its rows, their total, and the place of its cursor. */
function statementsOf(
  tx: Tx,
  options: ListOptions,
  where: Wheres,
  { cursor, limit, counts_to }: { cursor: Cursor | undefined; limit: number; counts_to: number | undefined },
): Statements {
  const { resource } = options;
  const counted = sql`select from ${resource.from} where ${where.shown}`;
  const bounded = counts_to === undefined ? counted : sql`${counted} limit ${counts_to + 1}`;
  return {
    position: cursor && positionStatement(tx, resource, where.cursor, cursor, where.parent),
    page: pageStatement(tx, options, where, cursor, limit),
    count: where.total ?? sql`select count(*) as count from (${bounded}) n`,
  };
}

/** The page and one row more. Its ids come first, which an index can give without the table: rows that a filter passes over are never fetched. */
function pageStatement(
  tx: Tx,
  { resource, order }: ListOptions,
  { scope, shown, is_of_few }: Wheres,
  cursor: Cursor | undefined,
  limit: number,
): Sql {
  const ascending = (order?.oldest_first === true) !== isBackwards(cursor);
  const ordered = orderedBy(order?.by, ascending);
  const beyond = cursor ? beyondCursor(resource, order?.by, scope, cursor, ascending) : sql`true`;
  const found_by = is_of_few ? sql`${id_of_few} ${raw(ascending ? 'asc' : 'desc')}` : ordered;
  const ids = sql`select t.id from ${resource.from} where ${shown} and ${beyond} order by ${found_by} limit ${limit + 1}`;
  return sql`select ${resource.columns} from ${resource.from} where ${tenant(tx)} and t.id = any(array(${ids})) order by ${ordered}`;
}

function orderedBy(column: string | undefined, ascending: boolean): Sql {
  const direction = raw(ascending ? 'asc' : 'desc');
  return sql`${column ? sql`t.${raw(column)} ${direction}, ` : empty}t.id ${direction}`;
}

function beyondCursor(
  resource: AnyResource,
  column: string | undefined,
  scope: Sql,
  { id }: Cursor,
  ascending: boolean,
): Sql {
  const comparison = raw(ascending ? '>' : '<');
  if (!column) return sql`(t.id) ${comparison} ${id}`;
  const position = sql`t.${raw(column)}, t.id`;
  return sql`(${position}) ${comparison} (select ${position} from ${resource.from} where ${scope} and t.id = ${id})`;
}

type Position = { is_listed: boolean };

/** Reads the row that a cursor names, in any list, and whether it is, or was, in this one. */
function positionStatement(
  tx: Tx,
  resource: AnyResource,
  is_listed: Sql,
  { id }: Cursor,
  parent: string | undefined,
): Sql {
  const position = sql`select ${is_listed} as is_listed from ${resource.from} where ${tenant(tx)} and t.id = ${id}`;
  if (resource.hard_delete === undefined) return position;
  return sql`${position} union all
    select t.parent_id = ${parent} from core.deleted_object t where ${tenant(tx)} and t.id = ${id}`;
}

const invalidCursor = ({ object }: AnyResource, { param, id }: Cursor): Problem =>
  new Problem(
    'invalid_cursor',
    `'${id}' is not the id of ${withArticle(object)} in this list. Use the id of an object that the list returned.`,
    { param },
  );

const withArticle = (noun: string): string => `${/^[aeiou]/.test(noun) ? 'an' : 'a'} ${noun.replaceAll('_', ' ')}`;
