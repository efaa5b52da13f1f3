/**
 * The registry of metrics, in Prometheus' terms: the one place that uses prom-client. No label may hold what belongs to a tenant, or grow with the
 * number of them.
 */
import type { Counter, Gauge, Histogram, Registry } from 'prom-client';

type Prometheus = typeof import('prom-client');

/** Loaded by the process that shows its metrics, before it serves; in others nothing is counted. */
let opened: { prometheus: Prometheus; registry: Registry } | undefined;
const unmade: ((open: NonNullable<typeof opened>) => void)[] = [];

/** The rows of the dashboard, in their order. */
export const rows = ['Is it well', 'API', 'Jobs', 'Webhooks', 'Outreach', 'Payouts', 'Postgres'] as const;

/** The description of a metric where it is defined: its line in the guide, its panel of the dashboard, and its alerts follow from it. */
export interface About {
  /** The meaning of the metric, and of the values of its labels. */
  help: string;
  row: (typeof rows)[number];
  /** The title of its panel, in a few words. */
  title: string;
  /** The PromQL of the panel, where that is other than what `dashboard.ts` makes of the kind of metric. */
  draws?: string;
  /** Further panels: what they draw, by title. */
  more?: Record<string, string>;
  alerts?: Alert[];
}

/** An alert, in Prometheus' terms. Other metrics are for looking at. */
export interface Alert {
  /** `Rail…`, in camel case. */
  name: string;
  /** In PromQL. It takes the maximum of what is in the database, which one process shows. */
  expr: string;
  /** The time for which it must hold: `5m`. */
  for: string;
  /** `critical`: something is not done, now. `warning`: something will not be, or somebody has to decide. */
  severity: 'critical' | 'warning';
  /** The problem, in one sentence. */
  summary: string;
  /** The remedy, in one sentence or two. */
  remedy: string;
}

export interface Metric extends About {
  name: string;
  kind: 'counter' | 'gauge' | 'histogram';
  labels: string[];
  /** It is in the database: one process shows it. */
  is_shared: boolean;
}

/** All that were defined so far. */
export const metrics: Metric[] = [];

const define = (name: string, kind: Metric['kind'], labels: string[], about: About, is_shared = false): void =>
  void metrics.push({ ...about, name, kind, labels, is_shared });

/** @returns what gives the metric, once it is made: when the registry is opened, and at once where it is open */
function whenOpen<Metric>(make: (prometheus: Prometheus, registers: Registry[]) => Metric): () => Metric | undefined {
  let metric: Metric | undefined;
  const makeIn = ({ prometheus, registry }: NonNullable<typeof opened>) => {
    metric = make(prometheus, [registry]);
  };
  if (opened) makeIn(opened);
  else unmade.push(makeIn);
  return () => metric;
}

export function counter<Label extends string>(
  name: string,
  about: About,
  labelNames: Label[] = [],
): Pick<Counter<Label>, 'inc'> {
  const { help } = about;
  define(name, 'counter', labelNames, about);
  const metric = whenOpen(({ Counter }, registers) => new Counter<Label>({ name, help, labelNames, registers }));
  return { inc: (...given: unknown[]) => metric()?.inc(...(given as [never])) };
}

export function histogram<Label extends string>(
  name: string,
  about: About,
  buckets: number[],
  labelNames: Label[] = [],
): Pick<Histogram<Label>, 'observe'> {
  const { help } = about;
  define(name, 'histogram', labelNames, about);
  const metric = whenOpen(
    ({ Histogram }, registers) => new Histogram<Label>({ name, help, labelNames, buckets, registers }),
  );
  return { observe: (...given: unknown[]) => metric()?.observe(...(given as [never])) };
}

/** A gauge of this process, whose values `collect` sets when they are asked for. */
export const gauge = <Label extends string>(
  name: string,
  about: About,
  labelNames: Label[],
  collect: (gauge: Gauge<Label>) => void,
): void => {
  const { help } = about;
  define(name, 'gauge', labelNames, about);
  whenOpen(
    ({ Gauge }, registers) =>
      new Gauge<Label>({
        ...{ name, help, labelNames, registers },
        collect() {
          collect(this);
        },
      }),
  );
};

/** A gauge of what all processes share, because it is in the database. One of them shows it: see `reader.ts`. */
export class SharedGauge<Label extends string = never> {
  readonly #gauge: () => Gauge<Label> | undefined;
  readonly #has_labels: boolean;

  constructor(name: string, about: About, labelNames: Label[] = []) {
    define(name, 'gauge', labelNames, about, true);
    const { help } = about;
    this.#gauge = whenOpen(({ Gauge }, registers) => new Gauge<Label>({ name, help, labelNames, registers }));
    this.#has_labels = labelNames.length > 0;
  }

  /** Until it is set again it is left out. */
  clear(): void {
    this.#gauge()?.reset();
    if (!this.#has_labels) this.#gauge()?.remove();
  }

  set(labels: Record<Label, string>, value: number): void {
    this.#gauge()?.set(labels, value);
  }
}

/** Counts from now on, also what Node and the system know of this process. */
export async function openMetrics(): Promise<void> {
  if (opened) return;
  const prometheus = await import('prom-client');
  if (opened) return;
  const registry = new prometheus.Registry();
  opened = { prometheus, registry };
  for (const makeIn of unmade.splice(0)) makeIn(opened);
  prometheus.collectDefaultMetrics({ register: registry });
}

/** Everything, in Prometheus' text format; nothing where it is not open. */
export async function metricsText(): Promise<{ type: string; text: string }> {
  if (!opened) return { type: 'text/plain', text: '' };
  const { registry } = opened;
  return { type: registry.contentType, text: await registry.metrics() };
}
