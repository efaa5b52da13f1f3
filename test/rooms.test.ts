import { glob, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';

const root = join(import.meta.dirname, '..');
const most_files = 14;
const most_lines = 30;

/** The folders of src, each with its files. */
async function rooms(): Promise<{ room: string; files: string[] }[]> {
  const entries = await readdir(join(root, 'src'), { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  const by_room = Map.groupBy(files, ({ parentPath }) => parentPath.slice(root.length + 1));
  return [...by_room].map(([room, inside]) => ({ room, files: inside.map(({ name }) => name) }));
}

t.test('gives every room a short README and at most 14 files', async (t) => {
  for (const { room, files } of await rooms()) {
    t.ok(files.filter((name) => name.endsWith('.ts')).length <= most_files, `${room} has ${files.length} files`);
    if (room === 'src') continue;
    t.ok(files.includes('README.md'), `${room} says what it is`);
    const lines = (await readFile(join(root, room, 'README.md'), 'utf8')).trimEnd().split('\n');
    t.ok(lines.length <= most_lines, `${room}/README.md has ${lines.length} lines`);
  }
});

t.test('names only files that exist in the READMEs and the guide for contributors', async (t) => {
  const documents = [
    'README.md',
    '.github/CONTRIBUTING.md',
    ...(await rooms()).filter(({ files }) => files.includes('README.md')).map(({ room }) => `${room}/README.md`),
  ];
  for (const document of documents) {
    const text = await readFile(join(root, document), 'utf8');
    for (const [path] of text.matchAll(/\b(?:src|sql|tasks|test)\/[a-z0-9_/]+\.(?:ts|sql)\b/g)) {
      await t.resolves(readFile(join(root, path)), `${document} names ${path}`);
    }
    const room = document.replace('README.md', '');
    for (const [, name] of text.matchAll(/`([a-z0-9_]+\.ts)`/g)) {
      if (room === document || room === '') continue;
      await t.resolves(readFile(join(root, room, name as string)), `${document} names ${name}`);
    }
  }
});

t.test('names commands as they can be typed, wherever users read them', async (t) => {
  const sources = (await rooms()).flatMap(({ room, files }) =>
    files.filter((name) => name.endsWith('.ts')).map((name) => `${room}/${name}`),
  );
  // Names of connections to Postgres are no commands; comments are for who reads the code.
  const is_text = (line: string) => !/^\s*(\/?\*|\/\/|--)|application_name|^const marker/.test(line);
  const commands = await commandNames();
  const bare = new RegExp(`(?<!npx --no |[\\w/-])rail (${commands.join('|')})\\b`);
  const live = await Array.fromAsync(glob('sql/live/**/*.sql', { cwd: root }));
  for (const file of [...sources, ...live, 'README.md']) {
    const lines = (await readFile(join(root, file), 'utf8')).split('\n').filter(is_text);
    t.same(
      lines.filter((line) => bare.test(line)),
      [],
      `${file} says npx --no rail`,
    );
  }
});

async function commandNames(): Promise<string[]> {
  const { createCommandLine } = await import('../src/command_line/rail.ts');
  return createCommandLine().commands.map((command) => command.name());
}
