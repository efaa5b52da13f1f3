/** Marks who must not be written to, in three layers, and lifts the marks. */
import sql, { type Sql } from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import { most_at_once } from '../../core/jobs/task.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { newId } from '../../core/values/id.ts';
import { Problem } from '../../core/values/problem.ts';
import type { Actor } from '../brands/acting.ts';
import { recordActivity } from '../prospects/activity.ts';
import { lockSuppressions } from '../prospects/barred_site.ts';
import { type KeyedHash, keyedHash } from '../prospects/keyed_hash.ts';
import type { Prospect } from '../prospects/prospect.ts';
import { endSequences, stopSequences } from '../sequences/stop.ts';
import { hashesOf, hashOfDomain, normaliseDomain } from './address.ts';
import { refreshEmailStatus } from './email_status.ts';
import {
  type Bar,
  type LiftReason,
  type Note,
  prospectsHit,
  refreshBars,
  refreshMarks,
  refreshOthers,
  requestRefresh,
  sitesHit,
  storedBar,
  strongestEntries,
} from './refresh_bars.ts';
import {
  endOf,
  lasting_reasons,
  openedEntry,
  outranks,
  type Reason,
  type Suppression,
  suppressions,
  weakest_first,
} from './suppression.ts';
import { subscribeAgain } from './take_back.ts';

export type Target =
  | { kind: 'address'; email: string }
  /** An address by its hash, where it may be that nobody knows it in the clear any more. */
  | { kind: 'address'; hmac: Buffer; email: string | null }
  | { kind: 'domain'; domain: string }
  | { kind: 'prospect'; prospect_id: string };

/**
 * Bars an address, a domain or a prospect. Tells `do_not_contact.added` for each prospect that is marked by it, or for a stronger reason than
 * before; an unsubscribe sets `unsubscribed_at` instead and emits nothing. Of what is barred already, a stronger reason replaces a weaker one.
 * @param because.others prospects whom it concerns besides those that are barred by it: who held an address, and holds it no longer
 * @param because.source_message_id the message whose text was classified to ask for it: a person can take that back (`take_back.ts`). Whatever else says the same makes it last
 * @returns the entry that holds, its value sealed, and whether anything changed
 */
export async function suppress(
  tx: Tx,
  vault: Vault,
  target: Target,
  reason: Reason,
  by: Actor,
  { others = [], source_message_id = null }: Because = {},
): Promise<{ entry: Suppression; changed: boolean }> {
  await lockSuppressions(tx);
  const hash = await keyedHash(tx, vault);
  const existing = await suppressions.find(tx, sql`${tenant(tx)} and t.lifted_at is null and ${entryOn(hash, target)}`);
  const entry = existing ?? (await insertEntry(tx, vault, hash, target, reason, by, source_message_id));
  const is_stronger = existing !== undefined && outranks(reason, existing.reason);
  if (is_stronger || (existing?.reason === reason && source_message_id === null))
    await noteSource(tx, entry, source_message_id);
  const besides = existing && !is_stronger ? await noteBesides(tx, entry, reason, source_message_id) : [];
  const holds = is_stronger ? await suppressions.update(tx, entry.id, { reason }) : entry;
  const hit = barOf(hash, target);
  const part = await prospectsHit(tx, hit);
  const noted = await bar(tx, hash, [...new Set([...part, ...(await sitesHit(tx, hit)), ...others])], {
    id: entry.id,
    reason,
    by,
  });
  await endSequences(tx, writesTo(hit), endOf(reason), most_at_once);
  await refreshOthers(tx, entry, { part, noted: reason, by });
  return { entry: holds, changed: existing === undefined || is_stronger || noted || besides.length > 0 };
}

/** Marks some of the prospects that an entry hits, and ends their sequences, silently. @returns whether something changed besides marks */
async function bar(
  tx: Tx,
  hash: KeyedHash,
  ids: string[],
  { id, reason, by }: { id: string; reason: Reason; by: Actor },
): Promise<boolean> {
  await refreshMarks(tx, hash, ids, by);
  const noted = await noteReason(tx, ids, id, reason, by);
  await refreshEmailStatus(tx, ids);
  if (reason !== 'hard_bounce') await stopSequences(tx, ids, endOf(reason));
  return noted;
}

/** The next part of the prospects that an entry hits: what its changes have noted in their order, then the marks, by what bars them now. */
export async function refreshNext(tx: Tx, vault: Vault, { id, by }: { id: string; by: Actor }): Promise<void> {
  await lockSuppressions(tx);
  const left = await tx.maybe<{ after: string; notes: Note[] }>(sql`
    select t.refresh_after as after, t.refresh_notes as notes
    from recruitment.suppression t
    where ${tenant(tx)} and t.id = ${id} and t.refresh_after is not null`);
  if (!left) return;
  const entry = openedEntry(vault, await suppressions.get(tx, id));
  const part = await prospectsHit(tx, await storedBar(tx, entry), left.after);
  for (const note of left.notes) await makeNote(tx, part, entry, note, by);
  const mistaken = left.notes.includes('taken_back') ? 'mistake' : undefined;
  await refreshBars(tx, await keyedHash(tx, vault), part, by, (entry.lift_reason as LiftReason | null) ?? mistaken);
  const is_last = part.length < most_at_once;
  await tx.all(sql`
    update recruitment.suppression t
    set refresh_after = ${is_last ? null : part.at(-1)}, refresh_notes = ${is_last ? [] : left.notes}::text[]
    where ${tenant(tx)} and t.id = ${id}`);
  if (!is_last) requestRefresh(tx, id, by);
}

