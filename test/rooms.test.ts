import { existsSync, globSync, readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join, normalize } from 'node:path';
import t from 'tap';

/**
 * Who may import whom, types included: a room imports itself, and rooms of the lines above its own. A room is a folder of `src`, with those
 * of its folders that have no place of their own here; or a single file. No file of `src` imports tasks or tests, and no task a test.
 */
const layers = [
  'embedded_postgres core/formats core/pool core/threads core/values/texts',
  'core/values',
  'core/postgres core/net',
  'core/encryption core/metrics',
  'core/resource',
  'core/access core/exports',
  'core/description core/http core/jobs',
  'core/doctor',
  'core config.ts',
  'encryption_key.ts demo tracing.ts',
  // Rooms that know nobody's data: formats of files and mails, clients of providers, rules of time.
  'program/payouts/bank program/payouts/rails program/reports/sums recruitment/replies',
  'program/payouts/statement recruitment/composing',
  'mail/incoming/message data/graphql/schema',
  'mail/incoming/automatic mail/incoming/bounces data/graphql',
  'mail/incoming/writing',
  'mail/incoming',
  'mail data',
  'service.ts',
  'pages',
  'webhooks/queue webhooks/receivers',
  'webhooks/events',
  'webhooks/endpoints',
  'webhooks/deliveries',
  'webhooks',
  'program/events',
  'program/programs',
  'program/partners',
  'program/tracking',
  'program/customers',
  'program/snippet',
  'program/sales',
  'program/commissions program/risk',
  'program/payouts program/payouts/credentials',
  'program/payouts/files program/payouts/batches program/payouts/by_hand',
  'program/payouts/sending',
  'program/reports',
  'program/reports/summary',
  'program/activation.ts',
  'program',
  'recruitment/events',
  'recruitment/plan recruitment/sequences',
  'recruitment/pages recruitment/inboxes recruitment/runs recruitment/search_providers',
  'recruitment/addresses recruitment/evidence recruitment/brands',
  'recruitment/samples recruitment/reports',
  'recruitment/prospects',
  'recruitment/lists recruitment/contact',
  'recruitment/deals recruitment/imports recruitment/discovery recruitment/unsubscribing',
  'recruitment/campaigns',
  'recruitment/sending',
  'recruitment/reading',
  'recruitment/threads',
  'recruitment',
  'products.ts',
  'dashboard portal',
  'operations.ts describe.ts',
  'describe_thread.ts guides',
  'worker.ts api.ts',
  'commands',
  'command_line',
  'main.ts',
].map((line) => line.split(' '));

/** Products do not know each other, but for this. */
const products = ['data', 'program', 'recruitment'];
const doors = ['program/activation.ts'];

const most_lines_of_readme = 30;
/** The depth of folders below `src/<product>`. */
const most_folders = 3;

/** A file of fewer lines that one other imports belongs into that other, unless it is a concept of its own. */
const fewest_lines = 20;
/** Those that are left, most of them concepts of their own. The list may only shrink. */
const small_files = [
  'commands/api.ts',
  'core/index.ts',
  'core/net/origin.ts',
  'describe_thread.ts',
  'operations.ts',
  'program/payouts/batches/month.ts',
  'program/programs/demo.ts',
  'recruitment/change_plan.ts',
  'recruitment/replies/wish.ts',
  'worker.ts',
];

const root = join(import.meta.dirname, '..');
const entries = await readdir(join(root, 'src'), { recursive: true, withFileTypes: true });
const paths = entries
  .filter((entry) => entry.isFile())
  .map(({ parentPath, name }) => join(parentPath, name).slice(root.length + 1));
const texts = new Map<string, string>();
for (const path of paths.filter((path) => path.endsWith('.ts')))
  texts.set(path.slice('src/'.length), await readFile(join(root, path), 'utf8'));

/** The files of ours that a file imports, by their paths below `src`. */
const importsOf = (file: string): string[] =>
  [...(texts.get(file) as string).matchAll(/\b(?:from|import)\s*\(?\s*'(\.[^']+\.ts)'/g)].map(([, path]) =>
    normalize(join(dirname(file), path as string)),
  );
const imports = [...texts.keys()].flatMap((file) => importsOf(file).map((imported) => ({ file, imported })));

const layerOf = new Map(layers.flatMap((rooms, nth) => rooms.map((room) => [room, nth])));

/** The longest entry of the list that a path stands in. */
function roomOf(path: string): string {
  const parts = path.split('/');
  const starts = parts.map((_, nth) => parts.slice(0, parts.length - nth).join('/'));
  return starts.find((start) => layerOf.has(start)) ?? 'no room';
}

t.test('has every file in a room of the list of layers, and no room without a file', async (t) => {
  const rooms = Map.groupBy(texts.keys(), roomOf);
  t.same(rooms.get('no room') ?? [], []);
  t.same(
    [...layerOf.keys()].filter((room) => !rooms.has(room)),
    [],
  );
});

