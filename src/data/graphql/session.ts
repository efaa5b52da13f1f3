/** The transaction in which a request reads: one connection, one state of the database, and no statement that outlives the request. */
import type pg from 'pg';
import sql from 'sql-template-tag';
import { type Database, run, send } from '../../core/postgres/database.ts';
import { together } from '../../core/postgres/transaction.ts';
import { statement_ms } from './limits.ts';
import { QueryProblem } from './problem.ts';
import type { PgClient, Statement, WithPgClient } from './schema/pg_client.ts';

/** SQLSTATE of a statement that took too long. */
const canceled = '57014';

export interface Reader {
  /** Whose rows it sees; null sees none. */
  organization_id: string | null;
  sees_personal: boolean;
  /** When its request is given up, by `performance.now()`. */
  deadline: number;
}

/** Opens its connection with the first statement, and another transaction after one that failed. To be closed. */
export class Session {
  readonly #database: Database;
  readonly #reader: Reader;
  #client: pg.PoolClient | undefined;
  #is_open = false;
  #last: Promise<unknown> = Promise.resolve();

  constructor(database: Database, reader: Reader) {
    this.#database = database;
    this.#reader = reader;
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
    const opening = this.#is_open ? [] : this.#open(this.#client);
    this.#is_open = true;
    const timeout = run(
      this.#client,
      sql`select set_config('statement_timeout', ${String(Math.min(statement_ms, left))}, true)`,
    );
    const result = send<object>(this.#client, {
      text,
      values,
      ...(arrayMode ? { rowMode: 'array' } : {}),
    } as pg.QueryConfig);
    try {
      return (await together([...opening, timeout, result] as const).then(() => result)) as pg.QueryResult;
    } catch (error) {
      await this.#rollBack();
      const { code } = error as { code?: string };
      if (code === canceled && left < statement_ms) throw new QueryProblem('deadline_exceeded');
      throw error;
    }
  }

  /** Who reads is said by settings that count for the service's own login alone; the role may read the views and nothing else. */
  #open(client: pg.PoolClient): Promise<unknown>[] {
    const { organization_id, sees_personal } = this.#reader;
    return [
      send(client, { text: 'begin isolation level repeatable read, read only' }),
      run(
        client,
        sql`select set_config('rail.organization_id', ${organization_id ?? ''}, true),
          set_config('rail.sees_personal', ${sees_personal ? 'on' : 'off'}, true),
          set_config('random_page_cost', '1.1', true), set_config('jit', 'off', true),
          set_config('timezone', 'UTC', true), set_config('search_path', 'pg_catalog', true),
          set_config('role', 'rail_data_reader', true)`,
      ),
    ];
  }

  /** What was read holds no locks that anybody waits for, so that a statement that failed costs no more than another `begin`. */
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
    this.#release();
  }
}
