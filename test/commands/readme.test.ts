import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { settings } from '../../src/config.ts';
import { makeDataDir, spawnRail } from '../rail_process.ts';

const checkout = join(import.meta.dirname, '../..');
const readme = await readFile(join(checkout, 'README.md'), 'utf8');
/** The blocks of commands between two headings. */
const blocksOf = (from: string, to: string) =>
  [
    ...readme
      .slice(readme.indexOf(`\n## ${from}`), readme.indexOf(`\n## ${to}`))
      .matchAll(/^```sh( listen)?\n(.*?)^```$/gms),
  ].map(([, listens, text]) => ({ listens: listens !== undefined, text: text as string }));
const blocks = blocksOf('The tour', 'Writing to prospects');

t.test('the tour of the README runs as it stands there', async (t) => {
  const environment = { RAIL_DATA_DIR: await makeDataDir(t), PORT: '0', RAIL_WEBHOOK_ALLOW_PRIVATE: '1' };
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
    const [program, ...rest] = (await terminal.run(`echo ${text.trim().replace(/^npx rail /, '')}`)).trim().split(' ');
    listener = spawnRail(t, [program as string, ...rest], environment);
    await listener.until(/Listening to prg_/);
  }

  const said = terminal.said();
  t.match(said, 'https://acme.example.com/pricing?ref=ada');
  t.match(said, /commission_created\n1980\n/, 'the sale earned 20 %');
  t.match(said, /due\n$/, 'the holding period is over');
  await listener?.until(/commission\.updated/);
  const lines = (listener?.said().stdout ?? '').trim().split('\n');
  t.same(
    lines.map((line) => line.split(/ +/)[1]),
    [
      'referral.created',
      'referral.lead',
      'sale.created',
      'commission.created',
      'referral.converted',
      'commission.updated',
    ],
  );
  t.ok(
    lines.every((line) => line.includes('✓ signature') && line.includes('✓ order')),
    'signed, and in order',
  );
});

t.test('prospects are written to, and answer, as the README says', async (t) => {
  const environment = {
    RAIL_DATA_DIR: await makeDataDir(t),
    PORT: '0',
    RAIL_DEMO_MAIL: '1',
    RAIL_WEBHOOK_ALLOW_PRIVATE: '1',
  };
  const service = spawnRail(t, ['start'], environment);
  await service.until(/Ctrl-C stops it/);
  const terminal = openTerminal(environment);
  t.teardown(() => terminal.close());
  await terminal.run(blocks[0]?.text as string);
  for (const { text } of blocksOf('Writing to prospects', 'Running in production')) await terminal.run(text);
  t.equal(terminal.said(), 'true\nsending\npositive\nquestion\ninterested\nRe: Espresso at beanletter-rail-demo.com\n');
});

t.test('the README names every setting', (t) => {
  for (const { name } of settings) t.match(readme, `\`${name}\``);
  t.end();
});

/** A shell that is given one block after the other, as somebody pastes them. */
function openTerminal(environment: NodeJS.ProcessEnv) {
  const shell = spawn('sh', ['-e'], { cwd: checkout, env: { ...process.env, ...environment } });
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
