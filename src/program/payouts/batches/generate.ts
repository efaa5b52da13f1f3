import { setTimeout as sleep } from 'node:timers/promises';
import sql from 'sql-template-tag';
import type { TaskContext } from '../../../core/jobs/worker_context.ts';
import { LostRace } from '../../../core/postgres/errors.ts';
import { type Tx, together, transaction } from '../../../core/postgres/transaction.ts';
import { tenant } from '../../../core/resource/resource.ts';
import { newId } from '../../../core/values/id.ts';
import { matureCommissions } from '../../commissions/maturity.ts';
import { event } from '../../events/event.ts';
import { programs } from '../../programs/program.ts';
import { reason_texts } from '../eligibility.ts';
import { type Payout, payouts } from '../payout.ts';
import { addUp, type BalanceRow, balancesOf, type Judged, nextPartners, type Sums, selected } from './selection.ts';

/** A batch as its generation sees it. */
interface Generating extends Omit<Sums, 'payouts'> {
  id: string;
  program_id: string;
  cutoff: string;
  due_at: string;
  approval_required: boolean;
  last_partner_id: string;
}

/** How many partners the first step looks at, and any step at least and at most. */
const partners_of_step = { first: 250, least: 25, most: 2_000 };
/** How long a step may take. Its transaction is short: sales of the same time wait for its commit, and for its part of the log. */
const step_ms = 100;
/** How many commissions a step makes due. */
const most_matured = 1_000;
/** How long a batch rests after each step, as a share of the time that it took: what else the database has to do goes first. */
const rest = 0.25;

/** Creates the payouts of a batch, a step a transaction. Steps are as long as the database is fast. */
export async function generateBatch(
  { organization_id, request_id, id }: { organization_id: string; request_id: string | null; id: string },
  { store, stopping }: Pick<TaskContext, 'store' | 'stopping'>,
): Promise<void> {
  for (let most = partners_of_step.first; ; ) {
    const began = performance.now();
    const done = await transaction(store, { organization_id, request_id }, (tx) => generateStep(tx, id, most));
    if (done < most) return;
    const took_ms = performance.now() - began;
    most = nextMost(most, took_ms);
    await sleep(took_ms * rest, undefined, { signal: stopping }).catch(() => {});
  }
}

/** How many partners the next step looks at, by how long one of `most` took: at most twice as many, at least half. */
export function nextMost(most: number, took_ms: number): number {
  const fitting = Math.round(most * Math.min(2, Math.max(0.5, step_ms / took_ms)));
  return Math.min(partners_of_step.most, Math.max(partners_of_step.least, fitting));
}

/**
 * Takes a batch a step further: first what is mature by its cut-off is made due, then its next partners get their payouts. A step is one
 * transaction, so a batch that is killed goes on where it was.
 * @param most how many partners are looked at
 * @returns fewer than `most` when the batch is generated
 */
export async function generateStep(tx: Tx, batch_id: string, most: number): Promise<number> {
  const batch = await lockGenerating(tx, batch_id);
  if (!batch) return 0;
  if ((await mature(tx, batch)) > 0) return most;
  const program = await programs.get(tx, batch.program_id);
  const partner_ids = await nextPartners(tx, batch, { after: batch.last_partner_id, most });
  const { judged, partners } = await balancesOf(tx, program, { ...batch, is_preview: false }, partner_ids);
  const payable = judged.filter(({ reason }) => reason === undefined).map((one) => ({ ...one, id: newId('pyt') }));
  const created = await insertPayouts(tx, batch, payable);
  // While Postgres puts the commissions into their payouts, what is told is written out here.
  await together([include(tx, batch, payable), tell(tx, batch, created, judged)]);
  await note(tx, batch, judged, { partners, last_partner_id: partner_ids.at(-1) ?? batch.last_partner_id });
  if (partner_ids.length < most) await finish(tx, batch_id);
  return partner_ids.length;
}

/** The schedule matures commissions at the same time, such as at the turn of a month: what it holds is waited for, once there is nothing else. */
const mature = async (tx: Tx, { cutoff }: Generating): Promise<number> =>
  (await matureCommissions(tx, cutoff, most_matured)) || matureCommissions(tx, cutoff, most_matured, { waits: true });

