import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parse } from 'acorn';
import type { Command } from 'commander';
import pg from 'pg';
import t from 'tap';
import { request } from 'undici';
import { createCommandLine } from '../../src/command_line/rail.ts';
import { Sequence } from '../../src/commands/listen/received_webhook.ts';
import { misspelt, readConfig, settings } from '../../src/config.ts';
import { runDue } from '../../src/core/jobs/schedule.ts';
import { schedules } from '../../src/products.ts';
import { requireFit } from '../../src/service.ts';
import { command } from '../command_process.ts';
import { type Caller, callerOf, encryption_key, eventually, type Json, sql, startRail } from '../harness.ts';
import { stablePort } from '../ports.ts';
import { databaseUrl, emptyDatabase } from '../postgres.ts';
import { environmentOf, spawnRail } from '../rail_process.ts';

const run = promisify(execFile);
const service = await startRail();
const environment = { DATABASE_URL: service.url, RAIL_ENCRYPTION_KEY: encryption_key.toString('base64') };
const base_url = `http://127.0.0.1:${(service.app.server.address() as AddressInfo).port}`;

const rail = (...args: string[]) => command(args, environment);
const answerOf = async (...args: string[]): Promise<Json> => {
  const { code, stdout, stderr } = await rail(...args, '--json');
  if (code !== 0) throw new Error(`rail ${args.join(' ')} ended with ${code}: ${stderr}`);
  return JSON.parse(stdout);
};

/** The commands that do something, as they are typed. */
function leavesOf(command: Command, path: string[] = []): string[] {
  const children = command.commands.filter((one) => one.name() !== 'help');
  if (children.length === 0) return [path.join(' ')];
  return children.flatMap((one) => leavesOf(one, [...path, one.name()]));
}

t.test('every command explains itself, with an example', async (t) => {
  const line = createCommandLine();
  const leaves = leavesOf(line);
  t.ok(leaves.length > 50, `${leaves.length} commands`);
  for (const leaf of leaves) {
    const command = leaf
      .split(' ')
      .reduce<Command>((of, name) => of.commands.find((one) => one.name() === name) as Command, line);
    const help: string[] = [];
    command.configureOutput({ writeOut: (text) => void help.push(text) }).outputHelp();
    t.match(
      help.join(''),
      new RegExp(`^Usage: npx --no rail ${leaf}\\b[\\s\\S]*Examples?:\\n +\\$ .*npx --no rail ${leaf}`),
      leaf,
    );
  }
  const { stdout } = await rail('--help');
  for (const leaf of leaves) t.match(stdout, new RegExp(`^  ${leaf.split(' ')[0]} `, 'm'));
  const unwrapped = stdout.replaceAll(/\s+/g, ' ');
  for (const { name, meaning } of settings) t.ok(unwrapped.includes(`${name} ${meaning}`), `it lists ${name}`);
  for (const line of stdout.split('\n')) t.ok(line.length <= 120, line);
  const { stdout: shown } = await rail('jobs', 'retry', '--help');
  t.match(shown, /^Usage: npx --no rail jobs retry /);
});

t.test('a Node that is too old says so in one line', async (t) => {
  const launcher = join(import.meta.dirname, '../../src/rail.js');
  t.ok(
    parse(await readFile(launcher, 'utf8'), { ecmaVersion: 2020, sourceType: 'module', allowHashBang: true }),
    'Node 14 reads it',
  );
  const unable = run(process.execPath, ['--no-experimental-strip-types', launcher, '--version']);
  await t.rejects(unable, { code: 1, stdout: '', stderr: /^rail: Rail needs Node 24 or later,.* 'npm ci'.*\n$/ });
  const able = await run(process.execPath, [launcher, '--version']);
  t.match(able, { stdout: /^\d+\.\d+\.\d+\n$/, stderr: '' });
  const linked = await run(join(import.meta.dirname, '../../src/main.ts'), ['--version']);
  t.same(linked, able, 'the file that npx may have linked before is still run');
  for (const name of ['README.md', 'docker-compose.yml', 'package.json'])
    t.notMatch(
      await readFile(join(import.meta.dirname, '../..', name), 'utf8'),
      'src/main.ts',
      `${name} names the launcher`,
    );
});

