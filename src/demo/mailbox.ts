/** The mail server of the demo: an SMTP and an IMAP server for one mailbox, whose emails its people answer. Nothing leaves this machine. */
import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import type { Server } from 'node:tls';
import { createAuthority } from './authority.ts';
import { listenNear } from './listen.ts';
import { answerTo, refusalOf } from './people.ts';

export const demo_mailbox = { email: 'grace@acme-rail-demo.com', username: 'grace', password: 'demo-password' };

/** hoodiecrow-imap comes without types. */
interface ImapServer {
  server: Server;
  /** Called with each connection. */
  connectionHandlers: ((connection: ImapConnection) => void)[];
  getMailbox(path: string): object;
  appendMessage(mailbox: object, flags: string[], date: string | false, raw: string): void;
  close(then: () => void): void;
}
interface ImapConnection {
  socket: Socket;
  /** Takes what is sent next. While a client waits (IDLE), only its end stops the server's timer of half an hour. */
  inputHandler: ((line: string) => void) | false | null;
}
type ImapOptions = Record<string, unknown>;

export interface DemoMailbox {
  smtp_port: number;
  imap_port: number;
  /** The issuer of the certificates of both servers. */
  authority: string;
  close(): Promise<void>;
}

/** The time after which people answer. */
const answer_after_ms = 1_500;

export async function startDemoMailbox(ports: { smtp: number; imap: number }): Promise<DemoMailbox> {
  const authority = createAuthority();
  const identity = authority.issue({ name: 'localhost' });
  const imap = startImap(identity);
  const connections = new Set<ImapConnection>();
  imap.connectionHandlers.push((connection) => {
    connections.add(connection);
    connection.socket.once('close', () => {
      if (connection.inputHandler) connection.inputHandler('DONE');
      connections.delete(connection);
    });
  });
  const imap_port = await listenNear(imap.server, ports.imap);
  const answers = new Set<NodeJS.Timeout>();
  const deliver = (raw: string) => imap.appendMessage(imap.getMailbox('INBOX'), [], false, raw);
  const answer = async (mail: Buffer) => {
    const raw = await answerTo(mail, demo_mailbox.email);
    if (raw !== undefined) deliver(raw);
  };
  const smtp = await startSmtp(identity, (mail) => {
    const timer = setTimeout(() => {
      answers.delete(timer);
      // The listener may have stopped meanwhile.
      answer(mail).catch(() => {});
    }, answer_after_ms);
    answers.add(timer);
  });
  const smtp_port = await listenNear(smtp.server, ports.smtp);
  return {
    ...{ smtp_port, imap_port, authority: authority.cert },
    async close() {
      for (const timer of answers) clearTimeout(timer);
      for (const { socket } of connections) socket.destroy();
      await Promise.all([
        new Promise<void>((resolve) => smtp.close(() => resolve())),
        new Promise<void>((resolve) => imap.close(() => resolve())),
      ]);
    },
  };
}

const isLogin = (user?: string | null, given?: string | null): boolean =>
  user === demo_mailbox.username && given === demo_mailbox.password;

async function startSmtp(identity: { key: string; cert: string }, take: (mail: Buffer) => void) {
  const { SMTPServer } = await import('smtp-server');
  const server = new SMTPServer({
    ...{ secure: true, ...identity, authMethods: ['PLAIN', 'LOGIN'], disableReverseLookup: true },
    onAuth: ({ username, password }, _session, callback) =>
      callback(isLogin(username, password) ? null : new Error('Invalid login'), { user: username }),
    onRcptTo({ address }, _session, callback) {
      const [, code, text] = /^(\d+) (.*)$/.exec(refusalOf(address) ?? '') ?? [];
      callback(text === undefined ? null : Object.assign(new Error(text), { responseCode: Number(code) }));
    },
    async onData(stream, _session, callback) {
      const chunks: Buffer[] = [];
      for await (const chunk of stream) chunks.push(chunk);
      callback();
      take(Buffer.concat(chunks));
    },
  });
  server.on('error', () => {});
  return server;
}

function startImap(identity: { key: string; cert: string }): ImapServer {
  const hoodiecrow = createRequire(import.meta.url)('hoodiecrow-imap') as (options: ImapOptions) => ImapServer;
  const uidvalidity = Math.floor(Date.now() / 1_000);
  return hoodiecrow({
    ...{
      secureConnection: true,
      credentials: identity,
      plugins: ['ID', 'IDLE', 'SASL-IR', 'AUTH-PLAIN', 'SPECIAL-USE'],
    },
    users: { [demo_mailbox.username]: { password: demo_mailbox.password } },
    storage: { INBOX: { uidvalidity }, '': { folders: { Sent: { 'special-use': '\\Sent', uidvalidity } } } },
  });
}
