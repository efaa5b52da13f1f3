/** The GraphQL schema: what PostGraphile reads of schema data, named as the views and columns are. */
import type { GraphQLSchema } from 'graphql';
import { makeSchema } from 'postgraphile';
import 'postgraphile/graphile-build-pg';
import { PostGraphileAmberPreset } from 'postgraphile/presets/amber';
import { aggregates } from './aggregates.ts';
import { bounds } from './bounds.ts';
import { readDefinitions } from './definitions.ts';
import { lists } from './lists.ts';
import { naming } from './naming.ts';
import { orders, replaced_orders } from './orders.ts';
import type { WithPgClient } from './pg_client.ts';
import { scalars } from './scalars.ts';

import { smartTags } from './smart_tags.ts';

/** Views are read, and nothing is written: besides the role and the transaction, which only read, no field for it is ever built. */
const left_out = [
  ...['MutationPlugin', 'PgMutationCreatePlugin', 'PgMutationUpdateDeletePlugin', 'PgMutationPayloadEdgePlugin'],
  ...['SubscriptionPlugin', 'MutationPayloadQueryPlugin', 'ClientMutationIdDescriptionPlugin', 'PgJWTPlugin'],
  // Ids are those of the API: there is no second, opaque one.
  ...[
    'NodePlugin',
    'AddNodeInterfaceToSuitableTypesPlugin',
    'NodeIdCodecBase64JSONPlugin',
    'NodeIdCodecPipeStringPlugin',
  ],
  ...['RegisterQueryNodePlugin', 'NodeAccessorPlugin', 'PgTableNodePlugin', 'PgNodeIdAttributesPlugin'],
  ...replaced_orders,
  ...['QueryQueryPlugin', 'PgProceduresPlugin', 'PgCustomTypeFieldPlugin'],
];

/** Builds the schema from the views that this database has. @param withPgClient runs what reads the catalogue */
export async function buildSchema(withPgClient: WithPgClient): Promise<GraphQLSchema> {
  const { schema } = await makeSchema({
    extends: [PostGraphileAmberPreset],
    plugins: [await readDefinitions(withPgClient), smartTags, naming, scalars, lists, orders, bounds, aggregates],
    disablePlugins: left_out,
    pgServices: [
      {
        name: 'main',
        schemas: ['data'],
        withPgClientKey: 'withPgClient',
        pgSettingsKey: 'pgSettings',
        adaptor: {
          createWithPgClient: () => withPgClient,
          makePgService: () => {
            throw new Error('not used');
          },
        },
        adaptorSettings: {},
      },
    ],
    schema: {
      defaultBehavior: '-filterBy -orderBy -list -resource:single',
      pgForbidSetofFunctionsToReturnNull: true,
    },
  } as unknown as GraphileConfig.Preset);
  return schema;
}
