import { randomBytes } from 'node:crypto';
import { Stripe } from 'stripe';
import { request } from 'undici';
import { openDatabase } from '../../src/core/postgres/database.ts';
import type { Json } from '../harness.ts';
import { StripeAccount } from '../program/processors/stripe_account.ts';
import * as objects from '../program/processors/stripe_objects.ts';
import { type Bench, percentile, type Sample } from './harness.ts';
import { type Asked, openLoop } from './load.ts';
import { makeMerchant } from './merchant.ts';
import { cpuOf, postmasterOf, type Running, startNode, startPostgres } from './processes.ts';

const rate = 500;

/** Webhooks of a billing processor that are stored and answered, beside a bare Fastify route with one insert. */
export const processors: Bench = {
  name: 'processors',
  doc: `${rate} webhooks of Stripe in a second, from their arrival to their 200, beside a bare Fastify route with one insert.`,
  async setup(stack, progress) {
    const url = await startPostgres(stack);
    const stripe = await new StripeAccount().start();
    stack.defer(() => stripe.stop());
    const environment = {
      ...{ DATABASE_URL: url, DATABASE_POOL_SIZE: '20', LOG_LEVEL: 'info', RAIL_STRIPE_URL: stripe.url },
      RAIL_ENCRYPTION_KEY: randomBytes(32).toString('base64'),
    };
    const bare = await startNode(stack, 'bare.ts', [], environment, { path: '/readyz' });
    const api = await startNode(stack, '../../src/rail.js', ['api'], environment, { path: '/readyz' });
    const database = openDatabase(url, { size: 2, name: 'rail bench' });
    stack.defer(() => database.end());
    const merchant = await makeMerchant(database, api);
    progress('processors: connecting a program');
    const shop = { name: 'Bench', website_url: 'https://bench.example.com', currency: 'USD' };
    const { id: program_id } = await merchant.post('/v1/programs', shop);
    const connection = JSON.stringify({ mode: 'test', credentials: stripe.credentials });
    const path = `/v1/programs/${program_id}/processors/stripe`;
    const { statusCode, body } = await request(api.url + path, {
      method: 'PUT',
      headers: merchant.headers,
      body: connection,
    });
    if (statusCode !== 200) throw new Error(await body.text());
    const postgres = await postmasterOf(url);
    const { secret } = stripe.endpoints[0] as Json;
    const next = () => webhookOf(`/processors/stripe/${program_id}`, secret);
    return {
      postgres_url: url,
      figures: {
        answered: { unit: '/s', better: 'higher', doc: 'webhooks answered in a second' },
        p50: { unit: 'ms', better: 'lower', doc: 'from the time at which a webhook was due to its answer, median' },
        p99: { unit: 'ms', better: 'lower', doc: 'the same, the 99th percentile' },
        server_cpu: { unit: 'µs', better: 'lower', doc: 'CPU time a webhook, of the process that answers' },
        postgres_cpu: { unit: 'µs', better: 'lower', doc: 'CPU time a webhook, of Postgres' },
      },
      notes: ['No worker runs. Each webhook is an event of another invoice, of one of 1,000 customers.'],
      sides: [
        {
          name: 'bare',
          doc: 'a Fastify route with one insert … returning, 16 connections',
          run: (seconds) =>
            taken(bare, postgres, seconds, () => ({ ...next(), path: '/bare', body: bare_sale, headers: json })),
        },
        {
          name: 'stripe',
          doc: 'POST /processors/stripe/{program_id}, 16 connections',
          baseline: 'bare',
          run: (seconds) => taken(api, postgres, seconds, next),
        },
      ],
    };
  },
};

const json = { 'content-type': 'application/json' };
const bare_sale = JSON.stringify({ external_charge_id: 'in_1', amount_minor: 9_900, currency: 'USD' });
let made = 0;

function webhookOf(path: string, secret: string): Asked {
  const nth = ++made;
  const object = objects.invoice(`in_${nth}`, `cus_${nth % 1_000}`);
  const event = {
    id: `evt_${nth}`,
    object: 'event',
    type: 'invoice.paid',
    created: objects.at,
    livemode: false,
    data: { object },
  };
  const payload = JSON.stringify(event);
  const signature = Stripe.webhooks.generateTestHeaderString({ payload, secret });
  return { method: 'POST', path, headers: { ...json, 'stripe-signature': signature }, body: payload };
}

async function taken(
  server: Running,
  postgres: number | undefined,
  seconds: number,
  next: () => Asked,
): Promise<Sample> {
  const pids = { server_cpu: server.pid, postgres_cpu: postgres };
  const before = await cpuOf(pids);
  const load = await openLoop(server.url, { connections: 16, seconds, rate, next });
  const count = load.latencies_ms.length;
  const cpu = Object.entries(await cpuOf(pids)).map(([name, us]) => [name, (us - (before[name] as number)) / count]);
  return {
    answered: count / load.seconds,
    ...{ p50: percentile(load.latencies_ms, 50), p99: percentile(load.latencies_ms, 99) },
    ...Object.fromEntries(cpu),
  };
}
