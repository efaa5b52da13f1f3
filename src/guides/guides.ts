/** `GET /docs/tour`, `GET /docs/snippet` and `GET /docs/operations`: a Markdown file each, with the tables of settings and metrics as the code has them. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { settings } from '../config.ts';
import { block, escaped, mountDocument, prose, table } from '../core/description/document.ts';
import type { Metric } from '../core/metrics/registry.ts';
import { alertsOf } from '../core/metrics/rules.ts';
import { Thread } from '../core/threads/thread.ts';
import { script } from '../program/snippet/snippet_tag.ts';
import { htmlOf } from './markdown.ts';

export function mountGuides(app: FastifyInstance): void {
  mountDocument(app, '/docs/tour', async () => ({
    title: 'Tour',
    summary: 'Pay a partner, and recruit another one, on the demo that npm start runs.',
    content: htmlOf(await guide('tour')),
  }));
  mountDocument(app, '/docs/snippet', async () => ({
    title: 'Snippet',
    summary: 'Record clicks and leads from the pages of a website.',
    content: htmlOf(await guide('snippet'), { script: block(pinnedScript()) }),
  }));
  mountDocument(app, '/docs/operations', async () => ({
    title: 'Operations',
    summary: 'How to run Rail in production.',
    content: htmlOf(await guide('operations'), { settings: settingsTable(), ...(await tablesOfMetrics()) }),
  }));
}

/** The script element with the hash of the script that this version serves. */
function pinnedScript(): string {
  const { path, integrity } = script();
  return `<script async src="https://acme.example.com/_rail${path}" integrity="${integrity}" crossorigin="anonymous"\n  data-key="rail_pk_live_…"></script>`;
}

const guide = (name: string): Promise<string> => readFile(join(import.meta.dirname, `${name}.md`), 'utf8');

const settingsTable = (): string =>
  table('Settings', [
    '<tr><th>setting</th><th>default</th><th>what it is</th></tr>',
    ...settings.map(({ name, meaning, default_value }) => {
      const shown = default_value === undefined || default_value === false ? '' : code(String(default_value));
      return `<tr><td>${code(name)}</td><td>${shown}</td><td>${prose(meaning)}</td></tr>`;
    }),
  ]);

async function tablesOfMetrics(): Promise<Record<string, string>> {
  const all = await metrics();
  return { metrics: metricsTable(all), alerts: alertsTable(all) };
}

const metricsTable = (all: Metric[]): string =>
  table('Metrics', [
    '<tr><th>metric</th><th>labels</th><th>what it shows</th><th>alerts</th></tr>',
    ...all
      .toSorted((a, b) => a.name.localeCompare(b.name))
      .map(({ name, help, labels, alerts = [] }) => {
        const links = alerts.map((alert) => `<a href="#${alert.name}">${alert.name}</a>`);
        return `<tr><td>${code(name)}</td><td>${labels.map(code).join(', ')}</td><td>${prose(help)}</td><td>${links.join(', ')}</td></tr>`;
      }),
  ]);

const alertsTable = (all: Metric[]): string =>
  table('Alerts', [
    '<tr><th>alert</th><th>severity</th><th>what it says, and when</th><th>what to do</th></tr>',
    ...alertsOf(all).map(({ name, severity, summary, expr, for: lasts, remedy }) => {
      const when = `${code(expr)} for ${lasts}`;
      return `<tr><td><a id="${name}"></a>${name}</td><td>${severity}</td><td>${said(summary)} ${when}</td><td>${said(remedy)}</td></tr>`;
    }),
  ]);

/** Prometheus puts the value of a label in its place. */
const said = (text: string): string => prose(text.replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, '`$1`'));

const code = (text: string): string => `<code>${escaped(text)}</code>`;

async function metrics(): Promise<Metric[]> {
  const options = { name: 'metrics', most_heap_mib: 512 };
  const thread = new Thread<null, Metric[]>(new URL('./metrics_thread.ts', import.meta.url), options, () => {});
  try {
    return await thread.ask(null);
  } finally {
    void thread.close(1_000);
  }
}
