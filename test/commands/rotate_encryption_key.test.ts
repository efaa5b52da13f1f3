import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import Stripe from 'stripe';
import t from 'tap';
import { buildApi } from '../../src/api.ts';
import { findWrongKey } from '../../src/core/encryption/key_check.ts';
import { createVault } from '../../src/core/encryption/vault.ts';
import { encrypted } from '../../src/products.ts';
import { command } from '../command_process.ts';
import {
  type Caller,
  callerOf,
  closeApi,
  encryption_key,
  eventually,
  type Json,
  log,
  patient_api,
  type Rail,
  services,
  sql,
  startRail,
  startReceiver,
  startWorker,
} from '../harness.ts';
import { startGate } from '../processes.ts';
import { makeDataDir, rail as runRail, spawnRail } from '../rail_process.ts';

const old_key = encryption_key;
const new_key = Buffer.alloc(32, 9);
const keyring = (...keys: Buffer[]) => keys.map((key) => key.toString('base64')).join(',');
const old_vault = createVault([old_key]);
const new_vault = createVault([new_key]);
const [old_id] = old_vault.key_ids as [string];
const [new_id] = new_vault.key_ids as [string];
const both = keyring(new_key, old_key);

/** Runs the command. @returns what it answered, and how it ended */
async function rotate(url: string, args: string[] = [], keys = both): Promise<{ code: number | null; report: Json }> {
  const environment = { DATABASE_URL: url, RAIL_ENCRYPTION_KEY: keys };
  const { code, stdout, stderr } = await command(['rotate-encryption-key', '--json', ...args], environment);
  if (!stdout) throw new Error(`It ended with ${code}: ${stderr}`);
  return { code, report: JSON.parse(stdout) };
}

const total = ({ counts }: Json, key_id: string): number =>
  counts.reduce((sum: number, one: Json) => sum + (one.key_id === key_id ? one.values : 0), 0);

interface Kept {
  merchant: Caller;
  endpoints: { id: string; secrets: string[] }[];
  partner_id: string;
  iban: string;
  replies: { path: string; body: object; key: string; answer: Json }[];
}

/** A merchant who has some of everything that is encrypted. */
async function keepSecrets(rail: Rail, receiver_url: string): Promise<Kept> {
  const merchant = await rail.organization();
  const { id: program_id } = await merchant.post('/v1/programs', {
    name: 'Acme',
    website_url: 'https://acme.example.com',
    currency: 'USD',
    payout_methods: ['bank_transfer'],
  });
  const kept: Kept = { merchant, endpoints: [], partner_id: '', iban: 'DE89370400440532013000', replies: [] };
  for (let nth = 0; nth < 12; nth++) {
    const body = { program_id, url: receiver_url, event_types: ['sale.created'] };
    const request = { path: '/v1/webhook_endpoints', body, key: `endpoint ${nth}` };
    const answer = await merchant.post(request.path, request.body, { 'Idempotency-Key': request.key });
    kept.replies.push({ ...request, answer });
    const rotated = nth % 3 === 0 ? await merchant.post(`/v1/webhook_endpoints/${answer.id}/rotate_secret`) : undefined;
    kept.endpoints.push({ id: answer.id, secrets: rotated ? [rotated.secret, answer.secret] : [answer.secret] });
  }
  const partner = await merchant.post('/v1/partners', { program_id, email: 'ada@partner.example.com' });
  kept.partner_id = partner.id;
  const details = { account_holder: 'Ada', iban: kept.iban, bic: 'COBADEFFXXX' };
  const path = `/v1/partners/${partner.id}/payout_method`;
  const { status } = await merchant.request('PUT', path, { method: 'bank_transfer', details });
  if (status !== 200) throw new Error(`The payout method was not kept: ${status}`);
  return kept;
}

