/**
 * Step 5 of an email: one that may have been sent is looked for in its mailbox, by its Message-ID, in the Sent folder and in what came in since. It is
 * `sent` where it is found, else `unknown`, and looked for again after 5 minutes, 1, 6 and 24 hours.
 *
 * The copy in the Sent folder is made by a job of its own, half a minute after the email, for a day at most: servers that make it themselves have by
 * then. The Sent folder is the one with `\Sent` (RFC 6154), else the one with a usual name. Where the provider wrote another Message-ID, the email is
 * found by `X-Rail-Message` or `X-Microsoft-Original-Message-ID`, and the other id is remembered (`other_message_ids`).
 */
import type { ImapFlow, ListResponse } from 'imapflow';
import sql from 'sql-template-tag';
import type { WorkerContext } from '../../core/jobs/worker_context.ts';
import { counter } from '../../core/metrics/registry.ts';
import { type Store, type Tx, transaction } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import type { Services } from '../../core/resource/services.ts';
import { id_header, step_header, step_line } from '../composing/mail.ts';
import { messageIds, rowIdOf } from '../composing/message_ids.ts';
import type { InboxKey } from '../inboxes/inbox.ts';
import { openStoredImap } from '../inboxes/stored_login.ts';
import { isToCopy } from '../sequences/message.ts';
import { composed, draftsOf } from './letter.ts';
import { recordEnds } from './record_sent.ts';

const look_ups = counter(
  'rail_outreach_look_ups_total',
  {
    help: 'Searches in the mailbox for emails that may have been sent: found, missing, or unreadable (the mailbox could not be searched).',
    row: 'Outreach',
    title: 'Searches for emails that may have been sent',
  },
  ['outcome'],
);

interface Doubtful {
  id: string;
  rfc_message_id: string;
  claimed_at: string;
}

/**
 * Finds out about an email that may have been sent: "look for the Message-ID in the Sent folder and in bounces; found → sent; else unknown, which
 * counts as sent, is never resent, and tells message.sent only once proof turns it sent".
 */
export async function lookUp(context: WorkerContext, queue: InboxKey, message_id: string): Promise<void> {
  const within = <T>(work: (tx: Tx) => Promise<T>) =>
    transaction(context.store, { organization_id: queue.organization_id, request_id: null }, work);
  const message = await within((tx) =>
    tx.maybe<Doubtful>(
      sql`select t.id, t.rfc_message_id, t.claimed_at from recruitment.message t where ${tenant(tx)} and t.id = ${message_id}`,
    ),
  );
  if (!message) return;
  const proof = await withMailbox(context, queue, (mailbox) => proofOf(mailbox, message));
  look_ups.inc({ outcome: proof === undefined ? 'unreadable' : proof.is_sent ? 'found' : 'missing' });
  await within(async (tx) => {
    await recordEnds(tx, [{ message_id, as: proof?.is_sent ? 'sent' : 'unknown' }]);
    await rememberId(tx, message, proof?.copy);
  });
}

type Copy = Awaited<ReturnType<Mailbox['copyOf']>>;

async function proofOf(
  mailbox: Mailbox,
  { rfc_message_id, claimed_at }: Doubtful,
): Promise<{ is_sent: boolean; copy: Copy }> {
  const copy = await mailbox.copyOf(rfc_message_id);
  const is_sent = copy !== undefined || (await mailbox.isNamedSince(rfc_message_id, new Date(claimed_at)));
  return { is_sent, copy };
}

/** Keeps the Message-ID that the provider has written instead: answers and bounces name that. */
async function rememberId(tx: Tx, { id, rfc_message_id }: Doubtful, copy: Copy): Promise<void> {
  const other = copy?.message_id ?? rfc_message_id;
  if (other === rfc_message_id) return;
  tx.atCommit(sql`
    update recruitment.message t set other_message_ids = array_append(t.other_message_ids, ${other})
    where ${tenant(tx)} and t.id = ${id} and not ${other} = any(t.other_message_ids)`);
}

/** Opens a mailbox for a while. One that cannot be read is none: the sweep looks again, and reading says when that lasts. */
export async function withMailbox<T>(
  context: WorkerContext,
  queue: InboxKey,
  work: (mailbox: Mailbox) => Promise<T>,
): Promise<T | undefined> {
  let mailbox: Mailbox | undefined;
  try {
    mailbox = await openMailbox(queue, context);
    return await work(mailbox);
  } catch (error) {
    context.log.debug(
      { inbox_id: queue.inbox_id, code: (error as { code?: string }).code },
      'a mailbox could not be searched',
    );
    return undefined;
  } finally {
    mailbox?.close();
  }
}

/** The waits between look-ups, after the first: the proof may come late. */
const waits_s = [3_600, 6 * 3_600, 24 * 3_600];
const most_copies = 100;

interface Copied extends Doubtful {
  sent_at: string;
}

