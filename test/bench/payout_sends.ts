import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { request } from 'undici';
import { createVault } from '../../src/core/encryption/vault.ts';
import { PayPalServer } from '../program/payouts/rails/paypal_server.ts';
import { StripeServer } from '../program/payouts/rails/stripe_server.ts';
import type { Sample } from './harness.ts';
import type { Merchant } from './merchant.ts';
import { cpuOf, type Running, usedBetween, usedBy } from './processes.ts';

/** The number of payouts that are sent to a rail, and the time of the rail for each. */
export const most_sends = 10_000;
export const rail_ms = 20;
const poll_ms = 50;

export interface Sends {
  api: Running;
  worker: Running;
  merchant: Merchant;
  client: pg.Client;
  postgres: number | undefined;
  /** Programs with as many pending payouts as are sent, and none besides: by a rail whose answer is "pending", by one whose answer is "paid". */
  by_paypal: string;
  by_stripe: string;
  by_file: string;
  sends: number;
  transfers: number;
}

export interface Rails {
  paypal: PayPalServer;
  stripe: StripeServer;
}

/** PayPal and Stripe on loopback, as slow as rails. */
export async function startRails(stack: AsyncDisposableStack): Promise<Rails> {
  const paypal = await new PayPalServer().start();
  stack.defer(() => paypal.stop());
  const stripe = await new StripeServer().start();
  stack.defer(() => stripe.stop());
  paypal.delay_ms = rail_ms;
  stripe.delay_ms = rail_ms;
  stripe.livemode = true;
  stripe.credentials.secret_key = 'sk_live_0123456789abcdef';
  stripe.balances.usd = Number.MAX_SAFE_INTEGER;
  return { paypal, stripe };
}

/** A program whose partners have a payout method, and each a payout of one commission in a batch that is ready. */
export async function fillPayouts(
  client: pg.Client,
  {
    merchant,
    method,
    payouts,
    key,
  }: { merchant: Merchant; method: 'paypal' | 'stripe' | 'bank_transfer'; payouts: number; key: string },
): Promise<string> {
  const shop = {
    website_url: 'https://shop.example.com',
    currency: 'USD',
    payout_methods: [method],
    min_payout_minor: 1,
  };
  const { id: program } = await merchant.post('/v1/programs', { name: `Pays by ${method}`, ...shop });
  const vault = createVault([Buffer.from(key, 'base64')]);
  const ids = Array.from({ length: payouts }, (_, nth) => `part_${method.slice(0, 5)}${String(nth).padStart(21, '0')}`);
  const details = ids.map((id) => vault.encrypt(JSON.stringify(detailsOf(method, id)), id));
  const given = [merchant.organization_id, program];
  await client.query('set session_replication_role = replica');
  await client.query(
    `insert into program.partner (organization_id, id, program_id, group_id, email, mailbox, handle, status, currency)
    select $1, r.id, $2, (select id from program.partner_group where organization_id = $1 and program_id = $2 limit 1), r.id || '@example.com',
      r.id || '@example.com', replace(r.id, '_', '-'), 'active', 'USD'
    from unnest($3::text[]) as r (id)`,
    [...given, ids],
  );
  await client.query(
    `insert into program.payout_method (organization_id, partner_id, method, details, hint, updated_at)
    select $1, r.id, $2, r.details, '.com', now() from unnest($3::text[], $4::bytea[]) as r (id, details)`,
    [merchant.organization_id, method, ids, details],
  );
  await client.query(
    `insert into program.commission (
      organization_id, id, program_id, partner_id, kind, amount_minor, currency, status, mature_at, created_at, updated_at
    )
    select $1, 'com_' || right(r.id, 26), $2, r.id, 'bonus', 1980, 'USD', 'due', now() - interval '1 day', now() - interval '1 day', now()
    from unnest($3::text[]) as r (id)`,
    [...given, ids],
  );
  await client.query('set session_replication_role = origin');
  await client.query('vacuum (analyze) program.partner, program.payout_method, program.commission');
  return program;
}

function detailsOf(method: string, id: string): Record<string, string> {
  if (method === 'paypal') return { email: `${id}@example.com` };
  if (method === 'stripe') return { account_id: 'acct_partner' };
  return { account_holder: `Partner ${id}`, iban: 'DE89370400440532013000', bic: 'COBADEFFXXX' };
}

/** The credentials of all programs. */
export async function setCredentials(place: Sends, { paypal, stripe }: Rails): Promise<void> {
  const { by_paypal, by_stripe, by_file } = place;
  await ask(place, 'PUT', `/v1/programs/${by_paypal}/rails/paypal`, { mode: 'live', credentials: paypal.credentials });
  await ask(place, 'PUT', `/v1/programs/${by_stripe}/rails/stripe`, { mode: 'live', credentials: stripe.credentials });
  const account = { name: 'Acme GmbH', iban: 'DE89370400440532013000', bic: 'COBADEFFXXX' };
  await ask(place, 'PUT', `/v1/programs/${by_file}/rails/bank_transfer`, { mode: 'live', credentials: account });
}

