import type { Socket } from 'node:net';
import type pg from 'pg';
import type { Sql } from 'sql-template-tag';
import { runUnprepared } from './database.ts';

/** The size of a batch of a result: twice as much is in memory, because the next batch is on its way while one is used. */
const batch_bytes = 256 * 1024;
const first_rows = 200;
const most_rows = 2_000;

/**
 * Reads a statement through a cursor of the server, in batches of about the same size in bytes, however long its rows are. All batches show
 * the state of the database in which the first was read.
 * @param name of the cursor: another one for each in a transaction
 */
export async function* batchesOf<Row extends object>(
  client: pg.PoolClient,
  { text, values }: Sql,
  name: string,
): AsyncGenerator<Row[]> {
  const socket = (client as unknown as pg.Client).connection.stream as Socket;
  let limit = first_rows;
  const fetch = () => quietly(runUnprepared<Row>(client, `fetch ${limit} from ${name}`));
  const declared = quietly(runUnprepared(client, `declare ${name} no scroll cursor for ${text}`, values));
  let before = socket.bytesRead;
  let next = fetch();
  await declared;
  for (;;) {
    const rows = await next;
    const is_last = rows.length < limit;
    const read = socket.bytesRead - before;
    if (!is_last) {
      limit = Math.min(most_rows, Math.max(1, Math.round((batch_bytes * rows.length) / Math.max(read, 1))));
      before = socket.bytesRead;
      next = fetch();
    }
    if (rows.length > 0) yield rows;
    if (is_last) break;
  }
  await runUnprepared(client, `close ${name}`);
}

/** Its failure is heard where it is awaited, which may be never: whoever takes the rows may stop before. */
function quietly<Result>(promise: Promise<Result>): Promise<Result> {
  promise.catch(() => {});
  return promise;
}
