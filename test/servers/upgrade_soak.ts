/**
 * `npm run soak -- upgrade`: processes of the version before run while the database is migrated, and beside those of this version. All of them take
 * the tour, from a click to a webhook, and none of it may fail.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import t from 'tap';
import { violations } from '../../src/commands/audit.ts';
import { migrate } from '../../src/core/postgres/migrate.ts';
import { type Caller, callerOf, encryption_key, type Json, startReceiver } from '../harness.ts';
import { databaseUrl, emptyDatabase, serverUrl } from '../postgres.ts';
import { type Process, startProcess } from '../processes.ts';

const run = promisify(execFile);
const checkout = join(import.meta.dirname, '../..');
const told = ['referral.created', 'referral.lead', 'sale.created', 'commission.created', 'referral.converted'];

/** @param commit of the version before: by default the newest tag of a version, and before the first one the last change of migrations */
export async function soakUpgrade(commit?: string): Promise<void> {
  t.setTimeout(1_800_000);
  const before = commit ?? (await versionBefore());
  await t.test(`${before.slice(0, 12)} and this version`, { timeout: 1_800_000 }, (t) => upgradeFrom(t, before));
}

async function upgradeFrom(t: Test, before: string): Promise<void> {
  const root = await checkOut(before);
  const server = await serverUrl(t);
  const url = databaseUrl(server, await emptyDatabase(server));
  const rail = async (...args: string[]) => {
    const env = { ...process.env, DATABASE_URL: url, RAIL_ENCRYPTION_KEY: encryption_key.toString('base64') };
    const { stdout } = await run(process.execPath, [join(root, 'src/main.ts'), ...args, '--json'], { env });
    return JSON.parse(stdout) as Json;
  };
  await rail('migrate');
  const { id } = await rail('org', 'create', '--name', 'Acme', '--owner-email', 'ada@acme.example.com');
  const key = await rail('key', 'create', '--organization', id, '--name', 'tour', '--rate-limit', '1000');
  const callerAt = (api: Process): Caller => callerOf(api.url, key.secret ?? key.key, id);
  const startBoth = (at?: string) =>
    Promise.all([startProcess('api', url, {}, at), startProcess('worker', url, {}, at)]);

  const [old_api, old_worker] = await startBoth(root);
  await t.test('the version before takes the tour', (t) => tour(t, callerAt(old_api)));
  await t.test('it goes on while the database is migrated, and each function is replaced', async (t) => {
    await query(url, `update migration.applied set sha256 = 'of the version before' where name like 'live/%'`);
    let is_migrated = false;
    const migrating = migrate(url, (line) => t.comment(line)).finally(() => {
      is_migrated = true;
    });
    let tours = 0;
    do {
      await tour(t, callerAt(old_api));
      tours++;
    } while (!is_migrated);
    t.comment(`${(await migrating).length} files and statements ran amid ${tours} tours`);
    t.same(await migrate(url), [], 'the database is up to date');
  });
  await t.test('it takes the tour on the migrated database', async (t) => {
    await isReady(t, old_api);
    await tour(t, callerAt(old_api));
  });
  const [api, worker] = await startBoth();
  await t.test('both versions take the tour, and work, beside each other', async (t) => {
    await Promise.all([old_api, api, old_api, api].map((each) => tour(t, callerAt(each))));
  });
  await Promise.all([old_api, old_worker].map((each) => each.end('SIGTERM')));
  await t.test('this version takes the tour alone', (t) => tour(t, callerAt(api)));
  await Promise.all([api, worker].map((each) => each.end('SIGTERM')));
  await t.test('the version before can be started again on the migrated database', async (t) => {
    const [again] = await startBoth(root);
    await isReady(t, again);
    await tour(t, callerAt(again));
  });
  await t.test('the audit finds nothing', async (t) => {
    const found = await withClient(url, (client) => Array.fromAsync(violations(client)));
    t.same(found.flat(), []);
    const failed = 'select j.task, j.last_error from core.jobs() j where j.last_error is not null';
    t.same(await query(url, failed), [], 'no job has failed');
  });
}

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return work(client).finally(() => client.end());
}

const query = (url: string, text: string): Promise<Json[]> =>
  withClient(url, async (client) => (await client.query(text)).rows);

async function git(...args: string[]): Promise<string> {
  return (await run('git', args, { cwd: checkout })).stdout.trim();
}

/** Until the first release migrations are edited in place, so that nothing before their last change can be migrated. */
async function versionBefore(): Promise<string> {
  const [tag = ''] = (await git('tag', '--list', 'v*', '--sort=-version:refname', '--no-contains', 'HEAD')).split('\n');
  return tag || (await git('log', '-1', '--format=%H', '--', 'sql/migrations'));
}

/** The files of a commit with the packages that it needs: those of this checkout, where they are the same. */
async function checkOut(commit: string): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'rail-before-'));
  t.teardown(() => rm(root, { recursive: true, force: true }));
  await run('sh', ['-c', 'git archive "$0" | tar -x -C "$1"', commit, root], { cwd: checkout });
  const locks = await Promise.all([checkout, root].map((at) => readFile(join(at, 'package-lock.json'), 'utf8')));
  if (locks[0] === locks[1]) await symlink(join(checkout, 'node_modules'), join(root, 'node_modules'));
  else await run('npm', ['ci', '--omit=dev', '--ignore-scripts'], { cwd: root });
  return root;
}

type Test = Parameters<Parameters<typeof t.test>[0]>[0];

async function isReady(t: Test, { url }: Process): Promise<void> {
  t.equal((await fetch(`${url}/readyz`)).status, 200, 'it is ready');
}

let tours = 0;

/** A partner's click becomes a sale with a commission, and each event is told once, in order. */
async function tour(t: Test, merchant: Caller): Promise<void> {
  const name = `tour-${++tours}`;
  const receiver = await startReceiver();
  const program = await merchant.post('/v1/programs', {
    name,
    website_url: 'https://acme.example.com',
    currency: 'USD',
  });
  const program_id = program.id;
  await merchant.post('/v1/rules', { program_id, name, rate_type: 'percent', rate_value: 2000 });
  const partner = await merchant.post('/v1/partners', { program_id, email: `${name}@partner.example.com` });
  const destination_url = 'https://acme.example.com/pricing';
  const link = await merchant.post('/v1/links', { program_id, partner_id: partner.id, destination_url, value: name });
  await merchant.post('/v1/webhook_endpoints', { program_id, url: receiver.url, event_types: told });
  const visit = { program_id, value: name, landing_url: link.url, visitor_token: `visitor-${name}` };
  const click = await merchant.post('/v1/clicks', visit);
  const email = `${name}@customer.example.com`;
  const customer = await merchant.post('/v1/customers', { program_id, click_id: click.id, email });
  const sale = await merchant.post('/v1/sales', {
    ...{ program_id, customer_id: customer.id, amount_minor: 9_900, currency: 'USD', external_charge_id: name },
  });
  t.equal(sale.commissions[0]?.amount_minor, 1_980, `${name} earns a commission`);
  await receiver.until(told.length);
  t.same(
    receiver.events().map(({ type }) => type),
    told,
    `${name} is told in order`,
  );
  t.equal((await merchant.get(`/v1/partners/${partner.id}`)).id, partner.id);
}
