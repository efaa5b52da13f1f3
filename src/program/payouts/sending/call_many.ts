/** Calls rails about many attempts that were written just now: intents in one transaction, some calls at a time, outcomes in groups. */
import sql from 'sql-template-tag';
import { turnsOfEach } from '../../../core/jobs/turns.ts';
import type { TaskContext } from '../../../core/jobs/worker_context.ts';
import { batched } from '../../../core/postgres/batch.ts';
import { type Tx, transaction } from '../../../core/postgres/transaction.ts';
import { tenant } from '../../../core/resource/resource.ts';
import { Problem } from '../../../core/values/problem.ts';
import { attemptColumns, type PayoutAttempt, updateAttempt } from '../attempt.ts';
import { payouts } from '../payout.ts';
import type { Transfer } from '../rails/rail.ts';
import { type Call, call_ms, callAbout, claim_ms, contextOf, credentialsFor, railOf } from './call_rail.ts';
import { type Answered, record, recordMany } from './record_answer.ts';

/** Payouts that were sent just now, each with the number of its attempt, and what caused that. */
export interface CalledMany {
  organization_id: string;
  request_id: string | null;
  attempts: { id: string; number: number }[];
}

type Context = Pick<TaskContext, 'store' | 'services' | 'cut_off' | 'stopping' | 'log'>;

/** An attempt that is this worker's alone until then. */
interface Claimed extends Call {
  claimed_until: string;
}

/** How many calls a worker makes for an organization at a time. */
const inTurnToCall = turnsOfEach(16);
/** How many jobs of an organization have claimed attempts at a time: the calls of one are made while the last outcomes of another are written. */
const inTurnToClaim = turnsOfEach(2);
/** How many outcomes that are more than a change of their attempts are written at a time. */
const inTurnToWriteAlone = turnsOfEach(8);
const most_written = 100;
/** How long an outcome waits for others. */
const gather_ms = 5;

/**
 * Calls the rail about each attempt, and writes the outcomes. What fails of one concerns no other. What there is no time for is left to the next
 * poll.
 * @throws the first failure, once all others are done
 */
export async function callAboutMany(called: CalledMany, context: Context): Promise<void> {
  const { organization_id, request_id, attempts } = called;
  const claimed = await inTurnToClaim(organization_id, () => callClaimed(called, context));
  const left = attempts.filter(({ id, number }) => !claimed.has(keyOf(id, number)));
  await all(
    left.map(({ id, number }) =>
      inTurnToCall(organization_id, async () => {
        if (!context.stopping.aborted) await callAbout({ organization_id, request_id, id, number }, context);
      }),
    ),
  );
}

const keyOf = (payout_id: string, number: number): string => `${payout_id}-${number}`;

/** @returns the ids of the attempts that were claimed. The others are called about by themselves. */
async function callClaimed(called: CalledMany, context: Context): Promise<Set<string>> {
  const { organization_id } = called;
  const { store, stopping, services } = context;
  if (stopping.aborted) return new Set();
  const begin_until = performance.now() + claim_ms - call_ms;
  const claimed = await transaction(store, called, (tx) => claim(tx, called, services)).catch(noneUnlessUnavailable);
  const write = writerOf(called, context);
  const not_called: Claimed[] = [];
  const call = async (one: Claimed): Promise<void> => {
    const answered = await inTurnToCall(organization_id, async () =>
      stopping.aborted || performance.now() > begin_until ? undefined : ask(one, called, context),
    );
    if (!answered) not_called.push(one);
    else await write(answered);
  };
  await all(claimed.map(call)).finally(() => release(called, not_called, context));
  return new Set(claimed.map(({ attempt }) => attempt.id));
}

/** One of them cannot be claimed, such as one that cannot be decrypted. */
function noneUnlessUnavailable(error: unknown): [] {
  if (error instanceof Problem && error.code === 'service_unavailable') throw error;
  return [];
}

/** Waits for all of it. @throws the first failure */
async function all(work: Promise<unknown>[]): Promise<void> {
  const failed = (await Promise.allSettled(work)).find((result) => result.status === 'rejected');
  if (failed) throw failed.reason;
}

