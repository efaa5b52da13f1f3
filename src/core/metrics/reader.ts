/**
 * Reads what is in the database for `/metrics`. It is the same for every process, so one of them reads and shows it: whoever holds the lease
 * `core.metrics_reader`, which whoever is scraped renews. When it stops, or is not scraped any more, another takes the lease.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import sql from 'sql-template-tag';
import { type Database, openDatabase, run } from '../postgres/database.ts';
import { logFailure } from '../postgres/outage.ts';
import { type Backlog, type Measured, readBacklogs, showBacklogs } from './backlog.ts';
import { gauge } from './registry.ts';

const application_name = 'rail metrics';
/** However often somebody asks, the database is read this often at most. */
const fresh_ms = 5_000;
/** Prometheus scrapes each minute unless it is told otherwise. */
const lease_s = 90;
/** The time limit of each statement, and of opening the connection. */
const most_ms = 2_000;

/** Who scrapes gives up after ten seconds: what takes longer to be read is not shown. */
const most_wait_ms = 4_000;

interface Reading {
  /** This process is the one that reads. */
  holds: boolean;
  measured: Measured[];
}

/** The last reading, which is shown. Undefined: nothing could be read. */
let last: Reading | undefined;

gauge(
  'rail_backlog_readable',
  {
    help: 'Whether this process could read Postgres for its metrics: 1, or 0. At 0, it shows nothing of what is in the database.',
    row: 'Is it well',
    title: 'Postgres can be read',
    alerts: [
      {
        name: 'RailPostgresUnreadable',
        expr: 'min(rail_backlog_readable) == 0',
        for: '5m',
        severity: 'critical',
        summary: 'A process of Rail cannot read Postgres.',
        remedy:
          'Check that Postgres runs and has connections left; the log of the process says why it cannot be reached.',
      },
    ],
  },
  [],
  (shown) => shown.set(last ? 1 : 0),
);
gauge(
  'rail_metrics_reader',
  {
    help: 'Whether this process shows the metrics that are read from the database: 1 for one process, 0 for all others.',
    row: 'Is it well',
    title: 'Process that reads the database',
    alerts: [
      {
        name: 'RailUnobserved',
        expr: 'absent(rail_metrics_reader == 1)',
        for: '5m',
        severity: 'critical',
        summary: 'No process of Rail shows the state of the database.',
        remedy: 'Check that Rail runs with METRICS_PORT, and that Prometheus reaches that port.',
      },
    ],
  },
  [],
  (shown) => shown.set(last?.holds ? 1 : 0),
);

export interface ReaderOptions {
  url: string;
  replica: Database | undefined;
  backlogs: Backlog[];
  log: Logger;
}

export interface MetricsReader {
  /** Has the gauges show what holds now, or nothing where another process shows it. */
  show(): Promise<void>;
  close(): Promise<void>;
}

/** Reads on a connection of its own, so that no work of this process keeps it waiting, and it keeps no work waiting. */
export function openReader({ url, replica, backlogs, log }: ReaderOptions): MetricsReader {
  const name = randomUUID();
  const database = openDatabase(url, {
    ...{ size: 1, name: application_name, log },
    ...{ connect_ms: most_ms, wait_ms: most_ms, statement_ms: most_ms, silence_ms: most_ms * 2 },
  });
  const reading = rarely(async (): Promise<Reading> => {
    const holds = await takeLease(database, name);
    const shown = backlogs.filter(({ of_each_process }) => holds || of_each_process);
    return { holds, measured: await readBacklogs(shown, database, replica) };
  });
  const failed = (error: unknown) =>
    logFailure(log, error, 'the database could not be read for the metrics') as undefined;
  return {
    async show() {
      last = await inTime<Reading | undefined>(reading().catch(failed), most_wait_ms, undefined);
      showBacklogs(backlogs, last?.measured ?? []);
    },
    async close() {
      last = undefined;
      await run(database, sql`update core.metrics_reader set until = now() where process = ${name}`).catch(() => {});
      await database.end();
    },
  };
}

/** @returns whether this process is the one that reads, from now on */
async function takeLease(database: Database, name: string): Promise<boolean> {
  const held = await run(
    database,
    sql`update core.metrics_reader set process = ${name}, until = clock_timestamp() + make_interval(secs => ${lease_s})
      where process = ${name} or until < clock_timestamp()
      returning true as held`,
  );
  return held.length > 0;
}

/** Reads when what was read last is not fresh any more, never twice at a time. */
function rarely<T>(read: () => Promise<T>): () => Promise<T> {
  let reading: Promise<T> | undefined;
  let read_at = 0;
  return () => {
    if (!reading || (read_at > 0 && performance.now() - read_at > fresh_ms)) {
      read_at = 0;
      reading = read().finally(() => {
        read_at = performance.now();
      });
    }
    return reading;
  };
}

/** Gives `otherwise` where the work takes longer than whoever asks waits. */
export function inTime<T>(work: Promise<T>, most_ms: number, otherwise: T): Promise<T> {
  const late = new AbortController();
  const tooLong = sleep(most_ms, otherwise, { signal: late.signal }).catch(() => otherwise);
  return Promise.race([work, tooLong]).finally(() => late.abort());
}
