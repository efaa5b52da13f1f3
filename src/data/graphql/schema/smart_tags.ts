/** Hands the tags file to PostGraphile, in its own words. */
import { jsonPgSmartTags } from 'postgraphile/utils';
import { type Reference, tags, type ViewTags } from './tags.ts';

function classTags(view: string, { list, key, nullable, equals, refers = [] }: ViewTags) {
  const uniques = referredWithProgram(view) ? ['program_id,id|@behavior -single'] : [];
  return {
    tags: {
      behavior: list === view ? [] : ['+resource:single'],
      // No column of a primary key is null.
      ...(nullable ? {} : { primaryKey: key.join(',') }),
      ...(uniques.length > 0 ? { unique: uniques } : {}),
      foreignKey: refers.map(foreignKey),
    },
    attribute: Object.fromEntries(equals.map((column) => [column, { tags: { behavior: ['+filterBy'] } }])),
  };
}

const referredWithProgram = (view: string): boolean =>
  Object.values(tags).some(({ refers = [] }) => refers.some(({ to, with_program }) => to === view && with_program));

function foreignKey({ field, to, by, with_program, back }: Reference): string {
  const [own, other] = with_program ? [`program_id,${by}`, 'program_id,id'] : [by, 'id'];
  const names = [
    `@fieldName ${field}`,
    back ? `@foreignFieldName ${back}` : '@behavior -manyRelation:resource:connection',
  ];
  return [`(${own}) references data.${to} (${other})`, ...names].join('|');
}

export const smartTags = jsonPgSmartTags({
  version: 1,
  config: {
    class: Object.fromEntries(Object.entries(tags).map(([view, of]) => [`data.${view}`, classTags(view, of)])),
  },
});
