/** `rail data graphql-schema`: what `POST /graphql` offers, in GraphQL's own language, for tools that generate code from it. */
import { loadEndpoint } from '../../data/graphql/load.ts';
import { withStore } from '../command.ts';

export const printGraphqlSchema = (): Promise<void> =>
  withStore(async ({ store }) => {
    const { GraphqlEndpoint } = await loadEndpoint();
    const endpoint = await GraphqlEndpoint.open(store.database);
    process.stdout.write(`${endpoint.sdl()}\n`);
  });
