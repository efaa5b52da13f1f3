/** What becomes of an email that reading failed at: it is set aside at once, and read again later. */
import type { ImapFlow } from 'imapflow';
import { type Tx, transaction } from '../../core/postgres/transaction.ts';
import { TookTooLong } from '../../core/threads/timed_thread.ts';
import { NotTheReader, no_validity, type Place } from './cursor.ts';
import { type FolderReading, isLost, type Moves, readUid, type StoredMail, unlessLost, validityOf } from './folder.ts';
import { findAnswered } from './match.ts';
import { mailRead } from './metrics.ts';
import { type Answering, judge, type Reader } from './read_mail.ts';
import { claimSetAside, forget, keepSetAside, type SetAside, takeDue } from './set_aside.ts';
import { keepUnread, takeBackUnread } from './unread.ts';

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
  const judged = mail && (await judgeAtLeast(mail, error, reader));
  const write = (keep: boolean) =>
    transaction(reader.context.store, { ...reader.inbox, request_id: null }, async (tx) => {
      const message_id = keep && judged ? await keepAnswer(tx, judged, reader) : undefined;
      await keepSetAside(tx, place, message_id);
      await advance(tx);
    });
  await write(true).catch((failure) => {
    if (failure instanceof NotTheReader) throw failure;
    return write(false);
  });
  mailRead('set_aside');
  const { inbox_id, folder, uid_validity, uid } = place;
  const named = { inbox_id, folder, uid_validity, uid, message_id: judged?.message.message_id ?? null };
  reader.context.log.error(
    { ...named, ...faultOf(error) },
    'an email could not be read; it is set aside and read again later',
  );
}

async function keepAnswer(tx: Tx, judged: Answering, { context: { services } }: Reader): Promise<string | undefined> {
  if (judged.judgement.kind === 'own') return undefined;
  const match = await findAnswered(tx, services.vault, judged);
  return match && keepUnread(tx, services.vault, { ...judged, ...match });
}

/** Its judgement; what it says, where judging is what failed; undefined where it cannot be read either. */
async function judgeAtLeast(mail: StoredMail, error: unknown, reader: Reader): Promise<Answering | undefined> {
  if (!(error instanceof TookTooLong)) {
    const judged = await judge(mail, reader).catch(() => undefined);
    const text = judged && (judged.judgement.text || judged.message.text);
    if (judged) return { ...judged, judgement: { ...judged.judgement, text: text as string } };
  }
  return judge(mail, reader, false).catch(() => undefined);
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
  const { due, last } = await takeDue(context.store, inbox);
  for (const { message_id: _, ...place } of last) {
    mailRead('skipped');
    context.log.error({ inbox_id: inbox.inbox_id, ...place }, 'an email could not be read and is left out');
  }
  // Without UIDVALIDITY the UID may be another email's by now.
  const again = due.filter((each) => each.uid_validity !== no_validity);
  for (const [folder, mails = []] of Object.entries(Object.groupBy(again, (each) => each.folder))) {
    const uid_validity = await validityIn(client, folder);
    for (const one of mails)
      await reading.inTurn(() => readAgain(client, reading, reader, one, one.uid_validity === uid_validity));
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
      return message_id === null || takeBackUnread(tx, message_id);
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
