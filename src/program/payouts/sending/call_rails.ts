/** Calls rails about attempts, in lists: claims in one transaction, some calls at a time, outcomes in groups. */
import sql, { empty, type Sql } from 'sql-template-tag';
import { limitConcurrencyOfEach } from '../../../core/jobs/concurrency.ts';
import type { TaskContext } from '../../../core/jobs/worker_context.ts';
import { batched } from '../../../core/postgres/batch.ts';
import { holdState } from '../../../core/postgres/hold.ts';
import { type Tx, together, transaction } from '../../../core/postgres/transaction.ts';
import { tenant } from '../../../core/resource/resource.ts';
import { databaseTime } from '../../../core/values/clock.ts';
import { timeOfId } from '../../../core/values/id.ts';
import { Problem } from '../../../core/values/problem.ts';
import { attemptColumns, isOpen, open_attempt, type PayoutAttempt, updateAttempt } from '../attempt.ts';
import { credentialsOf } from '../credentials/rail_credentials.ts';
import { payouts } from '../payout.ts';
import {
  type Credentials,
  type RailName,
  type RailOutcome,
  rail_names,
  type Transfer,
  type TransferContext,
} from '../rails/rail.ts';
import { providerUrl, rails } from '../rails/rails.ts';
import { type Answered, record } from './record_answer.ts';

/** Payouts whose attempts are called about, and what caused that. */
export interface Called {
  organization_id: string;
  request_id: string | null;
  /** The payouts. With the number of its attempt: one that was sent just now. Without: all attempts of the payout, also those that have ended. */
  payouts: { id: string; number?: number | undefined }[];
}

type Context = Pick<TaskContext, 'store' | 'services' | 'cut_off' | 'stopping' | 'log'>;

/** An attempt as it was before it was claimed, this worker's alone until then. */
interface Claimed {
  attempt: PayoutAttempt;
  transfer: Transfer;
  credentials: Credentials;
  claimed_until: string;
}

/** Longer than a rail takes for all the calls of one transfer. */
const claim_ms = 180_000;
const call_ms = 120_000;
/** The number of calls that a worker makes for an organization at a time. */
const limitCalls = limitConcurrencyOfEach(16);
/** The number of lists of an organization that are claimed at a time: the calls of one are made while the last outcomes of another are written. */
const limitClaims = limitConcurrencyOfEach(2);
/** The number of outcomes that are written at a time outside of a group. */
const limitSingleWrites = limitConcurrencyOfEach(8);
const most_written = 100;
/** The time that an outcome waits for others. */
const gather_ms = 5;

/**
 * Asks rails to pay what was not sent, and what became of the rest, and writes the outcomes. What fails of one concerns no other. Does nothing for
 * an attempt that another worker is calling about. What has no final outcome is asked about later, by `next_poll_at`.
 * @throws the first failure, once all others are done
 */
export async function callAbout(called: Called, context: Context): Promise<void> {
  const { organization_id, payouts } = called;
  if (context.stopping.aborted) return;
  if (payouts.length === 1) {
    await callClaimed(called, context);
    return;
  }
  const claimed = await limitClaims(organization_id, () => callClaimed(called, context));
  const left = payouts.filter(({ id }) => !claimed.has(id));
  await all(left.map((one) => limitClaims(organization_id, () => callAbout({ ...called, payouts: [one] }, context))));
}

