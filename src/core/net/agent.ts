/**
 * The connections that webhooks are sent over: opened only to addresses that were checked a moment before. TLS still asks for
 * and verifies the name in the URL.
 */
import type { LookupAddress } from 'node:dns';
import type { LookupFunction, Socket } from 'node:net';
import { Agent, buildConnector, Client, type Dispatcher } from 'undici';
import { type AddressPolicy, AddressRefused, checkEndpointUrl, isPublicAddress } from './address.ts';
import { type ResolveOptions, resolvePublicAddresses } from './resolve.ts';

/** From the name's resolution to the end of the TLS handshake. Below the 10 s of a delivery, since undici ignores `signal` until then. */
const CONNECT_TIMEOUT_MS = 8_000;
/** The time for which one of several addresses is tried. Node's 250 ms gives up on receivers that are merely far away. */
const ADDRESS_ATTEMPT_TIMEOUT_MS = 2_000;
/** The number of a name's addresses that are tried, of each family: a name may have thousands. */
const MOST_ADDRESSES = 4;
/** Idle connections are closed after this, or after what the receiver's Keep-Alive header says, up to the maximum. */
const IDLE_TIMEOUT_MS = 4_000;
const MAX_IDLE_TIMEOUT_MS = 10_000;
/** An idle connection that is older is replaced: the name is resolved and checked again. A busy one takes one more request. */
const MAX_AGE_MS = 60_000;
/** Idle connections beyond this are closed, the least recently used first: each is a file descriptor. */
const MAX_CONNECTIONS = 1_000;

export type PinnedAgentOptions = AddressPolicy &
  Pick<ResolveOptions, 'nameServers'> & {
    connectTimeoutMs?: number;
    maxAgeMs?: number;
    maxConnections?: number;
  };

/** By least recent use. */
type Connections = Map<Client, { socket: Socket; openedAt: number }>;

/**
 * An undici agent that connects to public addresses only (to any, with `allowPrivate`), over HTTP/1.1, with one connection per origin or
 * connection key (see `connectionOrigin`). Requests fail with AddressRefused or NameNotResolved; it follows no redirect unless asked to.
 *
 * A client whose connection closes or cannot be opened is dropped, so that what it holds is what was sent to in the last seconds. undici
 * does that only for `connections: 1`: a pool with a limit is never dropped once a connection to it has failed (8.12.4).
 */
export function createPinnedAgent(options: PinnedAgentOptions): Agent {
  const connections: Connections = new Map();
  return new Agent({
    connections: 1,
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: IDLE_TIMEOUT_MS,
    keepAliveMaxTimeout: MAX_IDLE_TIMEOUT_MS,
    connect: createConnector(options),
    factory: (origin, clientOptions) => createClient(origin, clientOptions, connections, options),
  });
}

function createClient(
  origin: string | URL,
  clientOptions: Client.Options,
  connections: Connections,
  { maxAgeMs = MAX_AGE_MS, maxConnections = MAX_CONNECTIONS }: PinnedAgentOptions,
) {
  const connect = clientOptions.connect as buildConnector.connector;
  const client = new Client(new URL(origin).origin, {
    ...clientOptions,
    connect: (target, callback) => {
      connect(target, (...[error, socket]) => {
        if (error !== null) return callback(error, null);
        connections.set(client, { socket, openedAt: performance.now() });
        closeIdle(connections, maxConnections);
        callback(null, socket);
      });
    },
  });
  client.on('disconnect', () => connections.delete(client));
  return client.compose((dispatch) => (request, handler) => {
    const connection = connections.get(client);
    if (!connection) return dispatch(request, handler);
    connections.delete(client);
    connections.set(client, connection);
    if (performance.now() - connection.openedAt <= maxAgeMs) {
      return dispatch(
        request,
        unlessStale(handler, () => dispatch(request, handler)),
      );
    }
    if (!isIdle(client)) return dispatch({ ...request, reset: true }, handler);
    // The request then waits until undici has noticed and connected anew.
    connection.socket.destroy();
    return dispatch(request, handler);
  });
}

/**
 * A receiver may close a kept connection just as a request leaves for it, which then reaches nobody: before a byte of a response has come,
 * that request is sent again, once, on a new connection. A receiver that did read it knows it by its ids ("at least once").
 */
function unlessStale(handler: Dispatcher.DispatchHandler, sendAgain: () => unknown): Dispatcher.DispatchHandler {
  let isAnswered = false;
  return {
    onRequestStart: (...given) => handler.onRequestStart?.(...given),
    onResponseStarted() {
      isAnswered = true;
      handler.onResponseStarted?.();
    },
    onResponseStart: (...given) => handler.onResponseStart?.(...given),
    onResponseData: (...given) => handler.onResponseData?.(...given),
    onResponseEnd: (...given) => handler.onResponseEnd?.(...given),
    onResponseError(controller, error) {
      if (!isAnswered && isClosedByPeer(error)) sendAgain();
      else handler.onResponseError?.(controller, error);
    },
  };
}

function isClosedByPeer({ code, message }: NodeJS.ErrnoException): boolean {
  return code === 'ECONNRESET' || code === 'EPIPE' || (code === 'UND_ERR_SOCKET' && message === 'other side closed');
}

function closeIdle(connections: Connections, maxConnections: number): void {
  for (const [client, { socket }] of connections) {
    if (connections.size <= maxConnections) return;
    if (!isIdle(client)) continue;
    socket.destroy();
    connections.delete(client);
  }
}

function isIdle(client: Client): boolean {
  return client.stats.size === 0;
}

/** Node calls `lookup` only for names, so that literals, and with them scheme, name and port, are checked before. */
function createConnector(options: PinnedAgentOptions): buildConnector.connector {
  const connect = buildConnector({
    lookup: createLookup(options),
    timeout: options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS,
    allowH2: false,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: ADDRESS_ATTEMPT_TIMEOUT_MS,
  });
  return (target, callback) => {
    const check = checkEndpointUrl(`${target.protocol}//${target.host}/`, options);
    if (!check.ok) {
      process.nextTick(callback, new AddressRefused(check.reason), null);
      return;
    }
    connect(target, (...[error, socket]) => {
      if (error !== null) return callback(error, null);
      const objection = options.allowPrivate ? undefined : checkPeer(socket, options);
      if (objection === undefined) return callback(null, socket);
      socket.destroy();
      callback(objection, null);
    });
  };
}

function createLookup(options: PinnedAgentOptions): LookupFunction {
  return (hostname, { all }, callback) => {
    resolvePublicAddresses(hostname, options).then(
      (addresses) => {
        const [first] = addresses;
        if (all) callback(null, firstOfEachFamily(addresses));
        else callback(null, first?.address ?? '', first?.family);
      },
      (error) => callback(error, ''),
    );
  };
}

function firstOfEachFamily(addresses: LookupAddress[]): LookupAddress[] {
  return [4, 6].flatMap((family) => addresses.filter((each) => each.family === family).slice(0, MOST_ADDRESSES));
}

/** Before anything of the request is written. */
function checkPeer({ remoteAddress }: Socket, { trustedAddresses = [] }: PinnedAgentOptions): Error | undefined {
  if (remoteAddress === undefined) return new Error('The connection was closed as soon as it was opened.');
  return isPublicAddress(remoteAddress) || trustedAddresses.includes(remoteAddress) ? undefined : new AddressRefused();
}
