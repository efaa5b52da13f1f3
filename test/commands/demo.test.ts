import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { keepDemo } from '../../src/commands/demo.ts';
import type { Config } from '../../src/config.ts';
import type { Services } from '../../src/core/resource/services.ts';
import { sql, startRail } from '../harness.ts';
import { startServer } from '../program/payouts/rails/attempt.ts';
import { StripeAccount } from '../program/processors/stripe_account.ts';

const stripe = await startServer(t, new StripeAccount());
const rail = await startRail({ worker: false, provider_urls: { stripe: stripe.url } });

t.test('the demo’s Stripe account is the service itself, until somebody connects another one', async (t) => {
  const config = { RAIL_DATA_DIR: t.testdir({}), DATABASE_URL: rail.url } as Config;
  const at = (base_url: string) =>
    keepDemo({ config, store: rail.store, services: { ...rail.services, base_url } }, base_url);
  const first = await at('http://127.0.0.1:1');
  t.match(first?.stripe_webhook_secret, /^whsec_[0-9a-f]{48}$/);
  const demo = await at(rail.address);
  t.equal(demo?.stripe_webhook_secret, first?.stripe_webhook_secret, 'it is made once');
  const path = `/v1/programs/${demo?.program_id}/processors/stripe`;
  const call = async (method: string, path: string, body?: object) => {
    const headers = {
      authorization: `Bearer ${demo?.api_key}`,
      ...(body ? { 'content-type': 'application/json' } : {}),
    };
    const answer = await fetch(rail.address + path, {
      method,
      headers,
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    return JSON.parse(await answer.text());
  };
  t.match(await call('GET', '/demo/stripe/v1/events'), { error: { code: 'route_not_found' } }, 'a service has none');
  (rail.services as Services).demo_key = demo?.publishable_key;
  t.match(await call('POST', `${path}/test`), { status: 'connected', account: 'acct_demo', warnings: [] });
  t.same(await call('GET', '/demo/stripe/v1/events'), { object: 'list', data: [], has_more: false });
  t.match(await call('GET', '/demo/stripe/v1/invoices/in_1'), { error: { code: 'resource_not_found' } });
  t.match(await call('PUT', path, { mode: 'test', credentials: stripe.credentials }), { account: 'acct_shop' });
  t.equal((await at(rail.address))?.stripe_webhook_secret, undefined);
  t.match(await call('POST', `${path}/test`), { account: 'acct_shop' }, 'it is that of their own');
  await call('DELETE', path);
  t.equal((await at(rail.address))?.stripe_webhook_secret, undefined, 'nor is another one made');
  await rail.query(sql`delete from core.organization`);
});

t.test(
  'on a Postgres of one’s own, the folder of demo.json is made before the organization whose keys it holds',
  async (t) => {
    const folder = join(t.testdir({ file: '' }), 'new');
    const keep = (RAIL_DATA_DIR: string) =>
      keepDemo(
        { config: { RAIL_DATA_DIR, DATABASE_URL: rail.url } as Config, store: rail.store, services: rail.services },
        rail.address,
      );
    await t.rejects(keep(join(folder, '../file/folder')));
    t.same(await rail.query(sql`select id from core.organization`), [], 'nothing is made whose keys would be lost');
    const demo = await keep(folder);
    t.same(JSON.parse(await readFile(join(folder, 'demo.json'), 'utf8')), demo);
  },
);
