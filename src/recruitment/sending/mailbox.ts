/** What is looked for and put into the mailbox of an inbox, over IMAP. */
import type { ImapFlow, ListResponse } from 'imapflow';
import type { Store } from '../../core/postgres/transaction.ts';
import type { Services } from '../../core/resource/services.ts';
import { id_header } from '../composing/mail.ts';
import { messageIds } from '../composing/message_ids.ts';
import { openStoredImap } from '../inboxes/try_stored.ts';

export interface Mailbox {
  /** The email in the Sent folder that was given this Message-ID, and the one that it has there: null where that cannot be read. */
  copyOf(rfc_message_id: string): Promise<{ message_id: string | null } | undefined>;
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
    copyOf: async (id) => (sent === undefined ? undefined : findCopy(client, sent, id)),
    isNamedSince: (id, since) =>
      within(client, 'INBOX', async () => (await find(client, { since, text: id })).length > 0),
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

/** Where the Message-ID of an email is found again, of which the provider has written another one: what Exchange keeps it in, and our own field. */
const fields = ['message-id', id_header, 'x-microsoft-original-message-id'];

const findCopy = (client: ImapFlow, folder: string, id: string): Promise<{ message_id: string | null } | undefined> =>
  within(client, folder, async () => {
    for (const field of fields) {
      const uid = (await find(client, { header: { [field]: id } })).at(-1);
      if (uid === undefined) continue;
      if (field === 'message-id') return { message_id: id };
      const found = await client.fetchOne(String(uid), { headers: ['message-id'] }, { uid: true });
      const headers = found ? found.headers?.toString() : undefined;
      const [, named = ''] = /^message-id:\s{0,4}(<[^>\s]{1,990}>)/im.exec(headers ?? '') ?? [];
      return { message_id: messageIds(named)[0]?.slice(1, -1) ?? null };
    }
    return undefined;
  });

async function within<T>(client: ImapFlow, folder: string, work: () => Promise<T>): Promise<T> {
  const lock = await client.getMailboxLock(folder, { readOnly: true });
  try {
    return await work();
  } finally {
    lock.release();
  }
}

const find = async (client: ImapFlow, query: Parameters<ImapFlow['search']>[0]): Promise<number[]> =>
  (await client.search(query, { uid: true })) || [];
