/**
 * `aggregates` of a connection: how many rows its conditions match, and sums of the columns that the tags file names. Where a view has a currency
 * there is one of them for each: amounts of different currencies are never added up.
 */
import 'postgraphile';
import 'postgraphile/graphile-build-pg';
import { type PgSelectSingleStep, type PgSelectStep, TYPES } from 'postgraphile/@dataplan/pg';
import { tags } from './tags.ts';

export const aggregates: GraphileConfig.Plugin = {
  name: 'RailAggregatesPlugin',
  version: '1.0.0',
  schema: {
    hooks: {
      init(_, build) {
        for (const codec of Object.values(build.input.pgRegistry.pgCodecs)) {
          const view = codec.extensions?.pg?.name;
          if (!view || !codec.attributes || codec.isAnonymous || !tags[view]) continue;
          const { sums = [] } = tags[view];
          const currency = sums.length > 0 ? codec.attributes.currency : undefined;
          const name = `${build.inflection.tableType(codec as never)}Aggregates`;
          build.registerObjectType(
            name,
            {},
            () => ({
              description: `What the rows of a connection come to${currency ? ', for each currency' : ''}.`,
              fields: () =>
                ({
                  ...(currency
                    ? {
                        currency: {
                          description: currency.description,
                          type: build.graphql.GraphQLString,
                          plan: ($row: PgSelectSingleStep) =>
                            $row.select(expression($row, build, 'currency'), TYPES.text, true),
                        },
                      }
                    : {}),
                  count: {
                    description: 'How many rows there are.',
                    type: new build.graphql.GraphQLNonNull(
                      build.getOutputTypeByName(build.inflection.builtin('BigInt')),
                    ),
                    plan: ($row: PgSelectSingleStep) => $row.select(build.sql`count(*)`, TYPES.bigint, true),
                  },
                  ...Object.fromEntries(
                    sums.map((column) => [
                      `${column}_sum`,
                      {
                        description: `The sum of ${column}.`,
                        type: build.getOutputTypeByName(build.inflection.builtin('BigInt')),
                        plan: ($row: PgSelectSingleStep) =>
                          $row.select(build.sql`sum(${expression($row, build, column)})::bigint`, TYPES.bigint, true),
                      },
                    ]),
                  ),
                }) as never,
            }),
            `aggregates of ${view}`,
          );
        }
        return _;
      },
      GraphQLObjectType_fields(fields, build, context) {
        const { isPgConnectionRelated, isConnectionType, pgCodec } = context.scope;
        const view = pgCodec?.extensions?.pg?.name;
        if (!isPgConnectionRelated || !isConnectionType || !view || !tags[view]) return fields;
        const type = build.getOutputTypeByName(`${build.inflection.tableType(pgCodec as never)}Aggregates`);
        const { GraphQLList, GraphQLNonNull } = build.graphql;
        const has_currency = tags[view].sums !== undefined && pgCodec.attributes?.currency !== undefined;
        const field = context.fieldWithHooks({ fieldName: 'aggregates' }, {
          description: `Counts and sums of all rows that match, whatever the page${has_currency ? ': one for each currency' : ''}.`,
          type: has_currency ? new GraphQLNonNull(new GraphQLList(new GraphQLNonNull(type))) : new GraphQLNonNull(type),
          plan($connection: { cloneSubplanWithoutPagination(mode: 'aggregate'): PgSelectStep }) {
            const $rows = $connection.cloneSubplanWithoutPagination('aggregate');
            if (!has_currency) return $rows.single();
            $rows.groupBy({ fragment: build.sql`${$rows.alias}.currency` } as never);
            return $rows;
          },
        } as never);
        return build.extend(fields, { aggregates: field }, `aggregates of ${view}`);
      },
    },
  },
};

const expression = (
  $row: PgSelectSingleStep,
  { sql }: { sql: typeof import('postgraphile/pg-sql2').sql },
  column: string,
) => sql`${$row.getClassStep().alias}.${sql.identifier(column)}`;
