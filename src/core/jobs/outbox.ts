/**
 * The outbox: calls to others (mail, payout rails) that survive a crash at any point. The intent is a row, written in the transaction of what
 * it follows from, together with a job; the job calls `makeCall`:
 *
 * 1. Claim, a transaction: the row is locked and judged again, the attempt is counted with an idempotency key of its own.
 * 2. The call, in no transaction, cut off when the worker must be gone.
 * 3. Outcome, a transaction.
 *
 * Between 1 and 3 an attempt is in doubt: the process may have died before the call, or with the answer. Where the channel has a look-up, that
 * is asked before anything is sent again, and what it does not know is sent again as the same attempt, under the same key: the effect is
 * there once. Where it has none, the next attempt follows: at least once.
 */
import { type Store, type Tx, transaction } from '../postgres/transaction.ts';
import type { Opening } from './task.ts';

/** The row of an intent. */
export interface IntentRow {
  organization_id: string;
  id: string;
}

export interface Intent<Request> {
  /** What is asked for. While an attempt is in doubt it must be what that attempt asked for. */
  request: Request;
  /** Attempts that were counted. */
  attempts: number;
  /** The last of them was begun and has no outcome, or an unknown one. */
  in_doubt: boolean;
}

export interface Attempt<Request> extends IntentRow {
  request: Request;
  /** Counted from 1. */
  number: number;
  /** `<id>-<number>` */
  idempotency_key: string;
}

export type Outcome =
  /** The other side took it. `reference`: what it calls it. */
  | { status: 'succeeded'; reference: string | null }
  /** It never will. */
  | { status: 'refused'; reason: string }
  /** It had no effect: another attempt follows. */
  | { status: 'later'; reason: string }
  /** It may have had its effect. */
  | { status: 'unknown'; reason: string };

/**
 * One kind of call, over rows of one table. What passes through is plain data; a throw leaves the attempt in doubt.
 * `Result`: an outcome with what the channel has to know of it besides.
 */
export interface Channel<Request, Result extends Outcome = Outcome> {
  /** How its transactions are opened. */
  opening(row: IntentRow): Opening;
  /** Reads and locks the row. Undefined where nothing is to be sent any more. */
  read(tx: Tx, row: IntentRow): Promise<Intent<Request> | undefined>;
  /** Writes that the attempt was begun: its number, that it is in doubt, and the request where that may change afterwards. */
  begin(tx: Tx, attempt: Attempt<Request>): Promise<unknown>;
  /** With a deadline of its own: nothing else cuts it off but a worker that must be gone. */
  call(attempt: Attempt<Request>, cut_off: AbortSignal): Promise<Result>;
  /** What became of an attempt. Undefined where the other side has never heard of it, so that it may be sent (again) under its key. */
  lookUp?(attempt: Attempt<Request>, cut_off: AbortSignal): Promise<Result | undefined>;
  /** Writes the outcome. After `unknown` the attempt stays in doubt. */
  record(tx: Tx, attempt: Attempt<Request>, outcome: Result): Promise<unknown>;
}

/**
 * Makes the call that a row asks for, and writes what came of it. A row has one job at a time.
 * @returns the outcome; undefined where nothing was to be sent
 * @throws CallUnfinished to be tried again, after the job's growing wait; whatever the channel throws
 */
export async function makeCall<Request, Result extends Outcome>(
  channel: Channel<Request, Result>,
  row: IntentRow,
  { store, cut_off }: { store: Store; cut_off: AbortSignal },
): Promise<Result | undefined> {
  const opening = channel.opening(row);
  const claimed = await transaction(store, opening, (tx) => claim(channel, tx, row));
  if (!claimed) return undefined;
  const { attempt, is_repeated } = claimed;
  const known = is_repeated ? await channel.lookUp?.(attempt, cut_off) : undefined;
  const outcome = known ?? (await channel.call(attempt, cut_off));
  await transaction(store, opening, (tx) => channel.record(tx, attempt, outcome));
  if (outcome.status === 'later' || outcome.status === 'unknown') throw new CallUnfinished(attempt);
  return outcome;
}

async function claim<Request, Result extends Outcome>(
  channel: Channel<Request, Result>,
  tx: Tx,
  { organization_id, id }: IntentRow,
) {
  const intent = await channel.read(tx, { organization_id, id });
  if (!intent) return undefined;
  const { request, attempts, in_doubt } = intent;
  const is_repeated = in_doubt && channel.lookUp !== undefined;
  const number = is_repeated ? attempts : attempts + 1;
  const attempt = { organization_id, id, request, number, idempotency_key: `${id}-${number}` };
  if (!is_repeated) await channel.begin(tx, attempt);
  return { attempt, is_repeated };
}

/** The reason may hold what belongs to the tenant: it is for the row, and not for the job or the log. */
export class CallUnfinished extends Error {
  override readonly name = 'CallUnfinished';
  constructor({ idempotency_key }: Attempt<unknown>) {
    super(`${idempotency_key} has no final outcome yet, its row says why; it is tried again.`);
  }
}
