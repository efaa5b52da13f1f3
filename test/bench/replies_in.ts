import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import sql from 'sql-template-tag';
import { createVault, type Vault } from '../../src/core/encryption/vault.ts';
import { type Database, openDatabase, run } from '../../src/core/postgres/database.ts';
import { type Store, transaction } from '../../src/core/postgres/transaction.ts';
import { newId } from '../../src/core/values/id.ts';
import { createAuthority } from '../../src/demo/authority.ts';
import { writeEvents } from '../../src/products.ts';
import { createProspects } from '../../src/recruitment/prospects/create.ts';
import { type ImapServer, startImapServer } from '../recruitment/outreach/imap_server.ts';
import { type Bench, percentile, type Sample } from './harness.ts';
import { makeMerchant } from './merchant.ts';
import { type Running, startNode, startPostgres, usedBy } from './processes.ts';

const default_inboxes = 1_000;
const replies_a_second = 20;
const password = 'app-password';

/** From a reply in a mailbox to its signed webhook, and what the connections of idle inboxes cost. */
export const replies_in: Bench = {
  name: 'replies_in',
  doc: `From a reply in the mailbox to its signed webhook, with ${default_inboxes.toLocaleString('en')} inboxes connected (--size), and the memory of the worker that reads them.`,
  defaults: { rounds: 3, seconds: 5 },
  async setup(stack, progress, size = default_inboxes) {
    const url = await startPostgres(stack);
    const key = randomBytes(32);
    const { imap, trusted } = await startMailServer(stack);
    const environment = {
      ...{ DATABASE_URL: url, RAIL_ENCRYPTION_KEY: key.toString('base64'), RAIL_WEBHOOK_ALLOW_PRIVATE: '1' },
      ...{ LOG_LEVEL: 'info', NODE_EXTRA_CA_CERTS: trusted },
    };
    const api = await startNode(stack, '../../src/rail.js', ['api'], environment, { path: '/readyz' });
    const database = openDatabase(url, { size: 4, name: 'rail bench' });
    stack.defer(() => database.end());
    const place = await makePlace(stack, database, createVault([key]), api, imap);
    const worker = await startNode(stack, '../../src/rail.js', ['worker'], environment, { line: 'worker ready' });
    const bare_bytes = await memoryOf(worker);
    progress(`replies_in: connecting ${size} inboxes`);
    const began = performance.now();
    const inbox_ids = await makeInboxes(place, size);
    while (imap.idling() < size) await sleep(50);
    const connected_s = (performance.now() - began) / 1_000;
    await run(database, sql`analyze recruitment.inbox, recruitment.inbox_reader, recruitment.message`);
    return {
      postgres_url: url,
      figures: {
        p50_ms: { unit: 'ms', better: 'lower', doc: 'from the reply in the mailbox to the webhook received' },
        p95_ms: {
          unit: 'ms',
          better: 'lower',
          at_most: 3_000,
          doc: 'from the reply in the mailbox to the webhook received',
        },
        memory_mb: { unit: 'MB', better: 'lower', at_most: 400, doc: 'resident memory of the worker, all of it' },
        kb_an_inbox: { unit: 'kB', better: 'lower', doc: 'of that, what an inbox adds to a worker that reads none' },
        cpu_percent: { unit: '%', better: 'lower', doc: 'of one core, what the worker uses while nothing arrives' },
      },
      notes: [
        `${size} inboxes of one worker, connected over TLS within ${connected_s.toFixed(1)} s to a server in the process that measures.`,
        `Replies arrive at ${replies_a_second} a second, each in another inbox. Their webhooks are verified.`,
      ],
      sides: [
        { name: 'idle', doc: 'all inboxes wait in IDLE', run: (seconds) => idle(worker, size, bare_bytes, seconds) },
        { name: 'reply', doc: 'replies arrive', run: (seconds) => reply(place, inbox_ids, seconds) },
      ],
    };
  },
};

interface Place {
  store: Store;
  vault: Vault;
  imap: ImapServer;
  organization_id: string;
  brand_id: string;
  campaign_id: string;
  /** The times at which the webhooks of a prospect came, by `performance.now()`. */
  received: Map<string, number>;
}

