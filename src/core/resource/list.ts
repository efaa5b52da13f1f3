import sql, { join, raw, type Sql } from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../postgres/transaction.ts';
import { time } from '../values/fields.ts';
import { isIdOf } from '../values/id.ts';
import { Problem } from '../values/problem.ts';
import { type AnyResource, enrich, type Row, tenant } from './resource.ts';

const bounds = 'must be an integer from 1 to 100';

/** Query fields that every list takes. */
const paging = {
  limit: z
    .preprocess(
      (given) => (typeof given === 'string' && /^[0-9]+$/.test(given) ? Number(given) : given),
      z.int(bounds).min(1, bounds).max(100, bounds),
    )
    .prefault(25)
    .describe('Objects in a page at most.'),
  starting_after: z
    .string()
    .min(1)
    .optional()
    .describe("The id of an object of this list: the page after it. Pass the last object's for the next page."),
  ending_before: z
    .string()
    .min(1)
    .optional()
    .describe("The id of an object of this list: the page before it. Pass the first object's for the page before."),
};

/** What a filter does: equality with a column, or a bound on the time of creation. */
const filters = {
  id: (field: string) => ({
    schema: z.string().min(1).optional(),
    where: (value: string) => sql`t.${raw(field)} = ${value}`,
  }),
};

const created = {
  created_after: {
    schema: time.optional().describe('ISO 8601: created then or later.'),
    where: (value: string) => sql`t.created_at >= ${value}::timestamptz`,
  },
  created_before: {
    schema: time.optional().describe('ISO 8601: created before.'),
    where: (value: string) => sql`t.created_at < ${value}::timestamptz`,
  },
};

export interface Filter {
  schema: z.ZodType;
  where: (value: never) => Sql;
  /** What a cursor must match too, where the filter says what the list is of. */
  cursor?: (value: never) => Sql;
}

export interface ListOptions {
  of: AnyResource;
  /** The record's fields that a caller may filter by, each for equality. */
  by?: string[];
  /** Filters that need more than equality. */
  filters?: Record<string, Filter>;
  /** What the list is of one of: `program` makes `program_id` required. */
  within?: AnyResource;
  /** Newest first unless a column is named: then by it, oldest first. */
  oldest_first_by?: string;
}

