/** Claims the next email of each queue (step 1): chooses it, reserves what it counts towards, and stores it before anything is sent. */
import sql from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import { LostRace } from '../../core/postgres/errors.ts';
import { holdState } from '../../core/postgres/hold.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { nextMidnight } from '../campaigns/window.ts';
import { gapSeconds } from '../inboxes/inbox.ts';
import { holdSuppressions } from '../prospects/barred_site.ts';
import { type Chosen, chooseEmails } from './choose.ts';
import { type Draft, draftsOf } from './letter.ts';
import { heldUntil, lockQueues, planLeft, type Queue, reserve, sendingCampaigns } from './limits.ts';
import { type Before, sentBefore } from './look_back.ts';
import { cancel, type Recovered, recover } from './recover.ts';

/** The next thing that a queue does. */
export type Claim =
  | { is: 'send'; message: Claimed }
  | Recovered
  /** The database was restored: what it sent since then is to be looked for. */
  | { is: 'look_back'; since: string }
  /** Nothing is to be sent before. Null: nothing waits. */
  | { is: 'rest'; until: string | null; reason: Rest };

type Rest = 'gap' | 'cap' | 'plan' | 'idle' | 'disconnected' | 'held';

export interface Claimed extends Draft {
  attempts: number;
  /** It was sent, or may have been, by a state of the database that is lost. */
  before: Before | undefined;
  /** The earliest time of the next email of its inbox. */
  next_slot_at: string;
}

interface Claiming {
  worker_id: string;
  vault: Vault;
  base_url: string;
  /** From 0 to less than 1: spreads the gaps. */
  random: () => number;
}
/**
 * Claims one email for each of these inboxes of an organization, as far as there is one to send. Waits for nobody: what others have locked is
 * left to them.
 * @param inbox_ids of queues from which this worker sends nothing just now: what it has claimed from them was left behind
 * @throws LostRace, after which the transaction is run again
 */
export async function claim(tx: Tx, inbox_ids: string[], claiming: Claiming): Promise<Claim[]> {
  const now = new Date(tx.now);
  const [{ is_held, restored_at }, , queues, campaigns, plan] = await Promise.all([
    holdState(tx),
    holdSuppressions(tx),
    lockQueues(tx, inbox_ids),
    sendingCampaigns(tx, now),
    planLeft(tx),
  ]);
  if (is_held) return inbox_ids.map(() => ({ is: 'rest', until: null, reason: 'held' }));
  const claims = new Map<string, Claim>(await recover(tx, queues, claiming.worker_id));
  for (const { id, looks_back_to: since } of queues)
    if (since !== null && !claims.has(id)) claims.set(id, { is: 'look_back', since });
  const free = queues.filter(({ id, is_deleted }) => !claims.has(id) && !is_deleted);
  const plans = free.flatMap((queue) => (queue.planned === null ? [] : [{ queue, message_id: queue.planned }]));
  const others = free.filter((queue) => queue.planned === null);
  for (const queue of others) {
    const held =
      heldUntil(queue, now) ??
      (plan.left === 0 ? { until: nextMidnight('UTC', now), reason: 'plan' as const } : undefined);
    if (held) claims.set(queue.id, { is: 'rest', until: held.until.toISOString(), reason: held.reason });
  }
  const chosen = await chooseEmails(
    tx,
    others.filter(({ id }) => !claims.has(id)),
    { campaigns, plan, now, is_restored: restored_at !== null },
  );
  await writeClaims(tx, { plans, chosen }, claims, claiming);
  for (const queue of others)
    if (!claims.has(queue.id)) claims.set(queue.id, { is: 'rest', until: null, reason: 'idle' });
  await rest(tx, claims);
  return inbox_ids.map((id) => claims.get(id) ?? { is: 'busy' });
}

interface Plan {
  queue: Queue;
  message_id: string;
}