t.test('every encrypted column is known to the rotation', async (t) => {
  const rail = await startRail({ worker: false });
  const columns = await rail.query<{ name: string }>(sql`
    select format('%s.%s.%s', c.table_schema, c.table_name, c.column_name) as name
    from information_schema.columns c
    join pg_class r on r.oid = format('%I.%I', c.table_schema, c.table_name)::regclass
    where c.data_type = 'bytea' and not r.relispartition and r.relkind in ('r', 'p')
      and c.table_schema not in ('pg_catalog', 'information_schema', 'graphile_worker')
    order by name`);
  const isHash = ({ name }: { name: string }) => /([._](sha256|hmac|hash)|\.fingerprint)$/.test(name);
  /** Emails are stored as they are sent. */
  const isMail = ({ name }: { name: string }) => name.startsWith('core.outgoing_mail.');
  t.same(
    columns.filter((column) => !(isHash(column) || isMail(column))).map(({ name }) => name),
    [
      'core.encryption_check.value',
      ...encrypted.flatMap(({ table, columns: of }) => of.map((column) => `${table}.${column}`)),
    ].sort(),
    'a bytea column that is no hash is encrypted: it belongs into the `encrypted` of core, webhooks or its product',
  );
  for (const { table, id } of encrypted) {
    const [key] = await rail.query<{ columns: string[] }>(sql`
      select array_agg(a.attname::text order by array_position(i.indkey::smallint[], a.attnum)) as columns
      from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any (i.indkey)
      where i.indisprimary and i.indrelid = ${table}::regclass`);
    t.same(key?.columns, ['organization_id', id], `the primary key of ${table}`);
  }
});

t.test('brings all that is stored under the new key, also when it is killed on the way', async (t) => {
  const rail = await startRail({ worker: false });
  const receiver = await startReceiver();
  const kept = await keepSecrets(rail, receiver.url);
  t.equal(
    await findWrongKey(rail.store.database, old_vault),
    undefined,
    'as a process with the old key does at its start',
  );
  const values = 12 + 4 + 12 + 1 + 1;

  const before = await rotate(rail.url, ['--dry-run']);
  t.equal(before.code, 0);
  t.same(before.report.key_ids, [new_id, old_id]);
  t.equal(total(before.report, old_id), values);
  t.equal(total(before.report, new_id), 0);
  t.equal((await rotate(rail.url, ['--dry-run'], keyring(new_key))).code, 1, 'a key that is missing is told');

  const gate = await startGate(rail.url);
  for (const [side, nth] of [
    ['before', 3],
    ['after', 1],
  ] as const) {
    let seen = 0;
    const stopped = gate.stopAt(side, ({ text }, answer) => {
      return answer === undefined && /^\s*update (core|webhooks|program)\./.test(text) && ++seen === nth;
    });
    const killed = spawnRail(t, ['rotate-encryption-key', '--batch', '3'], {
      DATABASE_URL: gate.url,
      RAIL_ENCRYPTION_KEY: both,
    });
    await stopped;
    await killed.stop('SIGKILL');
    gate.cut();
    const { report } = await rotate(rail.url, ['--dry-run']);
    t.equal(total(report, old_id) + total(report, new_id), values, 'nothing is lost');
    t.ok(total(report, old_id) > 0, 'it was not done');
  }
  t.ok(total((await rotate(rail.url, ['--dry-run'])).report, new_id) > 0, 'what was committed stays');

  const { code, report } = await rotate(rail.url, ['--batch', '3']);
  t.equal(code, 0);
  t.ok(report.re_encrypted > 0 && report.re_encrypted < values, 'the rest is done');
  t.equal(total(report, new_id), values);
  t.equal(total(report, old_id), 0);
  t.match(await rotate(rail.url), { code: 0, report: { re_encrypted: 0 } });
  const { stdout } = await command(['rotate-encryption-key'], { DATABASE_URL: rail.url, RAIL_ENCRYPTION_KEY: both });
  t.match(stdout, `${old_id} can be dropped once every process runs with ${new_id} in front`);
  for (const secret of [new_key, old_key]) t.notMatch(stdout, secret.toString('base64'));

  await t.test('and the service goes on without the old one', async (t) => {
    const own_services = { ...services, vault: new_vault };
    const api = await buildApi({ store: rail.store, services: own_services, log, limits: patient_api });
    const worker = startWorker({ url: rail.url, store: rail.store, services: own_services, concurrency: 4, log });
    t.teardown(() => Promise.all([closeApi(api), worker.stop()]));
    await worker.ready;
    const address = await api.listen({ port: 0, host: '127.0.0.1' });
    const merchant = callerOf(address, kept.merchant.key, kept.merchant.organization_id);
    for (const { path, body, key, answer } of kept.replies) {
      const again = await merchant.request('POST', path, body, { 'Idempotency-Key': key });
      t.match(again, { status: 201, headers: { 'idempotent-replayed': 'true' } });
      t.same(again.body, answer);
    }
    for (const [nth, { id, secrets }] of kept.endpoints.entries()) {
      await merchant.post(`/v1/webhook_endpoints/${id}/ping`);
      const one = (await receiver.until(nth + 1))[nth];
      for (const secret of secrets) {
        const signature = one?.headers['rail-signature'] as string;
        t.ok(new Stripe('sk_test_unused').webhooks.constructEvent(one?.raw as string, signature, secret, 300));
      }
    }
    const [method] = await rail.query<{ details: Buffer }>(sql`
      select details from program.payout_method where partner_id = ${kept.partner_id}`);
    t.match(new_vault.decrypt(method?.details as Buffer, kept.partner_id), kept.iban);
  });
});

