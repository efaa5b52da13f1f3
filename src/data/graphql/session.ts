/** The transaction in which a request reads: one connection, one state of the database, and no statement that outlives the request. */
import type pg from 'pg';
import sql from 'sql-template-tag';
import { type Database, run, send } from '../../core/postgres/database.ts';
import { isCanceled } from '../../core/postgres/errors.ts';
import { together } from '../../core/postgres/transaction.ts';
import { statement_ms } from './limits.ts';
import { QueryProblem } from './problem.ts';
import type { PgClient, Statement, WithPgClient } from './schema/pg_client.ts';

export interface Reader {
  /** The organization whose rows it sees; null sees none. */
  organization_id: string | null;
  sees_personal: boolean;
  /** The time at which its request is given up, by `performance.now()`. */
  deadline: number;
  /** The time limit of each of its statements. */
  statement_ms?: number;
}

/** Owns the views and no table: it reads the columns that they show, of one organization, and may write nothing. */
const reading_role = 'rail_data';

/** Opens its connection with the first statement, and another transaction after one that failed. To be closed. */
export class Session {
  readonly #database: Database;
  readonly #reader: Reader;
  #client: pg.PoolClient | undefined;
  #is_open = false;
  #most_ms = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(database: Database, reader: Reader) {
    this.#database = database;
    this.#reader = reader;
  }

  /** True if its request was given up. */
  get is_over(): boolean {
    return performance.now() > this.#reader.deadline;
  }

  /** For PostGraphile: its statements run one after the other, in the transaction of this session. */
  readonly withPgClient: WithPgClient = async (_, callback) => callback(this.#asPgClient);

  readonly #asPgClient: PgClient = {
    query: (statement) => {
      const result = this.#last.then(() => this.#run(statement));
      this.#last = result.catch(() => {});
      return result as Promise<{ rows: unknown[]; rowCount: number | null }>;
    },
    withTransaction: (callback) => callback(this.#asPgClient),
  };

  async #run({ text, values = [], arrayMode }: Statement): Promise<pg.QueryResult> {
    this.#client ??= await this.#database.connect();
    const left = Math.floor(this.#reader.deadline - performance.now());
    if (left < 1) throw new QueryProblem('deadline_exceeded');
    const { statement_ms: most_ms = statement_ms } = this.#reader;
    const opening = this.#prepare(this.#client, Math.min(most_ms, left));
    const name = plannedOnce(text) ? nameOf(this.#client, text) : {};
    const rowMode = arrayMode ? { rowMode: 'array' } : {};
    const result = send<object>(this.#client, { text, values, ...name, ...rowMode } as pg.QueryConfig);
    try {
      return (await together([...opening, result] as const).then(() => result)) as pg.QueryResult;
    } catch (error) {
      await this.#rollBack();
      if (isCanceled(error) && left < most_ms) throw new QueryProblem('deadline_exceeded');
      throw error;
    }
  }

  /** Sends the settings ahead of a statement, in the same round trip: opens the transaction, and limits its statements to the time that is left. */
  #prepare(client: pg.PoolClient, most_ms: number): Promise<unknown>[] {
    const is_limited = this.#is_open && this.#most_ms === most_ms;
    this.#most_ms = most_ms;
    if (this.#is_open)
      return is_limited ? [] : [run(client, sql`select set_config('statement_timeout', ${String(most_ms)}, true)`)];
    this.#is_open = true;
    return this.#open(client, most_ms);
  }

  /** The reader is set by settings that count for the service's own login alone; the role may read what the views show and nothing else. */
  #open(client: pg.PoolClient, most_ms: number): Promise<unknown>[] {
    const { organization_id, sees_personal } = this.#reader;
    return [
      send(client, { text: 'begin isolation level repeatable read, read only' }),
      run(
        client,
        sql`select set_config('rail.organization_id', ${organization_id ?? ''}, true),
          set_config('rail.sees_personal', ${sees_personal ? 'on' : 'off'}, true),
          set_config('statement_timeout', ${String(most_ms)}, true),
          set_config('random_page_cost', '1.1', true), set_config('jit', 'off', true),
          set_config('timezone', 'UTC', true), set_config('search_path', 'pg_catalog', true),
          set_config('role', ${reading_role}, true)`,
      ),
    ];
  }

  /** A read-only transaction holds no locks that anybody waits for, so that a failed statement costs no more than another `begin`. */
  async #rollBack(): Promise<void> {
    if (!this.#client || !this.#is_open) return;
    this.#is_open = false;
    await send(this.#client, { text: 'rollback' }).catch((error: Error) => this.#release(error));
  }

  #release(error?: Error): void {
    this.#client?.release(error);
    this.#client = undefined;
  }

  /** Waits for what runs, and gives the connection back. */
  async close(): Promise<void> {
    await this.#last;
    await this.#rollBack();
    if (this.#client) forgetOldest(this.#client);
    this.#release();
  }
}

/** A bound, or a cursor, decides by which index a statement is best read: with one, it is planned anew each time. */
const plannedOnce = (text: string): boolean => !/(<|>|<=|>=) ?\(?\$\d/.test(text);

/** The number of prepared statements of a connection: clients send the same ones again and again. */
const most_prepared = 100;
let next_name = 0;
const prepared = new WeakMap<object, Map<string, string>>();

/** To plan a statement takes longer than to run it. */
function nameOf(client: pg.PoolClient, text: string): { name: string } {
  const names = prepared.get(client) ?? new Map<string, string>();
  prepared.set(client, names);
  const name = names.get(text) ?? `graphql_${next_name++}`;
  names.delete(text);
  names.set(text, name);
  return { name };
}

/** Removes the statements that were not sent for the longest time. Outside a transaction, where it does no harm that one was never prepared. */
function forgetOldest(client: pg.PoolClient): void {
  const names = prepared.get(client) ?? new Map<string, string>();
  for (const [text, name] of [...names].slice(0, Math.max(0, names.size - most_prepared))) {
    names.delete(text);
    const { connection } = client as unknown as { connection: { parsedStatements: Record<string, string> } };
    delete connection.parsedStatements[name];
    send(client, { text: `deallocate ${name}` }).catch(() => {});
  }
}
