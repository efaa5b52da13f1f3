import { createHash } from 'node:crypto';
import type { Socket } from 'node:net';
import pg from 'pg';
import type { Logger } from 'pino';
import type { Sql } from 'sql-template-tag';
import { type Asked, withLent } from '../pool/lending.ts';
import { letShrink } from '../pool/shrinking.ts';
import { isRetryable } from './errors.ts';
import { logFailure } from './outage.ts';

export type Database = pg.Pool;

export interface DatabaseOptions {
  /** Connections at most. */
  size: number;
  /** The application name of the connections. */
  name: string;
  /** True if a pooler lends sessions of Postgres for no longer than a transaction. */
  is_shared?: boolean;
  log?: Logger;
  /** The time for which a server that owes an answer may be silent before its connection is given up. */
  silence_ms?: number;
  /** The time in which a server must open a connection. */
  connect_ms?: number;
  /** The time for which a caller waits for a connection while all are lent out. A busy Postgres is not taken for one that is away. */
  wait_ms?: number;
  /** The time limit of a statement, its waits for locks included. */
  statement_ms?: number;
}

const default_statement_ms = 30_000;
/** The time for which an idle connection stays open, so that the schedules of each minute keep theirs: a new connection has to plan everything anew. */
const idle_ms = 90_000;

/**
 * A pool whose connections pipeline: statements that do not wait for each other's results share a round trip.
 * @param url where Postgres is
 */
export function openDatabase(url: string, options: DatabaseOptions): Database {
  const { size, name, log, silence_ms = 35_000, connect_ms = 5_000, statement_ms = default_statement_ms } = options;
  const { is_shared = false } = options;
  const pool = new pg.Pool({
    connectionString: url,
    max: size,
    idleTimeoutMillis: idle_ms,
    min: 1, // a process that is idle is still counted: see connections.ts
    application_name: name,
    Client: clientThatConnectsWithin(connect_ms),
    connectionTimeoutMillis: options.wait_ms ?? statement_ms,
    keepAlive: true,
    pipeline: true,
    async onConnect(client) {
      // The pool does not listen to a connection that is lent out, and an 'error' that nobody hears ends the process: its statements
      // fail by themselves.
      client.on('error', () => {});
      endSilence(client as pg.Client, silence_ms);
      if (is_shared) {
        shared.add(client);
        return; // a setting would be of the next one's session
      }
      // Not as a startup parameter, which poolers refuse. Who gets the connection hears of it where it fails.
      await client.query(`set statement_timeout = ${statement_ms}`);
    },
  } as pg.PoolConfig);
  if (is_shared) shared.add(pool);
  letShrink(pool);
  pool.on('error', (error) => {
    if (!pool.ending && log) logFailure(log, error, 'an idle connection to Postgres broke');
  });
  return pool;
}

/** Pools and connections whose session of Postgres may be another one in each transaction: what was prepared in one is not known in the next. */
const shared = new WeakSet<object>();

/** The pool has one setting for both times, and hands its clients the longer one. */
function clientThatConnectsWithin(connect_ms: number): new (config?: pg.ClientConfig) => pg.Client {
  return class extends pg.Client {
    constructor(config?: pg.ClientConfig) {
      super({ ...config, connectionTimeoutMillis: connect_ms });
    }
  };
}

/**
 * A server that answers no more, without closing its connections, must not hang its callers. The socket's own timer does it: one for each
 * statement (`query_timeout`) costs as much as a small statement does.
 */
function endSilence(client: pg.Client, silence_ms: number): void {
  const socket = client.connection.stream as Socket;
  socket.setTimeout(silence_ms);
  socket.on('timeout', () => {
    if ((client as pg.Client & { readyForQuery: boolean }).readyForQuery) return;
    socket.destroy(Object.assign(new Error(`Postgres was silent for ${silence_ms} ms.`), { code: 'ETIMEDOUT' }));
  });
}

