/** A mailbox with a Sent folder, over IMAP on loopback: hoodiecrow, which comes without types. Its IDLE outlasts a client that was killed. */

import { createRequire } from 'node:module';
import type { AddressInfo, Socket } from 'node:net';
import type tls from 'node:tls';
import t from 'tap';
import type { Json } from '../../harness.ts';
import { identity, password, username } from '../mailbox.ts';

interface Server {
  listen(port: number, then: () => void): void;
  close(then: () => void): void;
  server: tls.Server;
  setMaxListeners(most: number): void;
  getMailbox(path: string): { messages: { raw: string }[] };
  appendMessage(path: string, flags: string[], date: Date, raw: Buffer): void;
}
const hoodiecrow: (options: Json) => Server = createRequire(import.meta.url)('hoodiecrow-imap');

export interface SentFolder {
  imap: Json;
  /** Puts an email into it, as servers do that keep copies themselves; or into another folder. */
  put(text: string, folder?: string): void;
  copies(): string[];
}

export async function startSentFolder(): Promise<SentFolder> {
  const server = hoodiecrow({
    ...{
      secureConnection: true,
      credentials: identity,
      plugins: ['ID', 'SASL-IR', 'AUTH-PLAIN', 'SPECIAL-USE'],
    },
    users: { [username]: { password } },
    storage: { INBOX: {}, '': { separator: '/', folders: { Sent: { 'special-use': '\\Sent' } } } },
  });
  // It listens once for each connection.
  server.setMaxListeners(0);
  const sockets = new Set<Socket>();
  server.server.on('connection', (socket) => sockets.add(socket));
  await new Promise<void>((resolve) => server.listen(0, resolve));
  t.teardown(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise<void>((resolve) => server.close(resolve));
  });
  const { port } = server.server.address() as AddressInfo;
  return {
    imap: { host: 'localhost', security: 'tls', username, password, port },
    put: (text, folder = 'Sent') => server.appendMessage(folder, [], new Date(), Buffer.from(text)),
    copies: () => server.getMailbox('Sent').messages.map(({ raw }) => `${raw}`),
  };
}
