/** Marks who must not be written to, in three layers, and lifts the marks. */
import sql, { type Sql } from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { newId } from '../../core/values/id.ts';
import { Problem } from '../../core/values/problem.ts';
import type { Actor } from '../brands/acting.ts';
import { event } from '../events/event.ts';
import type { lift_reasons } from '../events/fields.ts';
import { recordActivity } from '../prospects/activity.ts';
import { type KeyedHash, keyedHash } from '../prospects/keyed_hash.ts';
import { hashesOf, hashOfDomain, normaliseDomain } from './address.ts';
import { refreshEmailStatus } from './email_status.ts';
import {
  isMark,
  lasting_reasons,
  lockSuppressions,
  type MarkReason,
  openedEntry,
  type Reason,
  type Suppression,
  suppressions,
} from './suppression.ts';

export type Target =
  | { kind: 'address'; email: string }
  | { kind: 'domain'; domain: string }
  | { kind: 'prospect'; prospect_id: string };
type LiftReason = (typeof lift_reasons)[number];

/**
 * Bars an address, a domain or a prospect. Tells `do_not_contact.added` for each prospect that it hits and that was not marked; an unsubscribe
 * sets `unsubscribed_at` instead and tells nothing. What is barred already stays as it is, but for a reason that cannot be lifted, which replaces one that can.
 * @returns the entry that holds, its value sealed
 */
export async function suppress(tx: Tx, vault: Vault, target: Target, reason: Reason, by: Actor): Promise<Suppression> {
  await lockSuppressions(tx);
  const hash = await keyedHash(tx, vault);
  const existing = await suppressions.find(tx, sql`${tenant(tx)} and t.lifted_at is null and ${entryOn(hash, target)}`);
  const entry = existing ?? (await insertEntry(tx, vault, hash, target, reason, by));
  const holds =
    existing && outranks(reason, existing.reason) ? await suppressions.update(tx, entry.id, { reason }) : entry;
  await markHit(tx, await prospectsHit(tx, hash, target), holds, by);
  return holds;
}

const outranks = (reason: Reason, before: Reason): boolean =>
  lasting_reasons.includes(reason) && !lasting_reasons.includes(before);

const entryOn = (hash: KeyedHash, target: Target): Sql =>
  target.kind === 'prospect' ? sql`t.prospect_id = ${target.prospect_id}` : sql`t.hmac = ${hmacOf(hash, target)}`;

const hmacOf = (hash: KeyedHash, target: Exclude<Target, { kind: 'prospect' }>): Buffer =>
  target.kind === 'address' ? hashesOf(hash, target.email).address_hmac : hashOfDomain(hash, target.domain);

async function insertEntry(
  tx: Tx,
  vault: Vault,
  hash: KeyedHash,
  target: Target,
  reason: Reason,
  by: Actor,
): Promise<Suppression> {
  const entry_id = newId('fdn');
  const given =
    target.kind === 'prospect'
      ? { prospect_id: target.prospect_id }
      : { hmac: hmacOf(hash, target), value: vault.encrypt(clearTextOf(target), entry_id) };
  const values = { id: entry_id, kind: target.kind, reason, by_user_id: by.user_id, ...given };
  return (await suppressions.insert(tx, values)) as Suppression;
}

const clearTextOf = (target: Exclude<Target, { kind: 'prospect' }>): string =>
  target.kind === 'address' ? target.email : normaliseDomain(target.domain);

interface Hit {
  id: string;
  channel: string;
  key: string;
  do_not_contact_reason: MarkReason | null;
}

/** Channels whose key is a domain. */
const site_channels = ['website', 'podcast', 'newsletter', 'other'];

/** The prospects that hold the address, or an address at the domain, or are the domain; locked until the transaction ends. */
function prospectsHit(tx: Tx, hash: KeyedHash, target: Target): Promise<Hit[]> {
  return tx.all<Hit>(sql`
    select t.id, t.channel, t.key, t.do_not_contact_reason
    from recruitment.prospect t
    where ${tenant(tx)} and ${isHit(tx, hash, target)}
    order by t.id
    for no key update`);
}

