/** `GET /docs/tour` and `GET /docs/operations`: a Markdown file each, with the tables of settings and metrics as the code has them. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { settings } from '../config.ts';
import { escaped, mountDocument, prose, table } from '../core/description/document.ts';
import type { Metric } from '../core/metrics/registry.ts';
import { Thread } from '../core/threads/thread.ts';
import { htmlOf } from './markdown.ts';

export function mountGuides(app: FastifyInstance): void {
  mountDocument(app, '/docs/tour', async () => ({
    title: 'Tour',
    summary: 'Pay a partner, and recruit another one, on the demo that npm start runs.',
    content: htmlOf(await guide('tour')),
  }));
  mountDocument(app, '/docs/operations', async () => ({
    title: 'Operations',
    summary: 'How to run Rail in production.',
    content: htmlOf(await guide('operations'), { settings: settingsTable(), metrics: metricsTable(await metrics()) }),
  }));
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

/** The thresholds for paging somebody. Other metrics are for looking at. */
const alerts: Readonly<Record<string, string>> = {
  rail_workers: '`0`',
  rail_schedule_lag_seconds: 'over 180',
  rail_clock_skew_seconds: 'over 5, or under -5',
  rail_jobs_oldest_seconds: 'over 120 where `state="ready"`',
  rail_queue_oldest_seconds: 'over 120',
  rail_outreach_oldest_seconds: 'over 300 where `state="due"`, over 900 where `state="unknown"`',
  rail_outreach_emails: '`state="unknown"` grows for an hour',
  rail_inboxes: '`auth_failed` or `connection_failed` grows',
  rail_inbox_unread_seconds: 'over 900',
  rail_mail_lag_seconds: '95th percentile over 60',
  rail_postgres_connections: '`open` over 90 % of `most`',
  rail_backlog_readable: '0 for 5 minutes',
};

const metricsTable = (all: Metric[]): string =>
  table('Metrics', [
    '<tr><th>metric</th><th>labels</th><th>what it shows</th><th>alert</th></tr>',
    ...all
      .toSorted((a, b) => a.name.localeCompare(b.name))
      .map(
        ({ name, help, labels }) =>
          `<tr><td>${code(name)}</td><td>${labels.map(code).join(', ')}</td><td>${prose(help)}</td><td>${prose(alerts[name] ?? '')}</td></tr>`,
      ),
  ]);

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
