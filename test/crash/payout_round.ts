/** Rounds of payouts, from what is due to what is paid, in each of which the worker is killed once. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Caller, eventually, type Json, type Rail, sql } from '../harness.ts';
import { type Gate, type Process, type Statement, spawnProcess, startGate, stopClocks } from '../processes.ts';
import { setDebtor } from '../program/payouts/files/fixture.ts';
import { bank, payee, setRail } from '../program/payouts/fixture.ts';
import type { Fault, Movement } from '../program/payouts/rails/provider_server.ts';
import { openShop, type Shop } from '../shop.ts';
import { type PayoutRail, startPayoutRail } from './payout_rail.ts';
import { isWork } from './slice.ts';

/** A worker behind a gate, and a provider. A new worker takes the place of one that was killed. */
export interface PayoutLine {
  rail: Rail;
  provider: PayoutRail;
  gate: Gate;
  merchant: Caller;
  worker: Process;
}

export type Way = 'rail' | 'file';

/** The place of a kill: before or after the worker's nth statement, or before or after the effect of its nth call to the provider. */
export type Kill = { at: 'statement' | 'call'; side: 'before' | 'after'; nth: number };

export interface Outcome {
  killed: boolean;
  /** The place, as text. */
  text: string;
  faults: string[];
}

const payouts_each = 2;
/** On a busy machine a worker takes a minute to start. */
const patience_ms = 240_000;
const claim = '3 minutes';
const by_paypal = { method: 'paypal', details: { email: 'ada@partner.example.com' } };

const spawnWorker = (gate: Gate, provider: PayoutRail) =>
  spawnProcess('worker', gate.url, { RAIL_PAYPAL_URL: provider.url, WORKER_CONCURRENCY: '2' });

export async function openPayoutLine(rail: Rail): Promise<PayoutLine> {
  await stopClocks(rail);
  const gate = await startGate(rail.url);
  const provider = await startPayoutRail();
  const merchant = await rail.organization();
  const worker = spawnWorker(gate, provider);
  await worker.ready;
  return { rail, provider, gate, merchant, worker };
}

/** Counts the statements and calls of a round that nothing disturbs. */
export async function countRound(line: PayoutLine, way: Way): Promise<{ statements: number; calls: number }> {
  let statements = 0;
  void line.gate.stopAt('before', (statement) => {
    if (isPayoutWork(statement)) statements++;
    return false;
  });
  const before = await line.provider.count();
  const shop = await openRound(line, way);
  const faults = await finishRound(line, shop, way);
  line.gate.disarm();
  if (faults.length > 0) throw new Error(faults.join('\n'));
  return { statements, calls: (await line.provider.count()) - before };
}

/** @param trouble what goes wrong with the provider's answers meanwhile */
export async function killedRound(
  line: PayoutLine,
  way: Way,
  kill: Kill,
  trouble: (Fault | undefined)[] = [],
): Promise<Outcome> {
  const shop = await openRound(line, way);
  const armed = kill.at === 'statement' ? await atStatement(line, kill, trouble) : await atCall(line, kill, trouble);
  const faults = await finishRound(line, shop, way, armed.isKilled).catch((error: Error) => {
    throw new Error(`${armed.text()}: ${error.message}`);
  });
  line.gate.disarm();
  await line.provider.script([]);
  await armed.replaced();
  return { killed: armed.isKilled() !== undefined, text: armed.text(), faults };
}

interface Armed {
  /** Returns the time of the kill, in milliseconds. */
  isKilled(): number | undefined;
  text(): string;
  /** Settles when a new worker is there, if one was killed. */
  replaced(): Promise<void>;
}

async function atStatement(line: PayoutLine, { side, nth }: Kill, trouble: (Fault | undefined)[]): Promise<Armed> {
  await line.provider.script(trouble);
  let seen = 0;
  let text = '';
  const armed = armedWith(line, () => `${side} statement ${nth}: ${text}`);
  const picks = (statement: Statement, answer: Buffer | undefined): boolean => {
    if (answer !== undefined || !isPayoutWork(statement) || ++seen !== nth) return false;
    text = statement.text.replaceAll(/\s+/g, ' ').trim().slice(0, 90);
    return true;
  };
  void line.gate.stopAt(side, picks).then(armed.kill);
  return armed;
}

/** The provider keeps the caller waiting: that is when the worker dies. */
async function atCall(line: PayoutLine, { side, nth }: Kill, trouble: (Fault | undefined)[]): Promise<Armed> {
  const calls: (Fault | undefined)[] = Array.from({ length: nth }, (_, at) => trouble[at]);
  calls[nth - 1] = { kind: 'hang', when: side };
  await line.provider.script(calls);
  const before = await line.provider.count();
  const armed = armedWith(line, () => `${side} call ${nth}`);
  let is_over = false;
  const watching = (async () => {
    while (!is_over && (await line.provider.count()) < before + nth) await sleep(50);
    if (!is_over) await armed.kill();
  })();
  watching.catch(() => {}); // it fails where it is waited for
  return {
    ...armed,
    async replaced() {
      is_over = true;
      await watching;
      await armed.replaced();
    },
  };
}

