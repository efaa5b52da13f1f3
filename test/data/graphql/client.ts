/** Asks the GraphQL API as a client would. */
import { createKey } from '../../../src/core/access/api_key.ts';
import { type Answer, type Caller, callerOf, type Json, type Rail } from '../../harness.ts';

export interface Graph {
  /** The data of a query that succeeds. */
  data(query: string, variables?: object): Promise<Json>;
  /** The codes of the errors of a query that does not. */
  codes(query: string, variables?: object): Promise<string[]>;
  send(body: unknown): Promise<Answer>;
}

export function graphOf(caller: Caller): Graph {
  const send = (body: unknown) => caller.request('POST', '/graphql', body);
  const ask = async (query: string, variables?: object) => (await send({ query, variables })).body;
  return {
    send,
    async data(query, variables) {
      const { data, errors } = await ask(query, variables);
      if (errors) throw new Error(JSON.stringify(errors));
      return data;
    },
    async codes(query, variables) {
      const { errors = [] } = await ask(query, variables);
      return errors.map(({ extensions }: Json) => extensions.code);
    },
  };
}

/** A client whose key has these scopes. */
export async function graphWith(rail: Rail, organization_id: string, scopes: string[]): Promise<Graph> {
  const key = { organization_id, name: 'test', mode: 'live', scopes, rate_limit: 100_000 } as const;
  const { secret } = await createKey(rail.store.database, key);
  return graphOf(callerOf(rail.address, secret, organization_id));
}
