/** Writes what becomes of attempts by the answers of their rails. */
import sql from 'sql-template-tag';
import { type Tx, together } from '../../../core/postgres/transaction.ts';
import { tenant } from '../../../core/resource/resource.ts';
import { mailOwner } from '../../programs/mail_owner.ts';
import {
  type AttemptChanges,
  attemptsWhere,
  attemptUpdate,
  isOpen,
  type PayoutAttempt,
  updateAttempt,
} from '../attempt.ts';
import { type AnyPayout, applyOutcome, isSettledBySuccess, lockPayouts } from '../attempt_outcome.ts';
import type { RailName, RailOutcome } from '../rails/rail.ts';
import { rails } from '../rails/rails.ts';
import { type Settlement, settlePaid } from '../settle.ts';
import { nextPollAt } from './poll_time.ts';

/** The answer of a rail, or its absence. */
export interface Answered {
  /** The attempt as it was when the rail was called. */
  attempt: PayoutAttempt;
  answer: RailOutcome;
  /** The state that the attempt keeps from now on. */
  kept?: PayoutAttempt['state'] | undefined;
}

/** The number of commissions that a group settles: each is an event, and all are in memory at once. */
const most_commissions = 2_000;

/**
 * Writes what rails answered about attempts, or that there was no answer: in a few statements what changes nothing but the attempt, and payouts that
 * are paid by it.
 * @returns of several, the answers that are not written, because there is more to them, or too much: each is to be written alone
 */
export async function record(tx: Tx, answers: Answered[]): Promise<Answered[]> {
  const locked = await lockAttempts(tx, answers);
  const left: Answered[] = [];
  const rows: object[] = [];
  const settlements = new Map<string, Settlement & { payout: AnyPayout }>();
  let commissions = 0;
  for (const answered of answers) {
    const { answer } = answered;
    const found = locked.get(answered.attempt.id);
    if (!found) continue;
    const { attempt, payout } = found;
    if (isPlain(attempt, answer, tx.now)) {
      rows.push({ id: attempt.id, ...changesBy(answered, attempt, attempt.status, tx.now) });
    } else if (
      pays(found, answer) &&
      !settlements.has(payout.id) &&
      commissions + payout.commission_count <= most_commissions
    ) {
      commissions += payout.commission_count;
      rows.push({ id: attempt.id, ...changesBy(answered, attempt, 'paid', tx.now), ...paidBy(answer, tx.now) });
      settlements.set(payout.id, settlementBy(payout, answer));
    } else if (answers.length === 1) await recordOne(tx, found, answered);
    else left.push(answered);
  }
  if (rows.length > 0) await updateMany(tx, rows);
  if (settlements.size > 0) await settlePaid(tx, 'succeed', [...settlements.values()]);
  return left;
}

async function recordOne(tx: Tx, { attempt, payout }: Locked, answered: Answered): Promise<void> {
  const { answer } = answered;
  const is_terminal = answer.status === 'paid' || answer.status === 'failed' || answer.status === 'returned';
  const status = is_terminal ? await applyOutcome(tx, payout, attempt, answer) : attempt.status;
  tx.atCommit(attemptUpdate(tx, attempt.id, changesBy(answered, attempt, status, tx.now)));
  await notifyOwner(tx, attempt, answer);
}

type Paid = RailOutcome & { status: 'paid' };

/** Pays its payout, and that is all: it was open, and nobody is paid twice or by a rail in test mode. */
const pays = ({ attempt, payout }: Locked, answer: RailOutcome): answer is Paid =>
  answer.status === 'paid' &&
  answer.reference !== null &&
  isOpen(attempt.status) &&
  payout.livemode &&
  isSettledBySuccess(payout);

const paidBy = ({ reference }: Paid, now: string) => ({ status: 'paid', reference, settled: true, ended_at: now });

const settlementBy = (payout: AnyPayout, { reference, paid_at, fee_minor }: Paid) => ({
  ...{ payout, external_id: reference, paid_at, fee_minor },
});

/** Changes nothing but its attempt, and emits nothing. */
const isPlain = (attempt: PayoutAttempt, answer: RailOutcome, now: string): boolean =>
  ['processing', 'later', 'unknown'].includes(answer.status) && ownersPart(attempt, answer, now) === undefined;

interface Locked {
  attempt: PayoutAttempt;
  payout: AnyPayout;
}

