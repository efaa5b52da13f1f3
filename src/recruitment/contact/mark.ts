/** Marks who must not be written to, in three layers, and lifts the marks. */
import sql, { type Sql } from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import { most_at_once } from '../../core/jobs/task.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { newId } from '../../core/values/id.ts';
import { Problem } from '../../core/values/problem.ts';
import type { Actor } from '../brands/acting.ts';
import { event } from '../events/event.ts';
import type { lift_reasons } from '../events/fields.ts';
import { recordActivity } from '../prospects/activity.ts';
import { lockSuppressions, site_channels, siteHash } from '../prospects/barred_site.ts';
import { type KeyedHash, keyedHash } from '../prospects/keyed_hash.ts';
import type { Prospect } from '../prospects/prospect.ts';
import { type End, endSequences, stopSequences } from '../sequences/stop.ts';
import { hashesOf, hashOfDomain, normaliseDomain } from './address.ts';
import { refreshEmailStatus } from './email_status.ts';
import {
  isMark,
  lasting_reasons,
  type MarkReason,
  openedEntry,
  outranks,
  type Reason,
  type Suppression,
  suppressions,
  weakest_first,
} from './suppression.ts';

export type Target =
  | { kind: 'address'; email: string }
  /** An address by its hash, where it may be that nobody knows it in the clear any more. */
  | { kind: 'address'; hmac: Buffer; email: string | null }
  | { kind: 'domain'; domain: string }
  | { kind: 'prospect'; prospect_id: string };
type LiftReason = (typeof lift_reasons)[number];

/**
 * Bars an address, a domain or a prospect. Tells `do_not_contact.added` for each prospect that is marked by it, or for a stronger reason than
 * before; an unsubscribe sets `unsubscribed_at` instead and tells nothing. Of what is barred already, a stronger reason replaces a weaker one.
 * @param because.others prospects whom it concerns besides those that are barred by it: who held an address, and holds it no longer
 * @param because.judged_by the message whose text was judged to ask for it: a person can take that back (`judged.ts`). Whatever else says the same makes it last
 * @returns the entry that holds, its value sealed, and whether anything changed
 */
export async function suppress(
  tx: Tx,
  vault: Vault,
  target: Target,
  reason: Reason,
  by: Actor,
  { others = [], judged_by = null }: Because = {},
): Promise<{ entry: Suppression; changed: boolean }> {
  await lockSuppressions(tx);
  const hash = await keyedHash(tx, vault);
  const existing = await suppressions.find(tx, sql`${tenant(tx)} and t.lifted_at is null and ${entryOn(hash, target)}`);
  const entry = existing ?? (await insertEntry(tx, vault, hash, target, reason, by, judged_by));
  const is_stronger = existing !== undefined && outranks(reason, existing.reason);
  if (is_stronger || (existing?.reason === reason && judged_by === null)) await noteJudged(tx, entry, judged_by);
  const besides = existing && !is_stronger ? await noteBesides(tx, entry, reason, judged_by) : [];
  const holds = is_stronger ? await suppressions.update(tx, entry.id, { reason }) : entry;
  const bar = barOf(hash, target);
  const part = await somePartOf(tx, bar);
  const ids = [...new Set([...part, ...others])];
  await refreshMarks(tx, hash, ids, by);
  const noted = await noteReason(tx, ids, entry.id, reason, by);
  await refreshEmailStatus(tx, ids);
  await endSequences(
    tx,
    reason === 'hard_bounce' ? writesTo(hash, target) : hits(tx, hash, target, ids),
    endOf(reason),
  );
  refreshOthers(tx, { ...holds, after: part.at(-1), count: part.length, by });
  return { entry: holds, changed: existing === undefined || is_stronger || noted || besides.length > 0 };
}

interface Because {
  others?: string[];
  judged_by?: string | null;
}

/** Of an entry that gets another reason, or whose reason somebody says who is not misread. */
const noteJudged = (tx: Tx, { id, reason }: Suppression, judged_by: string | null): Promise<object[]> =>
  tx.all(sql`
    update recruitment.suppression t
    set
      reason_before = case
        when ${judged_by}::text is null then null
        when t.judged_by = ${judged_by} then t.reason_before
        else ${reason}
      end,
      judged_by = ${judged_by}
    where ${tenant(tx)} and t.id = ${id}`);