t.test('what is wrong is one clear line, and a stack only where it is asked for', async (t) => {
  const usage = [['bogus'], ['key', 'create'], ['run', 'bogus/schedule'], ['listen', '--events', 'bogus.event'], []];
  for (const args of usage)
    t.match(await rail(...args), { code: 2, stdout: '' }, `rail ${args.join(' ')} is wrong usage`);
  t.match((await rail('run', 'bogus/schedule')).stderr, 'program/mature_commissions', 'and lists what there is');

  const nowhere = { DATABASE_URL: 'postgres://rail:hidden@127.0.0.1:1/rail' };
  const away = await command(['org', 'list'], nowhere);
  t.match(away, { code: 1, stdout: '' });
  t.match(away.stderr, /^rail: Postgres at 127\.0\.0\.1:1 cannot be reached .*DATABASE_URL.*\n$/);
  t.notMatch(away.stderr, 'hidden');
  const detailed = await command(['org', 'list'], { ...nowhere, LOG_LEVEL: 'debug' });
  t.match(detailed.stderr, /\n +at /);

  const misset = await command(['org', 'list'], { PORT: 'many', HOST: '', LOG_LEVEL: 'loud' });
  t.match(misset, { code: 1, stderr: /^rail: .*PORT.*LOG_LEVEL.*\n$/ });
  const allowed: [Record<string, string>, string][] = [
    [{ PORT: 'many' }, 'PORT: must be an integer from 0 to 65535'],
    ...['501.5', '501', '0', '1e2'].map((size): [Record<string, string>, string] => [
      { DATABASE_POOL_SIZE: size },
      'DATABASE_POOL_SIZE: must be an integer from 1 to 500',
    ]),
    [{ LOG_LEVEL: 'loud' }, 'LOG_LEVEL: must be one of trace, debug, info, warn, error, fatal, silent'],
    [{ RAIL_DEMO_MAIL: 'yes' }, 'RAIL_DEMO_MAIL: must be 0 or 1'],
    [{ BASE_URL: 'rail.example.com' }, 'BASE_URL: must be a URL such as https://rail.example.com'],
    ...['https://me:pw@rail.example.com', 'https://rail.example.com/?a=1', 'https://rail.example.com/#a'].map(
      (BASE_URL): [Record<string, string>, string] => [
        { BASE_URL },
        'BASE_URL: must be a URL such as https://rail.example.com, without a user, ? and #',
      ],
    ),
    [{ RAIL_WISE_URL: 'wise' }, 'RAIL_WISE_URL: must be a URL such as https://api.example.com'],
    [
      { DATABASE_URL: 'postgres://rail:a#b@db/rail' },
      'DATABASE_URL: must be a URL such as postgres://rail:secret@db.example.com/rail, with special characters of the password percent-encoded (%23 for #)',
    ],
  ];
  for (const [environment, message] of allowed)
    t.throws(() => readConfig(environment), { message: `Invalid environment. ${message}` });
  t.match(await rail('key', 'revoke', 'key_unknown'), { code: 1, stderr: /^rail: There is no key 'key_unknown'.*\n$/ });
});

