/** Limits connections: their number, the time to send a request, and their end. */
import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import { publicNetworkOf } from '../net/address.ts';

export interface ConnectionLimits {
  /** The most connections of a process. */
  connections: number;
  /** The time in which the headers of a request must arrive, from the opening of a connection. */
  headers_ms: number;
  /** The time in which a whole request must arrive. */
  request_ms: number;
  /** The time for which a connection may be without any traffic while a request is answered. */
  silence_ms: number;
}

export const default_connection_limits: ConnectionLimits = {
  connections: 10_000,
  headers_ms: 15_000,
  request_ms: 60_000,
  silence_ms: 120_000,
};

/** The time to read an answer after which its connection is closed. */
const linger_ms = 1_000;
/** The bytes of a refused request that are still read, so that the answer is not lost where the client sends all before it reads. */
const most_rest_bytes = 2 * 1024 * 1024;
/** A body of which no more than this is missing is read to its end, and its connection kept. */
const small_rest_bytes = 64 * 1024;
/** The least interval between logs of refused connections. */
const log_ms = 10_000;

/** Returns how many connections fit into the descriptors that a process may open, where the rest is left to Postgres, webhooks and files. */
export function connectionsThatFit(): number {
  const { userLimits } = process.report.getReport() as { userLimits?: { open_files?: { soft: number | string } } };
  const descriptors = Number(userLimits?.open_files?.soft);
  return Number.isNaN(descriptors) ? 10_000 : Math.min(10_000, Math.floor(descriptors * 0.6));
}

/** Closes what comes beyond the limit; a quarter of it may come from one public address, for behind a private one stands a proxy. */
export function limitConnections(server: Server, most: number, log: Logger): void {
  server.maxConnections = most;
  const open = new Map<string, number>();
  const refused = atMostEvery(log_ms, (reason: string) => log.warn({ most }, reason));
  server.on('drop', () => refused('connections were closed: the process has as many as it may hold (MAX_CONNECTIONS)'));
  server.on('connection', (socket) => {
    const network = publicNetworkOf(socket.remoteAddress ?? '');
    if (network === undefined) return;
    const count = (open.get(network) ?? 0) + 1;
    if (count > Math.ceil(most / 4)) {
      refused(
        'connections were closed: their address has a quarter of those that the process may hold (MAX_CONNECTIONS)',
      );
      return void socket.destroy();
    }
    open.set(network, count);
    socket.once('close', () => {
      const left = (open.get(network) as number) - 1;
      if (left === 0) open.delete(network);
      else open.set(network, left);
    });
  });
}

function atMostEvery(ms: number, work: (reason: string) => void): (reason: string) => void {
  let last = -ms;
  return (reason) => {
    if (performance.now() - last < ms) return;
    last = performance.now();
    work(reason);
  };
}

const closing = new WeakSet<Socket>();

/** Ends a connection once what was written is sent, whatever the other side does. At most a second later it is gone. */
export function closeSoon(socket: Socket, last = ''): void {
  if (closing.has(socket)) return;
  closing.add(socket);
  socket.end(last);
  const timer = setTimeout(() => socket.destroy(), linger_ms);
  socket.once('close', () => clearTimeout(timer));
}

/** Returns whether a connection is about to be closed: data that still arrives on it is ignored. */
export const isClosing = (socket: Socket): boolean => closing.has(socket);

/**
 * Answers a request before its body was read: where much of it is still to come, or nobody knows how much, the connection goes with the
 * answer. @returns whether it does
 */
export function closeUnlessRead(request: IncomingMessage): boolean {
  const { complete, headers, socket } = request;
  const length = headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : Infinity;
  if (complete || length <= small_rest_bytes) return false;
  // Node destroys the socket as soon as the answer is written, and with it an answer that the client has not read yet.
  socket.destroySoon = () => closeSoon(socket);
  let rest = 0;
  request.on('data', (chunk: Buffer) => {
    rest += chunk.length;
    if (rest > most_rest_bytes) request.pause();
  });
  return true;
}