type Place = Pick<Sends, 'api' | 'merchant'>;

/** @throws Error where the answer is no success */
async function ask<Reply>(
  { api, merchant: { headers } }: Place,
  method: 'PUT' | 'POST',
  path: string,
  body = {},
): Promise<Reply> {
  const answer = await request(api.url + path, { method, headers, body: JSON.stringify(body) });
  const text = await answer.body.text();
  if (answer.statusCode >= 300) throw new Error(`${method} ${path} answered ${answer.statusCode}: ${text}`);
  return JSON.parse(text) as Reply;
}

/** Sends all payouts of a batch by its rail: from the request until what the rail answered about the last is written. */
export async function sendByRail(place: Sends, program_id: string): Promise<Sample> {
  const { client, sends } = place;
  const pids = { worker_cpu: place.worker.pid, postgres_cpu: place.postgres };
  const batch_id = await readyBatch(place, program_id);
  const before = await cpuOf(pids);
  const began = performance.now();
  await ask(place, 'POST', `/v1/payout_batches/${batch_id}/send`);
  const counted = `select count(*)::integer as answered from program.payout_attempt where program_id = $1 and last_answer is not null`;
  await until(async () => (await client.query(counted, [program_id])).rows[0].answered === sends);
  const seconds = (performance.now() - began) / 1_000;
  const cpu = usedBetween(before, await cpuOf(pids));
  await undo(client, program_id);
  return { seconds, sends_per_s: sends / seconds, ...cpu };
}

/** Freezes a file of all payouts, then streams it: the memory of the API before, and the most meanwhile. */
export async function streamFile(place: Sends): Promise<Sample> {
  const { api, worker, client, by_file, transfers, merchant } = place;
  const batch_id = await readyBatch(place, by_file);
  await ask(place, 'POST', `/v1/payout_batches/${batch_id}/send`);
  let worker_mib = 0;
  await until(async () => {
    worker_mib = Math.max(worker_mib, await mibOf(worker));
    const { rows } = await client.query(
      'select count(*)::integer as frozen from program.payout_attempt where program_id = $1',
      [by_file],
    );
    return rows[0].frozen === transfers;
  });
  const idle_mib = await mibOf(api);
  let [api_mib, bytes, done] = [idle_mib, 0, false];
  const watched = (async () => {
    for (; !done; await sleep(poll_ms)) api_mib = Math.max(api_mib, await mibOf(api));
  })();
  const began = performance.now();
  const { files } = (await merchant.get(`/v1/payout_batches/${batch_id}`)) as { files: { file: number }[] };
  for (const { file } of files) {
    const { headers } = merchant;
    const answer = await request(`${api.url}/v1/payout_batches/${batch_id}/export?file=${file}`, { headers });
    for await (const chunk of answer.body) bytes += (chunk as Buffer).length;
  }
  const seconds = (performance.now() - began) / 1_000;
  done = true;
  await watched;
  await undo(client, by_file);
  return { seconds, file_mib: bytes / 2 ** 20, export_mib: api_mib - idle_mib, api_mib, worker_mib };
}

const mibOf = async ({ pid }: Running): Promise<number> => ((await usedBy(pid))?.memory_bytes ?? 0) / 2 ** 20;

/** A batch of a program's payouts, once all are created. */
async function readyBatch(place: Sends, program_id: string): Promise<string> {
  const { client } = place;
  const { id } = await ask<{ id: string }>(place, 'POST', '/v1/payout_batches', { program_id });
  const stage = async () =>
    (await client.query('select stage from program.payout_batch where id = $1', [id])).rows[0].stage;
  await until(async () => (await stage()) === 'ready');
  return id;
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await sleep(poll_ms);
}

/** As if nothing had been sent, and no batch been created. */
async function undo(client: pg.Client, program_id: string): Promise<void> {
  await client.query('set session_replication_role = replica');
  for (const statement of [
    `update program.commission set payout_id = null, status = 'due', paid_at = null where program_id = $1`,
    `delete from program.commission_entry where program_id = $1 and kind = 'paid'`,
    'delete from program.payout_attempt where program_id = $1',
    `delete from program.payout_commission l using program.payout p
    where p.program_id = $1 and l.organization_id = p.organization_id and l.payout_id = p.id`,
    'delete from program.payout where program_id = $1',
    'delete from program.payout_file where program_id = $1',
    'delete from program.payout_batch where program_id = $1',
  ])
    await client.query(statement, [program_id]);
  await client.query('set session_replication_role = origin');
  await client.query(
    'vacuum (analyze) program.commission, program.payout, program.payout_attempt, program.payout_commission',
  );
}
