/** Reads what is new in the folder that a connection has selected. */

import type { FetchMessageObject, ImapFlow, MailboxObject, SearchObject } from 'imapflow';
import { type Store, type Tx, transaction } from '../../core/postgres/transaction.ts';
import { databaseTime } from '../../core/values/clock.ts';
import type { InboxKey } from '../inboxes/inbox.ts';
import {
  advanceTo,
  beginAt,
  beginMail,
  type Cursor,
  NotTheReader,
  no_validity,
  type Place,
  uidsSetAside,
} from './cursor.ts';
import { mailRead } from './metrics.ts';

/** A mail as it lies in the mailbox. */
export interface StoredMail {
  source: Buffer;
  /** False where only its beginning was fetched. */
  whole: boolean;
  arrived_at: Date;
}

/** The parts of the transaction that reads a mail. */
export interface Moves {
  /** Comes first. False: the mail is not to be read any more. */
  begin?(tx: Tx): Promise<boolean>;
  /** Moves the cursor past the mail. */
  advance(tx: Tx): Promise<void>;
}

/** Reads and applies a mail. `incomplete`: more of it must be fetched first. */
type ApplyMail = (mail: StoredMail, moves: Moves) => Promise<'applied' | 'incomplete'>;

export interface FolderReading {
  cursors: Map<string, Cursor>;
  store: Store;
  inbox: InboxKey & { created_at: string };
  worker_id: string;
  apply: ApplyMail;
  /** Sets a mail aside that failed, and moves the cursor past it. Undefined: it could not even be fetched. */
  setAside(place: Place, mail: StoredMail | undefined, error: unknown, advance: Moves['advance']): Promise<void>;
  /** Bounds how many folders of this worker hold mails in memory at a time. */
  limited<T>(work: () => Promise<T>): Promise<T>;
}

const most_mails = 16;
/** Bytes of a mail that answers none of ours: no more is fetched. */
const first_bytes = 256 << 10;
const most_bytes = 4 << 20;
const few_bytes = 64 << 10;
/** Mails of so many days before are read when a folder is begun: what was read before is known by its Message-ID. */
const days_before = 2;
/** From this many times on that a connection or a worker was lost at a mail, less of it is fetched; then it is set aside. */
const losses = { less: 1, aside: 3 };

/** Reads all that is new. @returns whether there was anything @throws whatever ends the connection; NotTheReader */
export async function readFolder(client: ImapFlow, reading: FolderReading): Promise<boolean> {
  const { path: folder } = selected(client);
  const cursor = await openCursor(client, reading, folder, validityOf(selected(client)));
  const found = await newUids(client, cursor.last_uid);
  const passed = cursor.uid_validity === no_validity ? await uidsSetAside(reading.store, reading.inbox, folder) : [];
  const uids = found.filter((uid) => !passed.includes(uid));
  const is_new = uids.length > 0;
  while (uids.length > 0) {
    const chunk = uids.splice(0, lossesAt(cursor, uids[0]) > 0 ? 1 : most_mails);
    await reading.limited(() => readMails(client, reading, { folder, cursor, uids: chunk }));
  }
  return is_new;
}

function selected(client: ImapFlow) {
  if (client.mailbox === false) throw new Error('No folder is selected.');
  return client.mailbox;
}

/** "If it is missing, the server does not support unique identifiers" (RFC 3501, 6.3.1): its numbers are those of one session. */
export const validityOf = ({ uidValidity }: Pick<MailboxObject, 'uidValidity'>): string =>
  String((uidValidity as bigint | undefined) ?? no_validity);

async function newUids(client: ImapFlow, last_uid: number): Promise<number[]> {
  const found = await search(client, { uid: `${last_uid + 1}:*` });
  // `n:*` names the last mail even where its number is lower.
  return found.filter((uid) => uid > last_uid).sort((one, other) => one - other);
}

/** A folder that is new, or whose mails were numbered anew, is read from some days before on. */
async function openCursor(
  client: ImapFlow,
  reading: FolderReading,
  folder: string,
  uid_validity: string,
): Promise<Cursor> {
  const { store, inbox, worker_id } = reading;
  const cursor = reading.cursors.get(folder);
  if (cursor?.uid_validity === uid_validity) return cursor;
  const since = new Date(new Date(cursor?.updated_at ?? inbox.created_at).getTime() - days_before * 86_400_000);
  const uid = (await firstUidSince(client, since)) - 1;
  const place = { inbox_id: inbox.inbox_id, worker_id, folder, uid_validity, uid };
  const opening = { organization_id: inbox.organization_id, request_id: null };
  const begun = await transaction(store, opening, (tx) => beginAt(tx, place));
  reading.cursors.set(folder, begun);
  return begun;
}

async function firstUidSince(client: ImapFlow, since: Date): Promise<number> {
  const found = await search(client, { since });
  if (found.length > 0) return found.reduce((least, uid) => Math.min(least, uid));
  const { uidNext } = selected(client) as { uidNext?: number };
  if (uidNext !== undefined) return uidNext;
  // A server may leave UIDNEXT out (RFC 3501, 6.3.1).
  return (await search(client, { all: true })).reduce((most, uid) => Math.max(most, uid), 0) + 1;
}

/** @throws Error where the server does not say what there is: to take it for nothing would lose mail */
async function search(client: ImapFlow, query: SearchObject): Promise<number[]> {
  const found = await client.search(query, { uid: true });
  if (found) return found;
  // Servers refuse to search where there is nothing.
  if (selected(client).exists === 0) return [];
  throw new Error('The search failed.');
}

