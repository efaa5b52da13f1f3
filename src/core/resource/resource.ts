import sql, { empty, join, raw, type Sql } from 'sql-template-tag';
import { z } from 'zod';
import { declareUnique } from '../postgres/errors.ts';
import type { Tx } from '../postgres/transaction.ts';
import { insert, update, type Values } from '../postgres/write.ts';
import { notFound } from '../values/problem.ts';
import { requireScope } from './scope.ts';

/** Marks an input parameter: strictly an array in code, `expand[]=a&expand[]=b` or `expand=a,b` on the wire. */
const names = (allowed: string[], what: string) =>
  z
    .array(allowed.length > 0 ? z.enum(allowed as [string, ...string[]]) : z.never())
    .default([])
    .describe(what);

type Relations = Record<string, { resource: AnyResource; field: string }>;

export interface ResourceOptions<Shape extends z.ZodRawShape> {
  /** The `object` of its records: `partner`. */
  object: string;
  /** Its path and scope: `partners`. */
  plural: string;
  table: string;
  /** The unique constraints and indexes of the table: the field that each stands for, or null where callers do not choose its value. */
  unique?: Record<string, (keyof Shape & string) | null>;
  /** One sentence. */
  doc: string;
  /** The record's fields, in the order in which they are shown. */
  fields: Shape;
  /** Fields that are no columns of the table, which is called `t` here. */
  computed?: Partial<Record<keyof Shape, Sql>>;
  /** Rows stay, marked by `deleted_at`, and are no longer found. */
  soft_delete?: boolean;
  /** Rows are deleted outright: the prefix of their ids, which alone tells then what an id was of. */
  hard_delete?: string;
  /** Gives `count`: all that a parent, or else the organization, has, where that is known without counting. Lists count otherwise. */
  total?: (tx: Tx, parent_id: string) => Sql;
  /** What `expand` can inline: relation name → the resource, found by `<name>_id`. */
  relations?: Record<string, AnyResource>;
  /** What `include[]=stats` adds: all integers, but for `currency`. */
  stats?: { fields: z.ZodRawShape; load: (tx: Tx, rows: Row[]) => Promise<Map<string, object>> };
}

/** Until the transaction ends: nobody else changes it (true), or it stays as it is (`share`). Rows may hang on it meanwhile. */
export type Lock = boolean | 'share';

export const lockOf = (lock: Lock): Sql => {
  if (!lock) return empty;
  return lock === 'share' ? sql`for share of t` : sql`for no key update of t`;
};

export type Row = Record<string, unknown> & { id: string };
// biome-ignore lint/suspicious/noExplicitAny: relations hold resources of every shape
export type AnyResource = Resource<any>;
export type Resource<Shape extends z.ZodRawShape = z.ZodRawShape> = ReturnType<typeof resource<Shape>>;

/**
 * A noun: its record, how its rows are read in wire shape, and what can be inlined. Lists, gets, expansions and the description
 * all follow from this one value.
 */
