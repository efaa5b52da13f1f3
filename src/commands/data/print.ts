import { type formats, printDictionary, readDictionary } from '../../data/dictionary.ts';
import { loadEndpoint } from '../../data/graphql/load.ts';
import { withStore } from '../command.ts';

/** `rail data dictionary`: what is in schema data, for people, programs or dbt. */
export const dictionary = ({ format }: { format: (typeof formats)[number] }): Promise<void> =>
  withStore(async ({ store }) => console.log(printDictionary(await readDictionary(store.database), format)));

/** `rail data graphql-schema`: what `POST /graphql` offers, in GraphQL's own language, for tools that generate code from it. */
export const printGraphqlSchema = (): Promise<void> =>
  withStore(async ({ store }) => {
    const { GraphqlEndpoint } = await loadEndpoint();
    const endpoint = await GraphqlEndpoint.open(store.database);
    process.stdout.write(`${endpoint.sdl()}\n`);
  });
