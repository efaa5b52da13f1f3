/** Fields are named as the columns are, and lists as the tags file says: PostGraphile would rename both. */
import 'postgraphile';
import 'postgraphile/graphile-build-pg';
import { tags } from './tags.ts';

const typeName = (view: string): string =>
  view
    .split('_')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');

const login = 'the login was made with --personal-data';
const key = "the key has the scope 'data:personal'";

interface OfView {
  name: string;
  extensions?: { pg?: { name: string } };
}

/** The view whose rows a codec describes. */
export const viewOf = ({ name, extensions }: OfView): string => extensions?.pg?.name ?? name;

export const naming: GraphileConfig.Plugin = {
  name: 'RailNamingPlugin',
  version: '1.0.0',
  schema: {
    hooks: {
      // Views are described for those who log in to Postgres.
      GraphQLObjectType_fields_field: (field) => ({ ...field, description: field.description?.replace(login, key) }),
      GraphQLObjectType: (type, _build, { scope: { isRootQuery } }) =>
        isRootQuery ? { ...type, description: 'All lists, and single objects by their ids.' } : type,
      GraphQLInputObjectType: (type, _build, { scope: { isPgCondition } }) =>
        isPgCondition
          ? { ...type, description: 'What rows must meet. All fields that are given apply together.' }
          : type,
    },
  },
  inflection: {
    replace: {
      _attributeName: (_previous, _preset, { attributeName }) => attributeName,
      attribute: (_previous, _preset, { attributeName }) => attributeName,
      tableType: (_previous, _preset, codec) => typeName(viewOf(codec as OfView)),
      allRowsConnection: (_previous, _preset, { codec }) => {
        const view = viewOf(codec as OfView);
        return tags[view]?.list ?? view;
      },
      rowByUnique: (_previous, _preset, { resource: { codec } }) => viewOf(codec as OfView),
      singleRelation(_previous, _preset, details) {
        return this._singleRelationRaw(details);
      },
      singleRelationBackwards(_previous, _preset, details) {
        return this._singleRelationBackwardsRaw(details);
      },
      manyRelationConnection(_previous, _preset, details) {
        return this._manyRelationRaw(details);
      },
    },
  },
};
