/**
 * Step 4 of an email that was sent, or may have been: what follows for its thread, its sequence, its prospect and its inbox.
 *
 * - `unknown` goes on as `sent` does (thread, next step, counters), emits nothing and does not count in the prospect's stats. A sequence whose first email
 *   is unknown waits for a person (`is_held`), who has the email sent again or resumes the sequence.
 * - An invitation moves the prospect to `contacted` too; tests move, count and emit nothing.
 */
import sql, { type Sql } from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { newId } from '../../core/values/id.ts';
import { nobody } from '../brands/acting.ts';
import type { Schedule } from '../campaigns/window.ts';
import { day_ms, dueAfter, zoneOf } from '../campaigns/window.ts';
import { event } from '../events/event.ts';
import { recordActivity } from '../prospects/activity.ts';
import type { Purpose } from '../sequences/message.ts';

/** The outcome of an email: it was accepted, or that is unknown. */
export interface Ended {
  message_id: string;
  as: 'sent' | 'unknown';
  /** The Message-ID that the server gave it. */
  other_id?: string | null;
}

interface Row {
  id: string;
  state: 'sending' | 'unknown';
  purpose: Purpose;
  brand_id: string;
  prospect_id: string | null;
  campaign_id: string | null;
  sequence_id: string | null;
  inbox_id: string;
  thread_id: string | null;
  sequence_thread_id: string | null;
  step_index: number | null;
  subject: string | null;
  email_address_id: string | null;
  /** True if its sequence is open. Null: it has none. */
  is_open: boolean | null;
  schedule: Schedule | null;
  reply_wait_days: number | null;
  /** Null: it was the last step. */
  next_delay_days: number | null;
  default_timezone: string;
  timezone: string | null;
  country_code: string | null;
}

/**
 * Records what became of emails, and all that follows. An email whose outcome is known already is left as it is; one that was `unknown` and turns
 * out to be sent emits `message.sent` now.
 * @returns the ids of those that are sent now
 */
export async function recordEnds(tx: Tx, ends: Ended[]): Promise<string[]> {
  const ids = ends.map(({ message_id }) => message_id);
  const [stages, , rows] = await Promise.all([lockProspects(tx, ids), lockSequences(tx, ids), lockMessages(tx, ids)]);
  const as = new Map(ends.map((end) => [end.message_id, end.as]));
  const other_ids = new Map(ends.map((end) => [end.message_id, end.other_id]));
  const changed = rows.filter(({ id, state }) => state === 'sending' || as.get(id) === 'sent');
  const sent = changed.filter(({ id }) => as.get(id) === 'sent');
  const advanced = changed.filter(({ state }) => state === 'sending');
  const threads = writeThreads(tx, advanced);
  writeMessages(
    tx,
    changed.map((row) => ({
      id: row.id,
      state: as.get(row.id) as string,
      thread_id: threads.get(row.id) ?? row.thread_id,
      other_id: other_ids.get(row.id) ?? null,
    })),
  );
  writeSequences(tx, advanced, threads, as);
  releaseSequences(tx, sent);
  writeAddresses(tx, advanced);
  writeInboxes(tx, sent);
  emitSent(tx, sent, new Set(stages.flatMap(({ id, stage }) => (stage === 'found' ? [id] : []))));
  return sent.map(({ id }) => id);
}

/** Locks in the order of locks: prospects, sequences, messages, threads, inboxes. */
const lockProspects = (tx: Tx, ids: string[]): Promise<{ id: string; stage: string }[]> =>
  tx.all(sql`
    select p.id, p.stage from recruitment.prospect p
    where p.organization_id = ${tx.organization_id} and p.id in (
      select t.prospect_id from recruitment.message t where ${tenant(tx)} and t.id = any(${ids})
    )
    order by p.id
    for no key update`);

const lockSequences = (tx: Tx, ids: string[]): Promise<object[]> =>
  tx.all(sql`
    select from recruitment.sequence s
    where s.organization_id = ${tx.organization_id} and s.id in (
      select t.sequence_id from recruitment.message t where ${tenant(tx)} and t.id = any(${ids})
    )
    order by s.id
    for no key update`);

