import { setTimeout as sleep } from 'node:timers/promises';
import sql from 'sql-template-tag';
import type { TaskContext } from '../../../core/jobs/worker_context.ts';
import { LostRace } from '../../../core/postgres/errors.ts';
import { type Tx, together, transaction } from '../../../core/postgres/transaction.ts';
import { newId } from '../../../core/values/id.ts';
import { matureCommissions } from '../../commissions/maturity.ts';
import { event } from '../../events/event.ts';
import { programs } from '../../programs/program.ts';
import { reason_texts } from '../eligibility.ts';
import { type Payout, payouts } from '../payout.ts';
import { finishBatch, lockRange, noteRange, type Range, type RangeKey, splitBatch } from './range.ts';
import { addUp, type BalanceRow, balancesOf, type CheckedBalance, nextPartners, selected } from './selection.ts';

/** The number of partners that the first step checks, and the limits of any step. */
const partners_of_step = { first: 250, least: 25, most: 2_000 };
/** The time of a step. Its transaction is short: sales of the same time wait for its commit, and for its part of the log. */
const step_ms = 100;
/** The number of commissions that a step makes due. */
const most_matured = 1_000;
/** The pause of a batch after each step, as a share of the time that it took: other work of the database goes first. */
const rest = 0.35;

/** The number of connections from which two ranges run at the same time: one after the other is slower, and leaves some to other jobs. */
const least_connections = 6;

/** Creates the payouts of a batch: two ranges of its partners at the same time. */
export async function generateBatch(
  { organization_id, request_id, id }: { organization_id: string; request_id: string | null; id: string },
  { store, services, stopping }: Pick<TaskContext, 'store' | 'services' | 'stopping'>,
): Promise<void> {
  const within = <T>(work: (tx: Tx) => Promise<T>) => transaction(store, { organization_id, request_id }, work);
  const ranges = await within((tx) => splitBatch(tx, id));
  if (ranges.length === 0) return;
  const generate = (range: RangeKey) =>
    generateRange((most) => within((tx) => generateStep(tx, services, range, most)), stopping);
  if ((store.database.options.max ?? 0) < least_connections) for (const range of ranges) await generate(range);
  else await together(ranges.map(generate));
  await within((tx) => finishBatch(tx, id));
}

/** Steps are as long as the database is fast. */
async function generateRange(step: (most: number) => Promise<number>, stopping: AbortSignal): Promise<void> {
  for (let most = partners_of_step.first; ; ) {
    const began = performance.now();
    const done = await step(most);
    if (done < most) return;
    const took_ms = performance.now() - began;
    most = nextMost(most, took_ms);
    await sleep(took_ms * rest, undefined, { signal: stopping }).catch(() => {});
  }
}

/** Returns the number of partners of the next step, by the time that one of `most` took: at most twice as many, at least half. */
export function nextMost(most: number, took_ms: number): number {
  const fitting = Math.round(most * Math.min(2, Math.max(0.5, step_ms / took_ms)));
  return Math.min(partners_of_step.most, Math.max(partners_of_step.least, fitting));
}

/**
 * Takes a range a step further: first what is mature by the batch's cut-off is made due, then its next partners get their payouts. A step is one
 * transaction, so a batch that is killed goes on where it was.
 * @param most how many partners are looked at
 * @returns fewer than `most` when the range is done
 */
export async function generateStep(
  tx: Tx,
  services: Pick<TaskContext['services'], 'vault'>,
  key: RangeKey,
  most: number,
): Promise<number> {
  const range = await lockRange(tx, key);
  if (!range) return 0;
  if ((await mature(tx, range)).length > 0) return most;
  const program = await programs.get(tx, range.program_id);
  const next = { after: range.last_partner_id, up_to: range.up_to_partner_id, most };
  const partner_ids = await nextPartners(tx, range, next);
  const { checked, partners } = await balancesOf(tx, services, program, { ...range, is_preview: false }, partner_ids);
  const payable = checked.filter(({ reason }) => reason === undefined).map((one) => ({ ...one, id: newId('pyt') }));
  const created = await insertPayouts(tx, range, payable);
  // While Postgres puts the commissions into their payouts, the events are rendered here.
  await together([include(tx, range, payable), emitCreated(tx, range, created, checked)]);
  const last_partner_id = partner_ids.at(-1) ?? range.last_partner_id;
  const is_done = partner_ids.length < most;
  await noteRange(tx, range, { ...addUp(checked, range), partners, last_partner_id, is_done });
  return partner_ids.length;
}