t.test('keeps and names what no key opens', async (t) => {
  const rail = await startRail({ worker: false });
  const { endpoints } = await keepSecrets(rail, 'http://127.0.0.1:9/');
  const [foreign, damaged] = endpoints as [Kept['endpoints'][0], Kept['endpoints'][0]];
  const foreign_vault = createVault([Buffer.alloc(32, 1)]);
  const replace = async (id: string, secret: Buffer) => {
    await rail.query(sql`update webhooks.endpoint set secret = ${secret} where id = ${id}`);
    return secret;
  };
  const broken = old_vault.encrypt('whsec_', damaged.id);
  broken[broken.length - 1] = (broken.at(-1) as number) ^ 1;
  const left = new Map([
    [foreign.id, await replace(foreign.id, foreign_vault.encrypt('whsec_', foreign.id))],
    [damaged.id, await replace(damaged.id, broken)],
  ]);

  const { code, report } = await rotate(rail.url);
  t.equal(code, 1);
  t.same(
    report.unreadable.map(({ table, column, id, key_id, reason }: Json) => ({ table, column, id, key_id, reason })),
    [
      { id: foreign.id, key_id: foreign_vault.key_ids[0], reason: 'unknown_key' },
      { id: damaged.id, key_id: old_id, reason: 'damaged' },
    ].map((one) => ({ table: 'webhooks.endpoint', column: 'secret', ...one })),
  );
  t.equal(total(report, new_id), 12 + 4 + 12 + 1 - 2, 'everything else is done');
  for (const [id, bytes] of left) {
    const [row] = await rail.query<{ secret: Buffer }>(sql`select secret from webhooks.endpoint where id = ${id}`);
    t.same(row?.secret, bytes);
  }
  const { stdout } = await command(['rotate-encryption-key'], { DATABASE_URL: rail.url, RAIL_ENCRYPTION_KEY: both });
  t.match(stdout, `${old_id} is still needed`);
});

t.test('loses no secret that is rotated at the same time', async (t) => {
  const rail = await startRail({ worker: false });
  const { merchant, endpoints } = await keepSecrets(rail, 'http://127.0.0.1:9/');
  const own_services = { ...services, vault: createVault([old_key, new_key]) };
  const api = await buildApi({ store: rail.store, services: own_services, log, limits: patient_api });
  t.teardown(() => closeApi(api));
  const { post } = callerOf(await api.listen({ port: 0, host: '127.0.0.1' }), merchant.key, merchant.organization_id);
  const rotateSecret = async (endpoint: Kept['endpoints'][0]) => {
    const { secret } = await post(`/v1/webhook_endpoints/${endpoint.id}/rotate_secret`);
    endpoint.secrets = [secret, endpoint.secrets[0] as string];
  };

  const blocker = new pg.Client({ connectionString: rail.url });
  await blocker.connect();
  t.teardown(() => blocker.end());
  const both_vault = createVault([new_key, old_key]);
  const compare = async () => {
    const stored = await rail.query<{ id: string; secret: Buffer; previous_secret: Buffer }>(sql`
      select id, secret, previous_secret from webhooks.endpoint`);
    for (const { id, secrets } of endpoints) {
      const row = stored.find((one) => one.id === id);
      const opened = [row?.secret, row?.previous_secret].map((one) => (one ? both_vault.decrypt(one, id) : undefined));
      t.same(opened, [secrets[0], secrets[1]]);
    }
  };

  const [contended] = endpoints as [Kept['endpoints'][0]];
  await blocker.query('begin');
  await blocker.query('select from webhooks.endpoint where id = $1 for update', [contended.id]);
  const meanwhile = rotateSecret(contended);
  await eventually(async () => (await rail.waiting()) === 1, 'the API to come to the row');
  const running = rotate(rail.url, ['--batch', '2']);
  await eventually(async () => (await rail.waiting()) === 2, 'the rotation to come to it');
  await blocker.query('commit');
  await Promise.all([running, meanwhile]);
  await compare();

  const again = rotate(rail.url, ['--batch', '1']);
  const ended = again.then(() => true);
  const hasEnded = () => Promise.race([ended, new Promise<false>((resolve) => setImmediate(resolve, false))]);
  while (!(await hasEnded())) for (const endpoint of endpoints) await rotateSecret(endpoint);
  await compare();

  const { code, report } = await rotate(rail.url);
  t.equal(code, 0, 'what an API wrote with the old key in front is done by the next run');
  t.equal(total(report, old_id), 0);
});