function isHit(tx: Tx, hash: KeyedHash, target: Target): Sql {
  if (target.kind === 'prospect') return sql`t.id = ${target.prospect_id}`;
  const hmac = hmacOf(hash, target);
  const holders = (column: Sql) => sql`
    select a.prospect_id from recruitment.email_address a
    where a.organization_id = ${tx.organization_id} and ${column} = ${hmac}`;
  if (target.kind === 'address') return sql`t.id in (${holders(sql`a.address_hmac`)})`;
  return sql`t.id in (
    ${holders(sql`a.domain_hmac`)}
    union
    select p.id
    from recruitment.brand b
    join recruitment.prospect p on p.organization_id = b.organization_id and p.brand_id = b.id
    where b.organization_id = ${tx.organization_id} and p.channel = any(${site_channels}) and p.key = ${normaliseDomain(target.domain)})`;
}

/** Marks prospects, whose rows the caller has locked, because of an entry. Those that are marked already stay so. */
export async function markHit(
  tx: Tx,
  hit: Pick<Hit, 'id' | 'do_not_contact_reason'>[],
  entry: Pick<Suppression, 'id' | 'reason'>,
  by: Actor,
): Promise<void> {
  const { id: do_not_contact_id, reason } = entry;
  const ids = hit.filter(({ do_not_contact_reason }) => do_not_contact_reason === null).map(({ id }) => id);
  if (reason === 'unsubscribed') return noteUnsubscribed(tx, hit, by);
  if (reason === 'hard_bounce')
    return noteBounced(
      tx,
      entry.id,
      hit.map(({ id }) => id),
    );
  if (!isMark(reason) || ids.length === 0) return;
  await tx.all(sql`
    update recruitment.prospect t
    set do_not_contact_reason = ${reason}, do_not_contact_since = ${tx.now}::timestamptz, updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = any(${ids})`);
  for (const prospect_id of ids) {
    tx.emit(event('do_not_contact.added', tx.organization_id, { prospect_id, reason, by_user_id: by.user_id }));
  }
  const data = { reason, do_not_contact_id };
  recordActivity(
    tx,
    'do_not_contact_added',
    by,
    ids.map((prospect_id) => ({ prospect_id, data })),
  );
}

/** "Every prospect that holds it gets unsubscribed_at." */
async function noteUnsubscribed(tx: Tx, hit: Pick<Hit, 'id'>[], by: Actor): Promise<void> {
  const changed = await tx.all<{ id: string }>(sql`
    update recruitment.prospect t set unsubscribed_at = ${tx.now}::timestamptz, updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = any(${hit.map(({ id }) => id)}) and t.unsubscribed_at is null
    returning t.id`);
  recordActivity(
    tx,
    'unsubscribed',
    by,
    changed.map(({ id }) => ({ prospect_id: id })),
  );
}

async function noteBounced(tx: Tx, entry_id: string, prospect_ids: string[]): Promise<void> {
  await tx.all(sql`
    update recruitment.email_address a set bounced_at = ${tx.now}::timestamptz
    from recruitment.suppression t
    where ${tenant(tx)} and t.id = ${entry_id}
      and a.organization_id = t.organization_id and a.address_hmac = t.hmac and a.bounced_at is null`);
  await refreshEmailStatus(tx, prospect_ids);
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
  const hash = await keyedHash(tx, vault);
  const target = targetOf(entry);
  if (target) await clearMarks(tx, hash, await prospectsHit(tx, hash, target), reason, by);
  return { ...lifted, value: entry.value };
}

