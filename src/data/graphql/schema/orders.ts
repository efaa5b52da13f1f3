/**
 * The orders of lists. Each ends with the key of the view, so that rows have the same order in every page, and a cursor says where a page ended
 * in both directions. PostGraphile's own cursors leave out or repeat rows where a column that they are compared with is null.
 */
import 'postgraphile';
import 'postgraphile/graphile-build-pg';
import { type PgCodec, type PgSelectQueryBuilder, TYPES } from 'postgraphile/@dataplan/pg';
import { type FieldArg, lambda, type Step } from 'postgraphile/grafast';
import { sql } from 'postgraphile/pg-sql2';
import { tags, type ViewTags } from './tags.ts';

interface View {
  attributes?: Record<string, { codec: PgCodec }>;
  extensions?: { pg?: { name: string } };
}

type Direction = 'ASC' | 'DESC';

/** A column of the key, or another one that rows can be ordered by. */
interface Order {
  columns: string[];
  direction: Direction;
}

const tagsOf = ({ extensions }: View): ViewTags | undefined => tags[extensions?.pg?.name ?? ''];

/** By their names in the API, such as `PRIMARY_KEY_DESC`. */
function ordersOf({ key, orders = [] }: ViewTags): Record<string, Order> {
  const all = [{ name: 'PRIMARY_KEY', columns: key }, ...orders.map((column) => ({ name: column, columns: [column] }))];
  const directions = ['ASC', 'DESC'] as const;
  return Object.fromEntries(
    all.flatMap(({ name, columns }) =>
      directions.map((direction) => [`${name.toUpperCase()}_${direction}`, { columns, direction }]),
    ),
  );
}

/** Orders rows by what is asked for, then by the key. `NATURAL`, and nothing, is the default: the key, newest first. */
function order(rows: PgSelectQueryBuilder, view: View, names: readonly string[]): void {
  const own = tagsOf(view) as ViewTags;
  const all = ordersOf(own);
  const asked = names.map((name) => all[name]).filter((one) => one !== undefined);
  const done = new Set<string>();
  for (const { columns, direction } of [...asked, { columns: own.key, direction: asked[0]?.direction ?? 'DESC' }]) {
    for (const column of columns) {
      if (!done.has(column)) rows.orderBy({ ...comparable(rows, view, column), nullable: false, direction });
      done.add(column);
    }
  }
  rows.setOrderIsUnique();
}

/** A value that is never null, which cursors are compared with. */
function comparable({ alias }: PgSelectQueryBuilder, view: View, column: string) {
  const value = sql`${alias}.${sql.identifier(column)}`;
  if (tagsOf(view)?.nullable?.includes(column)) return { fragment: sql`coalesce(${value}, '')`, codec: TYPES.text };
  return { fragment: value, codec: view.attributes?.[column]?.codec as PgCodec };
}

interface Rows extends Step {
  apply($apply: Step): void;
}

/** Plans the argument `orderBy` of a connection. */
export const planOrder =
  (view: View) =>
  (_parent: Step, $connection: { getSubplan(): Rows }, value: FieldArg): void => {
    const $rows = $connection.getSubplan();
    const $names = value.getRaw();
    const $order = $rows.withLayerPlan(() =>
      lambda(
        $names,
        (names) => (rows: PgSelectQueryBuilder) => order(rows, view, (names ?? []) as readonly string[]),
        true,
      ),
    );
    $rows.apply($order);
  };

/** Orders of PostGraphile that are replaced. */
export const replaced_orders = ['PgOrderAllAttributesPlugin', 'PgOrderByPrimaryKeyPlugin'];

export const orders: GraphileConfig.Plugin = {
  name: 'RailOrdersPlugin',
  version: '1.0.0',
  schema: {
    hooks: {
      GraphQLEnumType_values(values, build, { scope: { isPgRowSortEnum, pgCodec } }) {
        const own = isPgRowSortEnum && pgCodec ? tagsOf(pgCodec as View) : undefined;
        if (!own) return values;
        const named = Object.fromEntries(Object.keys(ordersOf(own)).map((name) => [name, { value: name }]));
        return build.extend(values, named, `orders of ${own.list}`);
      },
    },
  },
};
