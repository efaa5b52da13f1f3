import { request } from 'undici';
import { createKey } from '../../src/core/access/api_key.ts';
import { createOrganization } from '../../src/core/access/organization.ts';
import type { Database } from '../../src/core/postgres/database.ts';
import type { Running } from './processes.ts';

/** An organization with a key that may do everything, as often as it likes. */
export interface Merchant {
  organization_id: string;
  headers: Record<string, string>;
  post(path: string, body: object): Promise<{ id: string }>;
  get(path: string): Promise<object>;
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