/** @returns the payouts whose attempts were claimed. Of several, each of the others is called about by itself. */
async function callClaimed(called: Called, context: Context): Promise<Set<string>> {
  const { store, stopping, services } = context;
  const begin_until = performance.now() + claim_ms - call_ms;
  const claimed = await transaction(store, called, (tx) => claim(tx, called, services)).catch((error: unknown) => {
    // One of them cannot be claimed, such as one that cannot be decrypted.
    if (called.payouts.length === 1 || isUnavailable(error)) throw error;
    return [];
  });
  const write = writerOf(called, context);
  const not_called: Claimed[] = [];
  const call = async (one: Claimed): Promise<void> => {
    const answered = await limitCalls(called.organization_id, async () =>
      stopping.aborted || performance.now() > begin_until ? undefined : ask(one, called, context),
    );
    if (!answered) not_called.push(one);
    else await write(answered);
  };
  const by_payout = Map.groupBy(claimed, ({ attempt }) => attempt.payout_id);
  const callInOrder = async (attempts: Claimed[]): Promise<void> => {
    for (const one of attempts) await call(one);
  };
  await all([...by_payout.values()].map(callInOrder)).finally(() => release(called, not_called, context));
  return new Set(by_payout.keys());
}

const isUnavailable = (error: unknown): boolean => error instanceof Problem && error.code === 'service_unavailable';

/** Waits for all of it. @throws the first failure */
async function all(work: Promise<unknown>[]): Promise<void> {
  const failed = (await Promise.allSettled(work)).find((result) => result.status === 'rejected');
  if (failed) throw failed.reason;
}

/**
 * Claims attempts for this worker alone until the claim runs out: what is to be sent is in doubt from now on. Passes over those that another worker
 * has, and, of several payouts, those that another transaction has locked. While payouts are held, claims none.
 * @returns the attempts as they were
 */
async function claim(
  tx: Tx,
  { payouts: wanted }: Called,
  { vault }: Pick<TaskContext['services'], 'vault'>,
): Promise<Claimed[]> {
  const { is_held, restored_at } = await holdState(tx);
  if (is_held) return [];
  const claimed_until = new Date(Date.parse(tx.now) + claim_ms).toISOString();
  const attempts = await tx.all<PayoutAttempt>(sql`
    with locked as materialized (
      select t.id
      from ${payouts.from}
      where ${tenant(tx)} and t.id = any(${wanted.map(({ id }) => id)})
      order by t.id
      for no key update of t ${wanted.length === 1 ? empty : sql`skip locked`}
    )
    select ${attemptColumns}
    from locked l
    join program.payout_attempt t on ${tenant(tx)} and t.payout_id = l.id
    where ${isAmong(wanted)} and (t.claimed_until is null or t.claimed_until <= ${tx.now}::timestamptz)
    order by t.payout_id, t.number
    for no key update of t`);
  if (attempts.length === 0) return [];
  tx.send(sql`
    update program.payout_attempt t
    set status = case t.status when 'prepared' then 'in_doubt' else t.status end,
      last_sent_at = case when t.status in ('prepared', 'in_doubt') then ${tx.now}::timestamptz else t.last_sent_at end,
      claimed_until = ${claimed_until}::timestamptz, next_poll_at = ${claimed_until}::timestamptz
    where ${tenant(tx)} and t.id = any(${attempts.map(({ id }) => id)})`);
  const credentials = credentialsFor(tx, vault);
  return together(
    attempts.map(async (attempt): Promise<Claimed> => {
      const transfer = JSON.parse(vault.decrypt(attempt.request, attempt.id)) as Transfer;
      const last_sent_at = attempt.last_sent_at ?? mayHaveBeenSent(attempt, restored_at);
      return {
        attempt: { ...attempt, last_sent_at },
        transfer,
        credentials: await credentials(attempt),
        claimed_until,
      };
    }),
  );
}

/**
 * Says when a payout that is older than a restore may have been sent under the same key by what is lost: then the rail is asked before it is called,
 * as after a call that was not answered.
 */
const mayHaveBeenSent = ({ payout_id }: PayoutAttempt, restored_at: string | null): string | null =>
  restored_at !== null && timeOfId(payout_id) < Date.parse(restored_at) ? restored_at : null;

/** Selects the wanted attempts, called `t`. */
function isAmong(wanted: Called['payouts']): Sql {
  const sent = wanted.flatMap(({ id, number }) => (number === undefined ? [] : [`${id}-${number}`]));
  const asked = wanted.flatMap(({ id, number }) => (number === undefined ? [id] : []));
  return sql`((t.id = any(${sent}) and ${open_attempt}) or (t.payout_id = any(${asked}) and t.rail = any(${[...rail_names]})))`;
}