t.test('a setting that is misspelt is named, with the one that is meant', async (t) => {
  const settings = { RAIL_WEBHOOK_ALLOW_PRIVAT: '1', RAIL_DATADIR: '/x', DATABASE_POOLSIZE: '5', RAIL_COLOUR: 'red' };
  t.same(misspelt({ ...settings, DATABASE_POOL_SIZE: '5', HOSTNAME: 'a', PATH: '/bin', npm_config_port: '1' }), [
    'RAIL_WEBHOOK_ALLOW_PRIVAT is not a setting. Did you mean RAIL_WEBHOOK_ALLOW_PRIVATE?',
    'RAIL_DATADIR is not a setting. Did you mean RAIL_DATA_DIR?',
    'DATABASE_POOLSIZE is not a setting. Did you mean DATABASE_POOL_SIZE?',
    "RAIL_COLOUR is not a setting. 'npx --no rail help' lists all settings.",
  ]);
  const near = {
    ...{ TRUSTED_PROXY: 'TRUSTED_PROXIES', RATE_LIMIT_PER_ADRESS: 'RATE_LIMIT_PER_ADDRESS', SMTP_URI: 'SMTP_URL' },
    ...{ WORKER_CONCURENCY: 'WORKER_CONCURRENCY', LOGLEVEL: 'LOG_LEVEL', MAX_CONNECTION: 'MAX_CONNECTIONS' },
    ...{ MAIL_FORM: 'MAIL_FROM', DATABASE_URI: 'DATABASE_URL', BASEURL: 'BASE_URL', METRIC_PORT: 'METRICS_PORT' },
  };
  for (const [name, meant] of Object.entries(near))
    t.same(misspelt({ [name]: '1' }), [`${name} is not a setting. Did you mean ${meant}?`]);
  const of_others = [
    'HOME',
    'HOSTNAME',
    'HOSTTYPE',
    'POST',
    'BASH_ENV',
    'SMTP_USER',
    'SMTP_PORT',
    'MAIL',
    'MAIL_HOST',
    'LOGNAME',
  ];
  t.same(misspelt(Object.fromEntries([...of_others, 'DATABASE_HOST', 'SHELL', 'PWD'].map((name) => [name, '1']))), []);
  const { stderr } = await command(['org', 'list'], { ...environment, DATABASE_POOLSIZE: '5' });
  t.match(stderr, 'rail: DATABASE_POOLSIZE is not a setting. Did you mean DATABASE_POOL_SIZE?');
});

t.test('an answer that is longer than a pipe holds is whole, however late it is read', async (t) => {
  const dictionary = ['data', 'dictionary', '--format', 'json'];
  const late = '"$0" src/main.ts "$@" | { dd bs=1 count=1 2>/dev/null; sleep 1; cat; }';
  const { stdout } = await run('sh', ['-c', late, process.execPath, ...dictionary], {
    ...{ cwd: join(import.meta.dirname, '../..'), env: environmentOf(environment), maxBuffer: 10_000_000 },
  });
  t.ok(stdout.length > 100_000);
  t.equal(stdout, (await rail(...dictionary)).stdout);
});

t.test('a Postgres older than 15 is refused', async (t) => {
  const fit = { version: '18.4', date_style: 'ISO, MDY', user: 'rail', database: 'rail' };
  t.throws(() => requireFit({ ...fit, version: '14.19 (Debian 14.19-1)' }), { message: /14\.19.*15 or later/ });
  for (const version of ['15.2', '16beta1', '18.4']) t.doesNotThrow(() => requireFit({ ...fit, version }));
});

