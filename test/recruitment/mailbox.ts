import { once } from 'node:events';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo, Socket } from 'node:net';
import tls from 'node:tls';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import t from 'tap';
import { createAuthority } from '../../src/demo/authority.ts';
import type { Json } from '../harness.ts';

/** hoodiecrow-imap comes without types. Its IDLE keeps a timer for half an hour after a connection has ended. */
export const hoodiecrow: (options: Json) => ImapServer = createRequire(import.meta.url)('hoodiecrow-imap');

interface ImapServer {
  listen(port: number, then: () => void): void;
  setMaxListeners(most: number): void;
  close(then: () => void): void;
  server: tls.Server;
  getMailbox(path: string): { messages: { raw: string }[] };
  appendMessage(path: string, flags: string[], date: Date, raw: Buffer): void;
}

const authority = createAuthority('Rail test mail authority');
export const identity = authority.issue({ name: 'localhost' });
tls.setDefaultCACertificates([...tls.getCACertificates('default'), authority.cert]);

/** The certificate that clients in other processes must trust. */
export const authority_certificate = authority.cert;
export const username = 'grace';
export const password = 'app-password';
export const access_token = 'access-1';

export interface Mailbox {
  smtp: Json;
  imap: Json;
  /** Logins that the servers took: the mechanism and the user. */
  logins: string[];
}

/** A mail provider on loopback: SMTP and IMAP over TLS, for one user by password or access token. */
export async function startMailbox({
  user = username,
  ...options
}: SMTPServerOptions & { user?: string } = {}): Promise<Mailbox> {
  const logins: string[] = [];
  const smtp = await startSmtp(user, logins, options);
  const imap = await startImap(user);
  const server = { host: 'localhost', security: 'tls', username: user, password };
  return { smtp: { ...server, port: smtp }, imap: { ...server, port: imap }, logins };
}

async function startSmtp(user: string, logins: string[], options: SMTPServerOptions): Promise<number> {
  const server = new SMTPServer({
    ...{ secure: true, ...identity, authMethods: ['PLAIN', 'LOGIN', 'XOAUTH2'], disableReverseLookup: true },
    onAuth({ method, username: name, password: given, accessToken }, _session, callback) {
      const is_right = name === user && (given === password || accessToken === access_token);
      if (is_right) logins.push(`${method} ${user}`);
      callback(is_right ? null : new Error('Invalid login'), { user });
    },
    ...options,
  });
  server.on('error', () => {});
  const listening = server.listen(0, '127.0.0.1');
  if (!listening.listening) await once(listening, 'listening');
  t.teardown(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return (listening.address() as AddressInfo).port;
}

async function startImap(user: string): Promise<number> {
  const server = hoodiecrow({
    ...{ secureConnection: true, credentials: identity, plugins: ['ID', 'SASL-IR', 'AUTH-PLAIN', 'XOAUTH2'] },
    users: { [user]: { password, xoauth2: { accessToken: access_token, sessionTimeout: 3_600_000 } } },
    storage: { INBOX: {} },
  });
  return listenImap(server);
}

/** Listens on a port of its own, until the file's tests are done. */
export async function listenImap(server: ImapServer): Promise<number> {
  // It listens once for each connection.
  server.setMaxListeners(0);
  // Workers that read the mailbox hold connections to it.
  const sockets = new Set<Socket>();
  for (const event of ['connection', 'secureConnection'])
    server.server.on(event, (socket: Socket) => sockets.add(socket));
  await new Promise<void>((resolve) => server.listen(0, resolve));
  t.teardown(async () => {
    // First those of TLS, which came last: what one writes without the socket below it is an error that nobody hears.
    for (const socket of [...sockets].reverse()) socket.destroy();
    await new Promise<void>((resolve) => server.close(resolve));
  });
  return (server.server.address() as AddressInfo).port;
}

export interface TokenServer {
  url: string;
  /** The forms that were posted. */
  received: URLSearchParams[];
  /** The answer from now on. */
  answer: { status: number; body: Json };
}

/** An authorization server on loopback: RFC 6749, section 6. */
export async function startTokenServer(): Promise<TokenServer> {
  const tokens: TokenServer = {
    ...{ url: '', received: [] },
    answer: { status: 200, body: { access_token, token_type: 'Bearer', expires_in: 3_599 } },
  };
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    tokens.received.push(new URLSearchParams(Buffer.concat(chunks).toString('utf8')));
    response.writeHead(tokens.answer.status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(tokens.answer.body));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => new Promise<void>((resolve) => server.close(() => resolve())));
  tokens.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`;
  return tokens;
}
