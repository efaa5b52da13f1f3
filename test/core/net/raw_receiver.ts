import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import t from 'tap';

export interface RawReceiver {
  port: number;
  url: string;
  /** Every request whole, as it came. */
  requests: string[];
  /** The names that TLS was asked for. */
  names: unknown[];
  connections: number;
  open: number;
}

export interface RawOptions {
  tls?: TlsOptions;
  /** The host of the URL; it must lead to 127.0.0.1. */
  host?: string;
}

/** A receiver that says whatever it likes, byte for byte. It is told of each request, counted over all connections from 0. */
export async function startRawReceiver(
  answer: (socket: Socket, nth: number) => unknown,
  { tls, host = '127.0.0.1' }: RawOptions = {},
): Promise<RawReceiver> {
  const receiver: RawReceiver = { port: 0, url: '', requests: [], names: [], connections: 0, open: 0 };
  const converse = (socket: Socket) => {
    let rest = '';
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      rest += chunk.toString('latin1');
      for (let end = endOfRequest(rest); end > 0 && rest.length >= end; end = endOfRequest(rest)) {
        const nth = receiver.requests.push(Buffer.from(rest.slice(0, end), 'latin1').toString('utf8')) - 1;
        rest = rest.slice(end);
        answer(socket, nth);
      }
    });
  };
  const server = tls ? createTlsServer(tls) : createServer();
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    receiver.connections += 1;
    receiver.open += 1;
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => {
      receiver.open -= 1;
      sockets.delete(socket);
    });
    if (!tls) converse(socket);
  });
  server.on('tlsClientError', () => {});
  server.on('secureConnection', (socket: Socket & { servername: unknown }) => {
    receiver.names.push(socket.servername);
    converse(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  receiver.port = (server.address() as AddressInfo).port;
  receiver.url = `${tls ? 'https' : 'http'}://${host}:${receiver.port}/hook`;
  return receiver;
}

/** The length of the first request in a text, 0 while its headers are not all there. */
function endOfRequest(text: string): number {
  const head = text.indexOf('\r\n\r\n');
  if (head < 0) return 0;
  return head + 4 + Number(/^content-length: (\d+)\r$/im.exec(text.slice(0, head + 2))?.[1] ?? 0);
}

/** A whole response of HTTP/1.1 whose connection may be kept. */
export const response = (status: number, body = '', headers = ''): string =>
  `HTTP/1.1 ${status} Whatever\r\n${headers}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