async function writeClaims(
  tx: Tx,
  { plans, chosen }: { plans: Plan[]; chosen: Chosen[] },
  claims: Map<string, Claim>,
  { worker_id, vault, base_url, random }: Claiming,
): Promise<void> {
  if (plans.length + chosen.length === 0) return;
  const queues = [...plans, ...chosen].map(({ queue }) => ({ id: queue.id, gap_s: gapSeconds(queue, random()) }));
  const ids = [...plans.map(({ message_id }) => message_id), ...chosen.map(({ message }) => message.id)];
  const [claimed_plans, claimed_chosen, , slots, drafts, plans_before] = await Promise.all([
    plans.length === 0 ? [] : claimPlanned(tx, plans, worker_id),
    chosen.length === 0 ? [] : claimChosen(tx, chosen, worker_id),
    reserve(tx, [
      ...plans.map(({ queue }) => ({ inbox_id: queue.id, day: queue.day, campaign: null })),
      ...chosen.map(({ queue, counted }) => ({ inbox_id: queue.id, day: queue.day, campaign: counted })),
    ]),
    moveSlots(tx, queues),
    draftsOf(tx, vault, base_url, ids),
    sentBefore(
      tx,
      plans.map(({ message_id }) => message_id),
    ),
  ]);
  const attempts = new Map([...claimed_plans, ...claimed_chosen].map((row) => [row.id, row.attempts]));
  if (attempts.size < ids.length) throw new Error('A message that was claimed is not there.');
  const slot_of = new Map(slots.map(({ id, next_slot_at }) => [id, next_slot_at]));
  const draft_of = new Map(drafts.map((draft) => [draft.message_id, draft]));
  if (chosen.some(({ message }) => !draft_of.has(message.id))) throw new LostRace('An address was deleted.');
  await cancel(
    tx,
    plans.map(({ message_id }) => message_id).filter((id) => !draft_of.has(id)),
  );
  for (const { queue, message_id, before } of [
    ...plans.map((plan) => ({ ...plan, before: plans_before.get(plan.message_id) })),
    ...chosen.map(({ queue, message, before }) => ({ queue, message_id: message.id, before })),
  ]) {
    const draft = draft_of.get(message_id);
    if (!draft) continue;
    const message = {
      ...draft,
      before,
      attempts: attempts.get(message_id) as number,
      next_slot_at: slot_of.get(queue.id) as string,
    };
    claims.set(queue.id, { is: 'send', message });
  }
}

/**
 * "Same row, same Message-ID": a step that was claimed before has its message. One whose sequence has got another inbox since, because it was stopped
 * before it was sent, goes from that one.
 */
const claimChosen = (tx: Tx, chosen: Chosen[], worker_id: string): Promise<{ id: string; attempts: number }[]> => {
  const rows = chosen.map(({ queue, candidate, message, counted }) => ({
    ...message,
    ...{ inbox_id: queue.id, day: queue.day, campaign_day: counted.day, is_limited: counted.daily_sends !== null },
    ...{ brand_id: candidate.brand_id, prospect_id: candidate.prospect_id, campaign_id: candidate.campaign_id },
    ...{ sequence_id: candidate.id, thread_id: candidate.thread_id, step_index: candidate.next_step },
    ...{ email_address_id: candidate.email_address_id, address: candidate.address_hmac, domain: candidate.domain_hmac },
  }));
  return tx.all(sql`
    insert into recruitment.message as t (organization_id, id, thread_id, brand_id, prospect_id, campaign_id, sequence_id, inbox_id, direction,
      purpose, state, phase, step_index, variant, subject, body_text, body_html, rfc_message_id, in_reply_to, reference_ids, email_address_id,
      address_hmac, domain_hmac, attempts, first_attempt_at, claimed_by, claimed_at, counted_on, campaign_counted_on, organization_counted_on,
      created_at, updated_at)
    select ${tx.organization_id}, g.id, g.thread_id, g.brand_id, g.prospect_id, g.campaign_id, g.sequence_id, g.inbox_id, 'outbound',
      'sequence', 'sending', 'claimed', g.step_index, g.variant, g.subject, g.body_text, g.body_html, g.rfc_message_id, g.in_reply_to,
      array(select json_array_elements_text(g.reference_ids)), g.email_address_id, decode(g.address, 'hex'), decode(g.domain, 'hex'), 1,
      ${tx.now}::timestamptz, ${worker_id}, ${tx.now}::timestamptz, g.day, g.campaign_day,
      case when g.is_limited then (${tx.now}::timestamptz at time zone 'UTC')::date end, ${tx.now}::timestamptz, ${tx.now}::timestamptz
    from json_to_recordset(${JSON.stringify(rows)}::json) as g (id text, thread_id text, brand_id text, prospect_id text, campaign_id text,
      sequence_id text, inbox_id text, step_index integer, variant integer, subject text, body_text text, body_html text, rfc_message_id text,
      in_reply_to text, reference_ids json, email_address_id text, address text, domain text, day date, campaign_day date, is_limited boolean)
    on conflict (organization_id, id) do update set
      state = 'sending', phase = 'claimed', variant = excluded.variant, subject = excluded.subject, body_text = excluded.body_text,
      body_html = excluded.body_html, attempts = t.attempts + 1, claimed_by = excluded.claimed_by, claimed_at = excluded.claimed_at,
      inbox_id = excluded.inbox_id, rfc_message_id = excluded.rfc_message_id,
      first_attempt_at = coalesce(t.first_attempt_at, excluded.first_attempt_at), email_address_id = excluded.email_address_id,
      address_hmac = excluded.address_hmac, domain_hmac = excluded.domain_hmac, counted_on = excluded.counted_on,
      campaign_counted_on = excluded.campaign_counted_on, organization_counted_on = excluded.organization_counted_on,
      updated_at = excluded.updated_at
    where t.state in ('planned', 'cancelled')
    returning t.id, t.attempts`);
};