/** Reads what attempts were sent with, each version once. */
function credentialsFor(tx: Tx, vault: TaskContext['services']['vault']) {
  const known = new Map<string, Promise<Credentials>>();
  return ({ program_id, rail, credentials_version }: PayoutAttempt): Promise<Credentials> => {
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

/** Gives back what no call was made about, as it was. Whoever claimed one of them since then keeps it. */
async function release(called: Called, claimed: Claimed[], { store }: Context): Promise<void> {
  if (claimed.length === 0) return;
  const rows = claimed.map(({ attempt: { id, status, last_sent_at }, claimed_until }) => ({
    ...{ id, status, last_sent_at, claimed_until },
  }));
  await transaction(store, called, (tx) =>
    tx.all(sql`
      update program.payout_attempt t
      set status = r.status, last_sent_at = r.last_sent_at, claimed_until = null, next_poll_at = ${tx.now}::timestamptz
      from json_to_recordset(${JSON.stringify(rows)}::json) as r (
        id text, status text, last_sent_at timestamptz, claimed_until timestamptz
      )
      where ${tenant(tx)} and t.id = r.id and t.claimed_until = r.claimed_until`),
  );
}

/**
 * Asks the rail: to pay what it has not accepted so far, under a key by which it pays once; else what became of it. What it accepted and does not
 * know any more is sent again; what has ended is only looked up.
 */
async function ask(
  { attempt, transfer, credentials }: Claimed,
  called: Called,
  { store, services, cut_off }: Context,
): Promise<Answered> {
  const { rail: name, mode, last_sent_at, state, status } = attempt;
  const rail = rails[name as RailName];
  const change = (changes: Parameters<typeof updateAttempt>[2]) =>
    transaction(store, called, (tx) => updateAttempt(tx, attempt.id, changes));
  let kept: Answered['kept'];
  const context: TransferContext = {
    ...{ mode, last_sent_at, state, now: new Date(databaseTime()) },
    url: providerUrl(name as RailName, mode, services.provider_urls),
    cut_off: AbortSignal.any([cut_off, AbortSignal.timeout(call_ms)]),
    async keep(now_kept, options) {
      if (options?.with_outcome) kept = now_kept;
      else await change({ state: now_kept });
    },
  };
  const is_accepted = status !== 'prepared' && status !== 'in_doubt';
  const found = is_accepted ? await rail.lookUp(transfer, credentials, context) : undefined;
  if (found) return { attempt, answer: found, kept };
  if (!isOpen(status)) return { attempt, answer: nothingFound(attempt), kept };
  if (is_accepted) await change({ last_sent_at: new Date(databaseTime()).toISOString() });
  return { attempt, answer: await rail.submit(transfer, credentials, context), kept };
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

/** Writes outcomes in groups: those that come while a group is written, or shortly after one another. What a group cannot write is written alone. */
function writerOf(called: Called, { store }: Context): (answered: Answered) => Promise<void> {
  const writeAlone = (one: Answered): Promise<{ error: unknown } | undefined> =>
    limitSingleWrites(called.organization_id, () => transaction(store, called, (tx) => record(tx, [one]))).then(
      () => undefined,
      (error: unknown) => ({ error }),
    );
  const writeGroup = async (group: Answered[]) => {
    const left = new Set(
      await transaction(store, called, (tx) => record(tx, group)).catch((error: unknown) => {
        if (isUnavailable(error)) throw error;
        return group;
      }),
    );
    return Promise.all(group.map((one) => (left.has(one) ? writeAlone(one) : undefined)));
  };
  const write = batched(writeGroup, { most: most_written, canWait: () => true, max_wait_ms: gather_ms });
  return async (answered) => {
    const failed = await write(answered);
    if (failed) throw failed.error;
  };
}
