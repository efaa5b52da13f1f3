import sql from 'sql-template-tag';
import { type Asked, lend } from '../pool/lending.ts';
import { run, send } from './database.ts';
import { translateError } from './errors.ts';
import { type Opened, one_state, opening, type Store, Tx, together } from './transaction.ts';

/** The time for which Postgres keeps the transaction without a statement, should this process hang: longer than any reader is waited for. */
const idle_ms = 60_000;

export interface ReadingOptions {
  /** The tenant, whose rows alone are seen. */
  organization_id: string;
  /** A partner, whose rows alone it reads. */
  partner_id?: string | undefined;
  request_id: string | null;
  asked?: Asked | undefined;
  /** The last statements may write. */
  is_feed?: boolean | undefined;
}

/**
 * A transaction that reads one state of the database, and lasts for as long as somebody takes what `work` yields. It commits before the
 * last of that is given out. Each statement in it is limited by the
 * `statement_timeout` of its connection; how long it waits for who takes, is for the caller to limit.
 * @throws an error of Postgres where it is away; whatever `work` throws
 */
export async function* reading<T>(
  { database }: Pick<Store, 'database'>,
  { is_feed = false, ...options }: ReadingOptions,
  work: (tx: Tx) => AsyncIterable<T>,
): AsyncGenerator<T> {
  const { client, giveBack } = await lend(database, options.asked).catch(rethrow);
  const mode = is_feed ? one_state : `${one_state}, read only`;
  let broken: Error | undefined;
  let is_open = true;
  let last: { value: T } | undefined;
  try {
    const [, , opened] = await together([
      send(client, { text: `begin ${mode}` }),
      run(client, sql`select set_config('idle_in_transaction_session_timeout', ${String(idle_ms)}, true)`),
      run<Opened>(client, opening(options)),
    ]);
    const tx = new Tx(client, options);
    tx.opened(opened[0] as Opened);
    for await (const value of work(tx)) {
      if (last) yield last.value;
      last = { value };
    }
    await send(client, { text: 'commit' });
    is_open = false;
  } catch (error) {
    rethrow(error);
  } finally {
    if (is_open) {
      await send(client, { text: 'rollback' }).catch((failure: Error) => {
        broken = failure;
      });
    }
    await giveBack(broken);
  }
  if (last) yield last.value;
}

function rethrow(error: unknown): never {
  throw translateError(error);
}
