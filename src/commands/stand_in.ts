/** Answers on a port until the process serves there: probes learn that it lives, and everybody that it is not ready. */
import { once } from 'node:events';
import { responseHeaders } from '../core/http/response_headers.ts';
import { newId } from '../core/values/id.ts';
import { Problem } from '../core/values/problem.ts';

/** An import of `node:http` would have Node load its `fetch`. */
const { createServer } = process.getBuiltinModule('node:http');

/** The most connections: probes and retries need few. */
const most_connections = 100;

/**
 * Listens at once, while Postgres may be away.
 * @returns what ends it, for who is to listen there
 * @throws Error of `listen`, as where the port is taken
 */
export async function standIn(port: number, host: string, https: boolean): Promise<() => Promise<void>> {
  const server = createServer(({ url = '', headers }, response) => {
    const is_probe = url.split('?')[0] === '/healthz';
    const [status, body] = is_probe ? [200, { status: 'ok' }] : [not_ready.status, not_ready.envelope()];
    response.writeHead(status, {
      ...responseHeaders({ presented: null, headers, id: newId('req') }, https),
      ...(is_probe ? {} : not_ready.details.headers),
      'Content-Type': 'application/json; charset=utf-8',
      Connection: 'close',
    });
    response.end(JSON.stringify(body));
  });
  server.maxConnections = most_connections;
  server.listen(port, host);
  await once(server, 'listening');
  return async () => {
    if (!server.listening) return;
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  };
}

const not_ready = new Problem(
  'service_unavailable',
  'The service is starting: it waits for Postgres. Retry with the same idempotency key.',
  { headers: { 'Retry-After': '5' } },
);
