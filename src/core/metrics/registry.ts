/**
 * What the process counts of itself, and what it reads of the queues, in Prometheus' terms: the one place that knows prom-client. No label
 * may hold what belongs to a tenant, or grow with the number of them.
 */
import type { Counter, Gauge, Histogram, Registry } from 'prom-client';

type Prometheus = typeof import('prom-client');

/** Loaded by the process that shows its metrics, before it serves; in others nothing is counted. */
let opened: { prometheus: Prometheus; registry: Registry } | undefined;
const unmade: ((open: NonNullable<typeof opened>) => void)[] = [];

/** What is said of a metric: all that were defined so far. */
export interface Metric {
  name: string;
  help: string;
  labels: string[];
}

export const metrics: Metric[] = [];

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
  help: string,
  labelNames: Label[] = [],
): Pick<Counter<Label>, 'inc'> {
  metrics.push({ name, help, labels: labelNames });
  const metric = whenOpen(({ Counter }, registers) => new Counter<Label>({ name, help, labelNames, registers }));
  return { inc: (...given: unknown[]) => metric()?.inc(...(given as [never])) };
}

export function histogram<Label extends string>(
  name: string,
  help: string,
  buckets: number[],
  labelNames: Label[] = [],
): Pick<Histogram<Label>, 'observe'> {
  metrics.push({ name, help, labels: labelNames });
  const metric = whenOpen(
    ({ Histogram }, registers) => new Histogram<Label>({ name, help, labelNames, buckets, registers }),
  );
  return { observe: (...given: unknown[]) => metric()?.observe(...(given as [never])) };
}

/** A gauge of this process, whose values `collect` sets when they are asked for. */
export const gauge = <Label extends string>(
  name: string,
  help: string,
  labelNames: Label[],
  collect: (gauge: Gauge<Label>) => void,
): void => {
  metrics.push({ name, help, labels: labelNames });
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

/** A gauge of what all processes share, because it is in the database. */
export class SharedGauge<Label extends string = never> {
  readonly #gauge: () => Gauge<Label> | undefined;
  readonly #has_labels: boolean;

  constructor(name: string, help: string, labelNames: Label[] = []) {
    metrics.push({ name, help, labels: labelNames });
    const shared = `${help} The same in every process: take the maximum, not the sum.`;
    this.#gauge = whenOpen(({ Gauge }, registers) => new Gauge<Label>({ name, help: shared, labelNames, registers }));
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
