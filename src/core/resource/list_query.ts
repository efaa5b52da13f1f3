import { escapeLiteral } from 'pg';
import sql, { raw, type Sql } from 'sql-template-tag';
import { z } from 'zod';
import { formatFields } from '../formats/format.ts';
import type { Tx } from '../postgres/transaction.ts';
import { timestampInput } from '../values/fields.ts';
import type { AnyResource } from './resource.ts';

export interface ListOptions {
  resource: AnyResource;
  /** The record's fields that a caller may filter by, each for equality. */
  by?: string[];
  /** Filters that need more than equality. */
  filters?: Record<string, Filter>;
  /** The parent whose objects are listed: `program` makes `program_id` required. */
  within?: AnyResource;
  /** Newest first by id unless a column is named. */
  order?: { by: string; oldest_first: boolean };
  /** A condition on all objects that the list shows, which is read before the page, in a statement of its own. */
  shown?: (tx: Tx) => Promise<Sql>;
  totals?: Totals;
  finder?: Finder;
  /** Further facts about the list that a caller must know. */
  list_doc?: string;
}

export interface Filter {
  schema: z.ZodType;
  /** @param query the whole query, where the filter depends on another one */
  where: (value: never, query: never) => Sql;
  /** The condition of a list without the filter, and the number of its objects in a parent. */
  absent?: { where: Sql; total: NonNullable<AnyResource['total']> };
  /** A condition that a cursor must match too, where the filter decides which objects the list has. */
  cursor?: (value: never) => Sql;
  /** True if a value is that of a few objects at most: they are found by the index of the value, however many objects there are. */
  is_of_few?: boolean;
}

/** The number of objects of a list, where that is known without counting them. */
export interface Total {
  count: number;
  /** The number of all objects of the parent. */
  of: number;
}

/** Reads `Total`, for lists that are filtered by nothing but these. */
export interface Totals {
  by: string[];
  read: (tx: Tx, query: never) => Sql;
}

/** Finds the objects of a list by id, whatever the filters: an index that Postgres would not use for its statement. */
export interface Finder {
  /**
   * Returns whether a list uses it.
   * @param used the names of the filters
   * @param total undefined where it is not known without counting
   */
  suits: (used: string[], total: Total | undefined, limit: number) => boolean;
  /** Gives `ids`, at most so many beyond the cursor, and the `count` of all. */
  page: (query: never, cut: Cut) => Sql;
}

export interface Cut {
  /** The id of the cursor. */
  beyond: string | null;
  ascending: boolean;
  most: number;
}

export const default_limit = 25;
const bounds = 'must be an integer from 1 to 100';

/** Query fields that every list takes. */
const paging = {
  limit: z
    .preprocess(
      (given) => (typeof given === 'string' && /^[0-9]+$/.test(given) ? Number(given) : given),
      z.int(bounds).min(1, bounds).max(100, bounds),
    )
    .optional()
    .meta({ description: 'The maximum number of objects in a page.', default: default_limit }),
  starting_after: z
    .string()
    .min(1)
    .optional()
    .describe(
      "The id of an object of this list: returns the page after it. For the next page, pass the last object's id.",
    ),
  ending_before: z
    .string()
    .min(1)
    .optional()
    .describe(
      "The id of an object of this list: returns the page before it. For the previous page, pass the first object's id.",
    ),
};

const created_filters: Record<string, Filter> = {
  created_after: {
    schema: timestampInput.optional().describe('Returns only objects created at or after this time, in ISO 8601.'),
    where: (value: string) => sql`t.created_at >= ${value}::timestamptz`,
  },
  created_before: {
    schema: timestampInput.optional().describe('Returns only objects created before this time, in ISO 8601.'),
    where: (value: string) => sql`t.created_at < ${value}::timestamptz`,
  },
};

/** All filters of a list, by name: those for equality, those on the time of creation where there is one, and its own. */
export const filtersOf = ({ resource, by = [], filters = {} }: ListOptions): Record<string, Filter> => ({
  ...Object.fromEntries(by.map((field) => [field, equality(resource, field)])),
  ...('created_at' in resource.fields ? created_filters : {}),
  ...filters,
});

/** Takes a field's value: one of those that exist where the record's field is an enum, else any text. */
function equality(resource: AnyResource, field: string): Filter {
  const recorded = (resource.fields as Record<string, z.ZodType>)[field] as z.ZodType;
  const type = recorded instanceof z.ZodNullable ? (recorded.unwrap() as z.ZodType) : recorded;
  const { examples } = type.meta() ?? {};
  const any_text = z.string().min(1).optional();
  if (type instanceof z.ZodEnum) {
    // One of few, and a part of the statement: of a parameter Postgres does not know, when it plans once for all values, whether an index has it that
    // leaves out the most frequent one.
    return {
      schema: type.optional(),
      where: (value: string) => sql`${columnOf(resource, field)} = ${raw(escapeLiteral(value))}`,
    };
  }
  return {
    schema: any_text.meta(examples ? { examples } : {}),
    where: (value: string) => sql`${columnOf(resource, field)} = ${value}`,
  };
}

/** Returns the column of a record's field. */
export const columnOf = ({ computed }: AnyResource, field: string): Sql => computed?.[field] ?? sql`t.${raw(field)}`;

/** `program_id` for a list of a program's objects. */
export const parentField = (parent: AnyResource): string => `${parent.object}_id`;

export const querySchema = ({ resource, within }: ListOptions, filters: Record<string, Filter>) =>
  z.strictObject({
    ...(within ? { [parentField(within)]: parentSchema(within) } : {}),
    ...paging,
    ...formatFields,
    ...resource.expansion,
    ...Object.fromEntries(Object.entries(filters).map(([name, { schema }]) => [name, described(name, schema)])),
  });

const parentSchema = ({ object }: AnyResource): z.ZodType =>
  z.string().min(1).describe(`The ${object} to list objects of.`);

/** The schema of a filter, with a description unless it has its own. */
const described = (name: string, schema: z.ZodType): z.ZodType => {
  const meta = schema.meta();
  return meta?.description
    ? schema
    : schema.meta({ ...meta, description: `Returns only objects with this \`${name}\`.` });
};
