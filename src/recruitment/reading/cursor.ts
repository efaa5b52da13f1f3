/**
 * The rows of what was read: the place up to which a folder was read (UIDVALIDITY and UID), and the mails before it that reading failed at
 * (`recruitment.mail_set_aside`), which are read again. The place moves in the transaction of each mail, and only by the worker that holds the inbox.
 *
 * - A folder that is new, or whose UIDVALIDITY changed, is read from two days before on: what is kept already is known by its Message-ID.
 * - Without UIDNEXT it begins after the last UID that a search gives; without UIDVALIDITY, whose UIDs hold for a session alone, each connection begins it anew,
 *   at the mail that the last one was lost at if it was lost at one.
 */
import sql from 'sql-template-tag';
import { type Store, type Tx, transaction } from '../../core/postgres/transaction.ts';
import type { InboxKey } from '../inboxes/inbox.ts';

/** The place of a mail in a mailbox. */
export interface Place {
  inbox_id: string;
  /** The worker that reads it. */
  worker_id: string;
  folder: string;
  uid_validity: string;
  uid: number;
}

export interface Cursor {
  uid_validity: string;
  last_uid: number;
  updated_at: string;
  /** The mail behind it that was begun last, and how often: one that ended each worker that began it must not end them all. */
  begun_uid: number | null;
  tries: number;
}

/** Another worker reads the inbox now, or has read on: whoever gets this begins anew. */
export class NotTheReader extends Error {
  override readonly name = 'NotTheReader';
}

/**
 * Begins a folder: at its first reading, when the server has numbered its mails anew, and for each connection to one without UIDVALIDITY. There a mail that
 * was begun and not finished comes first again, so that its tries are counted.
 */
export async function beginAt(tx: Tx, { inbox_id, worker_id, folder, uid_validity, uid }: Place): Promise<Cursor> {
  const is_same = sql`t.uid_validity = excluded.uid_validity`;
  const begun = await tx.maybe<Cursor>(sql`
    insert into recruitment.inbox_folder as t (organization_id, inbox_id, folder, uid_validity, last_uid, updated_at)
    select r.organization_id, r.inbox_id, ${folder}, ${uid_validity}::bigint, ${uid}::bigint, ${tx.now}::timestamptz
    from recruitment.inbox_reader r
    where r.organization_id = ${tx.organization_id} and r.inbox_id = ${inbox_id} and r.worker_id = ${worker_id}
    on conflict (organization_id, inbox_id, folder) do update
    set
      uid_validity = excluded.uid_validity, updated_at = excluded.updated_at,
      last_uid = case when ${is_same} then coalesce(t.begun_uid - 1, excluded.last_uid) else excluded.last_uid end,
      begun_uid = case when ${is_same} then t.begun_uid end, tries = case when ${is_same} then t.tries else 0 end
    returning t.uid_validity::text, t.last_uid, t.updated_at, t.begun_uid, t.tries`);
  if (!begun) throw new NotTheReader();
  return begun;
}

/** Counts a mail as tried, before anything of it is looked at. @throws NotTheReader */
export async function beginMail(tx: Tx, { inbox_id, worker_id, folder, uid_validity, uid }: Place): Promise<void> {
  const begun = await tx.maybe(sql`
    update recruitment.inbox_folder t set begun_uid = ${uid}::bigint, tries = case t.begun_uid when ${uid}::bigint then t.tries + 1 else 1 end
    from recruitment.inbox_reader r
    where t.organization_id = ${tx.organization_id} and t.inbox_id = ${inbox_id} and t.folder = ${folder}
      and t.uid_validity = ${uid_validity}::bigint and t.last_uid < ${uid}::bigint
      and r.organization_id = t.organization_id and r.inbox_id = t.inbox_id and r.worker_id = ${worker_id}
    returning t.tries`);
  if (!begun) throw new NotTheReader();
}

/** A mail was read, and `next` is begun. @throws NotTheReader: all that it changed is rolled back */
export async function advanceTo(
  tx: Tx,
  { inbox_id, worker_id, folder, uid_validity, uid }: Place,
  next: number | null,
): Promise<void> {
  const advanced = await tx.maybe(sql`
    update recruitment.inbox_folder t set
      last_uid = ${uid}::bigint, updated_at = ${tx.now}::timestamptz, begun_uid = ${next}::bigint, tries = ${next === null ? 0 : 1}
    from recruitment.inbox_reader r
    where t.organization_id = ${tx.organization_id} and t.inbox_id = ${inbox_id} and t.folder = ${folder}
      and t.uid_validity = ${uid_validity}::bigint and t.last_uid < ${uid}::bigint
      and r.organization_id = t.organization_id and r.inbox_id = t.inbox_id and r.worker_id = ${worker_id}
    returning t.last_uid`);
  if (!advanced) throw new NotTheReader();
}

/** Stands for the UIDVALIDITY that a server does not give. */
export const no_validity = '0';

