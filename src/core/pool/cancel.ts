/** Cancels what a connection runs, by the protocol's own request: it needs no login, and no connection of those that Postgres has. */
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';

/** A statement that begins just after one request to cancel is cancelled by the next. */
const again_ms = 200;
/** The time that Postgres has to receive it. */
const heard_ms = 2_000;

/** The address of a connection, from pg. */
interface Connected {
  host: string;
  port: number;
  ssl: boolean | object;
  processID: number | null;
  secretKey: number | Buffer | null;
}

/**
 * Cancels whatever the connection runs, from now on until it is stopped.
 * @returns what stops it, once no request to cancel is on its way any more: false where one may yet hit who has the connection next
 */
export function cancelling(client: pg.PoolClient): () => Promise<boolean> {
  const stopping = new AbortController();
  const asking = cancelUntil(stopping.signal, client as unknown as Connected);
  return () => {
    stopping.abort();
    return asking;
  };
}

/** One request after the other. @returns whether Postgres heard every one that was sent */
async function cancelUntil(signal: AbortSignal, connected: Connected): Promise<boolean> {
  let were_heard = true;
  do {
    were_heard = (await cancel(connected)) && were_heard;
    await sleep(again_ms, undefined, { signal }).catch(() => {});
  } while (!signal.aborted);
  return were_heard;
}

/** Postgres closes the connection when it has passed the request on. @returns false where it was sent, and may not have been heard yet */
function cancel({ host, port, ssl, processID, secretKey }: Connected): Promise<boolean> {
  if (processID === null || secretKey === null) return Promise.resolve(true);
  const connection = new pg.Connection({ ssl } as object) as pg.Connection & CancelConnection;
  const done = Promise.withResolvers<boolean>();
  let is_sent = false;
  let is_given_up = false;
  const giveUp = () => {
    is_given_up = true;
    connection.stream.destroy();
  };
  const timer = setTimeout(giveUp, heard_ms);
  const send = () => {
    is_sent = true;
    connection.cancel(processID, secretKey);
  };
  connection.on('connect', () => (ssl ? connection.requestSsl() : send()));
  connection.on('sslconnect', send);
  connection.on('error', giveUp);
  connection.on('end', () => {
    clearTimeout(timer);
    done.resolve(!(is_sent && is_given_up));
  });
  if (host.startsWith('/')) connection.connect(`${host}/.s.PGSQL.${port}`);
  else connection.connect(port, host);
  return done.promise;
}

interface CancelConnection {
  connect(port: number | string, host?: string): void;
  requestSsl(): void;
  cancel(process_id: number, secret_key: number | Buffer): void;
}