function armedWith(line: PayoutLine, text: () => string): Armed & { kill(): Promise<void> } {
  let killed_at: number | undefined;
  let replacing: Promise<void> | undefined;
  const kill = () => {
    replacing ??= replace(line).then(() => undefined);
    killed_at ??= Date.now();
    return replacing;
  };
  return { kill, text, isKilled: () => killed_at, replaced: async () => replacing };
}

/** @param isDead called before the next worker starts. That one works before it is ready, so that it may be killed before that. */
export async function replace(line: PayoutLine, isDead: () => unknown = () => {}): Promise<void> {
  await line.worker.end('SIGKILL');
  line.gate.cut();
  isDead();
  const worker = spawnWorker(line.gate, line.provider);
  line.worker = worker;
  await worker.ready;
}

/** Statements of a worker that have nothing to do with payouts. */
const not_of_payouts = /core\.worker|pg_backend_pid|outgoing_mail|core\.idempotency|partition/i;

const isPayoutWork = (statement: Statement): boolean => isWork(statement) && !not_of_payouts.test(statement.text);

/** A program with partners to whom something is due. The worker has done all that this causes. */
async function openRound({ rail, provider, merchant }: PayoutLine, way: Way): Promise<Shop> {
  const shop = await openShop(rail, { min_payout_minor: 1 }, merchant);
  await setRail(rail, shop, 'paypal', provider.credentials);
  await setDebtor(rail, shop);
  const payout_method = way === 'rail' ? by_paypal : bank;
  for (let nth = 0; nth < payouts_each; nth++) await payee(shop, [100, 20], { payout_method });
  await noWork(rail);
  return shop;
}

/** From the batch to the end of the payouts, whatever dies on the way. @returns what is wrong then */
async function finishRound(
  line: PayoutLine,
  shop: Shop,
  way: Way,
  killedAt: () => number | undefined = () => undefined,
): Promise<string[]> {
  const { rail, merchant } = line;
  const { id } = await merchant.post('/v1/payout_batches', { program_id: shop.program_id });
  await eventually(
    async () => (await merchant.get(`/v1/payout_batches/${id}`)).status === 'ready',
    'the batch to be created',
    patience_ms,
  );
  await merchant.post(`/v1/payout_batches/${id}/send`);
  const sent = async () => (await shop.list('payouts', 'status=pending')).length === 0;
  await eventually(sent, 'all to be sent', patience_ms);
  if (way === 'file') {
    for (const payout of await shop.list('payouts')) await merchant.post(`/v1/payouts/${payout.id}/mark_paid`);
  } else await pollUntilPaid(rail, shop, killedAt);
  await noWork(rail);
  return faultsOf(line, shop, id, way);
}

let ticks = 0;

/** Time passes: polls come, and what the dead worker had claimed is free. */
async function pollUntilPaid(rail: Rail, shop: Shop, killedAt: () => number | undefined): Promise<void> {
  const paid = async () => (await shop.list('payouts', 'status=paid')).length === payouts_each;
  const deadline = Date.now() + patience_ms;
  while (!(await paid())) {
    if (Date.now() > deadline)
      throw new Error(`Waited in vain for all payouts to be paid. ${await attemptsOf(rail, shop)}`);
    const died_at = killedAt();
    if (!(await isPolling(rail, died_at !== undefined))) await poll(rail, shop, died_at);
    await sleep(250);
  }
}

/**
 * Returns whether a poll is to come, so that a slow worker is given no more of them than it makes. Work of a dead worker is none, nor is its part of
 * a job that another one replaced.
 */
async function isPolling(rail: Rail, is_killed: boolean): Promise<boolean> {
  const jobs = sql`
    select from graphile_worker.jobs
    where task_identifier like 'program/poll_payout%' and attempts < max_attempts and (locked_at is null or not ${is_killed}::boolean)`;
  return (await rail.query(jobs)).length > 0;
}

async function poll(rail: Rail, shop: Shop, died_at: number | undefined): Promise<void> {
  const freed = died_at === undefined ? null : new Date(died_at).toISOString();
  await rail.query(sql`
    update program.payout_attempt
    set next_poll_at = '2026-01-01',
      claimed_until = case when claimed_until > ${freed}::timestamptz + ${claim}::interval then claimed_until end
    where program_id = ${shop.program_id} and status <> 'paid'
      and (claimed_until is null or claimed_until <= ${freed}::timestamptz + ${claim}::interval)`);
  await rail.tick('program/poll_payouts', new Date(Date.UTC(2026, 0, 2) + 60_000 * ++ticks).toISOString());
}