t.test('imports only from the layers above, types included', async (t) => {
  const layer = (path: string) => layerOf.get(roomOf(path)) ?? layers.length;
  const isAllowed = (file: string, imported: string) =>
    roomOf(file) === roomOf(imported) || layer(imported) < layer(file);
  t.same(
    imports
      .filter(({ file, imported }) => !isAllowed(file, imported))
      .map(({ file, imported }) => `src/${file} may not import ${imported}`),
    [],
  );
  const tasks = globSync('tasks/**/*.ts', { cwd: root });
  t.same(
    tasks.filter((file) => /'(\.\.\/)+test\//.test(readFileSync(join(root, file), 'utf8'))),
    [],
  );
});

t.test('keeps products apart', async (t) => {
  const productOf = (path: string) => products.find((product) => path.startsWith(`${product}/`));
  const isForeign = (file: string, imported: string) =>
    productOf(file) !== undefined && productOf(imported) !== undefined && productOf(file) !== productOf(imported);
  t.same(
    imports
      .filter(({ file, imported }) => isForeign(file, imported) && !doors.includes(imported))
      .map(({ file, imported }) => `src/${file} may not import ${imported}`),
    [],
  );
});

t.test('has folders with a short README each, at most three deep in a product', async (t) => {
  const faults: string[] = [];
  for (const room of new Set(paths.map((path) => dirname(path)))) {
    if (room.split('/').length - 2 > most_folders) faults.push(`${room} is too deep`);
    if (room === 'src') continue;
    const readme = await readFile(join(root, room, 'README.md'), 'utf8').catch(() => undefined);
    const lines = readme?.trimEnd().split('\n').length;
    if (lines === undefined) faults.push(`${room} has no README.md`);
    else if (lines > most_lines_of_readme) faults.push(`${room}/README.md has ${lines} lines`);
  }
  t.same(faults, []);
});

t.test('has no file of a few lines that one other imports', async (t) => {
  const importers = Map.groupBy(imports, ({ imported }) => imported);
  const small = [...texts].filter(
    ([file, text]) => text.trimEnd().split('\n').length < fewest_lines && importers.get(file)?.length === 1,
  );
  t.same(
    small.map(([file]) => file).sort(),
    small_files.toSorted(),
    'merge a new one into its importer; take one that is gone off the list',
  );
});

t.test('names only files that exist in the READMEs and the guide for contributors', async (t) => {
  const documents = ['README.md', '.github/CONTRIBUTING.md', ...paths.filter((path) => path.endsWith('/README.md'))];
  const named: { document: string; path: string }[] = [];
  for (const document of documents) {
    const text = await readFile(join(root, document), 'utf8');
    for (const [path] of text.matchAll(/\b(?:src|sql|tasks|test)\/[a-z0-9_/]+\.(?:ts|sql)\b/g))
      named.push({ document, path });
    if (!document.startsWith('src/')) continue;
    for (const [, name] of text.matchAll(/`([a-z0-9_]+\.ts)`/g))
      named.push({ document, path: join(dirname(document), name as string) });
  }
  t.same(
    named.filter(({ path }) => !existsSync(join(root, path))),
    [],
  );
});

t.test("goes by Postgres' clock wherever a product or a page asks for the time", async (t) => {
  const shown = /^(?:program|recruitment|webhooks|portal|dashboard|pages|data)\//;
  const own_clock = [...texts].filter(([file, text]) => shown.test(file) && /Date\.now\(\)|new Date\(\)/.test(text));
  t.same(
    own_clock.map(([file]) => `src/${file}`),
    [],
    'databaseTime() or tx.now',
  );
});

t.test('names commands as they can be typed, wherever users read them', async (t) => {
  // Names of connections to Postgres are no commands; comments are for who reads the code.
  const is_text = (line: string) => !/^\s*(\/?\*|\/\/|--)|application_name|^const marker/.test(line);
  const commands = await commandNames();
  const bare = new RegExp(`(?<!npx --no |(?<!\\\\)\\w|[/-])rail (${commands.join('|')})\\b`);
  const others = globSync(['sql/live/**/*.sql', 'src/guides/*.md', 'README.md'], { cwd: root });
  const read = others.map((file): [string, string] => [file, readFileSync(join(root, file), 'utf8')]);
  const wrong = [...texts, ...read].flatMap(([file, text]) =>
    text
      .split('\n')
      .filter((line) => is_text(line) && bare.test(line))
      .map((line) => `${file}: ${line}`),
  );
  t.same(wrong, [], 'each says npx --no rail');
});

t.test('tells users of commands and options that there are', async (t) => {
  const { createCommandLine } = await import('../src/command_line/rail.ts');
  const others = globSync(['src/guides/*.md', 'README.md'], { cwd: root });
  const read = others.map((file): [string, string] => [file, readFileSync(join(root, file), 'utf8')]);
  const told = [...texts, ...read].flatMap(([file, text]) =>
    [...text.matchAll(/npx --no rail ([a-z][^'`"\n|>;$]*)/g)].map(([, line = '']) => ({ file, line })),
  );
  t.ok(told.length > 200, `${told.length} commands`);
  const faultOf = (line: string): string | undefined => {
    const words = line.trim().split(/\s+/);
    let at = createCommandLine();
    for (let next: typeof at | undefined = at; next; next = at.commands.find((one) => one.name() === words[0])) {
      if (next.parent) words.shift();
      at = next;
    }
    if (at.parent === null && words[0] !== 'help') return `there is no command '${words[0]}'`;
    const options = words.flatMap((word) => /^--[a-z-]+/.exec(word) ?? []);
    const unknown = options.find(
      (option) => option !== '--help' && !at.options.some(({ long, short }) => long === option || short === option),
    );
    return unknown && `${at.name()} has no option ${unknown}`;
  };
  t.same(
    told.flatMap(({ file, line }) => {
      const fault = faultOf(line);
      return fault ? [`${file}: ${line.trim()}: ${fault}`] : [];
    }),
    [],
  );
  t.match(faultOf('jobs list --sate failed'), /no option --sate/);
  t.match(faultOf('job list'), /no command 'job'/);
});

async function commandNames(): Promise<string[]> {
  const { createCommandLine } = await import('../src/command_line/rail.ts');
  return createCommandLine().commands.map((command) => command.name());
}