t.test('organizations and keys live on the command line', async (t) => {
  const made = await answerOf('org', 'create', '--name', 'Acme Inc.', '--owner-email', 'ada@acme.example.com');
  t.match(made, { id: /^org_/, name: 'Acme Inc.', owner_email: 'ada@acme.example.com' });
  t.match(await answerOf('org', 'list'), [made]);
  t.match(
    (await rail('org', 'list')).stdout,
    /^ID +NAME +OWNER +CREATED AT\norg_\w+ +Acme Inc\. +ada@acme\.example\.com +20/,
  );

  const nobody = await rail('org', 'create', '--name', 'B', '--owner-email', 'ada@acme.example.com, eve@e.example.com');
  t.match(nobody, {
    code: 2,
    stdout: '',
    stderr: /^rail: '.*eve@e\.example\.com' is not an email address\. Example: --owner-email ada@.*\n$/,
  });

  const newKey = ['key', 'create', '--org', made.id, '--name', 'Reader', '--scope', 'programs:read', 'partners:read'];
  const key = await answerOf(...newKey, '--mode', 'test', '--rate-limit', '7');
  t.match(key, { id: /^key_/, secret: /^rail_test_/, mode: 'test', rate_limit: 7 });
  const caller = callerOf(base_url, key.secret, made.id);
  const allowed = await caller.request('GET', '/v1/programs');
  t.match(allowed, { status: 200, headers: { 'x-rail-livemode': 'false', 'x-ratelimit-limit': '7' } });
  t.match(await caller.request('POST', '/v1/programs', {}), {
    status: 403,
    body: { error: { param: 'programs:write' } },
  });

  const listed = await rail('key', 'list', '--org', made.id);
  t.match(listed.stdout, key.id);
  t.notMatch(listed.stdout, key.secret, 'the key is shown once');
  t.notMatch((await rail('key', 'list', '--json')).stdout, key.secret);

  const unknown = await rail(...newKey.slice(0, -1), 'partners:reed');
  t.match(unknown, { code: 2, stdout: '', stderr: /partners:reed.*partners:read/ });
  t.match(await rail('key', 'create', '--org', 'org_unknown', '--name', 'X'), { code: 1, stderr: /org_unknown/ });

  for (const nameless of [['org', 'create', '--owner-email', 'a@a.example.com'], newKey.slice(0, 4)])
    t.match(await rail(...nameless, '--name', ' '), { code: 2, stdout: '', stderr: /--name.*must not be empty/ });
  t.match(await answerOf(...newKey.slice(0, 6), '--scope', 'sales:read,links:read'), {
    scopes: ['sales:read', 'links:read'],
  });
  const signer = callerOf(base_url, (await answerOf(...newKey.slice(0, 6))).secret, made.id);
  const { key_id } = await signer.post('/v1/inbound_signing', { required: true });
  t.match(await signer.request('GET', '/v1/programs'), {
    status: 401,
    body: { error: { code: 'signature_required' } },
  });
  t.match((await rail('key', 'list', '--org', made.id)).stdout, new RegExp(`${key_id}.* required `));
  t.match(await answerOf('key', 'update', key_id, '--signature', 'optional'), { signature_required: false });
  t.equal((await signer.request('GET', '/v1/programs')).status, 200, 'it works again');

  const restricted = await answerOf(
    'key',
    'update',
    key.id,
    '--ip',
    '203.0.113.0/24',
    '--scope',
    'groups:read',
    '--expires-at',
    '2040-01-01T00:00:00Z',
  );
  t.match(restricted, {
    ip_ranges: ['203.0.113.0/24'],
    scopes: ['groups:read'],
    expires_at: '2040-01-01T00:00:00.000Z',
  });
  t.match(await answerOf('key', 'update', key.id, '--any-ip', '--no-expires'), { ip_ranges: null, expires_at: null });
  t.match(await rail('key', 'update', key.id), { code: 2, stderr: /Say what to change/ });
  t.match(await rail('key', 'update', key.id, '--ip', 'nowhere'), { code: 2, stderr: /is no network/ });
  const over = ['--expires-at', '2020-01-01T00:00:00Z'];
  for (const args of [newKey.slice(0, 6), ['key', 'update', key.id, '--name', 'Over']])
    t.match(await rail(...args, ...over), {
      ...{
        code: 2,
        stdout: '',
        stderr: /^rail: --expires-at must be in the future\..* 'npx --no rail key revoke'.*\n$/,
      },
    });
  const after = ((await answerOf('key', 'list', '--org', made.id)) as Json[]).filter(
    ({ status }) => status === 'expired',
  );
  t.same(after, [], 'no key is dead or ends');
  const rotated = await answerOf('key', 'rotate', key.id, '--overlap-hours', '1');
  t.match(rotated, { id: key.id, secret: /^rail_test_/, previous_secret_expires_at: /^20/ });
  t.not(rotated.secret, key.secret);
  t.match(await answerOf('key', 'revoke', key.id), { id: key.id, revoked_at: /^20/ });
  t.match(await caller.request('GET', '/v1/programs'), { status: 401, body: { error: { code: 'revoked_api_key' } } });
  t.match((await rail('key', 'list')).stdout, /revoked/);
});

