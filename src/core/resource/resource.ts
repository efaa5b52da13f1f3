import sql, { empty, join, raw, type Sql } from 'sql-template-tag';
import { z } from 'zod';
import { declareUnique } from '../postgres/errors.ts';
import type { Tx } from '../postgres/transaction.ts';
import { insert, insertAll, update, type Values } from '../postgres/write.ts';
import { notFound } from '../values/problem.ts';
import { DeletedMarker } from './deleted_marker.ts';

/** Marks an input parameter: strictly an array in code, `expand[]=a&expand[]=b` or `expand=a,b` on the wire. */
const names = (allowed: string[], what: string) =>
  z
    .array(allowed.length > 0 ? z.enum(allowed as [string, ...string[]]) : z.never())
    .default([])
    .describe(what);

export type Relations = Record<string, { resource: AnyResource; field: string }>;

export interface ResourceOptions<Shape extends z.ZodRawShape> {
  /** The `object` of its records: `partner`. */
  object: string;
  /** The name of its schema in the description, where that is not the object. */
  schema_name?: string;
  /** Its path and scope: `partners`. */
  plural: string;
  /** The base path, where that is not `/v1`. */
  base_path?: string;
  /** The noun of its list, where that is not the plural: `team members`. */
  listed_as?: string;
  /** Its name in scopes, where that is not the plural: what belongs to another resource is read by the scope of that. */
  scoped_as?: string;
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
  /** Rows are deleted outright: the field with the parent in whose lists they were, so that their ids stay cursors there. */
  hard_delete?: keyof Shape & string;
  /** The table that computed fields follow from, and its column with the record's id. The change feed reads both. */
  changes_with?: { table: string; field: string };
  /** Gives `count`: all that a parent, or else the organization, has, where that is known without counting. Lists count otherwise. */
  total?: (tx: Tx, parent_id: string) => Sql;
  /** The relations that `expand` can inline: relation name → the resource, found by `<name>_id`. */
  relations?: Record<string, AnyResource>;
  /** The fields that `include[]=stats` adds: all integers, but for `currency`. */
  stats?: { fields: z.ZodRawShape; load: (tx: Tx, rows: Row[]) => Promise<Map<string, object>> };
}

/** Until the transaction ends: nobody else changes it (true), or it stays as it is (`share`). Rows may still reference it meanwhile. */
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
  return {
    ...options,
    record,
    schema: schemaOf(options, record, relations) as z.ZodType<Record_ & { stats?: object }>,
    relations,
    ...readsOf<Record_ & object>(options),
    ...writesOf<Record_ & object>(options),
    /** Query fields of get and list. */
    expansion: {
      expand: names(Object.keys(relations), 'Relations to expand. The response includes the related objects.'),
      include: names(options.stats ? ['stats'] : [], 'Computed fields to include.'),
    },
  };
}

// biome-ignore lint/suspicious/noExplicitAny: what follows needs no shape
type AnyOptions = ResourceOptions<any>;

/** The record, with its relations and stats where they are asked for. */
function schemaOf(
  { object, schema_name = object, doc, stats }: AnyOptions,
  record: z.ZodObject,
  relations: Relations,
): z.ZodType {
  const inlined = Object.entries(relations).map(([name, { resource: target }]) => [
    name,
    z
      .union([target.schema as z.ZodType, DeletedMarker, z.null()])
      .optional()
      .describe(`With \`expand[]=${name}\`.`),
  ]);
  return z
    .object({
      ...record.shape,
      ...Object.fromEntries(inlined),
      ...(stats ? { stats: z.object(stats.fields).optional().describe('With `include[]=stats`.') } : {}),
    })
    .meta({ id: componentName(schema_name), description: doc });
}