async function startMailServer(stack: AsyncDisposableStack): Promise<{ imap: ImapServer; trusted: string }> {
  const authority = createAuthority('Rail bench mail authority');
  const imap = await startImapServer({ ...authority.issue({ name: 'localhost' }), password });
  stack.defer(() => imap.close());
  const folder = await mkdtemp(join(tmpdir(), 'rail-bench-authority-'));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const trusted = join(folder, 'authority.pem');
  await writeFile(trusted, authority.cert);
  return { imap, trusted };
}

async function makePlace(
  stack: AsyncDisposableStack,
  database: Database,
  vault: Vault,
  api: Running,
  imap: ImapServer,
): Promise<Place> {
  const merchant = await makeMerchant(database, api);
  const { organization_id } = merchant;
  const received = new Map<string, number>();
  const url = await startReceiver(stack, () => secret, received);
  const endpoint = await merchant.post('/recruitment/v1/webhook_endpoints', { url, event_types: ['reply.received'] });
  const secret: string = (endpoint as { id: string; secret?: string }).secret ?? '';
  const { id: brand_id } = await merchant.post('/recruitment/v1/brands', {
    name: 'Acme',
    website_url: 'https://acme.example.com',
  });
  const campaign_id = newId('fca');
  await run(
    database,
    sql`
    insert into recruitment.campaign (organization_id, id, brand_id, name, schedule, max_per_domain_day, bounce_pause_bps, reply_wait_days,
      allow_risky, stop_for_company, state, counted_since, launched_at)
    values (${organization_id}, ${campaign_id}, ${brand_id}, 'Autumn', '{"timezone": "UTC", "days": [1], "from": "09:00", "to": "17:00"}', 3, 300, 5,
      false, true, 'sending', now(), now())`,
  );
  return { store: { database, writeEvents }, vault, imap, organization_id, brand_id, campaign_id, received };
}

async function startReceiver(
  stack: AsyncDisposableStack,
  secret: () => string,
  received: Map<string, number>,
): Promise<string> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const at = performance.now();
    const raw = Buffer.concat(chunks).toString('utf8');
    const [, time, signature = ''] = /^t=(\d+),v1=([0-9a-f]+)/.exec(String(request.headers['rail-signature'])) ?? [];
    const expected = createHmac('sha256', secret()).update(`${time}.${raw}`).digest();
    const is_signed = signature.length === 64 && timingSafeEqual(expected, Buffer.from(signature, 'hex'));
    if (is_signed) received.set(JSON.parse(raw).data.prospect_id, at);
    response.writeHead(is_signed ? 200 : 400).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  stack.defer(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
}

const userOf = (nth: number): string => `inbox${nth}`;

async function makeInboxes({ store, vault, imap, organization_id }: Place, count: number): Promise<string[]> {
  const secrets = JSON.stringify({ smtp_password: password, imap_password: password });
  const rows = Array.from({ length: count }, (_, nth) => {
    const id = newId('fin');
    const server = { host: 'localhost', port: imap.port, security: 'tls', username: userOf(nth) };
    return { id, email: `inbox${nth}@acme.example.com`, server, secrets: vault.encrypt(secrets, id).toString('hex') };
  });
  await run(
    store.database,
    sql`
    insert into recruitment.inbox (organization_id, id, email, from_name, smtp, imap, secrets, daily_limit, min_gap_s, max_gap_s, timezone, connected_at)
    select ${organization_id}, r.id, r.email, 'Grace', r.server, r.server, decode(r.secrets, 'hex'), 40, 90, 300, 'UTC', now()
    from json_to_recordset(${JSON.stringify(rows)}::json) as r (id text, email text, server jsonb, secrets text)`,
  );
  return rows.map(({ id }) => id);
}

async function idle(worker: Running, size: number, bare_bytes: number, seconds: number): Promise<Sample> {
  const before = (await usedBy(worker.pid))?.cpu_us ?? 0;
  const began = performance.now();
  await sleep(seconds * 1_000);
  const after = (await usedBy(worker.pid))?.cpu_us ?? 0;
  const bytes = await memoryOf(worker);
  return {
    memory_mb: bytes / 1e6,
    kb_an_inbox: (bytes - bare_bytes) / 1e3 / size,
    cpu_percent: (after - before) / 10 / (performance.now() - began),
  };
}