/** A list of a resource: its query schema, its reply schema, and how a page of it is read. */
export function list({ of, by = [], filters: special = {}, within, oldest_first_by }: ListOptions) {
  const equal = Object.fromEntries(
    by.map((field) => {
      const { schema, where } = filters.id(field);
      const column = (of.fields as Record<string, z.ZodType>)[field] as z.ZodType;
      const known = column instanceof z.ZodNullable ? (column.unwrap() as z.ZodType) : column;
      const { examples } = known.meta() ?? {};
      const taken = known instanceof z.ZodEnum ? known.optional() : schema.meta(examples ? { examples } : {});
      return [field, { schema: taken, where }];
    }),
  );
  const parent = within ? `${within.object}_id` : '';
  const all: Record<string, Filter> = { ...equal, ...('created_at' in of.fields ? created : {}), ...special };
  const query = z.strictObject({
    ...(within ? { [parent]: z.string().min(1).describe(`The ${within.object} whose objects are listed.`) } : {}),
    ...paging,
    ...of.expansion,
    ...Object.fromEntries(Object.entries(all).map(([name, { schema }]) => [name, filterOf(name, schema)])),
  });
  const reply = z.object({
    data: z.array(of.schema as z.ZodType<Row>).describe('The page, in the order of the list.'),
    has_more: z.boolean().describe('Whether there are more in the direction of the page.'),
    total_count: z.number().int().describe('All that match the filters, whatever the cursor.'),
  });

  async function page(tx: Tx, asked: Record<string, unknown>, scopes: string[]): Promise<z.infer<typeof reply>> {
    const { limit, starting_after, ending_before, expand, include } = asked as {
      limit: number;
      starting_after?: string;
      ending_before?: string;
      expand: string[];
      include: string[];
    };
    if (starting_after !== undefined && ending_before !== undefined) {
      throw new Problem('invalid_parameter', 'Give starting_after or ending_before, not both.', {
        param: 'ending_before',
      });
    }
    const scope = within ? sql`${tenant(tx)} and t.${raw(parent)} = ${asked[parent]}` : tenant(tx);
    const given = Object.entries(all).filter(([name]) => asked[name] !== undefined);
    const matching = join(
      [scope, of.alive, ...given.map(([name, filter]) => filter.where(asked[name] as never))],
      ' and ',
    );
    const cursor = starting_after ?? ending_before;
    const listed = given.flatMap(([name, filter]) => filter.cursor?.(asked[name] as never) ?? []);
    const backwards = ending_before !== undefined;
    const ascending = (oldest_first_by !== undefined) !== backwards;
    const place = oldest_first_by ? sql`t.${raw(oldest_first_by)}, t.id` : sql`t.id`;
    const beyond =
      cursor === undefined
        ? sql`true`
        : sql`(${place}) ${raw(ascending ? '>' : '<')} ${oldest_first_by ? sql`(select ${place} from ${of.from} where ${scope} and t.id = ${cursor})` : sql`${cursor}`}`;
    const direction = raw(ascending ? 'asc' : 'desc');
    const order = sql`${oldest_first_by ? sql`t.${raw(oldest_first_by)} ${direction}, ` : sql``}t.id ${direction}`;
    // The page's ids first, which an index alone can give: rows that a filter passes over are never fetched.
    const ids = sql`select t.id from ${of.from} where ${matching} and ${beyond} order by ${order} limit ${limit + 1}`;
    const [found, rows, count] = await Promise.all([
      cursor === undefined ? [] : tx.all<Found>(placeOf(tx, of, join([scope, ...listed], ' and '), cursor)),
      tx.all<Row>(
        sql`select ${of.columns} from ${of.from} where ${tenant(tx)} and t.id = any(array(${ids})) order by ${order}`,
      ),
      tx.one<{ count: number }>(
        of.total && given.length === 0
          ? of.total(tx, within ? (asked[parent] as string) : tx.organization_id)
          : sql`select count(*) as count from ${of.from} where ${matching}`,
      ),
      within?.get(tx, asked[parent] as string, { param: parent }),
    ]);
    if (cursor !== undefined && !isKnown(of, cursor, found[0])) {
      const param = backwards ? 'ending_before' : 'starting_after';
      throw new Problem(
        'invalid_cursor',
        `'${cursor}' is not the id of ${article(of.object)} in this list: use the id of an object that the list gave you.`,
        {
          param,
        },
      );
    }
    const shown = rows.slice(0, limit);
    if (backwards) shown.reverse();
    return {
      data: await enrich(tx, of, shown, { expand, include }, scopes),
      has_more: rows.length > limit,
      total_count: count.count,
    };
  }

  return { query, reply, page };
}

type Found = { listed: boolean };

/** Gives the row that a cursor names, wherever it is, and whether it is of the list. */
const placeOf = (tx: Tx, of: AnyResource, scope: Sql, cursor: string): Sql =>
  sql`select ${scope} as listed from ${of.from} where ${tenant(tx)} and t.id = ${cursor}`;

/** A cursor is of a row of the list that is there, or where rows are deleted outright, of one that may have been. */
const isKnown = ({ hard_delete }: AnyResource, cursor: string, found: Found | undefined): boolean =>
  found?.listed ?? (hard_delete !== undefined && isIdOf(hard_delete, cursor));

/** The schema of a filter, which says what it does unless it does so itself. */
const filterOf = (name: string, schema: z.ZodType): z.ZodType => {
  const said = schema.meta();
  return said?.description ? schema : schema.meta({ ...said, description: `Only those whose \`${name}\` is this.` });
};

const article = (noun: string): string => `${/^[aeiou]/.test(noun) ? 'an' : 'a'} ${noun.replaceAll('_', ' ')}`;
