import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { command } from '../command_process.ts';
import { makeDataDir, type RailProcess, spawnRail } from '../rail_process.ts';
import { effort } from '../runner/effort.ts';

const checkout = join(import.meta.dirname, '../..');
const readme = await readFile(join(checkout, 'README.md'), 'utf8');
const guide = await readFile(join(checkout, 'src/guides/tour.md'), 'utf8');
/** The blocks of shell below a heading. */
function blocksBelow(heading: string, text: string) {
  const [section = ''] = text.slice(text.indexOf(`\n## ${heading}\n`) + 4).split('\n## ');
  return [...section.matchAll(/^```sh( listen)?\n(.*?)^```$/gms)].map(([, listens, text]) => ({
    listens: listens !== undefined,
    text: text as string,
  }));
}

const tour = [...blocksBelow('The tour', readme), ...blocksBelow('Pay the partner', guide)];
const recruitment = blocksBelow('Recruit a partner', guide);
const pasted = (blocks: typeof tour) => blocks.filter(({ listens }) => !listens).map(({ text }) => text);

/** As somebody types, without their settings: the strictest shell of people's desks first, then one of the system that ends at the first error. */
const shells = (
  [
    ['zsh', '-f', '-i'],
    ['sh', '-e'],
    ['bash', '--norc', '--noprofile', '-i'],
  ] as [string, ...string[]][]
)
  .filter(([name]) => spawnSync(name, ['-c', 'true']).status === 0)
  .slice(0, effort.tour_shells);

/** One service for all shells: every tour after the first finds what the one before has made. */
const environment = {
  RAIL_DATA_DIR: await makeDataDir(t, 'migrated'),
  PORT: '0',
  RAIL_WEBHOOK_ALLOW_PRIVATE: '1',
  RAIL_DEMO_MAIL: '1',
};
const service = spawnRail(t, ['start'], environment);
await service.until(/Ctrl-C stops it/);

/** Begins a listener as the guides have it: it needs nothing of the shell. */
async function listen(blocks: typeof tour): Promise<RailProcess> {
  const [{ text } = { text: '' }] = blocks.filter(({ listens }) => listens);
  const listener = spawnRail(t, text.trim().replace('npx --no rail ', '').split(' '), environment);
  await listener.until(/Listening to /);
  return listener;
}

const listeners = { tour: await listen(tour), recruitment: await listen(recruitment) };
const linesOf = (listener: RailProcess) => listener.said().stdout.trim().split('\n');
const typesOf = (listener: RailProcess) => linesOf(listener).map((line) => line.split(/ +/)[1] as string);

for (const [nth, shell] of shells.entries()) {
  t.test(`the tours of the README and of /docs/tour work pasted into ${shell[0]}`, async (t) => {
    const terminal = openTerminal(shell);
    for (const block of pasted(tour)) await terminal.run(block);
    const paid = terminal.said();
    t.match(paid, 'https://demo.example.com/pricing?ref=ada');
    t.match(paid, /commission_created\n1980\n/, 'the sale earned 20 %');
    t.match(paid, /\{"received":true\}\s*980\n/, 'and so did the invoice at Stripe');
    t.match(paid, /partners? ha(s|ve) a balance[\s\S]*USD +1 +USD 29\.60\n/, 'the preview');
    t.match(paid, /paid\n$/, 'and Ada is paid');
    const pdf = await readFile(join(environment.RAIL_DATA_DIR, 'statement.pdf'), 'latin1');
    t.match(pdf, /^%PDF/);
    t.match(await readFile(join(environment.RAIL_DATA_DIR, 'payouts.xml'), 'utf8'), 'GB29NWBK60161331926819');

    for (const block of pasted(recruitment)) await terminal.run(block);
    const recruited = terminal.said().slice(paid.length);
    t.match(recruited, /^dailygrind-rail-demo\.com \d+$/m, 'the scan found her');
    t.match(recruited, /outbound: Hello,[\s\S]*inbound: Hi Grace,\n\nyes, I would love to join\./, 'her reply');
    t.match(recruited, /agreed\nactivating\n2475\n9900\n$/, 'the sale earned 25 %');
    t.notMatch(terminal.complained(), /no matches found|not found|^Waited for/m);
    await terminal.close();
    if (nth > 0) return;
    await listeners.tour.until(/payout\.paid.*\n/);
    t.same(typesOf(listeners.tour).slice(0, 9), [
      ...['affiliate.created', 'affiliate_link.created'],
      ...['referral.created', 'referral.lead', 'sale.created', 'commission.created', 'referral.converted'],
      ...['sale.created', 'commission.created'],
    ]);
    await listeners.recruitment.until(/affiliate\.activated.*\n.*affiliate\.stage_changed.*\n/);
    t.match(typesOf(listeners.recruitment), ['scan.completed'], 'what begins after the listener is heard');
    t.same(
      typesOf(listeners.recruitment).filter((type) => !/^(scan|search)/.test(type)),
      [
        ...['email.revealed', 'inbox.connected', 'campaign.launched'],
        ...['message.sent', 'affiliate.stage_changed', 'reply.received', 'affiliate.stage_changed'],
        ...['campaign.finished', 'affiliate.stage_changed', 'deal.agreed', 'affiliate.stage_changed'],
        ...['affiliate.activated', 'affiliate.stage_changed'],
      ],
    );
  });
}

