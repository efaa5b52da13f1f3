/**
 * What the process counts of itself, and what it reads of the queues, in Prometheus' terms: the one place that knows prom-client. No label
 * may hold what belongs to a tenant, or grow with the number of them.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

const registry = new Registry();
const registers = [registry];

export const counter = <Label extends string>(name: string, help: string, labelNames: Label[] = []): Counter<Label> =>
  new Counter({ name, help, labelNames, registers });

export const histogram = <Label extends string>(
  name: string,
  help: string,
  buckets: number[],
  labelNames: Label[] = [],
): Histogram<Label> => new Histogram({ name, help, buckets, labelNames, registers });

/** A gauge of this process, whose values `collect` sets when they are asked for. */
export const gauge = <Label extends string>(
  name: string,
  help: string,
  labelNames: Label[],
  collect: (gauge: Gauge<Label>) => void,
): Gauge<Label> =>
  new Gauge({
    ...{ name, help, labelNames, registers },
    collect() {
      collect(this);
    },
  });

/** A gauge of what all processes share, because it is in the database. */
export class SharedGauge<Label extends string = never> {
  readonly #gauge: Gauge<Label>;
  readonly #has_labels: boolean;

  constructor(name: string, help: string, labelNames: Label[] = []) {
    const shared = `${help} The same in every process: take the maximum, not the sum.`;
    this.#gauge = new Gauge({ name, help: shared, labelNames, registers });
    this.#has_labels = labelNames.length > 0;
  }

  /** Until it is set again it is left out. */
  clear(): void {
    this.#gauge.reset();
    if (!this.#has_labels) this.#gauge.remove();
  }

  set(labels: Record<Label, string>, value: number): void {
    this.#gauge.set(labels, value);
  }
}

/** Counts what Node and the system know of this process, too: from the first call on. */
export function watchProcess(): void {
  if (!registry.getSingleMetric('process_start_time_seconds')) collectDefaultMetrics({ register: registry });
}

export const content_type: string = registry.contentType;

/** Everything, in Prometheus' text format. */
export const metricsText = (): Promise<string> => registry.metrics();