/** Returns the state of a round's attempts, as text. */
async function attemptsOf(rail: Rail, { program_id }: Shop): Promise<string> {
  const attempts = await rail.query(sql`
    select a.id, a.status, a.last_sent_at, a.last_answer, a.claimed_until, a.next_poll_at, a.polls, p.status as payout_status
    from program.payout_attempt a
    join program.payout p on p.id = a.payout_id
    where a.program_id = ${program_id}`);
  const jobs = await rail.query(sql`
    select task_identifier, run_at, locked_at, locked_by, attempts, last_error from graphile_worker.jobs where task_identifier like 'program/%'`);
  return JSON.stringify({ attempts, jobs });
}

/** Waits until no job is left, but for those that wait for their time, and what a dead worker held of a job that another one replaced. */
async function noWork(rail: Rail): Promise<void> {
  let left: Json[] = [];
  const none = async () => {
    left = await rail.query(sql`
      select task_identifier, run_at, locked_at, locked_by, attempts, last_error from graphile_worker.jobs
      where task_identifier like 'program/%' and (run_at <= now() or locked_at is not null or attempts > 0)
        and (attempts < max_attempts or last_error is not null)`);
    return left.length === 0;
  };
  await eventually(none, 'the end of all work', patience_ms).catch((error: Error) => {
    throw new Error(`${error.message} Left: ${JSON.stringify(left)}`);
  });
}

async function faultsOf({ rail, provider }: PayoutLine, shop: Shop, batch_id: string, way: Way): Promise<string[]> {
  const { program_id } = shop;
  const payouts = await rail.query<Json>(sql`
    select p.id, p.amount_minor, p.status, p.attempt, p.deleted_at,
      (select count(*) from program.payout_attempt a where a.payout_id = p.id) as attempts,
      (select count(*) from program.payout_attempt a where a.payout_id = p.id and a.status = 'paid' and a.settled) as settled,
      (select count(*) from program.commission c where c.payout_id = p.id and c.status = 'paid') as commissions
    from program.payout p where p.program_id = ${program_id} order by p.id`);
  const expected = {
    amount_minor: 120,
    status: 'paid',
    attempt: 1,
    deleted_at: null,
    attempts: 1,
    settled: 1,
    commissions: 2,
  };
  const [counted] = await rail.query<Json>(sql`
    select b.payouts, b.amounts -> 'USD' ->> 'amount_minor' as amount, b.partners_looked_at,
      (select count(*) from program.commission where program_id = ${program_id}) as commissions,
      (select count(*) from program.payout_file where program_id = ${program_id}) as files
    from program.payout_batch b where b.id = ${batch_id}`);
  const is_by_file = way === 'file';
  const sums = {
    payouts: payouts_each,
    amount: `${120 * payouts_each}`,
    partners_looked_at: payouts_each,
    commissions: 2 * payouts_each,
    files: is_by_file ? 1 : 0,
  };
  const moved = is_by_file ? [] : await provider.moved();
  return [
    ...differs('payouts', payouts.length, payouts_each),
    ...payouts.flatMap(({ id, ...payout }) => differs(id, payout, expected)),
    ...differs('the batch', counted, sums),
    ...(is_by_file
      ? []
      : payouts.flatMap(({ id }) => differs(`money of ${id}`, movementsOf(moved, id), [[`${id}-1`, 1, 120]]))),
    ...(await eventFaults(rail, program_id, payouts)),
  ];
}

const movementsOf = (moved: Movement[], payout_id: string) =>
  moved
    .filter(({ key }) => key.startsWith(payout_id))
    .map(({ key, times, amount_minor }) => [key, times, amount_minor]);

/** Each is told once, in order. */
async function eventFaults(rail: Rail, program_id: string, payouts: Json[]): Promise<string[]> {
  const events = await rail.query<Json>(sql`
    select type, body::jsonb #>> '{data,payout_id}' as payout_id from webhooks.event
    where program_id = ${program_id} and (type like 'payout.%' or type = 'commission.paid') order by position`);
  return payouts.flatMap(({ id }) => {
    const told = events.filter(({ payout_id }) => payout_id === id).map(({ type }) => type);
    return differs(`events of ${id}`, told, [
      'payout.created',
      'payout.updated',
      'payout.paid',
      'commission.paid',
      'commission.paid',
    ]);
  });
}

function differs(what: string, found: unknown, expected: unknown): string[] {
  const [is, should_be] = [JSON.stringify(found), JSON.stringify(expected)];
  return is === should_be ? [] : [`${what}: ${is} instead of ${should_be}`];
}
