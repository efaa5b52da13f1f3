/** Calls rails about attempts, through the outbox: intent, call, outcome, and the look-up of a lost answer. */
import sql from 'sql-template-tag';
import { CallUnfinished, type Channel, makeCall, type Outcome } from '../../../core/jobs/outbox.ts';
import type { TaskContext } from '../../../core/jobs/worker_context.ts';
import { type Tx, together, transaction } from '../../../core/postgres/transaction.ts';
import { databaseTime } from '../../../core/values/clock.ts';
import { attemptsWhere, type PayoutAttempt, updateAttempt } from '../attempt.ts';
import { lockPayout } from '../attempt_outcome.ts';
import { credentialsOf } from '../credentials/rail_credentials.ts';
import type { Credentials, RailName, RailOutcome, Transfer, TransferContext } from '../rails/rail.ts';
import { providerUrl, rails } from '../rails/rails.ts';
import { isOpen, record } from './record_answer.ts';

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
export interface Call {
  attempt: PayoutAttempt;
  transfer: Transfer;
  credentials: Credentials;
}

type Result = Outcome & { rail: RailOutcome };

/** Longer than a rail takes for all the calls of one transfer. */
export const claim_ms = 180_000;
export const call_ms = 120_000;

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
      if (!is_noted) await noted({ last_sent_at: new Date(databaseTime()).toISOString() }, request);
      return resultOf(await railOf(attempt).submit(transfer, credentials, asked(request)));
    },
    /** What was not accepted so far is sent again, under its key: rails pay that once. */
    async lookUp({ request }) {
      const { attempt, transfer, credentials } = request;
      if (attempt.status !== 'processing') return undefined;
      const found = await railOf(attempt).lookUp(transfer, credentials, asked(request));
      return found && resultOf(found);
    },
    record: (tx, { request }, { rail }) => record(tx, { attempt: request.attempt, answer: rail, kept }),
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
  const { id, request, status } = attempt;
  const claimed_until = new Date(Date.parse(tx.now) + claim_ms).toISOString();
  const claimed = updateAttempt(tx, id, {
    ...{ claimed_until, next_poll_at: claimed_until },
    ...(status === 'prepared' ? { status: 'in_doubt' as const, last_sent_at: tx.now } : {}),
  });
  const [, credentials] = await together([claimed, credentialsFor(tx, { vault })(attempt)]);
  return { attempt, transfer: JSON.parse(vault.decrypt(request, id)) as Transfer, credentials };
}

/** What attempts were sent with, each version read once. */
export function credentialsFor(
  tx: Tx,
  { vault }: Pick<TaskContext['services'], 'vault'>,
): (attempt: PayoutAttempt) => Promise<Credentials> {
  const known = new Map<string, Promise<Credentials>>();
  return ({ program_id, rail, credentials_version }) => {
    const key = JSON.stringify([program_id, rail, credentials_version]);
    const read =
      known.get(key) ??
      credentialsOf(tx, vault, program_id, rail as RailName, credentials_version as number).then(
        ({ credentials }) => credentials,
      );
    known.set(key, read);
    return read;
  };
}

export const railOf = ({ rail }: PayoutAttempt) => rails[rail as RailName];

export function contextOf(
  { attempt }: Call,
  { provider_urls }: TaskContext['services'],
  cut_off: AbortSignal,
  keep: TransferContext['keep'],
): TransferContext {
  const { rail, mode, last_sent_at, state } = attempt;
  return {
    ...{ mode, last_sent_at, state, keep, now: new Date(databaseTime()) },
    url: providerUrl(rail as RailName, mode, provider_urls),
    cut_off: AbortSignal.any([cut_off, AbortSignal.timeout(call_ms)]),
  };
}

function resultOf(rail: RailOutcome): Result {
  if (rail.status === 'later' || rail.status === 'unknown') return { status: rail.status, reason: rail.reason, rail };
  if (rail.status === 'failed') return { status: 'refused', reason: rail.error_message, rail };
  return { status: 'succeeded', reference: rail.reference, rail };
}

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
  await transaction(store, opening, (tx) => record(tx, { attempt, answer: found ?? nothingFound(attempt) }));
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