const claimPlanned = (tx: Tx, plans: Plan[], worker_id: string): Promise<{ id: string; attempts: number }[]> => {
  const rows = plans.map(({ queue, message_id }) => ({ id: message_id, day: queue.day }));
  return tx.all(sql`
    update recruitment.message t set
      state = 'sending', phase = 'claimed', attempts = t.attempts + 1, claimed_by = ${worker_id}, claimed_at = ${tx.now}::timestamptz,
      first_attempt_at = coalesce(t.first_attempt_at, ${tx.now}::timestamptz), due_at = null, counted_on = g.day, updated_at = ${tx.now}::timestamptz
    from json_to_recordset(${JSON.stringify(rows)}::json) as g (id text, day date)
    where ${tenant(tx)} and t.id = g.id and t.state = 'planned'
    returning t.id, t.attempts`);
};

/** An inbox that had nothing to send since its last slot was not tried meanwhile: that it could not be reached then says nothing of the time between. */
const moveSlots = (tx: Tx, queues: { id: string; gap_s: number }[]): Promise<{ id: string; next_slot_at: string }[]> =>
  tx.all(sql`
    update recruitment.inbox t set
      next_slot_at = ${tx.now}::timestamptz + make_interval(secs => g.gap_s), rests_until = null, rests_for = null,
      unreachable_since = case when t.next_slot_at > ${tx.now}::timestamptz - interval '15 minutes' then t.unreachable_since end
    from json_to_recordset(${JSON.stringify(queues)}::json) as g (id text, gap_s integer)
    where ${tenant(tx)} and t.id = g.id
    returning t.id, t.next_slot_at`);

/** Queues that have reached a limit of the day are left alone until the next one begins. What raises the limit ends their rest. */
async function rest(tx: Tx, claims: Map<string, Claim>): Promise<void> {
  const resting = [...claims].flatMap(([id, claimed]) =>
    claimed.is === 'rest' && (claimed.reason === 'cap' || claimed.reason === 'plan') ? [{ id, ...claimed }] : [],
  );
  if (resting.length === 0) return;
  await tx.all(sql`
    update recruitment.inbox t set rests_until = g.until, rests_for = g.reason
    from json_to_recordset(${JSON.stringify(resting)}::json) as g (id text, until timestamptz, reason text)
    where ${tenant(tx)} and t.id = g.id and (t.rests_until, t.rests_for) is distinct from (g.until, g.reason)`);
}
