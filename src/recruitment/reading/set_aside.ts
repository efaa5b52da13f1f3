/** The rows of emails that reading failed at (`recruitment.mail_set_aside`): what is read again, and when. */
import sql from 'sql-template-tag';
import { type Store, type Tx, transaction } from '../../core/postgres/transaction.ts';
import { NotTheReader, no_validity, type Place, type ReadInbox } from './cursor.ts';

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
  { organization_id, inbox_id }: ReadInbox,
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
  { organization_id, inbox_id }: ReadInbox,
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
