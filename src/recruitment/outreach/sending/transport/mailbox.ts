/** What is looked for and put into the mailbox of an inbox, over IMAP. */
import type { ImapFlow, ListResponse } from 'imapflow';
import type { Store } from '../../../../core/postgres/transaction.ts';
import type { Services } from '../../../../core/resource/services.ts';
import { openStoredImap } from '../../../inboxes/try_stored.ts';

export interface Mailbox {
  /** Whether an email with this Message-ID is in the Sent folder. */
  hasCopy(rfc_message_id: string): Promise<boolean>;
  /** Whether something that came in since then names the Message-ID: a bounce or a reply, which the email was sent for. */
  isNamedSince(rfc_message_id: string, since: Date): Promise<boolean>;
  /** Puts an email in the Sent folder. @returns false where there is none */
  addCopy(content: Buffer, sent_at: Date): Promise<boolean>;
  close(): void;
}

/** @throws whatever keeps the mailbox from being read */
export async function openMailbox(
  lane: { organization_id: string; inbox_id: string },
  context: { store: Store; services: Services },
): Promise<Mailbox> {
  const { client } = await openStoredImap(lane, context);
  const sent = sentFolder(await client.list());
  return {
    hasCopy: async (id) => sent !== undefined && (await finds(client, sent, { header: { 'message-id': `<${id}>` } })),
    isNamedSince: (id, since) => finds(client, 'INBOX', { since, text: id }),
    async addCopy(content, sent_at) {
      if (sent === undefined) return false;
      await client.append(sent, content, ['\\Seen'], sent_at);
      return true;
    },
    close: () => client.close(),
  };
}

const usual_names =
  /^(INBOX[./])?(sent|sent items|sent mail|sent messages|gesendet|gesendete (objekte|elemente)|envoyés|enviados|inviata|enviadas)$/i;

/** By RFC 6154, else by its name. */
const sentFolder = (folders: ListResponse[]): string | undefined =>
  (folders.find(({ specialUse }) => specialUse === '\\Sent') ?? folders.find(({ path }) => usual_names.test(path)))
    ?.path;

async function finds(client: ImapFlow, folder: string, query: Parameters<ImapFlow['search']>[0]): Promise<boolean> {
  const lock = await client.getMailboxLock(folder, { readOnly: true });
  try {
    const found = await client.search(query, { uid: true });
    return found !== false && found !== undefined && found.length > 0;
  } finally {
    lock.release();
  }
}