function readsOf<Record_ extends object>(options: AnyOptions) {
  const columns = columnsOf(options);
  const from = sql`${raw(options.table)} as t`;
  const alive = options.soft_delete ? sql`t.deleted_at is null` : sql`true`;
  /** The record, or undefined where there is none in this organization. `lock`: held until the transaction ends. */
  const find = (tx: Tx, where: Sql, lock: Sql = empty): Promise<Record_ | undefined> =>
    tx.maybe<Record_>(
      sql`select ${columns} from ${from} where ${alive} and ${where} order by ${id_of_few} limit 1 ${lock}`,
    );
  return {
    columns,
    from,
    alive,
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
    /** Reads the records that are not deleted. */
    byIds: (tx: Tx, ids: string[]): Promise<Row[]> =>
      tx.all<Row>(sql`select ${columns} from ${from} where ${alive} and ${tenant(tx)} and t.id = any(${ids})`),
  };
}

function writesOf<Record_ extends object>(options: AnyOptions) {
  const { object, table, fields, hard_delete } = options;
  const columns = columnsOf(options);
  return {
    /** Inserts a record, whose times are the transaction's. @returns undefined where `on_conflict` did nothing */
    insert: (tx: Tx, values: Values, on_conflict: Sql = empty): Promise<Record_ | undefined> =>
      insert<Record_>(
        tx,
        table,
        { created_at: tx.now, ...('updated_at' in fields ? { updated_at: tx.now } : {}), ...values },
        { returning: columns, on_conflict },
      ),
    /** Inserts records, whose times are the transaction's. @returns them by id */
    insertAll: (tx: Tx, rows: (Values & { id: string })[]): Promise<Map<string, Record_>> =>
      insertAll<Record_ & { id: string }>(
        tx,
        table,
        rows.map((row) => ({ created_at: tx.now, ...('updated_at' in fields ? { updated_at: tx.now } : {}), ...row })),
        columns,
      ),
    /** Deletes a row outright. Its id stays a cursor of the lists that it was in. */
    async deleteOutright(tx: Tx, id: string): Promise<void> {
      await tx.all(sql`
        with deleted as (
          delete from ${raw(table)} as t
          where ${tenant(tx)} and t.id = ${id}
          returning t.organization_id, t.id, t.${raw(hard_delete as string)} as parent_id
        )
        insert into core.deleted_object (organization_id, id, parent_id, object, deleted_at)
        select d.organization_id, d.id, d.parent_id, ${object}, ${tx.now}::timestamptz from deleted d`);
    },
    /** Changes a record. @returns it as it is now @throws Problem resource_not_found */
    async update(tx: Tx, id: string, values: Values): Promise<Record_> {
      const row = await update<Record_>(tx, table, id, values, columns);
      if (!row) throw notFound(object, id);
      return row;
    },
  };
}

/** Returns the columns of a record, in wire shape. */
const columnsOf = ({ object, fields, computed }: AnyOptions): Sql =>
  join(
    Object.keys(fields).map((field) => {
      if (field === 'object') return sql`${object}::text as object`;
      const expression = computed?.[field];
      return expression ? sql`${expression} as ${raw(field)}` : raw(`t.${field}`);
    }),
  );

/** The meanings of fields that every record has. */
const common_meanings: Record<string, string> = {
  id: 'The id of the object.',
  created_at: 'When the object was created.',
  updated_at: 'When the object was last changed.',
};

function withCommonMeanings<Shape extends z.ZodRawShape>(fields: Shape): Shape {
  const described = Object.entries(fields as unknown as Record<string, z.ZodType>).map(([name, field]) => {
    const { description = '', ...rest } = field.meta() ?? {};
    const meaning = common_meanings[name];
    return [name, meaning ? field.meta({ ...rest, description: `${meaning} ${description}`.trim() }) : field];
  });
  return Object.fromEntries(described);
}

/** The scope that reading a resource needs. */
export const readScope = ({ plural, scoped_as = plural }: AnyResource): string => `${scoped_as}:read`;

/**
 * The order of ids, for what a few rows have: they are found by its index, and not along the ids until they are met. Postgres has no statistics of most
 * columns (data/columns.sql), takes a value that one row has for a frequent one, and would read all rows of an organization for one that none has.
 */
export const id_of_few = sql`t.id || ''`;

/** The condition that makes every statement go by the tenant's index; row-level security holds without it too. */
export const tenant = (tx: Tx): Sql => sql`t.organization_id = ${tx.organization_id}`;

/** `PayoutMethod` of `payout_method`: the name of its schema in the description. */
export const componentName = (object: string): string =>
  object
    .split('_')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