/**
 * The attempts, for this worker alone until the claim runs out: in doubt from now on, and returned as they were. Not among them: those that were
 * called about already, and those whose payout another transaction has locked.
 */
async function claim(
  tx: Tx,
  { attempts }: CalledMany,
  services: Pick<TaskContext['services'], 'vault'>,
): Promise<Claimed[]> {
  const claimed_until = new Date(Date.parse(tx.now) + claim_ms).toISOString();
  const claimed = await tx.all<PayoutAttempt>(sql`
    with locked as materialized (
      select t.id
      from ${payouts.from}
      where ${tenant(tx)} and t.id = any(${attempts.map(({ id }) => id)})
      order by t.id
      for no key update of t skip locked
    )
    update program.payout_attempt t
    set status = 'in_doubt', last_sent_at = ${tx.now}::timestamptz, claimed_until = ${claimed_until}::timestamptz,
      next_poll_at = ${claimed_until}::timestamptz
    from locked l
    where ${tenant(tx)} and t.payout_id = l.id and t.id = any(${attempts.map(({ id, number }) => keyOf(id, number))})
      and t.status = 'prepared' and t.claimed_until is null
    returning ${attemptColumns}`);
  const credentials = credentialsFor(tx, services);
  const found = claimed.map(async (row): Promise<Claimed> => {
    const attempt: PayoutAttempt = { ...row, status: 'prepared', last_sent_at: null };
    const transfer = JSON.parse(services.vault.decrypt(attempt.request, attempt.id)) as Transfer;
    return { attempt, transfer, credentials: await credentials(attempt), claimed_until };
  });
  return Promise.all(found);
}

/** No call was made about them: a refusal of the next is as definite as one of the first. Whoever claimed one of them since then keeps it. */
async function release(called: CalledMany, claimed: Claimed[], { store }: Context): Promise<void> {
  const [first] = claimed;
  if (!first) return;
  await transaction(store, called, (tx) =>
    tx.all(sql`
      update program.payout_attempt t
      set status = 'prepared', last_sent_at = null, claimed_until = null, next_poll_at = ${tx.now}::timestamptz
      where ${tenant(tx)} and t.id = any(${claimed.map(({ attempt }) => attempt.id)}) and t.status = 'in_doubt'
        and t.claimed_until = ${first.claimed_until}::timestamptz`),
  );
}

async function ask(
  call: Call,
  called: CalledMany,
  { store, services, cut_off }: Pick<Context, 'store' | 'services' | 'cut_off'>,
): Promise<Answered> {
  const { attempt, transfer, credentials } = call;
  let kept: Answered['kept'];
  const context = contextOf(call, services, cut_off, async (state, options) => {
    if (options?.with_outcome) kept = state;
    else await transaction(store, called, (tx) => updateAttempt(tx, attempt.id, { state }));
  });
  const answer = await railOf(attempt).submit(transfer, credentials, context);
  return { attempt, answer, kept };
}

/** Writes outcomes in groups: those that come while a group is written, or shortly after one another. */
function writerOf(called: CalledMany, { store }: Context): (answered: Answered) => Promise<void> {
  const writeAlone = (one: Answered): Promise<unknown> =>
    inTurnToWriteAlone(called.organization_id, () => transaction(store, called, (tx) => record(tx, one))).catch(
      (error: unknown) => ({ error }),
    );
  const writeGroup = async (group: Answered[]) => {
    const left = new Set(
      await transaction(store, called, (tx) => recordMany(tx, group)).catch((error) => {
        noneUnlessUnavailable(error);
        return group;
      }),
    );
    return Promise.all(group.map((one) => (left.has(one) ? writeAlone(one) : undefined)));
  };
  const write = batched(writeGroup, { most: most_written, canWait: () => true, max_wait_ms: gather_ms });
  return async (answered) => {
    const failed = (await write(answered)) as { error: unknown } | undefined;
    if (failed) throw failed.error;
  };
}
