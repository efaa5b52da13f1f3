/**
 * An email that fails, or takes longer than 2 s, is set aside at once, logged by UID and Message-ID, and counted; the rest is read on. So is one at which a
 * connection or a worker was lost three times: a mail counts as tried before anything of it is looked at.
 *
 * Where it answers one of ours it is kept as a question of confidence 0 that needs review, follow-ups wait as after an automatic reply, and nothing is emitted. It
 * is read again after a minute, then ever later, over some five days; what was kept is then replaced, unless a person has corrected it. After ten tries it
 * is left out: logged, counted (`rail_mails_read_total{verdict="skipped"}`), and what was kept stays.
 */
import type { ImapFlow } from 'imapflow';
import sql from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import { type Tx, transaction } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { TookTooLong } from '../../core/threads/timed_thread.ts';
import { refreshThread } from '../sequences/thread.ts';
import {
  claimDue,
  claimSetAside,
  forget,
  keepSetAside,
  NotTheReader,
  no_validity,
  type Place,
  type SetAside,
} from './cursor.ts';
import { type FolderReading, isLost, type Moves, readUid, type StoredMail, unlessLost, validityOf } from './folder.ts';
import { type Answer, isKnown, keepInbound, lockedProspect } from './inbound.ts';
import { mailRead } from './metrics.ts';
import { type Answering, classify, findAnswered, type Reader } from './read_mail.ts';
import { pausedUntil, pauseFollowUps } from './reply.ts';

/**
 * Sets an email aside. Where it answers one of ours it is kept, for a person to look at.
 * @param mail undefined: it could not even be fetched
 * @param advance moves the cursor past it
 * @throws NotTheReader, or an Error where Postgres is away
 */
export async function setAside(
  place: Place,
  mail: StoredMail | undefined,
  error: unknown,
  advance: (tx: Tx) => Promise<void>,
  reader: Reader,
): Promise<void> {
  const classified = mail && (await classifyAtLeast(mail, error, reader));
  const write = (keep: boolean) =>
    transaction(reader.context.store, { ...reader.inbox, request_id: null }, async (tx) => {
      const message_id = keep && classified ? await keepAnswer(tx, classified, reader) : undefined;
      await keepSetAside(tx, place, message_id);
      await advance(tx);
    });
  await write(true).catch((failure) => {
    if (failure instanceof NotTheReader) throw failure;
    return write(false);
  });
  mailRead('set_aside');
  const { inbox_id, folder, uid_validity, uid } = place;
  const named = { inbox_id, folder, uid_validity, uid, message_id: classified?.message.message_id ?? null };
  reader.context.log.error(
    { ...named, ...faultOf(error) },
    'an email could not be read; it is set aside and read again later',
  );
}

async function keepAnswer(
  tx: Tx,
  classified: Answering,
  { context: { services } }: Reader,
): Promise<string | undefined> {
  if (classified.classification.kind === 'own') return undefined;
  const match = await findAnswered(tx, services.vault, classified);
  return match && keepUnread(tx, services.vault, { ...classified, ...match });
}

/** Classifies it; reads it alone, where classifying is what failed; undefined where it cannot be read either. */
async function classifyAtLeast(mail: StoredMail, error: unknown, reader: Reader): Promise<Answering | undefined> {
  if (!(error instanceof TookTooLong)) {
    const classified = await classify(mail, reader).catch(() => undefined);
    const text = classified && (classified.classification.text || classified.message.text);
    if (classified) return { ...classified, classification: { ...classified.classification, text: text as string } };
  }
  return classify(mail, reader, false).catch(() => undefined);
}

/** An error's text may hold a part of the email, which is not logged: what is logged is where it was thrown. */
function faultOf(error: unknown): object {
  const { code, name, stack = '' } = error as { code?: unknown; name?: string; stack?: string };
  const at = stack.split('\n').filter((line) => /^\s+at /.test(line));
  return { code, name, at: at.slice(0, 5).map((line) => line.trim()) };
}

/** Reads again what was set aside and is due. @throws whatever ends the connection; NotTheReader */
export async function readSetAside(client: ImapFlow, reading: FolderReading, reader: Reader): Promise<void> {
  const { inbox, context } = reader;
  const { due, last } = await claimDue(context.store, inbox);
  for (const { message_id: _, ...place } of last) {
    mailRead('skipped');
    context.log.error({ inbox_id: inbox.inbox_id, ...place }, 'an email could not be read and is left out');
  }
  // Without UIDVALIDITY the UID may be another email's by now.
  const again = due.filter((each) => each.uid_validity !== no_validity);
  for (const [folder, mails = []] of Object.entries(Object.groupBy(again, (each) => each.folder))) {
    const uid_validity = await validityIn(client, folder);
    for (const one of mails)
      await reading.limited(() => readAgain(client, reading, reader, one, one.uid_validity === uid_validity));
  }
}

/** Undefined: the folder is there no more, or was renamed. */
async function validityIn(client: ImapFlow, folder: string): Promise<string | undefined> {
  const opened = await unlessLost(client, client.mailboxOpen(folder, { readOnly: true }));
  return opened && validityOf(opened);
}

async function readAgain(
  client: ImapFlow,
  reading: FolderReading,
  { inbox, context }: Reader,
  { message_id, ...at }: SetAside,
  is_there: boolean,
): Promise<void> {
  const place = { inbox_id: inbox.inbox_id, worker_id: reading.worker_id, ...at };
  const moves: Moves = {
    async begin(tx) {
      await claimSetAside(tx, place);
      return message_id === null || removeUnread(tx, message_id);
    },
    advance: async () => {},
  };
  try {
    const is_found = is_there && (await readUid(client, reading, at.uid, moves));
    if (is_found) return;
    // It was deleted, or numbered anew: then the folder was read anew as well.
    await transaction(context.store, { ...inbox, request_id: null }, (tx) => forget(tx, place));
    mailRead('skipped');
  } catch (error) {
    if (error instanceof NotTheReader || isLost(client)) throw error;
    context.log.warn({ inbox_id: inbox.inbox_id, ...at, ...faultOf(error) }, 'an email could not be read again');
  }
}

/**
 * Keeps an email as a question of confidence 0 that needs review. Follow-ups wait as after an automatic reply: it may refuse them. No event.
 * @returns its id; undefined where it is known, or the prospect was erased
 */
async function keepUnread(tx: Tx, vault: Vault, answer: Answer): Promise<string | undefined> {
  const prospect = await lockedProspect(tx, answer.answered);
  if (!prospect || (await isKnown(tx, vault, answer))) return undefined;
  await pauseFollowUps(tx, prospect.id, pausedUntil(null, tx.now));
  const unsure = { reply_kind: 'question', confidence: 0, needs_review: true } as const;
  return keepInbound(tx, vault, answer, { purpose: 'reply', ...unsure, has_text: true });
}

/**
 * Removes what was kept of an email, which is read again now.
 * @returns false: a person has looked at it meanwhile, and it stays as it is
 */
async function removeUnread(tx: Tx, message_id: string): Promise<boolean> {
  const kept = await tx.maybe<{ thread_id: string; needs_review: boolean }>(sql`
    select t.thread_id, t.needs_review from recruitment.message t
    where ${tenant(tx)} and t.id = ${message_id}
    for update`);
  if (!kept) return true;
  if (!kept.needs_review) return false;
  await tx.all(sql`delete from recruitment.message t where ${tenant(tx)} and t.id = ${message_id}`);
  await refreshThread(tx, kept.thread_id, 1);
  return true;
}
