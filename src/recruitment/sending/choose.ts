/** Chooses which email each queue sends next: the first sequence that is due, once its rules hold. Part of step 1, inside its transaction. */
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { newId } from '../../core/values/id.ts';
import { type FailedSequence, failSequences } from '../campaigns/end.ts';
import { requestSchedule } from '../campaigns/reschedule.ts';
import { type End, endEach } from '../sequences/stop.ts';
import { type Candidate, check, lockCandidates, type Rendered, rendered } from './candidates.ts';
import { type Counted, canBeOpen, type Queue, type Sending } from './limits.ts';
import { type Before, keyOf, sentBefore } from './look_back.ts';

/** An email that a sequence sends now. */
export interface Chosen {
  queue: Queue;
  candidate: Candidate;
  message: Rendered;
  before: Before | undefined;
  counted: NonNullable<Counted['campaign']>;
}

/** Sequences of a queue that are checked at a time, once the first one could not be sent to. */
const most_checked = 50;
const most_rounds = 4;

interface Limits {
  campaigns: Sending[];
  plan: { left: number; daily_sends: number | null };
  now: Date;
  /** True if the lost part of the database may have sent some of it before. */
  is_restored: boolean;
}

/** Chooses the first email of each queue that can be sent. Moves the sequences that cannot send now, and fails those that never can. */
export async function chooseEmails(tx: Tx, queues: Queue[], limits: Limits): Promise<Chosen[]> {
  const open = limits.campaigns.filter((campaign) => canBeOpen(campaign, limits.now));
  const choice: Choice = { chosen: [], sent_to: new Map(), before: new Map(), limits };
  const to_schedule = new Set<string>();
  let waiting = queues;
  for (let round = 0; round < most_rounds && waiting.length > 0 && open.length > 0; round++) {
    const ids = waiting.map(({ id }) => id);
    const candidates = await lockCandidates(tx, ids, open, round === 0 ? 1 : most_checked);
    if (limits.is_restored) await noteBefore(tx, candidates, choice);
    const { later, unscheduled, over, failed } = chooseFrom(candidates, waiting, choice);
    await Promise.all([move(tx, later), failSequences(tx, failed), unschedule(tx, unscheduled), endEach(tx, over)]);
    for (const { campaign_id } of unscheduled) to_schedule.add(campaign_id);
    const found = new Set(candidates.map(({ inbox_id }) => inbox_id));
    waiting = waiting.filter(({ id }) => found.has(id) && !hasEmail(choice, id));
    if (choice.chosen.length >= limits.plan.left) break;
  }
  for (const campaign_id of to_schedule) requestSchedule(tx, campaign_id);
  return choice.chosen;
}

/** The emails that are chosen so far, and how many go to each company of a campaign. */
interface Choice {
  chosen: Chosen[];
  sent_to: Map<string, number>;
  /** By their sequences. */
  before: Map<string, Before>;
  limits: Limits;
}

async function noteBefore(tx: Tx, candidates: Candidate[], { before }: Choice): Promise<void> {
  const keys = new Map(candidates.map((candidate) => [candidate.id, keyOf(candidate)]));
  const known = await sentBefore(tx, [...keys.values()]);
  for (const [id, key] of keys) {
    const one = known.get(key);
    if (one) before.set(id, one);
  }
}

const hasEmail = ({ chosen }: Choice, inbox_id: string): boolean => chosen.some(({ queue }) => queue.id === inbox_id);

/** The sequences that are not sent to now. */
interface NotSent {
  later: { id: string; due_at: string }[];
  unscheduled: Candidate[];
  over: { id: string; end: End }[];
  failed: FailedSequence[];
}

/** Adds the first candidate of each queue that can be sent to. */
function chooseFrom(candidates: Candidate[], queues: Queue[], choice: Choice): NotSent {
  const not_sent: NotSent = { later: [], unscheduled: [], over: [], failed: [] };
  const { campaigns, plan, now } = choice.limits;
  for (const candidate of candidates) {
    const { id } = candidate;
    const campaign = campaigns.find((one) => one.id === candidate.campaign_id) as Sending;
    const company = `${candidate.campaign_id} ${candidate.company_hmac}`;
    const sent_to = choice.sent_to.get(company) ?? 0;
    const checked = check({ ...candidate, sent_to_company: candidate.sent_to_company + sent_to }, campaign, now);
    if (checked.is === 'later') not_sent.later.push({ id, due_at: checked.due_at.toISOString() });
    if (checked.is === 'unscheduled') not_sent.unscheduled.push(candidate);
    if (checked.is === 'over') not_sent.over.push({ id, end: checked.end });
    if (checked.is === 'unfit') not_sent.failed.push({ id, reason: checked.reason });
    if (checked.is !== 'fit' || hasEmail(choice, candidate.inbox_id) || choice.chosen.length >= plan.left) continue;
    const queue = queues.find((one) => one.id === candidate.inbox_id) as Queue;
    const before = choice.before.get(id);
    const message = rendered(candidate, queue, candidate.message_id ?? before?.message_id ?? newId('fms'));
    if (!message) {
      not_sent.failed.push({ id, reason: 'template_error' });
      continue;
    }
    if (candidate.next_step === 0) campaign.begun++;
    choice.sent_to.set(company, sent_to + 1);
    const counted = countedOf(candidate, campaign, plan.daily_sends);
    choice.chosen.push({ queue, candidate, message, before, counted });
  }
  return not_sent;
}

const countedOf = (candidate: Candidate, campaign: Sending, daily_sends: number | null): Chosen['counted'] => ({
  ...{ campaign_id: campaign.id, day: campaign.day, is_first: candidate.next_step === 0 },
  ...{ daily_new_limit: campaign.daily_new_limit, company: candidate.company_hmac },
  ...{ max_per_domain_day: candidate.max_per_domain_day, daily_sends },
});

const move = async (tx: Tx, moved: { id: string; due_at: string }[]): Promise<unknown> =>
  moved.length > 0 &&
  tx.all(sql`
    update recruitment.sequence t set due_at = g.due_at, updated_at = ${tx.now}::timestamptz
    from json_to_recordset(${JSON.stringify(moved)}::json) as g (id text, due_at timestamptz)
    where ${tenant(tx)} and t.id = g.id`);

/** Takes the address and the inbox from sequences, so that they are scheduled anew, or fail where no address is left. */
async function unschedule(tx: Tx, candidates: Candidate[]): Promise<void> {
  if (candidates.length === 0) return;
  await tx.all(sql`
    update recruitment.sequence t
    set due_at = null, inbox_id = null, address_hmac = null, domain_hmac = null, company_hmac = null, updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = any(${candidates.map(({ id }) => id)})`);
}