const lockMessages = (tx: Tx, ids: string[]): Promise<Row[]> =>
  tx.all<Row>(sql`
    select t.id, t.state, t.purpose, t.brand_id, t.prospect_id, t.campaign_id, t.sequence_id, t.inbox_id, t.thread_id,
      s.thread_id as sequence_thread_id, t.step_index, t.subject, t.email_address_id, s.open as is_open, c.schedule, c.reply_wait_days,
      (c.steps -> (t.step_index + 1) ->> 'delay_days')::integer as next_delay_days, b.default_timezone, p.timezone, p.country_code
    from recruitment.message t
    join recruitment.brand b on b.organization_id = t.organization_id and b.id = t.brand_id
    left join recruitment.sequence s on s.organization_id = t.organization_id and s.id = t.sequence_id
    left join recruitment.campaign c on c.organization_id = t.organization_id and c.id = t.campaign_id
    left join recruitment.prospect p on p.organization_id = t.organization_id and p.id = t.prospect_id
    where ${tenant(tx)} and t.id = any(${ids}) and t.direction = 'outbound' and t.state in ('sending', 'unknown')
    order by t.id
    for no key update of t`);

/** "Threads made at the first mail." @returns the thread of each message that has one */
function writeThreads(tx: Tx, rows: Row[]): Map<string, string> {
  const threaded = rows
    .filter(({ purpose }) => purpose !== 'test')
    .map((row) => {
      const known = row.thread_id ?? row.sequence_thread_id;
      return { ...row, thread_id: known ?? newId('fth'), is_new: known === null };
    });
  const made = threaded
    .filter(({ is_new }) => is_new)
    .map(({ thread_id: id, brand_id, prospect_id, inbox_id, campaign_id, sequence_id, subject }) => ({
      ...{ id, brand_id, prospect_id, inbox_id, campaign_id, sequence_id, subject },
    }));
  if (made.length > 0) {
    tx.atCommit(sql`
      insert into recruitment.thread (organization_id, id, brand_id, prospect_id, inbox_id, campaign_id, sequence_id, subject, messages,
        last_message_at, created_at, updated_at)
      select ${tx.organization_id}, g.id, g.brand_id, g.prospect_id, g.inbox_id, g.campaign_id, g.sequence_id, g.subject, 1,
        ${tx.now}::timestamptz, ${tx.now}::timestamptz, ${tx.now}::timestamptz
      from ${given(made, sql`id text, brand_id text, prospect_id text, inbox_id text, campaign_id text, sequence_id text, subject text`)}`);
  }
  const continued = threaded.filter(({ is_new }) => !is_new).map(({ thread_id }) => thread_id);
  if (continued.length > 0) {
    tx.atCommit(sql`
      update recruitment.thread t
      set messages = t.messages + 1, last_message_at = ${tx.now}::timestamptz, updated_at = ${tx.now}::timestamptz
      where ${tenant(tx)} and t.id = any(${continued})`);
  }
  return new Map(threaded.map(({ id, thread_id }) => [id, thread_id]));
}

/** The wait before an email that may have been sent is looked for again. */
const first_look_up_s = 300;

const writeMessages = (
  tx: Tx,
  rows: { id: string; state: string; thread_id: string | null; other_id: string | null }[],
): unknown =>
  rows.length > 0 &&
  tx.atCommit(sql`
    update recruitment.message t set
      state = g.state, phase = null, claimed_by = null, thread_id = g.thread_id, server_answer = null, updated_at = ${tx.now}::timestamptz,
      sent_at = case when g.state = 'sent' then ${tx.now}::timestamptz end,
      look_up_at = case when g.state = 'unknown' then ${tx.now}::timestamptz + make_interval(secs => ${first_look_up_s}) end,
      other_message_ids = case
        when g.other_id is null or g.other_id = any(t.rfc_message_id || t.other_message_ids) then t.other_message_ids
        else t.other_message_ids || g.other_id
      end
    from ${given(rows, sql`id text, state text, thread_id text, other_id text`)}
    where ${tenant(tx)} and t.id = g.id`);

/** Lets sequences go on whose first email is known to be sent: nothing is left for a person to decide. */
function releaseSequences(tx: Tx, sent: Row[]): void {
  const found = sent.filter(({ state, step_index }) => state === 'unknown' && step_index === 0);
  if (found.length === 0) return;
  const ids = found.map(({ sequence_id }) => sequence_id);
  tx.atCommit(sql`
    update recruitment.sequence t set is_held = false, updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = any(${ids}) and t.is_held`);
}

/**
 * The next step's time; after the last step, when "all out and reply_wait_days over". What may be nothing is followed by nothing: a sequence whose
 * first email is unknown waits for a person.
 */
