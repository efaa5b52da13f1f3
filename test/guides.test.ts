import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { settings } from '../src/config.ts';
import { startRail } from './harness.ts';

const rail = await startRail({ worker: false });
const pageAt = async (path: string) => {
  const response = await fetch(`${rail.address}${path}`);
  if (response.status !== 200) throw new Error(`${path} answered ${response.status}`);
  return response.text();
};
const operations = await pageAt('/docs/operations');
const rowsOf = (label: string): string[][] => {
  const [, table = ''] = operations.split(`aria-label="${label}"`);
  const [rows = ''] = table.split('</table>');
  return [...rows.matchAll(/<tr>(.*)<\/tr>/g)].map(([, row]) =>
    [...(row as string).matchAll(/<t[dh]>(.*?)<\/t[dh]>/g)].map(([, cell]) =>
      (cell as string).replaceAll(/<.*?>/g, ''),
    ),
  );
};

t.test('/docs/operations lists every setting with its meaning', (t) => {
  const [, ...rows] = rowsOf('Settings');
  t.same(
    rows.map(([name]) => name),
    settings.map(({ name }) => name),
  );
  t.ok(rows.every(([, , meaning]) => meaning));
  t.end();
});

t.test('/docs/operations lists every metric that the source defines, each alert beside its metric', async (t) => {
  const root = join(import.meta.dirname, '../src');
  const files = (await readdir(root, { recursive: true })).filter((file) => file.endsWith('.ts'));
  const defined: string[] = [];
  const alerts: string[] = [];
  for (const file of files) {
    const text = await readFile(join(root, file), 'utf8');
    for (const [, name] of text.matchAll(/\b(?:counter|gauge|histogram|SharedGauge)\(\s*'(rail_\w+)'/g))
      defined.push(name as string);
    for (const [, name] of text.matchAll(/^\s+name: '(Rail\w+)',\n\s+expr:/gm)) alerts.push(name as string);
  }
  t.ok(defined.length > 20);
  const [, ...rows] = rowsOf('Metrics');
  t.same(
    rows.map(([name]) => name),
    defined.toSorted((a, b) => a.localeCompare(b)),
  );
  t.ok(alerts.length > 20);
  const [, ...listed] = rowsOf('Alerts');
  t.same(listed.map(([name]) => name).toSorted(), alerts.toSorted());
  t.same(rows.flatMap(([, , , names]) => (names ? names.split(', ') : [])).toSorted(), alerts.toSorted());
  t.ok(listed.every(([, severity, said, remedy]) => severity && said && remedy));
  for (const name of alerts) t.ok(operations.includes(`id="${name}"`), `rules link to ${name}`);
});

t.test('the guides are HTML throughout, and their links lead somewhere', async (t) => {
  for (const path of ['/docs/operations', '/docs/tour', '/docs/snippet']) {
    const html = await pageAt(path);
    const text = html.replaceAll(/<(pre|code|script|style)\b.*?<\/\1>/gs, '');
    t.notMatch(text, /```|\*\*|\]\(|^- |`|\{\{/m, path);
    for (const [, href] of html.matchAll(/<a href="([^"#]+)"/g))
      await pageAt(new URL(href as string, rail.address + path).pathname);
  }
});