/** Of an entry that a text was judged to ask for: what others bar it for besides holds once that is taken back. */
const noteBesides = (tx: Tx, { id }: Suppression, reason: Reason, judged_by: string | null): Promise<object[]> =>
  tx.all(sql`
    update recruitment.suppression t set reason_before = ${reason}
    where ${tenant(tx)} and t.id = ${id} and t.reason <> ${reason} and t.judged_by is not null and t.judged_by is distinct from ${judged_by}
      and (
        t.reason_before is null
        or array_position(${weakest_first}::text[], t.reason_before) < array_position(${weakest_first}::text[], ${reason})
      )
    returning t.id`);

/** The sequences that write to what is barred. */
function writesTo(hash: KeyedHash, target: Target): Sql {
  if (target.kind === 'prospect') return sql`t.prospect_id = ${target.prospect_id}`;
  return target.kind === 'address'
    ? sql`t.address_hmac = ${hmacOf(hash, target)}`
    : sql`t.domain_hmac = ${hmacOf(hash, target)}`;
}

/** Of a domain all at once, silently: no email begins to be sent to those whom a job marks later. */
const hits = (tx: Tx, hash: KeyedHash, target: Target, prospect_ids: string[]): Sql =>
  target.kind === 'domain'
    ? sql`(${writesTo(hash, target)} or t.prospect_id = any(array(${hitBy(tx, barOf(hash, target))})))`
    : sql`(${writesTo(hash, target)} or t.prospect_id = any(${prospect_ids}))`;

function endOf(reason: Reason): End {
  if (reason === 'hard_bounce') return 'bounced';
  return reason === 'unsubscribed' ? 'unsubscribed' : 'stopped';
}

const entryOn = (hash: KeyedHash, target: Target): Sql =>
  target.kind === 'prospect' ? sql`t.prospect_id = ${target.prospect_id}` : sql`t.hmac = ${hmacOf(hash, target)}`;

function hmacOf(hash: KeyedHash, target: Exclude<Target, { kind: 'prospect' }>): Buffer {
  if ('hmac' in target) return target.hmac;
  return target.kind === 'address' ? hashesOf(hash, target.email).address_hmac : hashOfDomain(hash, target.domain);
}

async function insertEntry(
  tx: Tx,
  vault: Vault,
  hash: KeyedHash,
  target: Target,
  reason: Reason,
  by: Actor,
  judged_by: string | null,
): Promise<Suppression> {
  const entry_id = newId('fdn');
  const given =
    target.kind === 'prospect'
      ? { prospect_id: target.prospect_id }
      : { hmac: hmacOf(hash, target), value: sealed(vault, clearTextOf(target), entry_id) };
  const values = { id: entry_id, kind: target.kind, reason, by_user_id: by.user_id, judged_by, ...given };
  return (await suppressions.insert(tx, values)) as Suppression;
}

const sealed = (vault: Vault, value: string | null, entry_id: string): Buffer | null =>
  value === null ? null : vault.encrypt(value, entry_id);

const clearTextOf = (target: Exclude<Target, { kind: 'prospect' }>): string | null =>
  target.kind === 'address' ? target.email : normaliseDomain(target.domain);

/** What an entry compares with. */
type Bar =
  | { kind: 'address'; hmac: Buffer }
  | { kind: 'domain'; hmac: Buffer; domain: string }
  | { kind: 'prospect'; prospect_id: string };

function barOf(hash: KeyedHash, target: Target): Bar {
  if (target.kind === 'prospect') return target;
  const hmac = hmacOf(hash, target);
  return target.kind === 'address'
    ? { kind: 'address', hmac }
    : { kind: 'domain', hmac, domain: normaliseDomain(target.domain) };
}

/** The prospects that an entry bars. */
export const prospectsHitBy = async (tx: Tx, vault: Vault, entry: Suppression): Promise<string[]> =>
  prospectsHit(tx, await storedBar(tx, openedEntry(vault, entry)));