/** Runs one statement by itself. Rows come in wire shape: int8 as a safe integer, timestamptz as ISO 8601 in UTC. */
export async function run<Row extends object>(on: Pick<pg.Pool, 'query'>, statement: Sql): Promise<Row[]> {
  const { text, values } = statement;
  const { rows } = await send<Row>(on, { name: statementName(text), text, values, types: wireTypes });
  return rows;
}

/** Runs one statement by itself for a request, as long as somebody waits for it. */
export const runFor = <Row extends object>(database: Database, asked: Asked, statement: Sql): Promise<Row[]> =>
  withLent(database, asked, (client) => run<Row>(client, statement));

/** Runs a statement that is not to be prepared: one whose rows differ each time, or that runs once. Rows come in wire shape. */
export async function runUnprepared<Row extends object>(
  on: Pick<pg.Pool, 'query'>,
  text: string,
  values: unknown[] = [],
): Promise<Row[]> {
  const { rows } = await send<Row>(on, { text, values, types: wireTypes });
  return rows;
}

/**
 * Hands a statement to pg with a callback. Of the promises that pg makes itself, V8's young generation keeps a quarter of all results until
 * the next collection of the old one: a third of the CPU time of a small request.
 */
export async function send<Row extends object>(
  on: Pick<pg.Pool, 'query'>,
  given: pg.QueryConfig,
): Promise<pg.QueryResult<Row>> {
  const statement = shared.has(on) ? { ...given, name: '' } : given;
  try {
    return await new Promise((resolve, reject) => {
      on.query<Row>(statement, (error, result) => (error ? reject(error) : resolve(result)));
    });
  } catch (error) {
    // The stack of the socket's reader says nothing: this one leads to who sent the statement.
    if (error instanceof Error) Error.captureStackTrace(error);
    throw error;
  }
}

/** The number of times that a transaction which lost a deadlock is run before its caller gets the error. */
export const tries = 5;

/** Runs one statement by itself, and again when it lost a deadlock. */
export async function runAgain<Row extends object>(on: Pick<pg.Pool, 'query'>, statement: Sql): Promise<Row[]> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await run<Row>(on, statement);
    } catch (error) {
      if (attempt >= tries || !isRetryable(error)) throw error;
    }
  }
}

/**
 * Runs a statement by itself, and then another one by itself, in one round trip. When the first one lost a deadlock, both run again: the second one
 * must do no harm before the first.
 */
export async function runThen<First extends object, Second extends object>(
  database: Database,
  first: Sql,
  second: Sql,
): Promise<[First[], Second[]]> {
  const client = await database.connect();
  try {
    const [one, other] = await Promise.allSettled([run<First>(client, first), run<Second>(client, second)]);
    if (one.status === 'rejected' && !isRetryable(one.reason)) throw one.reason;
    const ran = one.status === 'fulfilled' ? one.value : await runAgain<First>(client, first);
    const is_done = one.status === 'fulfilled' && other.status === 'fulfilled';
    return [ran, is_done ? other.value : await runAgain<Second>(client, second)];
  } finally {
    client.release();
  }
}

const int8 = 20;
const timestamptz = 1184;

const wireTypes: pg.CustomTypesConfig = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    if (oid === int8) return safeInteger;
    if (oid === timestamptz) return isoTimestamp;
    return pg.types.getTypeParser(oid, format as 'text');
  },
} as pg.CustomTypesConfig;

function safeInteger(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError(`${text} is beyond the integers that JSON carries exactly.`);
  return value;
}

function isoTimestamp(text: string): string {
  // 2026-11-21 09:30:00[.123456]+00
  if (text[10] === ' ' && text.endsWith('+00')) {
    return `${text.slice(0, 10)}T${text.slice(11, 19)}.${text.slice(20, -3).padEnd(3, '0').slice(0, 3)}Z`;
  }
  return (pg.types.getTypeParser(timestamptz, 'text')(text) as Date).toISOString();
}

const names = new Map<string, string>();

/** Statements are prepared once a connection, under a name that follows from their text. */
function statementName(text: string): string {
  let name = names.get(text);
  if (!name) {
    name = createHash('sha1').update(text).digest('base64url');
    if (names.size < 5_000) names.set(text, name);
  }
  return name;
}
