import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { settings } from '../../src/config.ts';
import { makeDataDir, spawnRail } from '../rail_process.ts';

const checkout = join(import.meta.dirname, '../..');
const readme = await readFile(join(checkout, 'README.md'), 'utf8');
/** The blocks of shell below a heading. */
function blocksBelow(heading: string) {
  const [section = ''] = readme.slice(readme.indexOf(`\n## ${heading}\n`) + 4).split('\n## ');
  return [...section.matchAll(/^```sh( listen)?\n(.*?)^```$/gms)].map(([, listens, text]) => ({
    listens: listens !== undefined,
    text: text as string,
  }));
}

/** Runs a tour as somebody pastes it. @returns what the terminal and the listener said */
async function take(t: Test, blocks: ReturnType<typeof blocksBelow>, own: NodeJS.ProcessEnv = {}) {
  const environment = {
    RAIL_DATA_DIR: await makeDataDir(t, 'migrated'),
    PORT: '0',
    RAIL_WEBHOOK_ALLOW_PRIVATE: '1',
    ...own,
  };
  const service = spawnRail(t, ['start'], environment);
  await service.until(/Ctrl-C stops it/);
  const terminal = openTerminal(environment);
  t.teardown(() => terminal.close());
  let listener: ReturnType<typeof spawnRail> | undefined;
  for (const { listens, text } of blocks) {
    if (!listens) {
      await terminal.run(text);
      continue;
    }
    const [command, ...rest] = (await terminal.run(`echo ${text.trim().replace(/^npx rail /, '')}`)).trim().split(' ');
    listener = spawnRail(t, [command as string, ...rest], environment);
    await listener.until(/Listening to /);
  }
  const events = async (last: RegExp) => {
    await listener?.until(new RegExp(`${last.source}.*\\n`));
    const lines = (listener?.said().stdout ?? '').trim().split('\n');
    t.ok(
      lines.every((line) => line.includes('✓ signature') && line.includes('✓ order')),
      'signed, and in order',
    );
    return lines.map((line) => line.split(/ +/)[1]);
  };
  return { said: terminal.said(), events };
}

t.test('the tour of the README runs as it stands there', async (t) => {
  const { said, events } = await take(t, blocksBelow('The tour'));
  t.match(said, 'https://acme.example.com/pricing?ref=ada');
  t.match(said, /commission_created\n1980\n/, 'the sale earned 20 %');
  t.match(said, /due\n$/, 'the holding period is over');
  t.same(await events(/commission\.updated/), [
    ...['referral.created', 'referral.lead', 'sale.created', 'commission.created', 'referral.converted'],
    'commission.updated',
  ]);
});

t.test('the tour of recruitment runs as it stands there, from a brand to the first commission', async (t) => {
  const [functions] = blocksBelow('The tour');
  const blocks = [functions as Block, ...blocksBelow('The tour of recruitment')];
  const { said, events } = await take(t, blocks, { RAIL_DEMO_MAIL: '1' });
  t.match(said, /^dailygrind-rail-demo\.com \d+$/m, 'the scan found her');
  t.match(said, /inbound: Hi Grace,\n\nyes, I would love to join\./, 'her reply');
  t.match(said, /agreed\nactivating\n2475\n9900\n$/, 'the sale earned 25 %');
  t.same(
    (await events(/affiliate\.activated.*\n.*affiliate\.stage_changed/)).filter(
      (type) => !/^(scan|search)/.test(type as string),
    ),
    [
      ...['email.revealed', 'inbox.connected', 'campaign.launched'],
      ...['message.sent', 'affiliate.stage_changed', 'reply.received', 'affiliate.stage_changed', 'campaign.finished'],
      ...['affiliate.stage_changed', 'deal.agreed', 'affiliate.stage_changed', 'affiliate.activated'],
      'affiliate.stage_changed',
    ],
  );
});

t.test('the README names every setting', (t) => {
  for (const { name } of settings) t.match(readme, `\`${name}\``);
  t.end();
});

type Block = ReturnType<typeof blocksBelow>[number];

/** A shell that is given one block after the other, as somebody pastes them. */
function openTerminal(environment: NodeJS.ProcessEnv) {
  const shell = spawn('sh', ['-e'], { cwd: checkout, env: { ...process.env, ...environment } });
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
  let nth = 0;
  return {
    said: () => output.replaceAll(/^end of block \d+\n/gm, ''),
    async run(block: string): Promise<string> {
      const before = output.length;
      const end = `end of block ${++nth}\n`;
      shell.stdin.write(`${block}\necho ${end}`);
      while (!output.includes(end)) {
        const over = await Promise.race([once(shell.stdout, 'data').then(() => false), ended.then(() => true)]);
        if (over && !output.includes(end)) throw new Error(`The shell ended in:\n${block}\n${output}\n${errors}`);
      }
      return output.slice(before, -end.length);
    },
    async close() {
      shell.stdin.end();
      shell.kill();
      await ended;
    },
  };
}
