import { parser } from '@prometheus-io/lezer-promql';
import t from 'tap';
import { parse } from 'yaml';
import { z } from 'zod';
import { metrics } from '../../src/guides/all_metrics.ts';
import { command } from '../command_process.ts';

const guide = 'https://rail.example.com/docs/operations';
const printed = (what: string) => command(['metrics', what], { BASE_URL: 'https://rail.example.com/' });

/**
 * Returns the names of series that an expression reads, and the labels that it asks for or groups by.
 * @throws Error where it is not PromQL
 */
function readsOf(expr: string): { names: string[]; labels: string[] } {
  const found: Record<string, string[]> = { Identifier: [], LabelName: [] };
  parser.parse(expr).iterate({
    enter({ type, name, from, to }) {
      if (type.isError) throw new Error(`At ${from}: ${expr}`);
      found[name]?.push(expr.slice(from, to));
    },
  });
  return { names: found.Identifier ?? [], labels: found.LabelName ?? [] };
}

/** The series of each metric, with their labels. */
const series = new Map<string, string[]>(
  metrics.flatMap(({ name, kind, labels }) =>
    kind === 'histogram'
      ? ['_bucket', '_sum', '_count'].map(
          (end) => [name + end, [...labels, ...(end === '_bucket' ? ['le'] : [])]] as const,
        )
      : [[name, labels] as const],
  ),
);
/** The labels that Prometheus adds to what it scrapes, and those of alerts. */
const added = ['instance', 'job'];
const alert_labels = ['alertname', 'alertstate', 'severity'];

function faultsOf(expr: string): string[] {
  const { names, labels } = readsOf(expr);
  if (names.length === 0) return [`${expr} reads nothing`];
  const known = [...names.flatMap((name) => (name === 'ALERTS' ? alert_labels : (series.get(name) ?? []))), ...added];
  return [
    ...names.filter((name) => name !== 'ALERTS' && !series.has(name)).map((name) => `${name} is no metric: ${expr}`),
    ...labels.filter((label) => !known.includes(label)).map((label) => `${label} is no label: ${expr}`),
  ];
}

const Place = z.strictObject({
  x: z.int().min(0).max(23),
  y: z.int().min(0),
  w: z.int().min(1).max(24),
  h: z.int().min(1),
});
const Datasource = z.strictObject({ type: z.literal('prometheus'), uid: z.literal('$datasource') });
const Row = z.strictObject({
  ...{ id: z.int(), gridPos: Place, type: z.literal('row'), title: z.string().min(1) },
  ...{ collapsed: z.literal(false), panels: z.tuple([]) },
});
const Graph = z.strictObject({
  ...{ id: z.int(), gridPos: Place, type: z.literal('timeseries'), title: z.string().min(1).max(60) },
  ...{ description: z.string(), datasource: Datasource },
  fieldConfig: z.object({
    defaults: z.object({ unit: z.enum(['s', 'ops', 'short', 'bytes', 'd']) }),
    overrides: z.tuple([]),
  }),
  options: z.object({ legend: z.object({ showLegend: z.literal(true) }), tooltip: z.object({}) }),
  targets: z
    .array(
      z.strictObject({
        ...{ refId: z.string().regex(/^[A-Z]$/), datasource: Datasource, editorMode: z.literal('code') },
        ...{ range: z.literal(true), expr: z.string(), legendFormat: z.string().min(1) },
      }),
    )
    .min(1),
});
/** The schema of an imported dashboard in Grafana (schemaVersion 39), as far as this one uses it. */
const Dashboard = z.strictObject({
  ...{ uid: z.string().max(40), title: z.literal('Rail'), tags: z.array(z.string()), description: z.string() },
  ...{ schemaVersion: z.literal(39), version: z.int(), editable: z.boolean(), graphTooltip: z.int().min(0).max(2) },
  ...{
    timezone: z.literal('browser'),
    refresh: z.string(),
    time: z.strictObject({ from: z.string(), to: z.string() }),
  },
  links: z.array(z.object({ type: z.literal('link'), url: z.literal(guide) })).length(1),
  annotations: z.strictObject({ list: z.tuple([]) }),
  templating: z.strictObject({
    list: z.tuple([z.object({ name: z.literal('datasource'), type: z.literal('datasource') })]),
  }),
  panels: z.array(z.discriminatedUnion('type', [Row, Graph])),
});