async function makeNote(tx: Tx, part: string[], { id }: Suppression, note: Note, by: Actor): Promise<void> {
  if (note === 'taken_back') {
    await subscribeAgain(tx, part);
    return;
  }
  await noteReason(tx, part, id, note, by);
  if (note !== 'hard_bounce') await stopSequences(tx, part, endOf(note));
}

interface Because {
  others?: string[];
  source_message_id?: string | null;
}

/** Updates an entry that gets another reason, or whose reason is now given by a person or a provider rather than by a classified text. */
const noteSource = (tx: Tx, { id, reason }: Suppression, source_message_id: string | null): Promise<object[]> =>
  tx.all(sql`
    update recruitment.suppression t
    set
      reason_before = case
        when ${source_message_id}::text is null then null
        when t.source_message_id = ${source_message_id} then t.reason_before
        else ${reason}
      end,
      source_message_id = ${source_message_id}
    where ${tenant(tx)} and t.id = ${id}`);

/** Stores the reason that others give for an entry that a classified text asked for. It holds once the classification is taken back. */
const noteBesides = (
  tx: Tx,
  { id }: Suppression,
  reason: Reason,
  source_message_id: string | null,
): Promise<object[]> =>
  tx.all(sql`
    update recruitment.suppression t set reason_before = ${reason}
    where ${tenant(tx)} and t.id = ${id} and t.reason <> ${reason} and t.source_message_id is not null and t.source_message_id is distinct from ${source_message_id}
      and (
        t.reason_before is null
        or array_position(${weakest_first}::text[], t.reason_before) < array_position(${weakest_first}::text[], ${reason})
      )
    returning t.id`);

/** The sequences that write to what is barred, whoever holds it now. Those that are left are not sent: the job ends them, or their turn does. */
function writesTo(barred: Bar): Sql {
  if (barred.kind === 'prospect') return sql`t.prospect_id = ${barred.prospect_id}`;
  return barred.kind === 'address' ? sql`t.address_hmac = ${barred.hmac}` : sql`t.domain_hmac = ${barred.hmac}`;
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
  source_message_id: string | null,
): Promise<Suppression> {
  const entry_id = newId('fdn');
  const given =
    target.kind === 'prospect'
      ? { prospect_id: target.prospect_id }
      : { hmac: hmacOf(hash, target), value: sealed(vault, clearTextOf(target), entry_id) };
  const values = { id: entry_id, kind: target.kind, reason, by_user_id: by.user_id, source_message_id, ...given };
  return (await suppressions.insert(tx, values)) as Suppression;
}

const sealed = (vault: Vault, value: string | null, entry_id: string): Buffer | null =>
  value === null ? null : vault.encrypt(value, entry_id);

const clearTextOf = (target: Exclude<Target, { kind: 'prospect' }>): string | null =>
  target.kind === 'address' ? target.email : normaliseDomain(target.domain);

function barOf(hash: KeyedHash, target: Target): Bar {
  if (target.kind === 'prospect') return target;
  const hmac = hmacOf(hash, target);
  return target.kind === 'address'
    ? { kind: 'address', hmac }
    : { kind: 'domain', hmac, domain: normaliseDomain(target.domain) };
}

/** Stores the effects of an unsubscribe or a bounce, whatever else bars the address. @returns whether something changed */
export async function noteReason(
  tx: Tx,
  prospect_ids: string[],
  entry_id: string,
  reason: Reason,
  by: Actor,
): Promise<boolean> {
  if (reason === 'unsubscribed') return noteUnsubscribed(tx, prospect_ids, by);
  return reason === 'hard_bounce' && noteBounced(tx, prospect_ids, entry_id);
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

async function noteBounced(tx: Tx, prospect_ids: string[], entry_id: string): Promise<boolean> {
  const changed = await tx.all(sql`
    update recruitment.email_address a set bounced_at = ${tx.now}::timestamptz
    from recruitment.suppression t
    where ${tenant(tx)} and t.id = ${entry_id}
      and a.organization_id = t.organization_id and a.address_hmac = t.hmac
      and a.prospect_id = any(${prospect_ids}) and a.bounced_at is null
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
  const part = await prospectsHit(tx, await storedBar(tx, entry));
  await refreshBars(tx, await keyedHash(tx, vault), part, by, reason);
  await refreshOthers(tx, entry, { part, noted: null, by });
  return { ...(lifted as Suppression), value: entry.value };
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
