import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { request } from 'undici';
import { createKey } from '../../src/core/access/api_key.ts';
import { createOrganization } from '../../src/core/access/organization.ts';
import { type Database, openDatabase } from '../../src/core/postgres/database.ts';
import { type Running, startNode, startPostgres } from './processes.ts';

/** An organization with a key that may do everything, as often as it likes. */
export interface Merchant {
  organization_id: string;
  headers: Record<string, string>;
  post(path: string, body: object): Promise<{ id: string }>;
  get(path: string): Promise<object>;
}

/** A service on a Postgres of its own, with an organization that has a program. */
export interface BigProgram {
  url: string;
  server: Running;
  database: Database;
  /** A connection of its own, to fill the program with rows by. */
  client: pg.Client;
  merchant: Merchant;
  organization_id: string;
  program_id: string;
}

/** Starts an API, which `stack` ends with all that it needs, and makes a program to be filled. */
export async function openBigProgram(stack: AsyncDisposableStack): Promise<BigProgram> {
  const url = await startPostgres(stack);
  const environment = { DATABASE_URL: url, RAIL_ENCRYPTION_KEY: randomBytes(32).toString('base64') };
  const server = await startNode(stack, '../../src/rail.js', ['api'], environment, { path: '/readyz' });
  const database = openDatabase(url, { size: 2, name: 'rail bench' });
  stack.defer(() => database.end());
  const merchant = await makeMerchant(database, server);
  const program = { name: 'Big', website_url: 'https://shop.example.com', currency: 'USD' };
  const { id: program_id } = await merchant.post('/v1/programs', program);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  stack.defer(() => client.end());
  return { url, server, database, client, merchant, organization_id: merchant.organization_id, program_id };
}

export async function makeMerchant(database: Database, api: Running): Promise<Merchant> {
  const { id } = await createOrganization(database, { name: 'Bench', owner_email: 'owner@example.com' });
  const { secret } = await createKey(database, {
    organization_id: id,
    name: 'bench',
    mode: 'live',
    scopes: ['*'],
    rate_limit: 1_000_000,
  });
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' };
  return merchantOf({ organization_id: id, headers }, api);
}

/** @param known an organization and what its key is presented by */
export function merchantOf(known: Pick<Merchant, 'organization_id' | 'headers'>, api: Running): Merchant {
  const { organization_id, headers } = known;
  return {
    organization_id,
    headers,
    async post(path, body) {
      const { statusCode, body: answer } = await request(api.url + path, {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
      });
      const text = await answer.text();
      if (statusCode !== 201) throw new Error(`POST ${path} answered ${statusCode}: ${text}`);
      return JSON.parse(text);
    },
    async get(path) {
      const { statusCode, body: answer } = await request(api.url + path, { headers });
      const text = await answer.text();
      if (statusCode !== 200) throw new Error(`GET ${path} answered ${statusCode}: ${text}`);
      return JSON.parse(text);
    },
  };
}
