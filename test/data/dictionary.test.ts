import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { readDictionary } from '../../src/data/dictionary.ts';
import { examples, tools } from '../../src/data/guide.ts';
import { command } from '../command_process.ts';
import { startRail, startReceiver } from '../harness.ts';
import { environmentOf } from '../rail_process.ts';
import { connectAs, fillOrganization, newLogin, viewsOf } from './tenant.ts';

const rail = await startRail();
const receiver = await startReceiver();
const { caller } = await fillOrganization(rail, receiver.url);
const psql = await connectAs(await newLogin(rail, caller));
const views = await viewsOf(rail);

const printed = async (...args: string[]): Promise<string> => {
  const { code, stdout, stderr } = await command(['data', 'dictionary', ...args], { DATABASE_URL: rail.url });
  t.equal(stderr, '');
  t.equal(code, 0);
  return stdout;
};

t.test('every example query runs as a login', async (t) => {
  for (const { title, sql } of examples) await t.resolves(psql.query(sql), title);
  const grafana = tools.find(({ name }) => name === 'Grafana')?.code as string;
  const filtered = grafana.replace('$__timeFilter(occurred_at)', "occurred_at between '2026-01-01' and '2027-01-01'");
  await t.resolves(psql.query(filtered), 'Grafana');
});

t.test('the example of the change feed runs', async (t) => {
  const code = tools.find(({ name }) => name === 'The change feed')?.code as string;
  const directory = t.testdir({});
  const main = join(import.meta.dirname, '../../src/main.ts');
  await promisify(execFile)('sh', ['-ec', `rail() { "${process.execPath}" "${main}" "$@"; }\n${code}`], {
    cwd: directory,
    env: environmentOf({ DATABASE_URL: rail.url }),
  });
  const linesOf = async (name: string) => (await readFile(join(directory, name), 'utf8')).trimEnd().split('\n');
  const [all, changes] = [await linesOf('commissions.ndjson'), await linesOf('changes.ndjson')];
  t.ok(all.length > 1);
  t.same(changes, all.slice(-1), 'nothing changed');
});

t.test('prints every view and column as JSON', async (t) => {
  const dictionary = JSON.parse(await printed('--format', 'json'));
  t.same(dictionary, await readDictionary(rail.store.database));
  t.same(
    dictionary.views.map(({ name }: { name: string }) => `data.${name}`).sort(),
    views.map((name) => name.replaceAll('"', '')).sort(),
  );
  const partner = dictionary.views.find(({ name }: { name: string }) => name === 'partner');
  t.match(partner.columns, [{ name: 'id', type: 'text', doc: 'The partner (part_).', personal: false }]);
  t.ok(partner.columns.find(({ name }: { name: string }) => name === 'email').personal);
  t.match(dictionary.functions, [{ name: 'data.organization_id()' }, { name: /^data\.payable_liability\(as_of/ }, {}]);
});

t.test('prints Markdown by itself', async (t) => {
  const text = await printed();
  for (const view of views) t.match(text, `\n## ${view.replaceAll('"', '')}\n`);
  t.match(text, '| `amount_minor` | bigint | The amount charged, in minor units. |');
});

t.test('prints the sources of a dbt project', async (t) => {
  const lines = (await printed('--format', 'dbt')).split('\n');
  t.same(lines.slice(0, 5), ['version: 2', '', 'sources:', '  - name: rail', '    schema: data']);
  const tables = lines.filter((line) => line.startsWith('      - name: ')).map((line) => JSON.parse(line.slice(14)));
  t.same(tables.map((name) => `data.${name}`).sort(), views.map((name) => name.replaceAll('"', '')).sort());
  for (const line of lines.filter((one) => one.includes('description: ')))
    t.type(JSON.parse(line.slice(line.indexOf('"'))), 'string');
});

t.test('shows it all at /docs/data, without a key', async (t) => {
  const answer = await fetch(new URL('/docs/data', rail.address));
  t.equal(answer.status, 200);
  t.match(answer.headers.get('content-type'), 'text/html');
  t.match(answer.headers.get('content-security-policy'), "default-src 'none'");
  const html = await answer.text();
  for (const view of views) t.match(html, `id="${view.replace('data.', '').replaceAll('"', '')}"`);
  for (const { title } of examples) t.match(html, title);
  for (const { name } of tools) t.match(html, `<h3>${name}</h3>`);
  const etag = answer.headers.get('etag') as string;
  const again = await fetch(new URL('/docs/data', rail.address), { headers: { 'If-None-Match': etag } });
  t.equal(again.status, 304);
});
