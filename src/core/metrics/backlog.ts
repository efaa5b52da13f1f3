import type { Database } from '../postgres/database.ts';
import type { SharedGauge } from './registry.ts';

/** No statement counts further: what is longer is too long. */
export const most_counted = 100_000;

/** The waiting work in the database, and its workers. Ages are in seconds. */
export interface Backlog {
  gauges: SharedGauge<string>[];
  /** Each process reads it by itself, because they may differ. */
  of_each_process?: boolean;
  /** Reads all that the gauges show, one cheap statement after the other. @param replica where reads that may lag go, where there is one */
  read(database: Database, replica?: Database): Promise<Measured[]>;
}

export interface Measured {
  gauge: SharedGauge<string>;
  labels: Record<string, string>;
  value: number;
}

export async function readBacklogs(
  backlogs: Backlog[],
  database: Database,
  replica: Database | undefined,
): Promise<Measured[]> {
  const measured: Measured[] = [];
  for (const backlog of backlogs) measured.push(...(await backlog.read(database, replica)));
  return measured;
}

/** Shows what was read; nothing of what was not. */
export function showBacklogs(backlogs: Backlog[], measured: Measured[]): void {
  for (const one of backlogs.flatMap(({ gauges }) => gauges)) one.clear();
  for (const { gauge, labels, value } of measured) gauge.set(labels, value);
}