/** Looks for the emails of an inbox that may have been sent, and adds the copies that its Sent folder lacks. */
export async function readMailbox(context: WorkerContext, queue: InboxKey): Promise<void> {
  const { store, services } = context;
  const within = <T>(work: (tx: Tx) => Promise<T>) =>
    transaction(store, { organization_id: queue.organization_id, request_id: null }, work);
  const { doubtful, to_copy } = await within(async (tx) => ({
    doubtful: await tx.all<Doubtful>(sql`
      select t.id, t.rfc_message_id, t.claimed_at from recruitment.message t
      where ${tenant(tx)} and t.inbox_id = ${queue.inbox_id} and t.look_up_at <= ${tx.now}::timestamptz and t.state = 'unknown' limit ${most_copies}`),
    to_copy: await tx.all<Copied>(sql`
      select t.id, t.rfc_message_id, t.claimed_at, t.sent_at from recruitment.message t
      where ${tenant(tx)} and t.inbox_id = ${queue.inbox_id} and t.direction = 'outbound' and t.copied_at is null and ${isToCopy(tx.now)}
      order by t.sent_at limit ${most_copies}`),
  }));
  await withMailbox(context, queue, async (mailbox) => {
    for (const message of doubtful) {
      const { is_sent, copy } = await proofOf(mailbox, message);
      look_ups.inc({ outcome: is_sent ? 'found' : 'missing' });
      await within<unknown>(async (tx) => {
        if (!is_sent) return lookLater(tx, message.id);
        await recordEnds(tx, [{ message_id: message.id, as: 'sent' }]);
        return rememberId(tx, message, copy);
      });
    }
    for (const message of to_copy) {
      const copy = await mailbox.copyOf(message.rfc_message_id);
      if (!copy) {
        const [draft] = await within((tx) => draftsOf(tx, services.vault, services.base_url, [message.id]));
        const is_added = draft && (await mailbox.addCopy((await composed(draft)).content, new Date(message.sent_at)));
        if (is_added) await within((tx) => noteAdded(tx, queue));
      }
      await within(async (tx) => {
        await rememberId(tx, message, copy);
        await tx.all(
          sql`update recruitment.message t set copied_at = ${tx.now}::timestamptz where ${tenant(tx)} and t.id = ${message.id}`,
        );
      });
    }
  });
}

const noteAdded = (tx: Tx, { inbox_id }: InboxKey): Promise<object[]> =>
  tx.all(
    sql`update recruitment.inbox t set adds_copies = true where ${tenant(tx)} and t.id = ${inbox_id} and not t.adds_copies`,
  );

const lookLater = (tx: Tx, message_id: string): Promise<object[]> =>
  tx.all(sql`
    update recruitment.message t set
      look_ups = t.look_ups + 1,
      look_up_at = ${tx.now}::timestamptz + make_interval(secs => (${waits_s}::integer[])[t.look_ups + 1])
    where ${tenant(tx)} and t.id = ${message_id}`);

/** A mailbox, as far as emails are looked for in it and copies put into it, over IMAP. */
interface Mailbox {
  /** The email in the Sent folder that was given this Message-ID, and the one that it has there: null where that cannot be read. */
  copyOf(rfc_message_id: string): Promise<{ message_id: string | null } | undefined>;
  /** Returns whether a mail that came in since then names the Message-ID: a bounce or a reply, which the email was sent for. */
  isNamedSince(rfc_message_id: string, since: Date): Promise<boolean>;
  /** Puts an email in the Sent folder. @returns false where there is none */
  addCopy(content: Buffer, sent_at: Date): Promise<boolean>;
  /** Our emails in the Sent folder since a day. Undefined: it has no such folder. */
  sentSince(since: Date): Promise<FoundCopy[] | undefined>;
  close(): void;
}

/** An email of ours as it lies in the Sent folder. */
export interface FoundCopy {
  /** The id of its row. */
  message_id: string;
  /** Null: it is of no campaign. */
  step_key: string | null;
  sent_at: Date;
}

/** @throws whatever keeps the mailbox from being read */
export async function openMailbox(queue: InboxKey, context: { store: Store; services: Services }): Promise<Mailbox> {
  const { client } = await openStoredImap(queue, context);
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
    sentSince: async (since) =>
      sent === undefined ? undefined : within(client, sent, () => copiesSince(client, since)),
    close: () => client.close(),
  };
}

const usual_names =
  /^(INBOX[./])?(sent|sent items|sent mail|sent messages|gesendet|gesendete (objekte|elemente)|envoyés|enviados|inviata|enviadas)$/i;

/** Finds the Sent folder by RFC 6154, else by its name. */
const sentFolder = (folders: ListResponse[]): string | undefined =>
  (folders.find(({ specialUse }) => specialUse === '\\Sent') ?? folders.find(({ path }) => usual_names.test(path)))
    ?.path;

/** The fields in which the Message-ID of an email is found again, of which the provider has written another one: what Exchange keeps it in, and our own field. */
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

async function copiesSince(client: ImapFlow, since: Date): Promise<FoundCopy[]> {
  const uids = await find(client, { since });
  const found: FoundCopy[] = [];
  for (let at = 0; at < uids.length; at += most_copies) {
    const range = uids.slice(at, at + most_copies).join(',');
    const query = { headers: ['message-id', id_header, step_header], internalDate: true };
    for await (const { headers, internalDate } of client.fetch(range, query, { uid: true })) {
      const text = headers?.toString().replaceAll(/\r\n[ \t]+/g, ' ') ?? '';
      const message_id = rowIdOf(text);
      if (message_id === null) continue;
      const [, step_key = null] = step_line.exec(text) ?? [];
      found.push({ message_id, step_key, sent_at: new Date(internalDate ?? since) });
    }
  }
  return found;
}

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
