/** Conditions `<column>_gte` and `<column>_lt`, for the columns that the tags file names. */
import 'postgraphile';
import 'postgraphile/graphile-build-pg';
import { sql } from 'postgraphile/pg-sql2';
import { tags } from './tags.ts';

const comparisons = [
  { suffix: 'gte', operator: sql`>=`, says: 'At least' },
  { suffix: 'lt', operator: sql`<`, says: 'Less than' },
];

export const bounds: GraphileConfig.Plugin = {
  name: 'RailBoundsPlugin',
  version: '1.0.0',
  schema: {
    hooks: {
      GraphQLInputObjectType_fields(fields, build, context) {
        const { isPgCondition, pgCodec } = context.scope;
        const columns = tags[(isPgCondition && pgCodec?.extensions?.pg?.name) || '']?.between ?? [];
        const { sqlValueWithCodec } = build.dataplanPg;
        for (const column of columns) {
          const codec = pgCodec?.attributes?.[column]?.codec;
          const type = codec && build.getGraphQLTypeByPgCodec(codec, 'input');
          if (!type) continue;
          for (const { suffix, operator, says } of comparisons) {
            const fieldName = `${column}_${suffix}`;
            const field = context.fieldWithHooks({ fieldName }, {
              description: `${says} this.`,
              type: type as never,
              apply(condition: { alias: unknown; where(fragment: unknown): void }, value: unknown) {
                if (value === null) return;
                condition.where(
                  sql`${condition.alias as never}.${sql.identifier(column)} ${operator} ${sqlValueWithCodec(value as never, codec)}`,
                );
              },
            } as never);
            fields = build.extend(fields, { [fieldName]: field }, `bound of ${column}`);
          }
        }
        return fields;
      },
    },
  },
};