/** Reads where the last reader came to; nowhere in a folder without UIDVALIDITY, which is begun anew. A login has succeeded: those that failed before no longer count. */
export async function beginReading(tx: Tx, { inbox_id }: InboxKey): Promise<Map<string, Cursor>> {
  await tx.all(sql`
    update recruitment.inbox_reader r set refused = 0, unreachable_since = null, login_answer = null
    where r.organization_id = ${tx.organization_id} and r.inbox_id = ${inbox_id}`);
  const folders = await tx.all<Cursor & { folder: string }>(sql`
    select t.folder, t.uid_validity::text, t.last_uid, t.updated_at, t.begun_uid, t.tries from recruitment.inbox_folder t
    where t.organization_id = ${tx.organization_id} and t.inbox_id = ${inbox_id}`);
  return new Map(
    folders.map(({ folder, uid_validity, ...cursor }) => [
      folder,
      { ...cursor, uid_validity: uid_validity === no_validity ? '' : uid_validity },
    ]),
  );
}

/** The last try is some five days after the first: what is wrong may be mended by then. */
const most_tries = 10;
const first_wait_s = 60;
const most_wait_s = 86_400;
const most_at_a_time = 20;

export interface SetAside {
  folder: string;
  uid_validity: string;
  uid: number;
  /** The message that stands for it. */
  message_id: string | null;
}

/** Keeps an email as set aside. To be called in the transaction that moves the cursor past the email. */
export const keepSetAside = (
  tx: Tx,
  { inbox_id, folder, uid_validity, uid }: Place,
  message_id: string | undefined,
): Promise<object[]> =>
  tx.all(sql`
    insert into recruitment.mail_set_aside (organization_id, inbox_id, folder, uid_validity, uid, message_id, next_try_at)
    values (${tx.organization_id}, ${inbox_id}, ${folder}, ${uid_validity}::bigint, ${uid}::bigint, ${message_id ?? null},
      ${tx.now}::timestamptz + make_interval(secs => ${first_wait_s}))
    on conflict do nothing`);

/** The UIDs of a folder without UIDVALIDITY, which each connection begins anew: none of them is read once more. */
export async function uidsSetAside(
  store: Store,
  { organization_id, inbox_id }: InboxKey,
  folder: string,
): Promise<number[]> {
  const found = await transaction(store, { organization_id, request_id: null }, (tx) =>
    tx.all<{ uid: number }>(sql`
      select a.uid from recruitment.mail_set_aside a
      where a.organization_id = ${tx.organization_id} and a.inbox_id = ${inbox_id} and a.folder = ${folder}
        and a.uid_validity = ${no_validity}::bigint`),
  );
  return found.map(({ uid }) => uid);
}

/**
 * Claims the emails of an inbox that are read again now. Each is counted as tried before it is: one that ends the worker is not tried for ever.
 * `last`: those that failed at their last try; they are left out.
 */
export function claimDue(
  store: Store,
  { organization_id, inbox_id }: InboxKey,
): Promise<{ due: SetAside[]; last: SetAside[] }> {
  return transaction(store, { organization_id, request_id: null }, async (tx) => {
    const tried = await tx.all<SetAside & { tries: number }>(sql`
      with due as (
        select a.folder, a.uid_validity, a.uid
        from recruitment.mail_set_aside a
        where a.organization_id = ${tx.organization_id} and a.inbox_id = ${inbox_id} and a.next_try_at <= ${tx.now}::timestamptz
        order by a.next_try_at
        limit ${most_at_a_time}
        for update skip locked
      )
      update recruitment.mail_set_aside a set
        tries = a.tries + 1,
        next_try_at = ${tx.now}::timestamptz + make_interval(secs => least(${first_wait_s} * 4.0 ^ a.tries, ${most_wait_s}))
      from due
      where a.organization_id = ${tx.organization_id} and a.inbox_id = ${inbox_id}
        and (a.folder, a.uid_validity, a.uid) = (due.folder, due.uid_validity, due.uid)
      returning a.folder, a.uid_validity::text, a.uid, a.message_id, a.tries`);
    const split = Object.groupBy(tried, ({ tries }) => (tries > most_tries ? 'last' : 'due'));
    for (const { folder, uid_validity, uid } of split.last ?? [])
      await forget(tx, { inbox_id, folder, uid_validity, uid });
    return { due: split.due ?? [], last: split.last ?? [] };
  });
}

/** Forgets an email that was read, or is gone. */
export const forget = (tx: Tx, { inbox_id, folder, uid_validity, uid }: Omit<Place, 'worker_id'>): Promise<object[]> =>
  tx.all(sql`
    delete from recruitment.mail_set_aside a
    where a.organization_id = ${tx.organization_id} and a.inbox_id = ${inbox_id} and a.folder = ${folder}
      and a.uid_validity = ${uid_validity}::bigint and a.uid = ${uid}::bigint
    returning a.uid`);

/** Claims an email that is read now. @throws NotTheReader: another worker does so, or has */
export async function claimSetAside(tx: Tx, place: Place): Promise<void> {
  const reader = await tx.maybe(sql`
    select from recruitment.inbox_reader r
    where r.organization_id = ${tx.organization_id} and r.inbox_id = ${place.inbox_id} and r.worker_id = ${place.worker_id}
    for share`);
  const forgotten = await forget(tx, place);
  if (!reader || forgotten.length === 0) throw new NotTheReader();
}
