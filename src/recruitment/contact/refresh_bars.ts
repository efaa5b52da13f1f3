/** The marks of prospects follow from the entries that bar them: who is hit by an entry, and which mark is theirs now. */
import sql, { type Sql } from 'sql-template-tag';
import { most_at_once } from '../../core/jobs/task.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import type { Actor } from '../brands/acting.ts';
import { event } from '../events/event.ts';
import type { lift_reasons } from '../events/fields.ts';
import { recordActivity } from '../prospects/activity.ts';
import { site_channels, siteHash } from '../prospects/barred_site.ts';
import type { KeyedHash } from '../prospects/keyed_hash.ts';
import type { Prospect } from '../prospects/prospect.ts';
import { stopSequences } from '../sequences/stop.ts';
import { refreshEmailStatus } from './email_status.ts';
import { isMark, type MarkReason, outranks, type Reason, type Suppression, weakest_first } from './suppression.ts';

export type LiftReason = (typeof lift_reasons)[number];

/** The value that an entry compares with. */
export type Bar =
  | { kind: 'address'; hmac: Buffer }
  | { kind: 'domain'; hmac: Buffer; domain: string }
  | { kind: 'prospect'; prospect_id: string };

/** By the stored hash: of a person who was erased no value is left, and they may have been added again. */
export async function storedBar(tx: Tx, { id, kind, value, prospect_id }: Suppression): Promise<Bar> {
  if (kind === 'prospect') return { kind, prospect_id: prospect_id as string };
  const { hmac } = await tx.one<{ hmac: Buffer }>(
    sql`select t.hmac from recruitment.suppression t where ${tenant(tx)} and t.id = ${id}`,
  );
  return kind === 'address' ? { kind, hmac } : { kind, hmac, domain: value as string };
}

/** A part of the prospects that an entry hits, of whom there may be any number. @param after the last id of the part before */
export async function prospectsHit(tx: Tx, bar: Bar, after = ''): Promise<string[]> {
  const rows = await tx.all<{ id: string }>(sql`
    select h.id from (${hitBy(tx, bar)}) as h where h.id > ${after} order by h.id limit ${most_at_once}`);
  return rows.map(({ id }) => id);
}

/** The prospects that hold the address, or an address at the domain, or are the domain. */
function hitBy(tx: Tx, bar: Bar): Sql {
  if (bar.kind === 'prospect') return sql`select ${bar.prospect_id}::text collate "C" as id`;
  const holders = (column: Sql) => sql`
    select a.prospect_id as id from recruitment.email_address a
    where a.organization_id = ${tx.organization_id} and ${column} = ${bar.hmac}`;
  if (bar.kind === 'address') return holders(sql`a.address_hmac`);
  return sql`${holders(sql`a.domain_hmac`)} union ${sites(tx, bar.domain)}`;
}

const sites = (tx: Tx, domain: string): Sql => sql`
  select p.id
  from recruitment.brand b
  join recruitment.prospect p on p.organization_id = b.organization_id and p.brand_id = b.id
  where b.organization_id = ${tx.organization_id} and p.channel = any(${site_channels}) and p.key = ${domain}`;

/** Finds the prospects that are the domain themselves, a few in each brand: their addresses may be elsewhere, where the entry bars nothing. */
export async function sitesHit(tx: Tx, bar: Bar): Promise<string[]> {
  if (bar.kind !== 'domain') return [];
  return (await tx.all<{ id: string }>(sites(tx, bar.domain))).map(({ id }) => id);
}

/** The change of the prospects that an entry hits, besides their marks: a reason is added, or the one that a classified text gave is taken back. */
export type Note = Reason | 'taken_back';

/**
 * Has a job refresh the prospects that an entry hits behind a part of them that was full. The entry keeps how far it is and what it notes: what an
 * earlier change has left to the job is done too.
 * @param part the ids in their order
 */
export async function refreshOthers(
  tx: Tx,
  { id }: Pick<Suppression, 'id'>,
  { part, noted, by }: { part: string[]; noted: Note | null; by: Actor },
): Promise<void> {
  if (part.length < most_at_once) return;
  await tx.all(sql`
    update recruitment.suppression t
    set refresh_after = least(t.refresh_after, ${part.at(-1)}), refresh_notes = t.refresh_notes || ${noted === null ? [] : [noted]}::text[]
    where ${tenant(tx)} and t.id = ${id}`);
  requestRefresh(tx, id, by);
}

/** Has a job go on with the prospects that are left. */
export function requestRefresh(tx: Tx, id: string, by: Actor): void {
  const { organization_id, request_id } = tx;
  tx.enqueue('recruitment/refresh_bars', { organization_id, request_id, id, by }, { job_key: `refresh_bars:${id}` });
}

interface Marked {
  id: string;
  channel: Prospect['channel'];
  key: string;
  do_not_contact_reason: MarkReason | null;
}

/** Marks of prospects, and what their records say of their addresses, by what bars them now. */
export async function refreshBars(
  tx: Tx,
  hash: KeyedHash,
  prospect_ids: string[],
  by: Actor,
  lift_reason: LiftReason = 'other',
): Promise<void> {
  await refreshMarks(tx, hash, prospect_ids, by, lift_reason);
  await refreshEmailStatus(tx, prospect_ids);
}

