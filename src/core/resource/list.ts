import sql, { empty, join, raw, type Sql } from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../postgres/transaction.ts';
import { Problem } from '../values/problem.ts';
import { enrich } from './enrich.ts';
import { columnOf, type Filter, filtersOf, type ListOptions, parentField, querySchema } from './list_query.ts';
import { type AnyResource, type Row, tenant } from './resource.ts';

interface Page {
  data: Row[];
  has_more: boolean;
  total_count: number;
}

/** A list's query, as its schema gives it. */
interface Query {
  limit: number;
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

/** A list of a resource: its query schema, its reply schema, and how a page of it is read. */
export function list(options: ListOptions) {
  const filters = filtersOf(options);
  return {
    query: querySchema(options, filters),
    reply: replySchema(options.resource),
    page: (tx: Tx, query: Record<string, unknown>, scopes: string[]): Promise<Page> =>
      readPage(tx, options, filters, query as Query, scopes),
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
): Promise<Page> {
  const { resource, within, shown: condition } = options;
  const cursor = cursorOf(query);
  const statements = statementsOf(tx, options, filters, query, cursor, await condition?.(tx));
  const [position, rows, { count }] = await Promise.all([
    statements.position && tx.maybe<Position>(statements.position),
    tx.all<Row>(statements.page),
    tx.one<{ count: number }>(statements.count),
    within?.get(tx, query[parentField(within)] as string, { param: parentField(within) }),
  ]);
  if (cursor && !position?.is_listed) throw invalidCursor(resource, cursor);
  const shown = rows.slice(0, query.limit);
  if (isBackwards(cursor)) shown.reverse();
  return {
    data: await enrich(tx, resource, shown, query, scopes),
    has_more: rows.length > query.limit,
    total_count: count,
  };
}

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

/** What a page is read by: its rows, how many there are in all, and where its cursor stands. */
function statementsOf(
  tx: Tx,
  options: ListOptions,
  filters: Record<string, Filter>,
  query: Query,
  cursor: Cursor | undefined,
  shown: Sql | undefined,
) {
  const { resource, within } = options;
  const parent = within && (query[parentField(within)] as string);
  const scope = within ? sql`${tenant(tx)} and ${columnOf(resource, parentField(within))} = ${parent}` : tenant(tx);
  const used = Object.entries(filters).filter(([name]) => query[name] !== undefined);
  const wheres = used.map(([name, { where }]) => where(query[name] as never));
  const where = join([scope, resource.alive, ...(shown ? [shown] : []), ...wheres], ' and ');
  const list_wheres = used.flatMap(([name, filter]) => filter.cursor?.(query[name] as never) ?? []);
  return {
    position: cursor && positionStatement(tx, resource, join([scope, ...list_wheres], ' and '), cursor, parent),
    page: pageStatement(tx, options, { scope, where, cursor, limit: query.limit }),
    count:
      resource.total && !shown && used.length === 0
        ? resource.total(tx, parent ?? tx.organization_id)
        : sql`select count(*) as count from ${resource.from} where ${where}`,
  };
}

/** The page and one row more. Its ids come first, which an index can give without the table: rows that a filter passes over are never fetched. */
function pageStatement(
  tx: Tx,
  { resource, order }: ListOptions,
  { scope, where, cursor, limit }: { scope: Sql; where: Sql; cursor: Cursor | undefined; limit: number },
): Sql {
  const ascending = (order?.oldest_first === true) !== isBackwards(cursor);
  const direction = raw(ascending ? 'asc' : 'desc');
  const ordered = sql`${order ? sql`t.${raw(order.by)} ${direction}, ` : empty}t.id ${direction}`;
  const beyond = cursor ? beyondCursor(resource, order?.by, scope, cursor, ascending) : sql`true`;
  const ids = sql`select t.id from ${resource.from} where ${where} and ${beyond} order by ${ordered} limit ${limit + 1}`;
  return sql`select ${resource.columns} from ${resource.from} where ${tenant(tx)} and t.id = any(array(${ids})) order by ${ordered}`;
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