export function resource<Shape extends z.ZodRawShape>(options: ResourceOptions<Shape>) {
  declareUnique(options.object, options.unique ?? {});
  const record = z.object(withCommonMeanings(options.fields));
  type Record_ = z.infer<typeof record>;
  const relations: Relations = Object.fromEntries(
    Object.entries(options.relations ?? {}).map(([name, target]) => [name, { resource: target, field: `${name}_id` }]),
  );
  const inlined = Object.fromEntries(
    Object.entries(relations).map(([name, { resource: target }]) => [
      name,
      (target.schema as z.ZodType).nullable().optional().describe(`With \`expand[]=${name}\`.`),
    ]),
  );
  const schema = z
    .object({
      ...record.shape,
      ...inlined,
      ...(options.stats
        ? { stats: z.object(options.stats.fields).optional().describe('With `include[]=stats`.') }
        : {}),
    })
    .meta({ id: componentName(options.object), description: options.doc }) as z.ZodType<Record_ & { stats?: object }>;

  const columns = join(
    Object.keys(options.fields).map((field) => {
      if (field === 'object') return sql`${options.object}::text as object`;
      const computed = options.computed?.[field as keyof Shape];
      return computed ? sql`${computed} as ${raw(field)}` : raw(`t.${field}`);
    }),
  );
  const from = sql`${raw(options.table)} as t`;
  const alive = options.soft_delete ? sql`t.deleted_at is null` : sql`true`;

  /** The record, or undefined where there is none in this organization. `lock`: held until the transaction ends. */
  const find = (tx: Tx, where: Sql, lock: Sql = empty): Promise<Record_ | undefined> =>
    tx.maybe<Record_ & object>(
      sql`select ${columns} from ${from} where ${alive} and ${where} order by t.id limit 1 ${lock}`,
    );

  return {
    ...options,
    record,
    schema,
    columns,
    from,
    alive,
    relations,
    find,
    /** @throws Problem resource_not_found; `param` names the field that held the id */
    async get(
      tx: Tx,
      id: string,
      { param = 'id', lock = false }: { param?: string; lock?: Lock } = {},
    ): Promise<Record_> {
      const row = await find(tx, sql`${tenant(tx)} and t.id = ${id}`, lockOf(lock));
      if (!row) throw notFound(options.object, id, param);
      return row;
    },
    /** Inserts a record, whose times are the transaction's. @returns undefined where `on_conflict` did nothing */
    insert: (tx: Tx, values: Values, on_conflict?: Sql): Promise<Record_ | undefined> =>
      insert<Record_ & object>(
        tx,
        options.table,
        { created_at: tx.now, ...('updated_at' in options.fields ? { updated_at: tx.now } : {}), ...values },
        { returning: columns, ...(on_conflict ? { on_conflict } : {}) },
      ),
    /** Changes a record. @returns it as it is now @throws Problem resource_not_found */
    async update(tx: Tx, id: string, values: Values): Promise<Record_> {
      const row = await update<Record_ & object>(tx, options.table, id, values, columns);
      if (!row) throw notFound(options.object, id);
      return row;
    },
    byIds: (tx: Tx, ids: string[]): Promise<Row[]> =>
      tx.all<Row>(sql`select ${columns} from ${from} where ${tenant(tx)} and t.id = any(${ids})`),
    /** Query fields of get and list. */
    expansion: {
      expand: names(Object.keys(relations), 'Relations to inline.'),
      include: names(options.stats ? ['stats'] : [], 'Computed additions.'),
    },
  };
}

/** What every record's fields of these names mean. */
const common_meanings: Record<string, string> = {
  id: 'What the object is called in paths and references.',
  program_id: 'The program that it belongs to.',
  created_at: 'When it was recorded.',
  updated_at: 'When it last changed.',
};

function withCommonMeanings<Shape extends z.ZodRawShape>(fields: Shape): Shape {
  const told = Object.entries(fields as unknown as Record<string, z.ZodType>).map(([name, field]) => {
    const { description = '', ...rest } = field.meta() ?? {};
    const meaning = common_meanings[name];
    return [name, meaning ? field.meta({ ...rest, description: `${meaning} ${description}`.trim() }) : field];
  });
  return Object.fromEntries(told);
}

/** The condition that makes every statement go by the tenant's index; row-level security holds without it too. */
export const tenant = (tx: Tx): Sql => sql`t.organization_id = ${tx.organization_id}`;

/** Inlines what `expand` names and adds what `include` names, one statement each, whatever the number of rows. @returns the same rows */
export async function enrich<T extends object>(
  tx: Tx,
  of: AnyResource,
  rows: T[],
  asked: { expand: string[]; include: string[] },
  scopes: string[],
): Promise<T[]> {
  const enriched = rows as unknown as Row[];
  await Promise.all([
    ...asked.expand.map((name) => expand(tx, of, enriched, name, scopes)),
    asked.include.includes('stats') && addStats(tx, of, enriched),
  ]);
  return rows;
}

async function expand(tx: Tx, of: AnyResource, rows: Row[], name: string, scopes: string[]): Promise<void> {
  const { resource: target, field } = (of.relations as Relations)[name] as Relations[string];
  requireScope(scopes, `${target.plural}:read`);
  const ids = [...new Set(rows.map((row) => row[field]).filter((id) => id !== null))] as string[];
  const found = new Map((ids.length > 0 ? await target.byIds(tx, ids) : []).map((row: Row) => [row.id, row]));
  for (const row of rows) row[name] = found.get(row[field] as string) ?? null;
}

async function addStats(tx: Tx, of: AnyResource, rows: Row[]): Promise<void> {
  const stats = await of.stats?.load(tx, rows);
  if (stats) for (const row of rows) row.stats = stats.get(row.id);
}

const componentName = (object: string): string =>
  object
    .split('_')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
