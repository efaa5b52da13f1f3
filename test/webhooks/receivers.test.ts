import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { receivers } from '../../src/webhooks/receivers/page.ts';
import { eventually, startRail } from '../harness.ts';
import { stablePort } from '../ports.ts';
import { effort } from '../runner/effort.ts';

t.jobs = 5;

const rail = await startRail();
const folder = join(import.meta.dirname, '../../src/webhooks/receivers');

interface Language {
  /** The command that shows that it is installed. */
  check: [string, ...string[]];
  run: (file: string, port: number) => [string, ...string[]];
}
const languages: Record<keyof typeof receivers, Language> = {
  'receiver.mjs': { check: [process.execPath, '--version'], run: (file) => [process.execPath, file] },
  'receiver.py': { check: ['python3', '--version'], run: (file) => ['python3', file] },
  'receiver.rb': { check: ['ruby', '-e', "require 'webrick'"], run: (file) => ['ruby', file] },
  'receiver.php': { check: ['php', '--version'], run: (file, port) => ['php', '-S', `127.0.0.1:${port}`, file] },
  'receiver.go': { check: ['go', 'version'], run: (file) => ['go', 'run', file] },
};

for (const [file, { check, run }] of Object.entries(languages)) {
  const [command, ...given] = check;
  const is_left = command === 'go' && effort.compiled_receivers === 0;
  const skip = is_left
    ? 'compiled by npm run soak -- repeats'
    : !isInstalled(command, given) && `${command} is not installed`;
  t.test(`${file} takes what both services sign, and nothing else`, { skip, buffered: true }, async (t) => {
    const port = await stablePort();
    const url = `http://127.0.0.1:${port}/webhooks`;
    const caller = await rail.organization();
    const { id: program_id } = await caller.post('/v1/programs', {
      ...{ name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' },
    });
    const endpoints = [
      await caller.post('/v1/webhook_endpoints', { program_id, url }),
      await caller.post('/recruitment/v1/webhook_endpoints', { url }),
    ];
    const secrets = endpoints.map(({ secret }) => secret);
    const lines = await startReceiver(t, run(join(folder, file), port), url, {
      ...{ PORT: String(port), RAIL_WEBHOOK_SECRET: secrets.join(',') },
    });
    await caller.post(`/v1/webhook_endpoints/${endpoints[0]?.id}/ping`, {});
    await eventually(() => lines().length === 1, 'the event of one service');
    await caller.post(`/recruitment/v1/webhook_endpoints/${endpoints[1]?.id}/ping`, { event_type: 'deal.agreed' });
    await eventually(() => lines().length === 2, 'the event of the other');
    t.match(lines(), [/^affiliate\.created evt_test_/, /^deal\.agreed evt_test_/]);

    const bodyOf = (id: string) => `{"type":"sale.created","id":"${id}"}`;
    const body = bodyOf('evt_1');
    const [secret = ''] = secrets;
    const now = () => Math.floor(Date.now() / 1_000);
    const signed = (time: number, key = secret, of = body) =>
      `t=${time},v1=${createHmac('sha256', key).update(`${time}.${of}`).digest('hex')}`;
    const statusFor = async (signature: string, sent = body) =>
      (await fetch(url, { method: 'POST', body: sent, headers: { 'rail-signature': signature } })).status;
    const time = now();
    const rotated = `${signed(time, 'whsec_new')},${signed(time).replace(/^t=\d+,/, '')}`;
    t.equal(await statusFor(rotated), 204, 'a secret that was rotated');
    t.equal(await statusFor(signed(time)), 204, 'an event that it knows');
    t.equal(await statusFor(signed(time, secret, bodyOf('evt_2')), bodyOf('evt_2')), 204, 'another event');
    await eventually(() => lines().includes('sale.created evt_2'), 'the other event');
    t.equal(lines().filter((line) => line === 'sale.created evt_1').length, 1, 'is handled once');
    for (const [sign, sent] of [
      [() => signed(now()), `${body} `],
      [() => signed(now(), 'whsec_other')],
      [() => signed(now() - 301)],
      [() => signed(now() + 330)],
      [() => `t=${now()},v1=`],
      [() => `t=${now()}`],
      [() => 'v1=zz,t=x'],
      [() => ''],
    ] as const) {
      const signature = sign();
      t.equal(await statusFor(signature, sent), 400, signature);
    }
  });
}

t.test('shows each receiver in the documentation', async (t) => {
  const response = await fetch(`${rail.address}/docs/webhooks`);
  const html = await response.text();
  t.equal(response.status, 200);
  for (const language of Object.values(receivers)) t.match(html, `<h2 id="${language.toLowerCase()}">${language}</h2>`);
  t.equal(html.match(/<script/g)?.length, 1, 'that of the copy buttons');
});

function isInstalled(command: string, given: string[]): boolean {
  try {
    execFileSync(command, given, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** @returns the lines that it has ended so far */
async function startReceiver(
  t: Test,
  [command, ...given]: [string, ...string[]],
  url: string,
  env: Record<string, string>,
): Promise<() => string[]> {
  const child: ChildProcess = spawn(command, given, {
    ...{ env: { ...process.env, ...env }, detached: true, stdio: ['ignore', 'pipe', 'inherit'] },
  });
  let printed = '';
  child.stdout?.on('data', (chunk) => {
    printed += chunk;
  });
  t.teardown(() => process.kill(-(child.pid as number), 'SIGKILL'));
  const answers = () =>
    fetch(url, { method: 'POST' }).then(
      ({ status }) => status === 400,
      () => false,
    );
  await eventually(answers, 'the receiver');
  return () => printed.split('\n').slice(0, -1); // the last one has not ended
}
