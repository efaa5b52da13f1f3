/** A mailbox with a Sent folder, over IMAP on loopback. Its IDLE outlasts a client that was killed. */

import type { Json } from '../../harness.ts';
import { hoodiecrow, identity, listenImap, password, username } from '../mailbox.ts';

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
  const port = await listenImap(server);
  return {
    imap: { host: 'localhost', security: 'tls', username, password, port },
    put: (text, folder = 'Sent') => server.appendMessage(folder, [], new Date(), Buffer.from(text)),
    copies: () => server.getMailbox('Sent').messages.map(({ raw }) => `${raw}`),
  };
}
