/** Calls rails about attempts, through the outbox: intent, call, outcome, and the look-up of a lost answer. */
import sql from 'sql-template-tag';
import { CallUnfinished, type Channel, makeCall, type Outcome } from '../../../core/jobs/outbox.ts';
import type { TaskContext } from '../../../core/jobs/worker_context.ts';
import { type Tx, together, transaction } from '../../../core/postgres/transaction.ts';
import { type AttemptChanges, attemptsWhere, attemptUpdate, type PayoutAttempt, updateAttempt } from '../attempt.ts';
import { applyOutcome, lockPayout } from '../attempt_outcome.ts';
import { credentialsOf } from '../credentials/rail_credentials.ts';
import type { Credentials, RailName, RailOutcome, Transfer, TransferContext } from '../rails/rail.ts';
import { providerUrl, rails } from '../rails/rails.ts';
import { nextPollAt } from './poll_time.ts';

/** A payout whose attempts are called about, and what caused that. */
export interface Called {
  organization_id: string;
  request_id: string | null;
  id: string;
  /** Its attempt, where that was sent just now: no other is open. */
  number?: number | undefined;
}

type Context = Pick<TaskContext, 'store' | 'services' | 'cut_off' | 'log'>;

/** An attempt as its rail needs it. */
interface Call {
  attempt: PayoutAttempt;
  transfer: Transfer;
  credentials: Credentials;
}

type Result = Outcome & { rail: RailOutcome };

/** Longer than a rail takes for all the calls of one transfer. */
const claim_ms = 180_000;
const call_ms = 120_000;

/**
 * Calls the rail about each attempt of a payout: sends what was not sent, asks what became of the others, and writes the outcome. Does nothing
 * for an attempt that another worker is calling about. What has no final outcome is asked about later, by `next_poll_at`.
 */
export async function callAbout(called: Called, context: Context): Promise<void> {
  const { organization_id, request_id, id, number: new_attempt } = called;
  if (new_attempt !== undefined) return settle(called, new_attempt, context);
  const attempts = await transaction(context.store, { organization_id, request_id }, (tx) =>
    attemptsWhere(tx, sql`t.payout_id = ${id} and t.rail in ('paypal', 'wise', 'stripe')`),
  );
  for (const { number, status } of attempts) {
    if (isOpen(status)) await settle(called, number, context);
    else await lookAgain(called, number, context);
  }
}

const isOpen = (status: PayoutAttempt['status']): boolean => ['prepared', 'in_doubt', 'processing'].includes(status);

/** @throws whatever is neither an answer of the rail nor the lack of one */
async function settle(called: Called, number: number, context: Context): Promise<void> {
  const { organization_id, id } = called;
  await makeCall(channelOf(called, number, context), { organization_id, id }, context).catch((error: unknown) => {
    if (!(error instanceof CallUnfinished)) throw error;
  });
}

function channelOf(called: Called, number: number, { store, services, cut_off }: Context): Channel<Call, Result> {
  const opening = { organization_id: called.organization_id, request_id: called.request_id };
  /** Whether `begin` has noted that the rail is asked to pay. */
  let is_noted = false;
  const noted = (changes: Parameters<typeof updateAttempt>[2], { attempt }: Call) =>
    transaction(store, opening, (tx) => updateAttempt(tx, attempt.id, changes));
  /** What the rail keeps from now on, and is written with the outcome. */
  let kept: PayoutAttempt['state'] | undefined;
  const asked = (call: Call) =>
    contextOf(call, services, cut_off, async (state, options) => {
      if (options?.with_outcome) kept = state;
      else await noted({ state }, call);
    });
  return {
    opening: () => opening,
    async read(tx) {
      const call = await claim(tx, called.id, number, services);
      if (!call || !isOpen(call.attempt.status)) return undefined;
      const in_doubt = call.attempt.status !== 'prepared';
      return { request: call, attempts: in_doubt ? number : number - 1, in_doubt };
    },
    /** `claim` has written it. */
    async begin() {
      is_noted = true;
    },
    async call({ request }) {
      const { attempt, transfer, credentials } = request;
      if (!is_noted) await noted({ last_sent_at: new Date().toISOString() }, request);
      return resultOf(await railOf(attempt).submit(transfer, credentials, asked(request)));
    },
    /** What was not accepted so far is sent again, under its key: rails pay that once. */
    async lookUp({ request }) {
      const { attempt, transfer, credentials } = request;
      if (attempt.status !== 'processing') return undefined;
      const found = await railOf(attempt).lookUp(transfer, credentials, asked(request));
      return found && resultOf(found);
    },
    record: (tx, { request }, { rail }) => record(tx, request.attempt, rail, kept),
  };
}

/**
 * The attempt with what it was sent as, for this worker alone until the claim runs out. Undefined where another worker has it. One that was never
 * called about is in doubt from now on, and is returned as it was.
 */
