/**
 * The Stripe account of the demo that `rail start` runs, so that a signed webhook can be tried without an account anywhere. It is at the service itself,
 * below `/demo/stripe`, and knows nothing that is asked for: what a webhook says is all that there is.
 */
import { randomBytes } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { insert } from '../../core/postgres/write.ts';
import { tenant } from '../../core/resource/resource.ts';
import type { Services } from '../../core/resource/services.ts';
import { newId } from '../../core/values/id.ts';
import { Problem } from '../../core/values/problem.ts';
import { programs } from '../programs/program.ts';
import { type Connection, currentConnection, secretsOf } from './connection.ts';
import type { Credentials } from './processor.ts';

const account = 'acct_demo';
const path = '/demo/stripe';

/**
 * Connects the demo's program to that account, once: who deletes the connection or connects an account of their own is left alone.
 * @returns the secret that webhooks of it are signed with, made at random
 */
export async function demoStripe(
  tx: Tx,
  program_id: string,
  services: Services,
): Promise<{ stripe_webhook_secret?: string }> {
  const url = `${services.base_url}${path}`;
  const current = await currentConnection(tx, program_id, 'stripe');
  if (current) return keepReachable(tx, current, url, services);
  const had = await tx.maybe(
    sql`select from program.processor t where ${tenant(tx)} and t.program_id = ${program_id} and t.processor = 'stripe' limit 1`,
  );
  if (had) return {};
  const secret_key = `rk_test_${randomBytes(24).toString('hex')}`;
  const webhook_secret = `whsec_${randomBytes(24).toString('hex')}`;
  const id = newId('prc');
  await insert(tx, 'program.processor', {
    ...{ id, program_id, processor: 'stripe', mode: 'test', status: 'connected', account, warnings: [] },
    ...{ hint: secret_key.slice(-4), credentials: encrypted(services, id, { secret_key, webhook_secret, url }) },
    ...{ reconciled_to: tx.now, created_at: tx.now, updated_at: tx.now },
  });
  const program = await programs.get(tx, program_id);
  if (program.processor === null) await programs.update(tx, program_id, { processor: 'stripe' });
  return { stripe_webhook_secret: webhook_secret };
}

const encrypted = ({ vault }: Services, id: string, credentials: Credentials) =>
  vault.encrypt(JSON.stringify(credentials), id);

/** The service may listen elsewhere than at its last start. */
async function keepReachable(tx: Tx, connection: Connection, url: string, services: Services) {
  const { webhook_secret, ...credentials } = secretsOf(services, connection);
  if (credentials.url === undefined || webhook_secret === undefined) return {};
  if (credentials.url !== url)
    await tx.all(sql`
      update program.processor t
      set credentials = ${encrypted(services, connection.id, { ...credentials, webhook_secret, url })}, updated_at = ${tx.now}::timestamptz
      where ${tenant(tx)} and t.id = ${connection.id}`);
  return { stripe_webhook_secret: webhook_secret };
}

/** Every list of the account is empty. */
export function mountDemoStripe(app: FastifyInstance, services: Services): void {
  app.get<{ Params: { '*': string } }>(`${path}/v1/*`, async ({ params }) => {
    if (services.demo_key === undefined)
      throw new Problem('route_not_found', `GET ${path} is a part of the demo that npm start runs.`);
    if (params['*'] === 'account') return { id: account, object: 'account' };
    if (/^(?:checkout\/)?[a-z_]+$/.test(params['*'])) return { object: 'list', data: [], has_more: false };
    throw new Problem('resource_not_found', 'The Stripe account of the demo has no objects.');
  });
}