t.test('makes a new key for the data directory, and drops the old one when it is done', async (t) => {
  const RAIL_DATA_DIR = await makeDataDir(t, 'migrated');
  const settings = { RAIL_DATA_DIR, PORT: '0', RAIL_WEBHOOK_ALLOW_PRIVATE: '1' };
  const key_file = join(RAIL_DATA_DIR, 'encryption_key');
  const keys = async () => (await readFile(key_file, 'utf8')).trim().split(',');
  const newKey = () => command(['rotate-encryption-key', '--new-key', '--json'], { RAIL_DATA_DIR });
  const receiver = await startReceiver();
  const start = async () => {
    const process = spawnRail(t, ['start'], settings);
    const [, url] = await process.until(/Rail is running on (\S+)[\s\S]*Ctrl-C stops it/);
    const demo = JSON.parse(await readFile(join(RAIL_DATA_DIR, 'demo.json'), 'utf8'));
    return { process, demo, ...callerOf(url as string, demo.api_key, demo.organization_id) };
  };

  const first = await start();
  const made = { program_id: first.demo.program_id, url: receiver.url };
  const endpoint = await first.post('/v1/webhook_endpoints', made);
  const [old] = await keys();
  t.match(await newKey(), { code: 1, stderr: /Stop it first/ }, 'not while the service runs');
  t.same(await keys(), [old]);
  await first.process.stop('SIGTERM');

  await rename(key_file, `${key_file}.away`);
  const keyless = await runRail(t, ['start'], settings);
  t.match(keyless, {
    ...{ code: 1, stderr: `and there is no ${key_file}. Restore that file, or set RAIL_ENCRYPTION_KEY to the key` },
  });
  await t.rejects(readFile(key_file), { code: 'ENOENT' }, 'a key that is gone is not replaced');
  await rename(`${key_file}.away`, key_file);

  const { code, stdout } = await newKey();
  t.equal(code, 0);
  // The secret of the endpoint, and those of the demo's publishable key and Stripe account.
  t.match(JSON.parse(stdout), { re_encrypted: 3, unreadable: [], dropped_key_ids: [String] });
  const [second, ...behind] = await keys();
  t.not(second, old);
  t.same(behind, [], 'the old key is gone');

  // As a killed run leaves it: the new key in front of the old one.
  const third = Buffer.alloc(32, 3).toString('base64');
  await writeFile(key_file, `${third},${second}\n`);
  const running = await start();
  const beside = await command(['rotate-encryption-key'], { RAIL_DATA_DIR });
  t.match(beside, { code: 0, stderr: /The old key is kept/ });
  t.same(await keys(), [third, second], 'which a running service may still use');
  await running.process.stop('SIGTERM');
  t.match(await newKey(), { code: 0, stderr: /Going on with the new key/ });
  t.same(await keys(), [third]);

  const last = await start();
  await last.post(`/v1/webhook_endpoints/${endpoint.id}/ping`);
  const [one] = await receiver.until(1);
  const signature = one?.headers['rail-signature'] as string;
  t.ok(new Stripe('sk_test_unused').webhooks.constructEvent(one?.raw as string, signature, endpoint.secret, 300));
  await last.process.stop('SIGTERM');
  t.match(
    await command(['rotate-encryption-key', '--new-key'], { RAIL_DATA_DIR, RAIL_ENCRYPTION_KEY: both }),
    { code: 2, stderr: /Put a new key in front of the others in RAIL_ENCRYPTION_KEY/ },
    'the environment is not its own',
  );
});