/** The schedule matures commissions at the same time, such as at the turn of a month: what it holds is waited for, once there is nothing else. */
async function mature(tx: Tx, { cutoff }: Range): Promise<object[]> {
  const matured = await matureCommissions(tx, cutoff, most_matured);
  return matured.length > 0 ? matured : matureCommissions(tx, cutoff, most_matured, { waits: true });
}

type Payable = CheckedBalance & { id: string };

const isDue = (tx: Tx, { approval_required, due_at }: Range): boolean => !approval_required && due_at <= tx.now;

async function insertPayouts(tx: Tx, range: Range, payable: Payable[]): Promise<Payout[]> {
  if (payable.length === 0) return [];
  const rows = payable.map(({ id, partner_id, currency, amount_minor, commission_count, period_start, payee }) => ({
    ...{ id, partner_id, currency, amount_minor, commission_count, period_start },
    ...{ method: payee.method, destination_hint: payee.hint },
  }));
  return tx.all<Payout>(sql`
    insert into program.payout as t (
      organization_id, id, program_id, batch_id, partner_id, amount_minor, currency, status, livemode, method, destination_hint,
      period_start, period_end, due_at, due_emitted_at, commission_count, created_at, updated_at
    )
    select
      ${tx.organization_id}, g.id, ${range.program_id}, ${range.batch_id}, g.partner_id, g.amount_minor, g.currency, 'pending',
      coalesce(r.mode, 'live') = 'live', g.method, g.destination_hint, g.period_start, ${range.cutoff}::timestamptz, ${range.due_at}::timestamptz,
      ${isDue(tx, range) ? tx.now : null}::timestamptz, g.commission_count, ${tx.now}::timestamptz, ${tx.now}::timestamptz
    from json_to_recordset(${JSON.stringify(rows)}::json) as g (
      id text, partner_id text, currency text, amount_minor bigint, period_start timestamptz, method text, destination_hint text,
      commission_count integer
    )
    left join program.rail r on r.organization_id = ${tx.organization_id} and r.program_id = ${range.program_id} and r.rail = g.method
      and r.deleted_at is null
    returning ${payouts.columns}`);
}

/**
 * Puts commissions into their payouts: they stay `due`, and are locked from now on. They are looked for where they were when they were added up.
 * @throws LostRace where those that are there now do not come to the payout: another transaction has changed one of them since
 */
async function include(tx: Tx, range: Range, payable: Payable[]): Promise<void> {
  if (payable.length === 0) return;
  const column = <Name extends keyof BalanceRow | 'id'>(name: Name) => payable.map((payout) => payout[name]);
  const differing = await tx.maybe(sql`
    with expected as materialized (
      select *
      from unnest(
        ${column('id')}::text[], ${column('partner_id')}::text[], ${column('currency')}::text[], ${column('amount_minor')}::bigint[],
        ${column('commission_count')}::bigint[], ${column('places')}::text[]
      ) as p (payout_id, partner_id, currency, amount_minor, commission_count, places)
    ),
    included as (
      update program.commission t
      set payout_id = g.payout_id, status = 'due', updated_at = ${tx.now}::timestamptz, changed_in = pg_current_xact_id()
      from (
        select e.payout_id, e.partner_id, e.currency, unnest(e.places::tid[]) as place from expected e
      ) as g
      where t.ctid = g.place and t.partner_id = g.partner_id and t.currency = g.currency
        and ${selected(tx, { ...range, is_preview: false })}
      returning t.payout_id, t.amount_minor
    )
    select x.payout_id
    from (
      select e.payout_id, e.commission_count, e.amount_minor from expected e
      union all
      select i.payout_id, -1, -i.amount_minor from included i
    ) as x
    group by x.payout_id
    having sum(x.commission_count) <> 0 or sum(x.amount_minor) <> 0
    limit 1`);
  if (differing) throw new LostRace('A commission that a batch takes was changed meanwhile.');
}

async function emitCreated(tx: Tx, range: Range, created: Payout[], checked: CheckedBalance[]): Promise<void> {
  for (const payout of created) {
    tx.emit(event('payout.created', payout));
    if (isDue(tx, range)) tx.emit(event('payout.due', payout));
  }
  emitNotEligible(tx, range, checked);
  tx.renderEmitted();
}

function emitNotEligible(tx: Tx, { program_id }: Range, checked: CheckedBalance[]): void {
  for (const { partner_id, amount_minor, currency, reason } of checked) {
    if (!reason) continue;
    const balance = { program_id, partner_id, amount_minor, currency };
    tx.emit(event('payout.not_eligible', balance, { payout_id: null, reason, reason_text: reason_texts[reason] }));
  }
}