function writeSequences(tx: Tx, rows: Row[], threads: Map<string, string>, as: Map<string, Ended['as']>): void {
  const now = new Date(tx.now);
  const advanced = rows.flatMap((row) => {
    if (row.sequence_id === null || row.step_index === null || !row.schedule) return [];
    return {
      id: row.sequence_id,
      next_step: row.step_index + 1,
      thread_id: threads.get(row.id),
      due_at: nextTime(row, now).toISOString(),
      is_held: row.step_index === 0 && as.get(row.id) === 'unknown',
    };
  });
  if (advanced.length === 0) return;
  tx.atCommit(sql`
    update recruitment.sequence t set
      next_step = g.next_step, thread_id = g.thread_id, due_at = g.due_at, is_held = g.is_held, last_sent_at = ${tx.now}::timestamptz, updated_at = ${tx.now}::timestamptz,
      state = case when t.state = 'waiting' then 'active' else t.state end
    from ${given(advanced, sql`id text, next_step integer, thread_id text, due_at timestamptz, is_held boolean`)}
    where ${tenant(tx)} and t.id = g.id`);
}

function nextTime({ schedule, next_delay_days, reply_wait_days, default_timezone, ...prospect }: Row, now: Date): Date {
  if (next_delay_days === null) return new Date(now.getTime() + (reply_wait_days ?? 0) * day_ms);
  return dueAfter(schedule as Schedule, zoneOf(schedule as Schedule, prospect, default_timezone), now, next_delay_days);
}

const writeAddresses = (tx: Tx, rows: Row[]): unknown =>
  rows.length > 0 &&
  tx.atCommit(sql`
    update recruitment.email_address a set used_at = ${tx.now}::timestamptz
    where a.organization_id = ${tx.organization_id} and a.used_at is null
      and a.id = any(${rows.flatMap(({ email_address_id, purpose }) => (email_address_id !== null && purpose !== 'test' ? [email_address_id] : []))})`);

/** Clears what was wrong with inboxes. */
const writeInboxes = (tx: Tx, rows: Row[]): unknown =>
  rows.length > 0 &&
  tx.atCommit(sql`
    update recruitment.inbox t set waits_until = null, wait_s = null, auth_failures = 0, unreachable_since = null
    where ${tenant(tx)} and t.id = any(${[...new Set(rows.map(({ inbox_id }) => inbox_id))]})
      and (t.waits_until is not null or t.wait_s is not null or t.auth_failures > 0 or t.unreachable_since is not null)`);

/** Emits "message.sent → affiliate.stage_changed", by nobody: first sent → contacted. @param new_ones the prospects that nobody has written to */
function emitSent(tx: Tx, rows: Row[], new_ones: Set<string>): void {
  const occurred_at = tx.now;
  const move = { from: 'found', to: 'contacted', reason: 'message_sent' } as const;
  const recorded: Parameters<typeof recordActivity>[3] = [];
  const moved: typeof recorded = [];
  for (const row of rows) {
    const { id: message_id, brand_id, prospect_id, campaign_id, sequence_id, inbox_id, step_index, purpose } = row;
    if (prospect_id === null || purpose === 'test') continue;
    if (campaign_id !== null && sequence_id !== null && step_index !== null) {
      tx.emit(
        event('message.sent', tx.organization_id, {
          ...{ brand_id, prospect_id, campaign_id, sequence_id, inbox_id, occurred_at, message_id, step_index },
        }),
      );
    }
    recorded.push({ prospect_id, data: { message_id, purpose, campaign_id, step_index } });
    if (!new_ones.delete(prospect_id)) continue;
    tx.emit(event('affiliate.stage_changed', tx.organization_id, { prospect_id, ...move, by_user_id: null }));
    moved.push({ prospect_id, data: move });
  }
  recordActivity(tx, 'message_sent', nobody, recorded);
  recordActivity(tx, 'stage_changed', nobody, moved);
  const written = rows.flatMap(({ prospect_id, purpose }) =>
    prospect_id === null || purpose === 'test' ? [] : [{ id: prospect_id }],
  );
  if (written.length === 0) return;
  tx.atCommit(sql`
    update recruitment.prospect t set
      sent = t.sent + g.count, last_sent_at = ${tx.now}::timestamptz, updated_at = ${tx.now}::timestamptz,
      stage = case when t.stage = 'found' then 'contacted' else t.stage end
    from (select g.id, count(*)::integer as count from ${given(written, sql`id text`)} group by g.id) as g
    where ${tenant(tx)} and t.id = g.id`);
}

const given = (rows: object[], columns: Sql): Sql =>
  sql`json_to_recordset(${JSON.stringify(rows)}::json) as g (${columns})`;
