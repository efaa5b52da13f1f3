/** Reads what is new in the folder that a connection has selected. */
import type { FetchMessageObject, FetchQueryObject, ImapFlow, SearchObject } from 'imapflow';
import { type Store, type Tx, transaction } from '../../../core/postgres/transaction.ts';
import { advanceTo, beginAt, type Cursor, keepStuck, type ReadInbox, type Standing, type Stuck } from './cursor.ts';
import { mailRead } from './metrics.ts';

/** A mail as it lies in the mailbox. */
export interface StoredMail {
  source: Buffer;
  /** False where only its beginning was fetched. */
  whole: boolean;
  arrived_at: Date;
}

/** What a mail is read by: in a transaction, which moves the cursor too. `incomplete`: more of it must be fetched first. */
export type TakeMail = (mail: StoredMail, advance: (tx: Tx) => Promise<void>) => Promise<'taken' | 'incomplete'>;

export interface FolderReading extends Standing {
  store: Store;
  inbox: ReadInbox & { created_at: string };
  worker_id: string;
  take: TakeMail;
  /** Bounds how many folders of this worker hold mails in memory at a time. */
  inTurn<T>(work: () => Promise<T>): Promise<T>;
}

const most_mails = 16;
/** Of mails that answer none of ours, no more is fetched. */
const first_bytes = 256 << 10;
const most_bytes = 4 << 20;
const few_bytes = 64 << 10;
/** Mails of so many days before are read when a folder is begun: what was read before is known by its Message-ID. */
const days_before = 2;
/** From this many failures on, less of a mail is fetched; then its header alone; then it is left out. */
const tries = { less: 3, header: 6, none: 10 };

/** Reads all that is new. @throws whatever ends the connection; NotTheReader */
export async function readFolder(client: ImapFlow, reading: FolderReading): Promise<void> {
  const { path: folder, uidValidity } = selected(client);
  const cursor = await openCursor(client, reading, folder, String(uidValidity));
  const uids = await newUids(client, cursor.last_uid);
  while (uids.length > 0) {
    const is_stuck = reading.stuck?.folder === folder && reading.stuck.uid === uids[0];
    const chunk = uids.splice(0, is_stuck ? 1 : most_mails);
    await reading.inTurn(() => readMails(client, reading, { folder, cursor, uids: chunk }));
  }
}

function selected(client: ImapFlow) {
  if (client.mailbox === false) throw new Error('No folder is selected.');
  return client.mailbox;
}

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
  await transaction(store, opening, (tx) => beginAt(tx, place));
  const begun = { uid_validity, last_uid: uid, updated_at: new Date().toISOString() };
  reading.cursors.set(folder, begun);
  return begun;
}

async function firstUidSince(client: ImapFlow, since: Date): Promise<number> {
  const found = await search(client, { since });
  return found.length > 0 ? found.reduce((least, uid) => Math.min(least, uid)) : selected(client).uidNext;
}

/** @throws Error where the server does not say what there is: to take it for nothing would lose mail */
async function search(client: ImapFlow, query: SearchObject): Promise<number[]> {
  const found = await client.search(query, { uid: true });
  if (!found) throw new Error('The search failed.');
  return found;
}

interface Chunk {
  folder: string;
  cursor: Cursor;
  uids: number[];
}

async function readMails(client: ImapFlow, reading: FolderReading, { folder, cursor, uids }: Chunk): Promise<void> {
  let at = uids[0] as number;
  try {
    const fetched = await fetchMails(client, uids, sizeFor(reading.stuck, folder, at));
    for (const uid of uids) {
      at = uid;
      await readOne(client, reading, { folder, uid_validity: cursor.uid_validity, uid, fetched: fetched.get(uid) });
      Object.assign(cursor, { last_uid: uid, updated_at: new Date().toISOString() });
      if (reading.stuck?.folder === folder && reading.stuck.uid === uid) await unstick(reading, undefined);
    }
  } catch (error) {
    const before = reading.stuck?.folder === folder && reading.stuck.uid === at ? reading.stuck.tries : 0;
    await unstick(reading, { folder, uid: at, tries: before + 1 });
    throw error;
  }
}

async function unstick(reading: FolderReading, stuck: Stuck | undefined): Promise<void> {
  const { organization_id, inbox_id } = reading.inbox;
  reading.stuck = stuck;
  await transaction(reading.store, { organization_id, request_id: null }, (tx) => keepStuck(tx, inbox_id, stuck));
}

type Size = 'usual' | 'less' | 'header' | 'none';

function sizeFor(stuck: Stuck | undefined, folder: string, uid: number): Size {
  if (stuck?.folder !== folder || stuck.uid !== uid || stuck.tries < tries.less) return 'usual';
  if (stuck.tries < tries.header) return 'less';
  return stuck.tries < tries.none ? 'header' : 'none';
}

async function fetchMails(client: ImapFlow, uids: number[], size: Size): Promise<Map<number, FetchMessageObject>> {
  if (size === 'none') return new Map();
  const fields = { uid: true, internalDate: true, size: true };
  const bytes = size === 'usual' ? first_bytes : few_bytes;
  const part: FetchQueryObject =
    size === 'header' ? { ...fields, headers: true } : { ...fields, source: { maxLength: bytes } };
  const mails = await client.fetchAll(uids.join(','), part, { uid: true });
  return new Map(mails.map((mail) => [mail.uid, mail]));
}

interface Fetched {
  folder: string;
  uid_validity: string;
  uid: number;
  /** Undefined: it was deleted meanwhile, or is left out. */
  fetched: FetchMessageObject | undefined;
}

async function readOne(client: ImapFlow, reading: FolderReading, { fetched, ...at }: Fetched): Promise<void> {
  const { inbox, worker_id, store, take } = reading;
  const advance = (tx: Tx) => advanceTo(tx, { inbox_id: inbox.inbox_id, worker_id, ...at });
  if (!fetched) {
    mailRead('skipped');
    return transaction(store, { organization_id: inbox.organization_id, request_id: null }, advance);
  }
  const mail = storedMail(fetched);
  const { size = 0 } = fetched;
  if (mail.source.length === 0 && size > 0)
    throw Object.assign(new Error('The server gave an empty mail.'), { code: 'empty_mail' });
  if ((await take(mail, advance)) === 'taken') return;
  const more = await client.fetchOne(String(at.uid), { source: { maxLength: most_bytes } }, { uid: true });
  await take({ ...mail, source: more ? (more.source ?? mail.source) : mail.source, whole: true }, advance);
}

function storedMail({ source, headers, size = 0, internalDate }: FetchMessageObject): StoredMail {
  const arrived_at = arrivalOf(internalDate);
  const bytes = (source ?? headers ?? Buffer.alloc(0)).subarray(0, most_bytes);
  return { source: bytes, whole: !source || source.length >= size || source.length >= most_bytes, arrived_at };
}

/** A server may give no date, one that is none, or one to come: the mail has just arrived. */
function arrivalOf(internal_date: Date | string | undefined): Date {
  const now = new Date();
  const given = new Date(internal_date ?? now);
  return given.getTime() > 0 && given < now ? given : now;
}
