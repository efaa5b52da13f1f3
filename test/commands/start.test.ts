import { once } from 'node:events';
import { readdir, readFile, rm, stat } from 'node:fs/promises';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { command } from '../command_process.ts';
import { callerOf, eventually } from '../harness.ts';
import { browse } from '../pages/browse.ts';
import { makeDataDir, type RailProcess, rail, spawnRail } from '../rail_process.ts';
import { isAlive, postgresOf } from '../runner/run_directory.ts';

const dataDir = await makeDataDir(t, 'empty');
const settings = { RAIL_DATA_DIR: dataDir, PORT: '0' };
const file = t;
/** Goes on from the first start to the next one. */
let listening: RailProcess;

const readDemo = async () => JSON.parse(await readFile(join(dataDir, 'demo.json'), 'utf8'));
const demoCaller = async () => {
  const { base_url, api_key, organization_id } = await readDemo();
  return callerOf(base_url, api_key, organization_id);
};
const addPartner = async (email: string) =>
  (await demoCaller()).post('/v1/partners', { program_id: (await readDemo()).program_id, email });
const partnerEmails = async (): Promise<string[]> => {
  const { data } = await (await demoCaller()).get(`/v1/partners?program_id=${(await readDemo()).program_id}`);
  // The demo has a partner of its own, for the portal.
  return data
    .map(({ email }: { email: string }) => email)
    .filter((email: string) => email !== 'partner@demo.example.com')
    .sort();
};

async function started(process: RailProcess): Promise<string> {
  const [, url] = await process.until(/Rail is running on (\S+)[\s\S]*Ctrl-C stops it/);
  return url as string;
}

/** A request whose head has arrived, and whose body is still on its way. */
async function beginPartner(
  email: string,
): Promise<{ going: ClientRequest; finish(): Promise<{ status: number; connection: string | undefined }> }> {
  const { base_url, api_key, program_id } = await readDemo();
  const body = JSON.stringify({ program_id, email });
  const headers = {
    Authorization: `Bearer ${api_key}`,
    'Content-Type': 'application/json',
    'Content-Length': body.length,
  };
  const going = request(`${base_url}/v1/partners`, { method: 'POST', headers: { ...headers, Expect: '100-continue' } });
  going.on('error', () => {});
  going.flushHeaders();
  await once(going, 'continue');
  return {
    going,
    async finish() {
      going.end(body);
      const [response] = (await once(going, 'response')) as [IncomingMessage];
      response.resume();
      return { status: response.statusCode as number, connection: response.headers.connection };
    },
  };
}

t.test('the first start prints the address, the keys and a first request, and demo.json holds the same', async (t) => {
  const first = spawnRail(t, ['start'], settings);
  const url = await started(first);
  const demo = await readDemo();
  t.same(Object.keys(demo).sort(), [
    'api_key',
    'base_url',
    'organization_id',
    'program_id',
    'publishable_key',
    'stripe_webhook_secret',
    'test_api_key',
  ]);
  t.equal((await stat(join(dataDir, 'demo.json'))).mode & 0o777, 0o600);
  t.equal(demo.base_url, url);
  t.match(first.said().stdout, `${url}/docs`);
  t.equal((await fetch(`${url}/docs`)).status, 200);
  for (const fact of Object.values(demo)) t.match(first.said().stdout, fact as string);
  t.notMatch(first.said().stderr, demo.api_key, 'and the log holds no key');
  for (const [area, greeting] of [
    ['dashboard', /owner@demo\.example\.com/],
    ['portal', /partner@demo\.example\.com|Demo/],
  ] as const) {
    const link = new RegExp(`${url}(/${area}/sign_in\\?token=\\S+)`).exec(first.said().stdout)?.[1] as string;
    const browser = browse(url);
    const home = await browser.submit((await browser.get(link)).forms[0]);
    t.equal(home.path, `/${area}`);
    t.match(home.text, greeting);
  }
  t.match(first.said().stderr, /"count":\d+,"msg":"migrated"/);
  t.notMatch(first.said().stderr, 'migrations/0001_core.sql', 'nor the names of what was migrated');

  await t.test('the printed request works as it is', async (t) => {
    const [, address, name, value] = /^ +curl (\S+) -H '(\w+): ([^']+)'$/m.exec(first.said().stdout) as RegExpExecArray;
    const response = await fetch(address as string, { headers: { [name as string]: value as string } });
    t.equal(response.status, 200);
    t.match(await response.json(), { id: demo.program_id });
  });

  await t.test('the test key works, and says that it is one', async (t) => {
    const caller = callerOf(url, demo.test_api_key, demo.organization_id);
    const { status, headers } = await caller.request('GET', '/v1/programs');
    t.equal(status, 200);
    t.equal(headers['x-rail-livemode'], 'false');
  });

  await t.test('commands find its Postgres and leave it running', async (t) => {
    const pid = await postgresOf(dataDir);
    const { code, stdout } = await command(['org', 'list', '--json'], { RAIL_DATA_DIR: dataDir });
    t.equal(code, 0);
    t.match(JSON.parse(stdout), [{ id: demo.organization_id, name: 'Demo' }]);
    t.equal(await postgresOf(dataDir), pid);
    t.equal((await fetch(`${url}/readyz`)).status, 200);
  });

  await t.test('a second start on the same data says who runs and what to do', async (t) => {
    const { code, stdout, stderr } = await rail(t, ['start'], settings);
    t.equal(code, 1);
    t.equal(stdout, '');
    t.match(stderr, `pid ${first.pid}`);
    t.match(stderr, 'RAIL_DATA_DIR');
    t.equal(stderr.trim().split('\n').length, 1);
  });

  listening = spawnRail(file, ['listen'], { RAIL_DATA_DIR: dataDir });
  await listening.until(/Listening to/);
  await addPartner('kept@partner.example.com');
  await listening.until(/did not arrive: .*RAIL_WEBHOOK_ALLOW_PRIVATE=1/);
  const postgres = (await postgresOf(dataDir)) as number;
  const { code, stdout } = await first.stop('SIGINT');
  t.equal(code, 0);
  t.match(stdout, `Stopped. Its data is kept in ${dataDir}.\n`);
  await eventually(() => !isAlive(postgres), 'Ctrl-C to leave no Postgres behind');
  t.equal(await postgresOf(dataDir), undefined);
  await t.rejects(fetch(`${url}/healthz`));
  await listening.until(/Postgres has gone.*Waiting/);
});

