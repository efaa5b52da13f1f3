import { createServer } from 'node:http';
import { preciseClock } from './load.ts';

/**
 * A receiver of webhooks in a process of its own. It answers 200 at once and notes when each request was there as a whole.
 * `POST /reset` forgets and sets the clock anew; `GET /received` answers `{event id: [ms since 1970, …]}`, and
 * `GET /count` how many webhooks came since the start.
 */
let now = preciseClock();
let received: Record<string, number[]> = {};
let count = 0;

const server = createServer(async (request, response) => {
  for await (const _ of request);
  const at = now();
  const event_id = request.headers['rail-event-id'] as string | undefined;
  if (event_id !== undefined) {
    count++;
    received[event_id] ??= [];
    received[event_id].push(at);
  }
  if (request.url === '/reset') {
    received = {};
    now = preciseClock();
  }
  response.end(answers[request.url ?? '']?.() ?? 'ok');
});
const answers: Record<string, () => string> = {
  '/received': () => JSON.stringify(received),
  '/count': () => String(count),
};
server.listen(Number(process.env.PORT), process.env.HOST);

process.once('SIGTERM', () => {
  server.close();
  server.closeAllConnections();
});
