/**
 * Step 4 of an email that was not sent: it was refused for good, or is tried again.
 *
 * - A refused recipient (5.1.x) emits `message.failed`, bars the address as a hard bounce and ends its sequences as `bounced`.
 * - A refused login or a server that cannot be reached says nothing of the email, which is planned again, and is tried after a minute. A connection that is
 *   lost before the end may say something of it: it is tried again after a minute, then twice as long each time, behind the others of its inbox, for up to
 *   24 hours.
 * - A server is unreachable since the first of failed attempts in a row; an inbox that had nothing to send for 15 minutes in between begins anew.
 */
import sql from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { nobody } from '../brands/acting.ts';
import { finishCampaigns } from '../campaigns/end.ts';
import { guardBounces } from '../campaigns/pause.ts';
import { event } from '../events/event.ts';
import type { DisconnectedReason } from '../inboxes/inbox.ts';
import { isSmtpRefusal } from '../inboxes/mail_server.ts';
import { recordActivity } from '../prospects/activity.ts';
import { lockSuppressions } from '../prospects/barred_site.ts';
import type { Refusal } from '../sequences/sequence.ts';
import {
  type Answer,
  classifyAnswer,
  give_up_ms,
  isAboutLogin,
  nextWait,
  reconnectAfter,
  retryAfter,
  type Verdict,
} from './answer.ts';
import { barBounced } from './record_bounce.ts';
import { cancel, planAgain } from './recover.ts';

/** The reason why an email was not sent. */
export type Unsent =
  | { is: 'answered'; verdict: Verdict; answer: string }
  /** The login was refused. */
  | { is: 'auth' }
  /** The server cannot be reached. */
  | { is: 'unreachable' }
  /** The connection was lost before the final dot: by the server, or by what it says to this email. */
  | { is: 'lost' }
  /** Its parts cannot stand in a message. */
  | { is: 'unusable'; reason: Extract<Refusal, 'recipient_refused' | 'too_large'> };

/** Says what an answer that is no success means. One about the login says nothing of the email. */
export function unsentBy(answer: Answer): Unsent {
  if (isAboutLogin(answer)) return { is: isSmtpRefusal(answer.text) ? 'auth' : 'unreachable' };
  return { is: 'answered', verdict: classifyAnswer(answer), answer: answer.text || `${answer.code}` };
}

interface Row {
  id: string;
  purpose: string;
  brand_id: string;
  prospect_id: string | null;
  campaign_id: string | null;
  sequence_id: string | null;
  inbox_id: string;
  step_index: number | null;
  attempts: number;
  first_attempt_at: string;
}

/** Answers are kept for people to read; a server may write a novel. */
const most_answer = 500;
const most_auth_failures = 3;
const unreachable_ms = 15 * 60_000;
const reconnect_s = 60;

/**
 * Writes why a message was not sent, and what follows. Does nothing where others have claimed it since, or its outcome is known.
 * @returns why its inbox is to be disconnected, in a transaction of its own: campaigns are locked before inboxes
 */
export async function recordUnsent(
  tx: Tx,
  vault: Vault,
  { message_id, attempts }: { message_id: string; attempts: number },
  unsent: Unsent,
): Promise<DisconnectedReason | undefined> {
  const is_hard = unsent.is === 'answered' && unsent.verdict.is === 'refused' && unsent.verdict.bounce === 'dead';
  if (is_hard) await lockSuppressions(tx);
  const row = await lockRow(tx, message_id, attempts);
  if (!row) return undefined;
  if (unsent.is === 'auth' || unsent.is === 'unreachable') {
    const reason = await noteFault(tx, row, unsent.is);
    await planAgain(tx, [row.id]);
    return reason;
  }
  if (unsent.is === 'lost') {
    const reason = await noteFault(tx, row, 'unreachable');
    await tryLater(tx, vault, row, { reason: 'timeout', answer: null, after_ms: reconnectAfter(row.attempts) });
    return reason;
  }
  await recordAnswer(tx, vault, row, unsent);
  return undefined;
}

