import { createServer } from 'node:http';
import { preciseClock } from './load.ts';

/**
 * A receiver of webhooks in a process of its own. It answers 200 at once and notes when each request was there as a whole.
 * `POST /reset` forgets and sets the clock anew; `GET /received` answers `{event id: [ms since 1970, …]}`.
 */
let now = preciseClock();
let received: Record<string, number[]> = {};

const server = createServer(async (request, response) => {
  for await (const _ of request);
  const at = now();
  const event_id = request.headers['rail-event-id'] as string | undefined;
  if (event_id !== undefined) {
    received[event_id] ??= [];
    received[event_id].push(at);
  }
  if (request.url === '/reset') {
    received = {};
    now = preciseClock();
  }
  response.end(request.url === '/received' ? JSON.stringify(received) : 'ok');
});
server.listen(Number(process.env.PORT), process.env.HOST);

process.once('SIGTERM', () => {
  server.close();
  server.closeAllConnections();
});