t.test('publishable keys are created with their element, listed, and revoked', async (t) => {
  const caller = await service.organization();
  const body = { name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' };
  const { id: program_id } = await caller.post('/v1/programs', body);
  const create = ['publishable-key', 'create', '--program', program_id, '--origin', 'https://acme.example.com'];
  const made = await answerOf(...create, 'http://localhost:3000', '--name', 'Shop', '--mode', 'test');
  t.match(made, {
    ...{ id: /^pub_/, key: /^rail_pk_test_/, name: 'Shop', signing_secret: /^rail_sig_/ },
    ...{ allowed_origins: ['https://acme.example.com', 'http://localhost:3000'], snippet: `data-key="${made.key}"` },
  });
  t.match(await caller.get(`/v1/publishable_keys/${made.id}`), { program_id, key: made.key });
  const said = await rail(...create);
  t.match(said.stdout, /^Created pub_\w+ for prg_\w+[\s\S]*<script async src=[\s\S]*rail_sig_/);
  const list = ['publishable-key', 'list', '--program', program_id];
  const shown = await rail(...list);
  t.match(shown.stdout, new RegExp(`${made.id} +${program_id} +Shop +active .*never .*${made.key}`));
  t.notMatch(shown.stdout + (await rail(...list, '--json')).stdout, 'rail_sig_', 'the secret is shown once');
  t.match(await answerOf('publishable-key', 'revoke', made.id), { id: made.id, revoked_at: /^20/ });
  t.match((await rail(...list)).stdout, new RegExp(`${made.id} .* revoked `));
  t.match(await rail(...create.slice(0, -1), 'acme.example.com'), { code: 2, stdout: '', stderr: /origin/ });
  t.match(await rail('publishable-key', 'revoke', 'pub_x'), { code: 1, stderr: /There is no publishable key 'pub_x'/ });
  t.match(await rail('publishable-key', 'create', '--program', 'prg_x', '--origin', 'https://a.example.com'), {
    ...{ code: 1, stderr: /prg_x/ },
  });
  const logged = await caller.get(`/v1/audit_log?object_id=${made.id}`);
  t.same(logged.data.map(({ operation }: Json) => operation).sort(), [
    'publishable_keys.create',
    'publishable_keys.revoke',
  ]);
});

t.test('users are people whom keys belong to', async (t) => {
  const org = await answerOf('org', 'create', '--name', 'Two people', '--owner-email', 'ada@two.example.com');
  const newUser = ['user', 'create', '--organization', org.id, '--email', 'grace@two.example.com'];
  const grace = await answerOf(...newUser, '--name', 'Grace Hopper');
  t.match(grace, { id: /^usr_/, organization_id: org.id, email: 'grace@two.example.com', role: 'member' });
  t.match(await answerOf('user', 'list', '--org', org.id), [
    { email: 'ada@two.example.com', role: 'owner' },
    { id: grace.id, name: 'Grace Hopper' },
  ]);
  t.match(
    (await rail('user', 'list', '--org', org.id)).stdout,
    /^ID +ORGANIZATION +EMAIL[\s\S]*Grace Hopper +member +active +20/,
  );

  t.match(await rail('user', 'create', '--org', 'org_unknown', '--email', 'a@b.example.com'), {
    code: 1,
    stderr: /^rail: There is no organization 'org_unknown'.*\n$/,
  });
  t.match(await rail(...newUser.slice(0, -1), 'nobody'), {
    code: 2,
    stderr: /'nobody' is not an email address\. Example: --email ada@/,
  });
  const again = await rail(...newUser.slice(0, -1), 'Grace@Two.example.com');
  t.match(again, { code: 1, stdout: '', stderr: `already: ${grace.id}` }, 'an email is one person');

  const newKey = ['key', 'create', '--org', org.id, '--name', 'Grace'];
  t.match(await answerOf(...newKey, '--user', grace.id), { user_id: grace.id });
  t.match(await answerOf(...newKey), { user_id: null });
  t.match((await rail('key', 'list', '--org', org.id)).stdout, new RegExp(`USER[\\s\\S]*${grace.id} +Grace +live`));
  t.match(await rail(...newKey, '--user', 'usr_unknown'), { code: 1, stderr: /usr_unknown.*rail user list/ });

  t.match(await answerOf('user', 'update', grace.id, '--role', 'owner'), { role: 'owner' });
  t.match(await rail('user', 'update', grace.id), { code: 2, stderr: /Say what to change/ });
  const people = await answerOf('user', 'list', '--org', org.id);
  t.match(await answerOf('user', 'remove', people[0].id), { id: people[0].id, deleted: true });
  t.match(await rail('user', 'remove', grace.id), { code: 1, stderr: /last owner cannot be removed/ });
  t.match(await rail('user', 'remove', 'usr_unknown'), { code: 1, stderr: /There is no user/ });
});

async function programOf(merchant: Caller): Promise<Json> {
  const program = await merchant.post('/v1/programs', {
    name: 'Acme',
    website_url: 'https://acme.example.com',
    currency: 'USD',
  });
  const rule = { program_id: program.id, name: 'Standard', rate_type: 'percent', rate_value: 2000 };
  await merchant.post('/v1/rules', rule);
  return program;
}

async function sell(merchant: Caller, program_id: string): Promise<Json> {
  const email = `partner-${Math.random()}@partner.example.com`;
  const partner = await merchant.post('/v1/partners', { program_id, email });
  const customer = { email: `customer-${Math.random()}@customer.example.com` };
  const sale = { program_id, partner_id: partner.id, customer, amount_minor: 9_900, currency: 'USD' };
  return merchant.post('/v1/sales', { ...sale, external_charge_id: `ch_${Math.random()}` });
}

t.test('rail listen prints a program’s webhooks, verified, in order, and leaves no endpoint behind', async (t) => {
  const merchant = await service.organization();
  const program = await programOf(merchant);
  const events = ['sale.created', 'commission.created'];
  const killed = spawnRail(t, ['listen', '--program', program.id], environment);
  await killed.until(/Listening to/);
  await sell(merchant, program.id);
  await killed.until(/^\d\d:\d\d:\d\d {2}commission\.created +✓ signature {2}✓ order$/m);
  await killed.stop('SIGKILL');

  const listening = spawnRail(t, ['listen', '--json', '--program', program.id, '--events', ...events], environment);
  const [, url, endpoint_id] = await listening.until(/ on (http\S+) as (whe_\w+)/);
  t.same(
    (await merchant.get(`/v1/webhook_endpoints?program_id=${program.id}`)).data.map(({ id }: Json) => id),
    [endpoint_id],
    'a killed one’s endpoint goes with the next',
  );
  const sales = [await sell(merchant, program.id), await sell(merchant, program.id)];
  const lines = () => listening.said().stdout.split('\n').slice(0, -1); // the last one has not ended
  await eventually(() => lines().length >= 4, 'four events');
  const received = lines().map((line) => JSON.parse(line));
  t.same(
    received.map(({ type }) => type),
    [...events, ...events],
  );
  t.same(
    received.map(({ body }) => body.data.sale_id),
    [sales[0], sales[0], sales[1], sales[1]].map((sale) => sale?.id),
  );
  for (const one of received) t.match(one, { signature: 'good', order: 'good', attempt: 1, faults: [] });

  const forged = { 'Rail-Signature': 't=1,v1=00', 'Rail-Delivery-Id': 'whd_forged', 'Rail-Event': 'sale.created' };
  await fetch(url as string, { method: 'POST', headers: forged, body: '{}' });
  await eventually(() => lines().length >= 5, 'the forged one');
  t.match(JSON.parse(lines()[4] as string), {
    signature: 'wrong',
    order: 'wrong',
    faults: [/Rail-Signature/, /webhook-signature/, String],
  });

  const { code, stderr } = await listening.stop('SIGINT');
  t.equal(code, 1, 'a fault is the exit code');
  t.match(stderr, '5 received, 1 invalid');
  t.equal((await merchant.get(`/v1/webhook_endpoints?program_id=${program.id}`)).data.length, 0);
  t.notMatch(stderr + lines().join(), 'whsec_', 'the secret is nobody’s');
});

t.test('a sequence grows with each new attempt; one that comes again is no fault', async (t) => {
  const sequence = new Sequence();
  const checked = (['a 1', 'b 1', 'a 1', 'b 1', 'c 1', 'a 2'] as const).map((attempt, at) =>
    sequence.check(attempt, [1, 2, 1, 2, 3, 4][at] as number),
  );
  t.same(checked, ['good', 'good', 'repeated', 'repeated', 'good', 'good']);
  t.equal(sequence.check('d 1', 4), 'wrong');
  t.equal(sequence.check('e 1', 2), 'wrong');
});

t.test('rail run does a scheduled job as of another time', async (t) => {
  const merchant = await service.organization();
  const program = await programOf(merchant);
  const { commissions } = await sell(merchant, program.id);
  const [{ id, mature_at }] = commissions;
  const asked = ['run', 'program/mature_commissions', '--at', mature_at, '--wait'];
  t.match(await answerOf(...asked), { run_id: /^run_/, tick: mature_at, done: true });
  t.equal((await merchant.get(`/v1/commissions/${id}`)).status, 'due');
  t.match(await rail(...asked), { code: 1, stderr: /already/ });
  t.match(await rail('run', 'program/mature_commissions', '--at', '2027-01-01'), { code: 2, stderr: /zone/ });
  const ahead = new Date(Date.now() + 70 * 86_400_000).toISOString();
  for (const name of [
    'program/create_monthly_batches',
    'webhooks/keep_partitions',
    'core/purge_expired',
    'program/send_due_payouts',
    'recruitment/send_due',
  ])
    t.match(await rail('run', name, '--at', ahead), { code: 2, stderr: /--at must be .* or earlier/ }, name);
  t.same(
    schedules.filter(({ latest }) => latest === 'any').map(({ name }) => name),
    ['program/mature_commissions'],
  );

  await t.test('and what runs by the clock goes on before that time', async (t) => {
    const schedule = schedules.find(({ name }) => name === 'program/mature_commissions');
    const at = new Date(Date.now() + 10 * 60_000);
    await runDue(service.store, [schedule as (typeof schedules)[number]], at);
    const ticks = await service.query(sql`
      select tick from core.scheduled_run
      where name = 'program/mature_commissions' and tick between ${at.toISOString()}::timestamptz - interval '1 minute' and ${at.toISOString()}`);
    t.equal(ticks.length, 1);
  });
});

t.test('api and worker begin on a Postgres of one’s own: with a shared key, and once it is migrated', async (t) => {
  const DATABASE_URL = databaseUrl(service.url, await emptyDatabase(service.url));
  const own = { ...environment, DATABASE_URL, PORT: '0' };
  const database = new pg.Client({ connectionString: DATABASE_URL });
  await database.connect();
  const [{ statement }] = (
    await database.query(
      `select format('alter database %I set datestyle = ''German''', current_database()) as statement`,
    )
  ).rows;
  await database.query(statement);
  const refused = await command(['org', 'list'], own);
  t.match(refused, { code: 1, stdout: '', stderr: /DateStyle is 'German, DMY', and rail needs ISO/ });
  await database.query(/alter role .* set datestyle = 'ISO'/.exec(refused.stderr)?.[0] as string);
  await database.end();

  for (const role of ['api', 'worker']) {
    const keyless = await command([role], { DATABASE_URL });
    t.match(keyless, { code: 1, stderr: /^rail: RAIL_ENCRYPTION_KEY is not set.*openssl rand -base64 32.*\n$/ });
  }
  t.match(await command(['org', 'list'], own), { code: 1, stderr: /'npx --no rail migrate'/ });

  // Links name BASE_URL where a process listens on every address.
  const BASE_URL = 'https://rail.example.com';
  const api = spawnRail(t, ['api'], { ...own, HOST: '0.0.0.0', BASE_URL });
  const [, port] = await api.until(/missing migrations.* \/readyz answers 503.*"port":(\d+).*api ready/s);
  const ready = () => fetch(`http://127.0.0.1:${port}/readyz`);
  const worker = spawnRail(t, ['worker'], own);
  await worker.until(/missing migrations/);
  t.equal((await ready()).status, 503);

  const migrations = await Promise.all([command(['migrate', '--json'], own), command(['migrate', '--json'], own)]);
  t.same(
    migrations.map(({ code }) => code),
    [0, 0],
  );
  const applied = migrations.flatMap(({ stdout }) => JSON.parse(stdout).applied);
  t.ok(applied.includes('migrations/0001_core.sql'));
  t.equal(new Set(applied).size, applied.length, 'two at once do each migration once');
  t.equal((await ready()).status, 200);
  await worker.until(/worker ready/);

  const { id } = JSON.parse(
    (await command(['org', 'create', '--name', 'A', '--owner-email', 'a@a.example.com', '--json'], own)).stdout,
  );
  const start = spawnRail(t, ['start'], { ...own, HOST: '0.0.0.0', RAIL_DATA_DIR: t.testdir({}) });
  const [, url] = await start.until(
    /HOST is 0.0.0.0, which links cannot name: they name (\S+)\. BASE_URL sets another URL/,
  );
  t.match(url, /^http:\/\/127.0.0.1:\d+$/);
  const { 0: said } = await start.until(/Rail is running[\s\S]*Ctrl-C stops it/);
  t.match(said, 'rail key create', 'rail start makes no demo where there are organizations');
  const organizations = await command(['org', 'list', '--json'], own);
  t.same(
    JSON.parse(organizations.stdout).map((organization: Json) => organization.id),
    [id],
  );

  const ended = await Promise.all([api, worker, start].map((process) => process.stop('SIGTERM')));
  t.same(
    ended.map(({ code }) => code),
    [0, 0, 0],
  );
});

t.test('a process that listens on every address does not start without the URL that links name', async (t) => {
  for (const HOST of ['0.0.0.0', '::', '0', '::0']) {
    // A worker is another process each time; the setting is read in one place.
    for (const role of HOST === '::' ? ['api', 'worker'] : ['api']) {
      t.match(await command([role], { ...environment, HOST }), {
        code: 1,
        stderr: `rail: BASE_URL is not set, and HOST is ${HOST}, which links cannot name. Set BASE_URL to the URL`,
      });
    }
  }
});

t.test(
  'a process waits for a Postgres that is not there yet, says so to probes, and can be stopped meanwhile',
  async (t) => {
    const port = await stablePort();
    const away = new URL(environment.DATABASE_URL);
    away.port = String(port);
    const [PORT, METRICS_PORT] = [`${await stablePort()}`, `${await stablePort()}`];
    // Two servers have the port, one after the other: no connection is kept.
    const once = { reset: true };
    const asked = (path: string) => request(`http://127.0.0.1:${PORT}${path}`, { ...once, method: 'POST', body: '{}' });
    const probed = async (path: string, on = PORT) => {
      const { statusCode, body } = await request(`http://127.0.0.1:${on}${path}`, once);
      await body.dump();
      return statusCode;
    };
    const start = () => spawnRail(t, ['api'], { ...environment, DATABASE_URL: away.href, PORT, METRICS_PORT });
    const stopped = start();
    await stopped.until(/cannot be reached yet/);
    t.equal((await stopped.stop('SIGINT')).code, 0);

    const api = start();
    await api.until(/cannot be reached yet/);
    for (const on of [PORT, METRICS_PORT])
      t.same([await probed('/healthz', on), await probed('/readyz', on)], [200, 503]);
    const answer = await asked('/v1/programs');
    t.equal(answer.statusCode, 503);
    t.match(answer.headers['retry-after'], /^[1-9]\d*$/);
    t.match(await answer.body.json(), { error: { code: 'service_unavailable', message: /waits for Postgres/ } });
    const gate = createServer((client) => {
      const postgres = connect(Number(new URL(environment.DATABASE_URL).port), '127.0.0.1');
      client.pipe(postgres).pipe(client);
      for (const socket of [client, postgres]) socket.on('error', () => {});
    }).listen(port, '127.0.0.1');
    t.teardown(() => gate.close());
    await api.until(/api ready/);
    for (const on of [PORT, METRICS_PORT])
      t.same([await probed('/healthz', on), await probed('/readyz', on)], [200, 200]);
    t.equal((await asked('/v1/programs')).statusCode, 401);
    t.equal((await api.stop()).code, 0);
  },
);
