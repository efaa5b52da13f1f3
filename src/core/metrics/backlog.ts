import type { Database } from '../postgres/database.ts';
import { gauge, type SharedGauge } from './registry.ts';

/** No statement counts further: what is longer is too long. */
export const most_counted = 100_000;

/** What waits in the database, and who works on it. Ages are in seconds. */
export interface Backlog {
  gauges: SharedGauge<string>[];
  /** Reads all that the gauges show, one cheap statement after the other. */
  read(database: Database): Promise<Measured[]>;
}

export interface Measured {
  gauge: SharedGauge<string>;
  labels: Record<string, string>;
  value: number;
}

let is_readable = false;
gauge(
  'rail_backlog_readable',
  'Whether the queues could be read from Postgres: 1, or 0. At 0, the metrics of queues are left out.',
  [],
  (readable) => readable.set(is_readable ? 1 : 0),
);

export async function readBacklogs(database: Database, backlogs: Backlog[]): Promise<Measured[]> {
  const measured: Measured[] = [];
  for (const backlog of backlogs) measured.push(...(await backlog.read(database)));
  return measured;
}

/** Shows what was read of the queues; undefined where it could not be. */
export function showBacklogs(backlogs: Backlog[], measured: Measured[] | undefined): void {
  for (const one of backlogs.flatMap(({ gauges }) => gauges)) one.clear();
  is_readable = measured !== undefined;
  for (const { gauge: one, labels, value } of measured ?? []) one.set(labels, value);
}