const memoryOf = async ({ pid }: Running): Promise<number> => (await usedBy(pid))?.memory_bytes ?? Number.NaN;

async function reply(place: Place, inbox_ids: string[], seconds: number): Promise<Sample> {
  const sent = await makeMailed(place, inbox_ids, Math.ceil(seconds * replies_a_second));
  const delivered = new Map<string, number>();
  for (const { prospect_id, message_id, nth } of sent) {
    delivered.set(prospect_id, performance.now());
    place.imap.deliver(userOf(nth), answer(message_id, nth));
    await sleep(1_000 / replies_a_second);
  }
  for (const end = performance.now() + 60_000; !sent.every(({ prospect_id }) => place.received.has(prospect_id)); ) {
    if (performance.now() > end) throw new Error('Not all replies were told within a minute.');
    await sleep(20);
  }
  const times = sent.map(
    ({ prospect_id }) => (place.received.get(prospect_id) as number) - (delivered.get(prospect_id) as number),
  );
  return { p50_ms: percentile(times, 50), p95_ms: percentile(times, 95) };
}

const answer = (message_id: string, nth: number): string =>
  [
    ...[`From: ada${nth}@example.com`, `To: inbox${nth}@acme.example.com`, 'Subject: Re: Hello'],
    ...[`Date: ${new Date().toUTCString()}`, `Message-ID: <${newId('reply')}@example.com>`],
    ...[`In-Reply-To: <${message_id}@acme.example.com>`, '', 'Yes, please send me the details.', ''],
  ].join('\r\n');

interface Mailed {
  prospect_id: string;
  message_id: string;
  /** The number of its inbox. */
  nth: number;
}

/** Prospects who were sent a first email, each from another inbox. */
async function makeMailed(place: Place, inbox_ids: string[], count: number): Promise<Mailed[]> {
  const { store, vault, organization_id, brand_id, campaign_id } = place;
  const first = Math.floor(Math.random() * inbox_ids.length);
  return transaction(store, { organization_id, request_id: null }, async (tx) => {
    const keys = Array.from({ length: count }, () => ({
      ...{ brand_id, channel: 'website' as const, key: `${newId('site').replace('_', '-')}.com` },
    }));
    const made = await createProspects(tx, vault, keys, { source: 'csv_import' });
    const rows = made.map((one, index) => {
      const nth = (first + index) % inbox_ids.length;
      const ids = { sequence_id: newId('fsq'), thread_id: newId('fth'), message_id: newId('fms') };
      return { prospect_id: one?.id as string, inbox_id: inbox_ids[nth] as string, nth, ...ids };
    });
    const given = sql`json_to_recordset(${JSON.stringify(rows)}::json)
      as r (prospect_id text, inbox_id text, sequence_id text, thread_id text, message_id text)`;
    await tx.all(sql`
      insert into recruitment.sequence (organization_id, id, campaign_id, brand_id, prospect_id, inbox_id, thread_id, state, next_step, last_sent_at)
      select ${organization_id}, r.sequence_id, ${campaign_id}, ${brand_id}, r.prospect_id, r.inbox_id, r.thread_id, 'active', 1, now() from ${given}`);
    await tx.all(sql`
      insert into recruitment.thread (organization_id, id, brand_id, prospect_id, inbox_id, campaign_id, sequence_id, subject, messages, last_message_at)
      select ${organization_id}, r.thread_id, ${brand_id}, r.prospect_id, r.inbox_id, ${campaign_id}, r.sequence_id, 'Hello', 1, now() from ${given}`);
    await tx.all(sql`
      insert into recruitment.message (organization_id, id, thread_id, brand_id, prospect_id, campaign_id, sequence_id, inbox_id, direction, purpose,
        state, step_index, variant, subject, body_text, rfc_message_id, sent_at)
      select ${organization_id}, r.message_id, r.thread_id, ${brand_id}, r.prospect_id, ${campaign_id}, r.sequence_id, r.inbox_id, 'outbound',
        'sequence', 'sent', 0, 0, 'Hello', 'Hi', r.message_id || '@acme.example.com', now() from ${given}`);
    return rows;
  });
}
