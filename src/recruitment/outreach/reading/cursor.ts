/** Up to where a folder was read: UIDVALIDITY and UID. It moves in the transaction of each mail. */
import sql from 'sql-template-tag';
import type { Tx } from '../../../core/postgres/transaction.ts';

/** An inbox that a worker reads. */
export interface ReadInbox {
  organization_id: string;
  inbox_id: string;
}

/** Where a mail lies in a mailbox. */
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
}

/** Another worker reads the inbox now, or has read on: whoever gets this begins anew. */
export class NotTheReader extends Error {
  override readonly name = 'NotTheReader';
}

/** Begins a folder: at its first reading, and when the server has numbered its mails anew. */
export async function beginAt(tx: Tx, { inbox_id, worker_id, folder, uid_validity, uid }: Place): Promise<void> {
  const begun = await tx.maybe(sql`
    insert into recruitment.inbox_folder (organization_id, inbox_id, folder, uid_validity, last_uid, updated_at)
    select r.organization_id, r.inbox_id, ${folder}, ${uid_validity}::bigint, ${uid}::bigint, ${tx.now}::timestamptz
    from recruitment.inbox_reader r
    where r.organization_id = ${tx.organization_id} and r.inbox_id = ${inbox_id} and r.worker_id = ${worker_id}
    on conflict (organization_id, inbox_id, folder) do update
    set uid_validity = excluded.uid_validity, last_uid = excluded.last_uid, updated_at = excluded.updated_at
    returning last_uid`);
  if (!begun) throw new NotTheReader();
}

/** A mail was read. @throws NotTheReader: all that it changed is rolled back */
export async function advanceTo(tx: Tx, { inbox_id, worker_id, folder, uid_validity, uid }: Place): Promise<void> {
  const advanced = await tx.maybe(sql`
    update recruitment.inbox_folder t set last_uid = ${uid}::bigint, updated_at = ${tx.now}::timestamptz
    from recruitment.inbox_reader r
    where t.organization_id = ${tx.organization_id} and t.inbox_id = ${inbox_id} and t.folder = ${folder}
      and t.uid_validity = ${uid_validity}::bigint and t.last_uid < ${uid}::bigint
      and r.organization_id = t.organization_id and r.inbox_id = t.inbox_id and r.worker_id = ${worker_id}
    returning t.last_uid`);
  if (!advanced) throw new NotTheReader();
}

/** The mail that reading an inbox failed at. */
export interface Stuck {
  folder: string;
  uid: number;
  tries: number;
}

/** Where the reading of an inbox stands. */
export interface Standing {
  cursors: Map<string, Cursor>;
  stuck: Stuck | undefined;
}

/** Where the last reader came to. A login has succeeded: those that failed before no longer count. */
export async function beginReading(tx: Tx, { inbox_id }: ReadInbox): Promise<Standing> {
  const reader = await tx.maybe<Stuck>(sql`
    update recruitment.inbox_reader r set refused = 0, unreachable_since = null
    where r.organization_id = ${tx.organization_id} and r.inbox_id = ${inbox_id}
    returning r.stuck_folder as folder, r.stuck_uid as uid, r.stuck_tries as tries`);
  const folders = await tx.all<Cursor & { folder: string }>(sql`
    select t.folder, t.uid_validity::text, t.last_uid, t.updated_at from recruitment.inbox_folder t
    where t.organization_id = ${tx.organization_id} and t.inbox_id = ${inbox_id}`);
  const cursors = new Map(folders.map(({ folder, ...cursor }) => [folder, cursor]));
  return { cursors, stuck: reader?.tries ? reader : undefined };
}

/** Keeps how often a mail failed, so that less of it is fetched the next time; undefined: none does any more. */
export const keepStuck = (tx: Tx, inbox_id: string, stuck: Stuck | undefined): Promise<object[]> =>
  tx.all(sql`
    update recruitment.inbox_reader r
    set stuck_folder = ${stuck?.folder ?? null}, stuck_uid = ${stuck?.uid ?? null}::bigint, stuck_tries = ${stuck?.tries ?? 0}
    where r.organization_id = ${tx.organization_id} and r.inbox_id = ${inbox_id}`);