async function recordAnswer(
  tx: Tx,
  vault: Vault,
  row: Row,
  unsent: Exclude<Unsent, { is: 'auth' | 'unreachable' | 'lost' }>,
): Promise<void> {
  if (unsent.is === 'unusable') return fail(tx, vault, row, { reason: unsent.reason, answer: null, bounce: null });
  const answer = unsent.answer.slice(0, most_answer);
  const { verdict } = unsent;
  if (verdict.is === 'refused') return fail(tx, vault, row, { reason: verdict.reason, answer, bounce: verdict.bounce });
  if (verdict.is === 'quota') {
    await waitForQuota(tx, row);
    return tryLater(tx, vault, row, { reason: 'quota', answer, after_ms: 0 });
  }
  return tryLater(tx, vault, row, { reason: 'timeout', answer, after_ms: retryAfter(row.attempts) });
}

/** Locks in the order of locks, as far as the message goes. */
async function lockRow(tx: Tx, message_id: string, attempts: number): Promise<Row | undefined> {
  const of = sql`select t.campaign_id, t.prospect_id, t.sequence_id from recruitment.message t where ${tenant(tx)} and t.id = ${message_id}`;
  const [, , , rows] = await Promise.all([
    tx.all(
      sql`select from recruitment.campaign c where c.organization_id = ${tx.organization_id} and c.id in (select m.campaign_id from (${of}) m) for no key update`,
    ),
    tx.all(
      sql`select from recruitment.prospect p where p.organization_id = ${tx.organization_id} and p.id in (select m.prospect_id from (${of}) m) for no key update`,
    ),
    tx.all(
      sql`select from recruitment.sequence s where s.organization_id = ${tx.organization_id} and s.id in (select m.sequence_id from (${of}) m) for no key update`,
    ),
    tx.all<Row>(sql`
      select t.id, t.purpose, t.brand_id, t.prospect_id, t.campaign_id, t.sequence_id, t.inbox_id, t.step_index, t.attempts, t.first_attempt_at
      from recruitment.message t
      where ${tenant(tx)} and t.id = ${message_id} and t.state = 'sending' and t.attempts = ${attempts}
      for no key update`),
  ]);
  return rows[0];
}

/** "535: three refusals disconnect; unreachable for 15 minutes: connection_failed." */
async function noteFault(
  tx: Tx,
  { inbox_id }: Row,
  fault: 'auth' | 'unreachable',
): Promise<DisconnectedReason | undefined> {
  const found = await tx.maybe<{ auth_failures: number; unreachable_since: string | null }>(sql`
    update recruitment.inbox t set
      auth_failures = t.auth_failures + ${fault === 'auth' ? 1 : 0},
      unreachable_since = case when ${fault} = 'unreachable' then coalesce(t.unreachable_since, ${tx.now}::timestamptz) end,
      next_slot_at = greatest(t.next_slot_at, ${tx.now}::timestamptz + make_interval(secs => ${reconnect_s}))
    where ${tenant(tx)} and t.id = ${inbox_id} and t.status = 'connected'
    returning t.auth_failures, t.unreachable_since`);
  if (!found) return undefined;
  const since =
    found.unreachable_since === null
      ? undefined
      : new Date(tx.now).getTime() - new Date(found.unreachable_since).getTime();
  if (fault === 'auth') return found.auth_failures >= most_auth_failures ? 'auth_failed' : undefined;
  return since !== undefined && since >= unreachable_ms ? 'connection_failed' : undefined;
}