/** All prospects that hold the address, or those of a domain that a request changes: it may have any number. */
const somePartOf = (tx: Tx, bar: Bar): Promise<string[]> =>
  prospectsHit(tx, bar, { most: bar.kind === 'domain' ? most_at_once : null });

/** @param after the last id of the part before @param most null: all */
async function prospectsHit(
  tx: Tx,
  bar: Bar,
  { after = '', most = null }: { after?: string; most?: number | null } = {},
): Promise<string[]> {
  const rows = await tx.all<{ id: string }>(sql`
    select h.id from (${hitBy(tx, bar)}) as h where h.id > ${after} order by h.id limit ${most}::integer`);
  return rows.map(({ id }) => id);
}

/** The prospects that hold the address, or an address at the domain, or are the domain. */
function hitBy(tx: Tx, bar: Bar): Sql {
  if (bar.kind === 'prospect') return sql`select ${bar.prospect_id}::text collate "C" as id`;
  const holders = (column: Sql) => sql`
    select a.prospect_id as id from recruitment.email_address a
    where a.organization_id = ${tx.organization_id} and ${column} = ${bar.hmac}`;
  if (bar.kind === 'address') return holders(sql`a.address_hmac`);
  return sql`
    ${holders(sql`a.domain_hmac`)}
    union
    select p.id
    from recruitment.brand b
    join recruitment.prospect p on p.organization_id = b.organization_id and p.brand_id = b.id
    where b.organization_id = ${tx.organization_id} and p.channel = any(${site_channels}) and p.key = ${bar.domain}`;
}

interface Refreshing {
  /** The entry, as it is when its prospects are refreshed: once it has changed, another job does that. */
  id: string;
  reason: Reason;
  lifted_at: string | null;
  lift_reason: LiftReason | null;
  by: Actor;
}

/** Has a job refresh the prospects that a domain hits behind a part of them that was full. */
function refreshOthers(tx: Tx, given: Refreshing & { after: string | undefined; count: number }): void {
  const { id, reason, lifted_at, lift_reason, by, after, count } = given;
  if (count < most_at_once) return;
  const { organization_id, request_id } = tx;
  const payload = { organization_id, request_id, id, reason, lifted_at, lift_reason, by, after };
  tx.enqueue('recruitment/refresh_bars', payload, { job_key: `refresh_bars:${id}` });
}

