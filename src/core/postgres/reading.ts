import sql from 'sql-template-tag';
import { run, send } from './database.ts';
import { translateError } from './errors.ts';
import { type Opened, opening, type Store, Tx, together } from './transaction.ts';

/** How long Postgres lets the transaction be without a statement, should this process hang: longer than any reader is waited for. */
const idle_ms = 60_000;

export interface ReadingOptions {
  /** The tenant, whose rows alone are seen. */
  organization_id: string;
  request_id: string | null;
  /** `transaction`: all statements show one state of the database. `statement`: each shows what was committed when it began. */
  one_state_for?: 'transaction' | 'statement';
}

/**
 * A transaction that only reads, and lasts for as long as somebody takes what `work` yields. Each statement in it is limited by the
 * `statement_timeout` of its connection; how long it waits for who takes, is for the caller to limit.
 * @throws Problem service_unavailable when Postgres is away; whatever `work` throws
 */
export async function* reading<T>(
  { database }: Pick<Store, 'database'>,
  { one_state_for = 'statement', ...options }: ReadingOptions,
  work: (tx: Tx) => AsyncIterable<T>,
): AsyncGenerator<T> {
  const client = await database.connect().catch(rethrow);
  const isolation = one_state_for === 'transaction' ? 'repeatable read' : 'read committed';
  let broken: Error | undefined;
  try {
    const [, , opened] = await together([
      send(client, { text: `begin isolation level ${isolation}, read only` }),
      run(client, sql`select set_config('idle_in_transaction_session_timeout', ${String(idle_ms)}, true)`),
      run<Opened>(client, opening(options)),
    ]);
    yield* work(new Tx(client, options, opened[0] as Opened));
  } catch (error) {
    rethrow(error);
  } finally {
    // Nothing was written, so nothing is lost; a cursor that is still open ends with it.
    await send(client, { text: 'rollback' }).catch((failure: Error) => {
      broken = failure;
    });
    client.release(broken);
  }
}

function rethrow(error: unknown): never {
  throw translateError(error);
}
