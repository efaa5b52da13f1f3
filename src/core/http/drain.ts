/** Lets proxies leave out a server that stops, so that no request is lost on a connection that goes. */
import type { Server as HttpServer } from 'node:http';
import { Server } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const draining = new WeakSet<HttpServer>();
const poll_ms = 50;

/** Returns whether the server is about to stop: it is not ready any more, and closes each connection with an answer. */
export const isDraining = (server: HttpServer): boolean => draining.has(server);

/**
 * Goes on taking requests for a while, then waits until the connections are gone. An idle one is left to its proxy, which may be about to send a
 * request on it.
 * @param listen_ms longer than proxies take to see that it is not ready, and than they keep idle connections
 * @param most_ms for the rest
 */
export async function drain(server: HttpServer, listen_ms: number, most_ms: number): Promise<void> {
  draining.add(server);
  await sleep(listen_ms);
  // That of an HTTP server would close idle connections.
  Server.prototype.close.call(server);
  const late = performance.now() + most_ms;
  while ((await countConnections(server)) > 0 && performance.now() < late) await sleep(poll_ms);
  server.closeAllConnections();
}

const countConnections = (server: HttpServer): Promise<number> =>
  new Promise((resolve, reject) => {
    server.getConnections((error, count) => (error ? reject(error) : resolve(count)));
  });