/** Undefined where the person was erased: then no prospect is known by the entry. */
function targetOf({ kind, value, prospect_id }: Suppression): Target | undefined {
  if (kind === 'prospect') return { kind, prospect_id: prospect_id as string };
  if (value === null) return undefined;
  return kind === 'address' ? { kind, email: value } : { kind, domain: value };
}

const lasting = (reason: Reason): Problem =>
  new Problem(
    'cannot_lift',
    reason === 'complaint'
      ? 'A complaint about spam cannot be lifted.'
      : 'An unsubscribe cannot be lifted. The person can write to you again, and you can answer them yourself.',
  );

/** Lifts the mark of one prospect. What is not marked stays so. @throws Problem cannot_lift where an entry on its address or domain hits it too */
export async function liftMark(
  tx: Tx,
  vault: Vault,
  { id: prospect_id, channel, key }: { id: string; channel: string; key: string },
  reason: LiftReason,
  by: Actor,
): Promise<void> {
  await lockSuppressions(tx);
  const own = sql`${tenant(tx)} and t.prospect_id = ${prospect_id} and t.lifted_at is null`;
  const entry = await suppressions.find(tx, own);
  if (entry) await lift(tx, vault, entry.id, reason, by);
  const hash = await keyedHash(tx, vault);
  const [hit] = await prospectsHit(tx, hash, { kind: 'prospect', prospect_id });
  if (!hit?.do_not_contact_reason) return;
  const [rest] = await entriesHitting(tx, hash, [{ ...hit, channel, key }]);
  if (!rest?.entry_id) return clearMarks(tx, hash, [hit], reason, by);
  throw new Problem(
    'cannot_lift',
    `The prospect is also marked by the entry '${rest.entry_id}' on its address or domain. Lift that entry: POST /recruitment/v1/do_not_contact/${rest.entry_id}/lift.`,
  );
}

/** Of each prospect the oldest entry that marks it; null: none does. */
function entriesHitting(
  tx: Tx,
  hash: KeyedHash,
  hit: Pick<Hit, 'id' | 'channel' | 'key'>[],
): Promise<{ id: string; entry_id: string | null; reason: MarkReason | null }[]> {
  const key_hmacs = hit.map(({ channel, key }) => (site_channels.includes(channel) ? hashOfDomain(hash, key) : null));
  return tx.all(sql`
    select given.id, first.entry_id, first.reason
    from unnest(${hit.map(({ id }) => id)}::text[], ${key_hmacs}::bytea[]) as given (id, key_hmac)
    left join lateral (
      select t.id as entry_id, t.reason
      from recruitment.suppression t
      where ${tenant(tx)} and t.lifted_at is null and t.reason not in ('unsubscribed', 'hard_bounce')
        and (
          t.prospect_id = given.id
          or t.hmac = given.key_hmac
          or t.hmac in (
            select unnest(array[a.address_hmac, a.domain_hmac])
            from recruitment.email_address a
            where a.organization_id = t.organization_id and a.prospect_id = given.id
          )
        )
      order by t.created_at, t.id
      limit 1
    ) as first on true`);
}

async function clearMarks(tx: Tx, hash: KeyedHash, hit: Hit[], reason: LiftReason, by: Actor): Promise<void> {
  const marked = hit.filter(({ do_not_contact_reason }) => do_not_contact_reason !== null);
  const free = (await entriesHitting(tx, hash, marked)).filter(({ entry_id }) => entry_id === null);
  const ids = free.map(({ id }) => id).sort();
  if (ids.length === 0) return;
  await tx.all(sql`
    update recruitment.prospect t
    set do_not_contact_reason = null, do_not_contact_since = null, updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = any(${ids})`);
  for (const prospect_id of ids) {
    tx.emit(event('do_not_contact.lifted', tx.organization_id, { prospect_id, reason, by_user_id: by.user_id }));
  }
  recordActivity(
    tx,
    'do_not_contact_lifted',
    by,
    ids.map((prospect_id) => ({ prospect_id, data: { reason } })),
  );
}