t.test(
  'a later start keeps data and keys, and moves on where its port is taken; a kill -9 loses nothing',
  async (t) => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    t.teardown(() => taken.close());
    const { port } = taken.address() as AddressInfo;
    const before = await readDemo();
    const second = spawnRail(t, ['start'], { ...settings, PORT: String(port), RAIL_WEBHOOK_ALLOW_PRIVATE: '1' });
    const url = await started(second);
    t.not(new URL(url).port, String(port));
    t.match(second.said().stdout, `Port ${port} is taken`);
    t.same(await readDemo(), { ...before, base_url: url });
    t.same(await partnerEmails(), ['kept@partner.example.com']);
    await listening.until(/Postgres is back/);
    await addPartner('heard@partner.example.com');
    await listening.until(/affiliate\.created +✓ signature +✓ order/);
    t.equal((await listening.stop('SIGINT')).code, 0);

    const api = await rail(t, ['api'], { RAIL_DATA_DIR: dataDir, PORT: String(port) });
    t.equal(api.code, 1, 'while rail api does not move');
    t.match(api.stderr.trim().split('\n').at(-1), new RegExp(`^rail: Port ${port} of 127.0.0.1 is taken: .*set PORT`));

    await addPartner('committed@partner.example.com');
    await second.stop('SIGKILL');
  },
);

t.test('after a kill -9 the next start has everything, and new keys where demo.json is lost', async (t) => {
  const before = await readDemo();
  await rm(join(dataDir, 'demo.json'));

  const next = spawnRail(t, ['start'], { ...settings, LOG_LEVEL: 'debug' });
  t.equal((await fetch(`${await started(next)}/readyz`)).status, 200);
  t.match(await readDemo(), { organization_id: before.organization_id, program_id: before.program_id });
  t.not((await readDemo()).api_key, before.api_key);
  t.same(await partnerEmails(), [
    'committed@partner.example.com',
    'heard@partner.example.com',
    'kept@partner.example.com',
  ]);

  const broken = await beginPartner('never@partner.example.com');
  broken.going.destroy();
  await next.until(/"level":20[^\n]+the client broke off its request/);
  t.notMatch(next.said().stderr, 'cannot reach its database');
  t.match(next.said().stderr, /"level":20[^\n]+"path":"\/readyz"/, 'probes are logged for debugging alone');
  for (const line of next.said().stderr.trim().split('\n')) t.doesNotThrow(() => JSON.parse(line), line);

  const { going } = await beginPartner('never@partner.example.com');
  next.signal('SIGINT');
  await next.until(/"stopping/);
  let code: number | null | undefined;
  next.ended.then((ended) => {
    code = ended.code;
  });
  for (; code === undefined; await sleep(100)) next.signal('SIGINT');
  t.equal(code, 130, 'a second Ctrl-C does not wait for a request that hangs');
  going.destroy();

  const last = spawnRail(t, ['start'], settings);
  await started(last);
  t.equal((await partnerEmails()).length, 3, 'and corrupts nothing');
  const { finish } = await beginPartner('late@partner.example.com');
  await beginPartner('never@partner.example.com');
  last.signal('SIGTERM');
  await last.until(/"stopping/);
  t.same(
    await finish(),
    { status: 201, connection: 'close' },
    'SIGTERM lets a request finish, and its connection ends with it',
  );
  t.equal((await last.ended).code, 0, 'and cuts off one that hangs');
  t.equal(await postgresOf(dataDir), undefined);
  t.same(
    (await readdir(dataDir)).filter((name) => /^(demo\.json|encryption_key)./.test(name)),
    [],
  );
});