/**
 * The mark of each prospect is that of the strongest entry that bars it. An unsubscribe makes no mark, and keeps one that is there. Tells
 * `do_not_contact.added` of a new mark and of a stronger reason, and `do_not_contact.lifted` where nothing bars any more. Locks the prospects.
 */
export async function refreshMarks(
  tx: Tx,
  hash: KeyedHash,
  prospect_ids: string[],
  by: Actor,
  lift_reason: LiftReason = 'other',
): Promise<void> {
  if (prospect_ids.length === 0) return;
  const rows = await tx.all<Marked>(sql`
    select t.id, t.channel, t.key, t.do_not_contact_reason
    from recruitment.prospect t
    where ${tenant(tx)} and t.id = any(${prospect_ids})
    order by t.id
    for no key update`);
  const entries = new Map((await strongestEntries(tx, hash, rows)).map((entry) => [entry.id, entry]));
  const changes = rows.flatMap(({ id, do_not_contact_reason: before }): Change[] => {
    const { entry_id = null, reason = null } = entries.get(id) ?? {};
    const now = reason !== null && isMark(reason) ? reason : reason && before;
    return now === before ? [] : [{ id, before, now, entry_id }];
  });
  if (changes.length === 0) return;
  await tx.all(sql`
    update recruitment.prospect t
    set
      do_not_contact_reason = given.now,
      do_not_contact_since = case when given.now is not null then coalesce(t.do_not_contact_since, ${tx.now}::timestamptz) end,
      updated_at = ${tx.now}::timestamptz
    from json_to_recordset(${JSON.stringify(changes)}::json) as given (id text, now text)
    where ${tenant(tx)} and t.id = any(${changes.map(({ id }) => id)}) and t.id = given.id`);
  await stopSequences(
    tx,
    changes.filter(({ now }) => now !== null).map(({ id }) => id),
  );
  emitMarks(tx, changes, by, lift_reason);
}

interface Change {
  id: string;
  before: MarkReason | null;
  now: MarkReason | null;
  entry_id: string | null;
}

/** A weaker reason, because a stronger entry was lifted, emits nothing: the prospect is barred as before. */
function emitMarks(tx: Tx, changes: Change[], by: Actor, lift_reason: LiftReason): void {
  const by_user_id = by.user_id;
  const added = changes.filter(({ before, now }) => now !== null && (before === null || outranks(now, before)));
  const lifted = changes.filter(({ now }) => now === null);
  for (const { id: prospect_id, now } of added) {
    const reason = now as MarkReason;
    tx.emit(event('do_not_contact.added', tx.organization_id, { prospect_id, reason, by_user_id }));
  }
  for (const { id: prospect_id } of lifted)
    tx.emit(event('do_not_contact.lifted', tx.organization_id, { prospect_id, reason: lift_reason, by_user_id }));
  const entries = (rows: Change[], dataOf: (row: Change) => object) =>
    rows.map((row) => ({ prospect_id: row.id, data: dataOf(row) }));
  const dataOfAdded = ({ now: reason, entry_id }: Change) => ({ reason, do_not_contact_id: entry_id });
  recordActivity(tx, 'do_not_contact_added', by, entries(added, dataOfAdded));
  recordActivity(
    tx,
    'do_not_contact_lifted',
    by,
    entries(lifted, () => ({ reason: lift_reason })),
  );
}

/** An unsubscribe comes last: it makes no mark. A bounce bars an address alone. */
const strongest_first: Reason[] = [...weakest_first.filter(isMark).reverse(), 'unsubscribed'];

/** Returns, for each prospect, the strongest entry that bars it, or an unsubscribe. Null: nothing bars it. */
export function strongestEntries(
  tx: Tx,
  hash: KeyedHash,
  rows: Pick<Prospect, 'id' | 'channel' | 'key'>[],
): Promise<{ id: string; entry_id: string | null; reason: Reason | null }[]> {
  return tx.all(sql`
    select given.id, strongest.entry_id, strongest.reason
    from unnest(${rows.map(({ id }) => id)}::text[], ${rows.map((row) => siteHash(hash, row))}::bytea[]) as given (id, site_hmac)
    left join lateral (
      select e.id as entry_id, e.reason
      from (
        select t.id, t.reason from recruitment.suppression t
        where ${tenant(tx)} and t.lifted_at is null and t.prospect_id = given.id
        union all
        select t.id, t.reason from recruitment.suppression t
        where ${tenant(tx)} and t.lifted_at is null and t.hmac = any(
          array(
            select unnest(array[a.address_hmac, a.domain_hmac])
            from recruitment.email_address a
            where a.organization_id = ${tx.organization_id} and a.prospect_id = given.id
          ) || given.site_hmac
        )
      ) as e
      where e.reason = any(${strongest_first})
      order by array_position(${strongest_first}::text[], e.reason), e.id
      limit 1
    ) as strongest on true`);
}