/** Two batches of a program take turns, a step each. */
async function lockGenerating(tx: Tx, batch_id: string): Promise<Generating | undefined> {
  const batch = await tx.maybe<Generating>(sql`
    select t.id, t.program_id, t.cutoff, t.due_at, t.approval_required, t.last_partner_id, t.amounts, t.not_eligible
    from program.payout_batch t
    where ${tenant(tx)} and t.id = ${batch_id} and t.stage = 'generating' and t.deleted_at is null
    for no key update`);
  if (batch)
    await tx.all(sql`select pg_advisory_xact_lock(hashtextextended(${`payout batches of ${batch.program_id}`}, 0))`);
  return batch;
}

type Payable = Judged & { id: string };

const isDue = (tx: Tx, { approval_required, due_at }: Generating): boolean => !approval_required && due_at <= tx.now;

async function insertPayouts(tx: Tx, batch: Generating, payable: Payable[]): Promise<Payout[]> {
  if (payable.length === 0) return [];
  const rows = payable.map(({ id, partner_id, currency, amount_minor, commission_count, period_start, payee }) => ({
    ...{ id, partner_id, currency, amount_minor, commission_count, period_start },
    ...{ method: payee.method, destination_hint: payee.hint },
  }));
  return tx.all<Payout>(sql`
    insert into program.payout as t (
      organization_id, id, program_id, batch_id, partner_id, amount_minor, currency, status, livemode, method, destination_hint,
      period_start, period_end, due_at, due_told_at, commission_count, created_at, updated_at
    )
    select
      ${tx.organization_id}, g.id, ${batch.program_id}, ${batch.id}, g.partner_id, g.amount_minor, g.currency, 'pending',
      coalesce(r.mode, 'live') = 'live', g.method, g.destination_hint, g.period_start, ${batch.cutoff}::timestamptz, ${batch.due_at}::timestamptz,
      ${isDue(tx, batch) ? tx.now : null}::timestamptz, g.commission_count, ${tx.now}::timestamptz, ${tx.now}::timestamptz
    from json_to_recordset(${JSON.stringify(rows)}::json) as g (
      id text, partner_id text, currency text, amount_minor bigint, period_start timestamptz, method text, destination_hint text,
      commission_count integer
    )
    left join program.rail r on r.organization_id = ${tx.organization_id} and r.program_id = ${batch.program_id} and r.rail = g.method
      and r.deleted_at is null
    returning ${payouts.columns}`);
}

/**
 * Puts commissions into their payouts: they stay `due`, and are locked from now on. They are looked for where they were when they were added up.
 * @throws LostRace where those that are there now do not come to the payout: another transaction has changed one of them since
 */
async function include(tx: Tx, batch: Generating, payable: Payable[]): Promise<void> {
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
        and ${selected(tx, { ...batch, is_preview: false })}
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

async function tell(tx: Tx, batch: Generating, created: Payout[], judged: Judged[]): Promise<void> {
  for (const payout of created) {
    tx.emit(event('payout.created', payout));
    if (isDue(tx, batch)) tx.emit(event('payout.due', payout));
  }
  tellNotEligible(tx, batch, judged);
  tx.renderEmitted();
}

function tellNotEligible(tx: Tx, { program_id }: Generating, judged: Judged[]): void {
  for (const { partner_id, amount_minor, currency, reason } of judged) {
    if (!reason) continue;
    const balance = { program_id, partner_id, amount_minor, currency };
    tx.emit(event('payout.not_eligible', balance, { payout_id: null, reason, reason_text: reason_texts[reason] }));
  }
}

/** Writes how far the batch is, and what it came to so far. */
async function note(
  tx: Tx,
  batch: Generating,
  judged: Judged[],
  { partners, last_partner_id }: { partners: number; last_partner_id: string },
): Promise<void> {
  const { payouts: created, ...sums } = addUp(judged, batch);
  await tx.all(sql`
    update program.payout_batch t
    set last_partner_id = ${last_partner_id}, partners_looked_at = t.partners_looked_at + ${partners},
      payouts = t.payouts + ${created}, amounts = ${JSON.stringify(sums.amounts)}, not_eligible = ${JSON.stringify(sums.not_eligible)},
      updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = ${batch.id}`);
}

/** "`generating` → `awaiting_approval` (where the program demands it) → `ready`"; a batch without payouts is completed at once. */
const finish = (tx: Tx, batch_id: string) =>
  tx.all(sql`
    update program.payout_batch t
    set stage = case when t.approval_required and t.payouts > 0 then 'awaiting_approval' else 'ready' end,
      generated_at = ${tx.now}::timestamptz, updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = ${batch_id}`);