const Rules = z.strictObject({
  groups: z.array(
    z.strictObject({
      name: z.string().startsWith('Rail: '),
      rules: z
        .array(
          z.strictObject({
            ...{
              alert: z.string().regex(/^Rail[A-Z][A-Za-z]+$/),
              expr: z.string(),
              for: z.string().regex(/^\d+[smh]$/),
            },
            labels: z.strictObject({ severity: z.enum(['critical', 'warning']) }),
            annotations: z.strictObject({
              ...{ summary: z.string().min(20).endsWith('.'), description: z.string().min(20).endsWith('.') },
              runbook_url: z.string().startsWith(`${guide}#Rail`),
            }),
          }),
        )
        .min(1),
    }),
  ),
});

t.test('rail metrics grafana prints a dashboard with a panel of every metric', async (t) => {
  const { code, stdout } = await printed('grafana');
  t.equal(code, 0);
  const { panels } = Dashboard.parse(JSON.parse(stdout));
  t.same(
    panels.filter(({ type }) => type === 'row').map(({ title }) => title),
    ['Is it well', 'API', 'Jobs', 'Webhooks', 'Outreach', 'Payouts', 'Postgres'],
  );
  t.equal(new Set(panels.map(({ id }) => id)).size, panels.length, 'each has an id of its own');
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, nth) => `${x + (nth % w)} ${y + Math.floor(nth / w)}`),
  );
  t.equal(new Set(cells).size, cells.length, 'none covers another');
  const exprs = panels
    .flatMap((panel) => (panel.type === 'timeseries' ? panel.targets : []))
    .map(({ expr }) => expr.replaceAll('$__rate_interval', '5m'));
  t.same(exprs.flatMap(faultsOf), []);
  const read = new Set(exprs.flatMap((expr) => readsOf(expr).names));
  t.same(
    metrics
      .filter(({ name }) => !['', '_bucket', '_sum', '_count'].some((end) => read.has(name + end)))
      .map(({ name }) => name),
    [],
    'every metric is shown',
  );
});

t.test('rail metrics alerts prints rules that read metrics which exist', async (t) => {
  const { code, stdout } = await printed('alerts');
  t.equal(code, 0);
  const rules = Rules.parse(parse(stdout)).groups.flatMap(({ rules }) => rules);
  t.equal(new Set(rules.map(({ alert }) => alert)).size, rules.length);
  t.equal(rules.length, metrics.flatMap(({ alerts = [] }) => alerts).length);
  for (const { alert, expr, annotations } of rules) {
    t.same(faultsOf(expr), [], alert);
    t.equal(annotations.runbook_url, `${guide}#${alert}`);
    const named = [...`${annotations.summary} ${annotations.description}`.matchAll(/\$labels\.(\w+)/g)];
    for (const [, label] of named) t.ok(readsOf(expr).labels.includes(label as string), `${alert} keeps ${label}`);
  }
});

t.test('what is no PromQL is found', (t) => {
  for (const expr of ['sum(rail_jobs', 'rail_jobs{', 'max by rail_jobs', 'rate(rail_jobs[5m)', '']) {
    t.throws(() => {
      if (faultsOf(expr).length > 0) throw new Error('found');
    }, expr);
  }
  t.same(faultsOf('max(rail_unknown)').length, 1);
  t.same(faultsOf('max by (tenant) (rail_jobs)').length, 1);
  t.end();
});