/** The attempts with their payouts, by their ids. */
async function lockAttempts(tx: Tx, answers: Answered[]): Promise<Map<string, Locked>> {
  const [of_attempts, attempts] = await together([
    lockPayouts(
      tx,
      answers.map(({ attempt }) => attempt.payout_id),
    ),
    attemptsWhere(tx, sql`t.id = any(${answers.map(({ attempt }) => attempt.id)})`),
  ]);
  const payouts = new Map(of_attempts.map((payout) => [payout.id, payout]));
  return new Map(
    attempts.map((attempt) => [attempt.id, { attempt, payout: payouts.get(attempt.payout_id) as AnyPayout }]),
  );
}

/** Fields that are left out of a row stay as they are. */
const updateMany = (tx: Tx, rows: object[]): Promise<object[]> =>
  tx.all(sql`
    update program.payout_attempt t
    set state = coalesce(r.state, t.state), status = coalesce(r.status, t.status), reference = coalesce(r.reference, t.reference),
      last_sent_at = case when r.is_unsent then r.last_sent_at else t.last_sent_at end, looked_up_at = coalesce(r.looked_up_at, t.looked_up_at),
      last_answer = r.last_answer, polls = r.polls, claimed_until = null, next_poll_at = r.next_poll_at,
      settled = coalesce(r.settled, t.settled), ended_at = coalesce(r.ended_at, t.ended_at)
    from json_to_recordset(${JSON.stringify(rows.map((row) => ({ ...row, is_unsent: 'last_sent_at' in row })))}::json) as r (
      id text, state jsonb, status text, reference text, is_unsent boolean, last_sent_at timestamptz, looked_up_at timestamptz, last_answer text,
      polls integer, next_poll_at timestamptz, settled boolean, ended_at timestamptz
    )
    where ${tenant(tx)} and t.id = r.id`);

/**
 * @param attempt as it was before the outcome
 * @param ended its status since then
 */
function changesBy(
  { attempt: called, answer, kept }: Answered,
  attempt: PayoutAttempt,
  ended: PayoutAttempt['status'],
  now: string,
): AttemptChanges {
  const is_accepted = answer.status === 'processing' && isOpen(ended);
  const status = is_accepted ? 'processing' : ended;
  const polls = status === attempt.status ? attempt.polls + 1 : 0;
  return {
    ...(kept ? { state: kept } : {}),
    ...(is_accepted ? { status, reference: answer.reference ?? attempt.reference } : {}),
    // The call had no effect: what is known of the calls before it stands.
    ...(answer.status === 'later' ? { last_sent_at: called.last_sent_at } : {}),
    ...(answer.status === 'later' || answer.status === 'unknown' ? {} : { looked_up_at: now }),
    ...{ last_answer: answerText(answer), polls, claimed_until: null },
    next_poll_at: nextPollAt(status, polls, now, answer.status === 'later' ? answer.retry_after_s : 0),
  };
}

const answerText = (answer: RailOutcome): string =>
  answer.status === 'later' || answer.status === 'unknown' ? `${answer.status}: ${answer.reason}` : answer.status;

/** "After that only look up, and mail the owner: what is unknown stays `processing`." A person who has to do something is mailed too. Once each. */
async function notifyOwner(tx: Tx, attempt: PayoutAttempt, answer: RailOutcome): Promise<void> {
  const reason = ownersPart(attempt, answer, tx.now);
  if (reason === undefined || attempt.owner_notified_at !== null) return;
  await updateAttempt(tx, attempt.id, { owner_notified_at: tx.now });
  mailOwner(tx, {
    organization_id: tx.organization_id,
    subject: `Payout ${attempt.payout_id} needs your attention`,
    text: `${reason}\n\nPayout: ${attempt.payout_id}\nIdempotency key: ${attempt.id}\n`,
  });
}

function ownersPart({ rail, began_at }: PayoutAttempt, answer: RailOutcome, now: string): string | undefined {
  if (answer.status === 'processing') return answer.note;
  const { key_life_s, title } = rails[rail as RailName];
  const is_stale = key_life_s !== null && Date.parse(now) - Date.parse(began_at) > key_life_s * 1000;
  if (answer.status !== 'unknown' || !is_stale) return undefined;
  return `${title} has not said for a long time whether a payout was paid, and it cannot be sent again without the risk of paying twice. It stays in processing, and Rail goes on asking. Look it up at ${title}.`;
}