/** The next part of the prospects that a domain hits. */
export async function refreshNext(tx: Tx, vault: Vault, given: Refreshing & { after: string }): Promise<void> {
  await lockSuppressions(tx);
  const { id, by, after } = given;
  const entry = openedEntry(vault, await suppressions.get(tx, id));
  if (entry.reason !== given.reason || entry.lifted_at !== given.lifted_at) return;
  const part = await prospectsHit(tx, await storedBar(tx, entry), { after, most: most_at_once });
  await refreshBars(tx, await keyedHash(tx, vault), part, by, given.lift_reason ?? undefined);
  refreshOthers(tx, { ...given, after: part.at(-1), count: part.length });
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
async function refreshMarks(
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
  tellMarks(tx, changes, by, lift_reason);
}

interface Change {
  id: string;
  before: MarkReason | null;
  now: MarkReason | null;
  entry_id: string | null;
}

/** A weaker reason, because a stronger entry was lifted, is not told: the prospect is barred as before. */
function tellMarks(tx: Tx, changes: Change[], by: Actor, lift_reason: LiftReason): void {
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

/** What an unsubscribe and a bounce change besides, whatever else bars the address. @returns whether something changed */
export async function noteReason(
  tx: Tx,
  prospect_ids: string[],
  entry_id: string,
  reason: Reason,
  by: Actor,
): Promise<boolean> {
  if (reason === 'unsubscribed') return noteUnsubscribed(tx, prospect_ids, by);
  return reason === 'hard_bounce' && noteBounced(tx, entry_id);
}

/** "Every prospect that holds it gets unsubscribed_at." */
async function noteUnsubscribed(tx: Tx, prospect_ids: string[], by: Actor): Promise<boolean> {
  const changed = await tx.all<{ id: string }>(sql`
    update recruitment.prospect t set unsubscribed_at = ${tx.now}::timestamptz, updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = any(${prospect_ids}) and t.unsubscribed_at is null
    returning t.id`);
  recordActivity(
    tx,
    'unsubscribed',
    by,
    changed.map(({ id }) => ({ prospect_id: id })),
  );
  return changed.length > 0;
}

async function noteBounced(tx: Tx, entry_id: string): Promise<boolean> {
  const changed = await tx.all(sql`
    update recruitment.email_address a set bounced_at = ${tx.now}::timestamptz
    from recruitment.suppression t
    where ${tenant(tx)} and t.id = ${entry_id}
      and a.organization_id = t.organization_id and a.address_hmac = t.hmac and a.bounced_at is null
    returning a.id`);
  return changed.length > 0;
}

/**
 * Lifts an entry, and the mark of each prospect that no other entry hits. Tells `do_not_contact.lifted` of these; nothing is resumed.
 * @throws Problem resource_not_found; cannot_lift
 */
export async function lift(
  tx: Tx,
  vault: Vault,
  entry_id: string,
  reason: LiftReason,
  by: Actor,
): Promise<Suppression> {
  await lockSuppressions(tx);
  const entry = openedEntry(vault, await suppressions.get(tx, entry_id, { lock: true }));
  if (entry.lifted_at !== null) return entry;
  if (lasting_reasons.includes(entry.reason)) throw lasting(entry.reason);
  const lifted = await suppressions.update(tx, entry_id, {
    ...{ lifted_at: tx.now, lift_reason: reason, lifted_by_user_id: by.user_id },
  });
  const part = await somePartOf(tx, await storedBar(tx, entry));
  await refreshBars(tx, await keyedHash(tx, vault), part, by, reason);
  refreshOthers(tx, { ...(lifted as Suppression), after: part.at(-1), count: part.length, by });
  return { ...(lifted as Suppression), value: entry.value };
}

/** By the stored hash: of a person who was erased no value is left, and they may have been added again. */
async function storedBar(tx: Tx, { id, kind, value, prospect_id }: Suppression): Promise<Bar> {
  if (kind === 'prospect') return { kind, prospect_id: prospect_id as string };
  const { hmac } = await tx.one<{ hmac: Buffer }>(
    sql`select t.hmac from recruitment.suppression t where ${tenant(tx)} and t.id = ${id}`,
  );
  return kind === 'address' ? { kind, hmac } : { kind, hmac, domain: value as string };
}

const lasting = (reason: Reason): Problem =>
  new Problem(
    'cannot_lift',
    reason === 'complaint'
      ? 'A complaint about spam cannot be lifted. The mark is permanent.'
      : 'An unsubscribe cannot be lifted. If the text of a reply was misread, correct it: POST /recruitment/v1/messages/{id}/reclassify. If the person writes to you again, answer from your own mail program.',
  );

/** Lifts the mark of one prospect. What is not barred stays so. @throws Problem cannot_lift where an entry on its address or domain bars it too */
export async function liftMark(
  tx: Tx,
  vault: Vault,
  prospect: Pick<Prospect, 'id' | 'channel' | 'key'>,
  reason: LiftReason,
  by: Actor,
): Promise<void> {
  await lockSuppressions(tx);
  const own = sql`${tenant(tx)} and t.prospect_id = ${prospect.id} and t.lifted_at is null`;
  const entry = await suppressions.find(tx, own);
  if (entry) await lift(tx, vault, entry.id, reason, by);
  const hash = await keyedHash(tx, vault);
  const [rest] = await strongestEntries(tx, hash, [prospect]);
  if (!rest?.reason) return refreshMarks(tx, hash, [prospect.id], by, reason);
  if (lasting_reasons.includes(rest.reason)) throw lasting(rest.reason);
  throw new Problem(
    'cannot_lift',
    `The entry '${rest.entry_id}' on an address or the domain of the prospect bars it. Lift that entry first: POST /recruitment/v1/do_not_contact/${rest.entry_id}/lift.`,
  );
}

/** An unsubscribe comes last: it makes no mark. A bounce bars an address alone. */
const strongest_first: Reason[] = [...weakest_first.filter(isMark).reverse(), 'unsubscribed'];

/** Of each prospect the strongest entry that bars it, or an unsubscribe; null: nothing does. */
function strongestEntries(
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