async function claim(
  tx: Tx,
  payout_id: string,
  number: number,
  { vault }: Pick<TaskContext['services'], 'vault'>,
): Promise<Call | undefined> {
  const unclaimed = sql`
    t.payout_id = ${payout_id} and t.number = ${number} and (t.claimed_until is null or t.claimed_until <= ${tx.now}::timestamptz)`;
  const [, [attempt]] = await together([lockPayout(tx, payout_id), attemptsWhere(tx, unclaimed)]);
  if (!attempt) return undefined;
  const { id, program_id, rail, credentials_version, request, status } = attempt;
  const claimed_until = new Date(Date.parse(tx.now) + claim_ms).toISOString();
  const claimed = updateAttempt(tx, id, {
    ...{ claimed_until, next_poll_at: claimed_until },
    ...(status === 'prepared' ? { status: 'in_doubt' as const, last_sent_at: tx.now } : {}),
  });
  const read = credentialsOf(tx, vault, program_id, rail as RailName, credentials_version as number);
  const [, { credentials }] = await together([claimed, read]);
  return { attempt, transfer: JSON.parse(vault.decrypt(request, id)) as Transfer, credentials };
}

const railOf = ({ rail }: PayoutAttempt) => rails[rail as RailName];

function contextOf(
  { attempt }: Call,
  { provider_urls }: TaskContext['services'],
  cut_off: AbortSignal,
  keep: TransferContext['keep'],
): TransferContext {
  const { rail, mode, last_sent_at, state } = attempt;
  return {
    ...{ mode, last_sent_at, state, keep, now: new Date() },
    url: providerUrl(rail as RailName, mode, provider_urls),
    cut_off: AbortSignal.any([cut_off, AbortSignal.timeout(call_ms)]),
  };
}

function resultOf(rail: RailOutcome): Result {
  if (rail.status === 'later' || rail.status === 'unknown') return { status: rail.status, reason: rail.reason, rail };
  if (rail.status === 'failed') return { status: 'refused', reason: rail.error_message, rail };
  return { status: 'succeeded', reference: rail.reference, rail };
}

/** Writes an answer of the rail, or that there was none. */
async function record(
  tx: Tx,
  called: PayoutAttempt,
  answer: RailOutcome,
  kept?: PayoutAttempt['state'],
): Promise<void> {
  const [payout, [attempt]] = await together([
    lockPayout(tx, called.payout_id),
    attemptsWhere(tx, sql`t.id = ${called.id}`),
  ]);
  if (!attempt) return;
  const is_terminal = answer.status === 'paid' || answer.status === 'failed' || answer.status === 'returned';
  const ended = is_terminal ? await applyOutcome(tx, payout, attempt, answer) : attempt.status;
  const is_accepted = answer.status === 'processing' && isOpen(ended);
  const status = is_accepted ? 'processing' : ended;
  const polls = status === attempt.status ? attempt.polls + 1 : 0;
  const changes: AttemptChanges = {
    ...(kept ? { state: kept } : {}),
    ...(is_accepted ? { status, reference: answer.reference ?? attempt.reference } : {}),
    // The call had no effect: what is known of the calls before it stands.
    ...(answer.status === 'later' ? { last_sent_at: called.last_sent_at } : {}),
    ...(answer.status === 'later' || answer.status === 'unknown' ? {} : { looked_up_at: tx.now }),
    ...{ last_answer: answerText(answer), polls, claimed_until: null },
    next_poll_at: nextPollAt(status, polls, tx.now, answer.status === 'later' ? answer.retry_after_s : 0),
  };
  tx.atCommit(attemptUpdate(tx, attempt.id, changes));
  await tellOwner(tx, attempt, answer);
}

const answerText = (answer: RailOutcome): string =>
  answer.status === 'later' || answer.status === 'unknown' ? `${answer.status}: ${answer.reason}` : answer.status;

/** Asks about an attempt that has ended: it may have come back, or have been paid after all. Pays nothing. */
async function lookAgain(called: Called, number: number, { store, services, cut_off }: Context): Promise<void> {
  const opening = { organization_id: called.organization_id, request_id: called.request_id };
  const call = await transaction(store, opening, (tx) => claim(tx, called.id, number, services));
  if (!call) return;
  const { attempt, transfer, credentials } = call;
  const context = contextOf(call, services, cut_off, (state) =>
    transaction(store, opening, (tx) => updateAttempt(tx, attempt.id, { state })),
  );
  const found = await railOf(attempt).lookUp(transfer, credentials, context);
  await transaction(store, opening, (tx) => record(tx, attempt, found ?? nothingFound(attempt)));
}

/** The rail has no such transfer: what failed stays failed, and nothing else ends so. */
const nothingFound = ({ status, reference, error_code }: PayoutAttempt): RailOutcome =>
  status === 'failed'
    ? {
        status,
        reference,
        error_code: error_code ?? 'provider_rejected',
        error_message: 'The rail has no such payment.',
      }
    : { status: 'unknown', reason: 'The rail does not know the payment.' };

/** "After that only look up, and mail the owner: what is unknown stays `processing`." And what a person has to do is told. Once each. */
async function tellOwner(tx: Tx, attempt: PayoutAttempt, answer: RailOutcome): Promise<void> {
  const reason = ownersPart(attempt, answer, tx.now);
  if (reason === undefined || attempt.owner_told_at !== null) return;
  await updateAttempt(tx, attempt.id, { owner_told_at: tx.now });
  tx.enqueue('program/mail_owner', {
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
