/** Cancels what a connection runs, by the protocol's own request: it needs no login, and no connection of those that Postgres has. */
import pg from 'pg';

/** A statement that begins just after one request to cancel is cancelled by the next. */
const again_ms = 200;
/** How long Postgres may take to hear of it. */
const heard_ms = 2_000;

/** What pg knows of a connection. */
interface Connected {
  host: string;
  port: number;
  ssl: boolean | object;
  processID: number | null;
  secretKey: number | Buffer | null;
}

/**
 * Cancels whatever the connection runs, from now on until it is told to stop.
 * @returns what stops it, once no request to cancel is on its way any more that could hit who has the connection next
 */
export function cancelling(client: pg.PoolClient): () => Promise<void> {
  const connected = client as unknown as Connected;
  let asked = cancel(connected);
  const timer = setInterval(() => {
    asked = asked.then(() => cancel(connected));
  }, again_ms);
  return async () => {
    clearInterval(timer);
    await asked;
  };
}

/** Postgres closes the connection when it has passed the request on. */
function cancel({ host, port, ssl, processID, secretKey }: Connected): Promise<void> {
  if (processID === null || secretKey === null) return Promise.resolve();
  const connection = new pg.Connection({ ssl } as object) as pg.Connection & CancelConnection;
  const done = Promise.withResolvers<void>();
  const timer = setTimeout(() => connection.stream.destroy(), heard_ms);
  const send = () => connection.cancel(processID, secretKey);
  connection.on('connect', () => (ssl ? connection.requestSsl() : send()));
  connection.on('sslconnect', send);
  connection.on('error', () => connection.stream.destroy());
  connection.on('end', () => {
    clearTimeout(timer);
    done.resolve();
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