/** "The inbox waits an hour, doubling." */
async function waitForQuota(tx: Tx, { inbox_id }: Row): Promise<void> {
  const { wait_s } = await tx.one<{ wait_s: number | null }>(
    sql`select t.wait_s from recruitment.inbox t where ${tenant(tx)} and t.id = ${inbox_id} for no key update`,
  );
  const wait = nextWait(wait_s);
  await tx.all(sql`
    update recruitment.inbox t set wait_s = ${wait}, waits_until = ${tx.now}::timestamptz + make_interval(secs => ${wait})
    where ${tenant(tx)} and t.id = ${inbox_id}`);
}

interface Later {
  /** The reason why it fails once 24 hours are over. */
  reason: Extract<Refusal, 'quota' | 'timeout'>;
  /** Null: the server gave none. */
  answer: string | null;
  after_ms: number;
}

/** Others of the inbox go before it, and it is not tried for longer than 24 hours from its first attempt on. */
async function tryLater(tx: Tx, vault: Vault, row: Row, { reason, answer, after_ms }: Later): Promise<void> {
  const { id, sequence_id, first_attempt_at } = row;
  const is_late = new Date(tx.now).getTime() - new Date(first_attempt_at).getTime() >= give_up_ms;
  if (is_late) return fail(tx, vault, row, { reason, answer, bounce: null });
  await planAgain(tx, [id]);
  const due_at = new Date(new Date(tx.now).getTime() + after_ms).toISOString();
  await tx.all(sql`
    update recruitment.message t
    set server_answer = coalesce(${answer}, t.server_answer), first_attempt_at = ${first_attempt_at}::timestamptz,
      due_at = case when t.sequence_id is null then ${due_at}::timestamptz end
    where ${tenant(tx)} and t.id = ${id}`);
  if (sequence_id !== null) {
    await tx.all(
      sql`update recruitment.sequence t set due_at = ${due_at}::timestamptz, updated_at = ${tx.now}::timestamptz where ${tenant(tx)} and t.id = ${sequence_id} and t.open`,
    );
  }
}

interface Failure {
  reason: Refusal;
  answer: string | null;
  bounce: Extract<Verdict, { is: 'refused' }>['bounce'];
}

/** Emits `message.failed`. The sequence has failed with it; a dead address ends all sequences to it as bounced. */
async function fail(tx: Tx, vault: Vault, row: Row, { reason, answer, bounce }: Failure): Promise<void> {
  const { id, prospect_id, sequence_id, campaign_id } = row;
  await cancel(tx, [id]);
  await tx.all(sql`
    update recruitment.message t set
      state = 'failed', failed_reason = ${reason}, server_answer = ${answer}, updated_at = ${tx.now}::timestamptz,
      bounced_at = case when ${bounce !== null} then ${tx.now}::timestamptz end, bounce_reason = ${bounce}
    where ${tenant(tx)} and t.id = ${id}`);
  if (row.purpose === 'test') return;
  emitFailed(tx, row, reason);
  if (prospect_id !== null)
    recordActivity(tx, 'message_failed', nobody, [{ prospect_id, data: { message_id: id, reason } }]);
  if (bounce === 'dead') await barBounced(tx, vault, id);
  if (sequence_id !== null) {
    await tx.all(sql`
      update recruitment.sequence t
      set state = 'failed', failed_reason = ${reason}, ended_at = ${tx.now}::timestamptz, updated_at = ${tx.now}::timestamptz
      where ${tenant(tx)} and t.id = ${sequence_id} and t.open`);
  }
  if (campaign_id === null) return;
  if (bounce !== null) await guardBounces(tx, campaign_id);
  await finishCampaigns(tx, [campaign_id]);
}

function emitFailed(
  tx: Tx,
  { brand_id, prospect_id, campaign_id, sequence_id, inbox_id, step_index }: Row,
  reason: Refusal,
): void {
  if (prospect_id === null || campaign_id === null || sequence_id === null || step_index === null) return;
  tx.emit(
    event('message.failed', tx.organization_id, {
      ...{ brand_id, prospect_id, campaign_id, sequence_id, inbox_id, step_index, reason },
      occurred_at: tx.now,
    }),
  );
}