t.test('all webhooks of the tours were signed, and in order', (t) => {
  for (const listener of Object.values(listeners))
    for (const line of linesOf(listener)) t.match(line, /✓ signature.*✓ order/);
  t.end();
});

t.test('wait_for and field end at an error, and show it', async (t) => {
  const terminal = openTerminal(['sh']);
  const [functions = ''] = pasted(tour);
  t.match(functions, 'LEFT=60');
  await terminal.run(functions.replace('LEFT=60', 'LEFT=3')); // a process of Node each time
  await terminal.run('get /v1/partners/part_unknown | field .id || echo "field failed"');
  await terminal.run('wait_for /v1/partners/part_unknown .status active || echo "wait_for failed"');
  await terminal.run('sleep() { true; }; wait_for "/v1/programs/$PROGRAM" .name Other || echo "waited enough"');
  t.match(terminal.said(), /field failed\nwait_for failed\nwaited enough\n$/);
  t.match(
    terminal.complained(),
    /part_unknown[\s\S]*Waited for \.name of \/v1\/programs\/\S+ to be Other.*\n.*"name":"Demo"/,
  );
  await terminal.close();
});

t.test('the command line reaches the demo’s mailbox as the service does', async (t) => {
  const listed = JSON.parse((await command(['inbox', 'list', '--json'], environment)).stdout);
  t.match(await command(['inbox', 'test', listed[0].id], environment), {
    code: 0,
    stdout: /Both logins of fin_\w+ work/,
  });
});

t.test('the README has at most 8 kB', (t) => {
  t.ok(Buffer.byteLength(readme) <= 8_000);
  t.end();
});

t.test('no block has what an interactive zsh does not take', (t) => {
  for (const [, block] of `${readme}\n${guide}`.matchAll(/^```sh[^\n]*\n(.*?)^```$/gms)) t.notMatch(block, /(^|\s)#/);
  t.end();
});

/** A shell that is given one block after the other, as somebody pastes them. */
function openTerminal([name, ...options]: [string, ...string[]]) {
  const shell = spawn(name, options, { cwd: checkout, env: { ...process.env, ...environment, PS1: '', PS2: '' } });
  shell.stdin.on('error', () => {}); // that it has ended is told below
  let output = '';
  let errors = '';
  shell.stdout.on('data', (chunk: Buffer) => {
    output += chunk;
  });
  shell.stderr.on('data', (chunk: Buffer) => {
    errors += chunk;
  });
  const ended = once(shell, 'close');
  t.teardown(async () => {
    shell.kill('SIGKILL');
    await ended;
  });
  let nth = 0;
  return {
    said: () => output.replaceAll(/^end of block \d+\n/gm, ''),
    complained: () => errors,
    async run(block: string): Promise<void> {
      const end = `end of block ${++nth}\n`;
      shell.stdin.write(`${block}\necho ${end}`);
      while (!output.includes(end)) {
        const over = await Promise.race([once(shell.stdout, 'data').then(() => false), ended.then(() => true)]);
        if (over && !output.includes(end)) throw new Error(`The shell ended in:\n${block}\n${output}\n${errors}`);
      }
    },
    async close() {
      shell.stdin.end();
      shell.kill('SIGKILL');
      await ended;
    },
  };
}