interface Chunk {
  folder: string;
  cursor: Cursor;
  uids: number[];
}

async function readMails(client: ImapFlow, reading: FolderReading, { folder, cursor, uids }: Chunk): Promise<void> {
  const lost = lossesAt(cursor, uids[0]);
  const bytes = lost < losses.less ? first_bytes : few_bytes;
  const { store, inbox, worker_id } = reading;
  const { uid_validity } = cursor;
  const placeOf = (uid: number): Place => ({ inbox_id: inbox.inbox_id, worker_id, folder, uid_validity, uid });
  const first = uids[0] as number;
  await transaction(store, { ...inbox, request_id: null }, (tx) => beginMail(tx, placeOf(first)));
  Object.assign(cursor, { begun_uid: first, tries: lost + 1 });
  const fetched = lost < losses.aside ? await fetchMails(client, uids, bytes) : 'lost';
  for (const [index, uid] of uids.entries()) {
    const next = uids[index + 1] ?? null;
    await readOne(client, reading, placeOf(uid), next, fetched);
    const last = { last_uid: uid, updated_at: new Date(databaseTime()).toISOString() };
    Object.assign(cursor, last, { begun_uid: next, tries: next === null ? 0 : 1 });
  }
}

/** Counts how often a mail was begun, and not finished. */
const lossesAt = ({ begun_uid, tries }: Cursor, uid: number | undefined): number => (begun_uid === uid ? tries : 0);

async function fetchMails(client: ImapFlow, uids: number[], bytes: number): Promise<Map<number, FetchMessageObject>> {
  const part = { uid: true, internalDate: true, size: true, source: { maxLength: bytes } };
  const mails = await client.fetchAll(uids.join(','), part, { uid: true });
  const fetched = new Map<number, FetchMessageObject>();
  // Unrequested data of a mail, such as changed flags, comes as a mail too.
  for (const mail of mails) fetched.set(mail.uid, { ...fetched.get(mail.uid), ...mail });
  if (uids.length === 1) return fetched;
  // Servers give mails empty where several are asked for, and whole where each is asked for alone.
  for (const { uid } of [...fetched.values()].filter(isEmpty)) {
    const alone = await client.fetchOne(String(uid), part, { uid: true });
    if (alone) fetched.set(uid, alone);
  }
  return fetched;
}

const isEmpty = ({ source, size }: FetchMessageObject): boolean => (source?.length ?? 0) === 0 && size !== 0;

/** Whatever a mail fails with, but a lost connection, sets it aside. */
async function readOne(
  client: ImapFlow,
  reading: FolderReading,
  place: Place,
  next: number | null,
  fetched: Map<number, FetchMessageObject> | 'lost',
): Promise<void> {
  const { inbox, store } = reading;
  const advance = (tx: Tx) => advanceTo(tx, place, next);
  if (fetched === 'lost') return reading.setAside(place, undefined, new Error('It could not be fetched.'), advance);
  const found = fetched.get(place.uid);
  if (!found) {
    mailRead('skipped');
    return transaction(store, { ...inbox, request_id: null }, advance);
  }
  const mail = storedMail(found);
  try {
    await applyMail(client, reading, { uid: place.uid, size: found.size }, mail, { advance });
  } catch (error) {
    if (error instanceof NotTheReader || isLost(client)) throw error;
    await reading.setAside(place, mail, error, advance);
  }
}

export const isLost = (client: ImapFlow): boolean => !client.usable;

/** Settles with undefined where a server refuses. @throws Error where the connection is lost */
export const unlessLost = <T>(client: ImapFlow, answer: Promise<T>): Promise<T | undefined> =>
  answer.catch((error: unknown) => {
    if (isLost(client)) throw error;
    return undefined;
  });

async function applyMail(
  client: ImapFlow,
  { apply }: FolderReading,
  { uid, size = 0 }: { uid: number; size: number | undefined },
  mail: StoredMail,
  moves: Moves,
): Promise<void> {
  if (mail.source.length === 0 && size > 0)
    throw Object.assign(new Error('The server gave an empty mail.'), { code: 'empty_mail' });
  if ((await apply(mail, moves)) === 'applied') return;
  const more = await client.fetchOne(String(uid), { source: { maxLength: most_bytes } }, { uid: true });
  const source = (more || mail).source ?? mail.source;
  await apply({ ...mail, source: source.subarray(0, most_bytes), whole: true }, moves);
}

/** Reads one mail of the selected folder. @returns whether it is there */
export async function readUid(client: ImapFlow, reading: FolderReading, uid: number, moves: Moves): Promise<boolean> {
  const found = (await fetchMails(client, [uid], most_bytes)).get(uid);
  if (found) await applyMail(client, reading, { uid, size: found.size }, { ...storedMail(found), whole: true }, moves);
  return found !== undefined;
}

/** Makes a stored mail of what was fetched. Without its size, one is whole that is shorter than the least that is asked for. */
function storedMail({ source = Buffer.alloc(0), size, internalDate }: FetchMessageObject): StoredMail {
  const is_short = size === undefined ? source.length < few_bytes : source.length >= size;
  const whole = is_short || source.length >= most_bytes;
  return { source: source.subarray(0, most_bytes), whole, arrived_at: arrivalOf(internalDate) };
}

/** A server may give no date, one that is none, or one to come: the mail has just arrived. */
function arrivalOf(internal_date: Date | string | undefined): Date {
  const now = new Date(databaseTime());
  const given = new Date(internal_date ?? now);
  return given.getTime() > 0 && given < now ? given : now;
}
