/**
 * Begins the visits of a scan, each a job of its own, and ends the scan after the last.
 *
 * - A scan also visits up to 100 known prospects of the brand that were not visited within six days: that is how it finds something new about them.
 * - It visits the first page of each host, then the second of those that have several: pages that wait for one host hold up no other one.
 */
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { insert } from '../../core/postgres/write.ts';
import { newId } from '../../core/values/id.ts';
import { event } from '../events/event.ts';
import { refundCredit } from '../plan/credit.ts';
import { type Run, type ScanError, type Trigger, updateRun } from '../runs/run.ts';
import { stepsOf } from './next_page.ts';

interface Planned {
  prospect_id: string;
  url: string;
}

const most_known = 100;
const visited_again_days = 6;

/** Begins the visits of a scan, which is locked and open: what it found itself, and known prospects that were not visited lately. */
export async function startVisits(tx: Tx, run: Run): Promise<void> {
  const found = await foundBy(tx, run.id);
  const known = await knownOf(tx, run.brand_id, found);
  await insertVisits(tx, run.id, [...found, ...known]);
  if (found.length + known.length === 0) await finishScan(tx, run);
}

/** Begins the scan behind a search, which visits what that found. @returns its id, or undefined where there is nothing to visit */
export async function queueScanOf(tx: Tx, search: Run): Promise<string | undefined> {
  const found = await foundBy(tx, search.id);
  if (found.length === 0) return undefined;
  const id = newId('fsc');
  await insert(tx, 'recruitment.run', {
    ...{ id, brand_id: search.brand_id, kind: 'scan', trigger: 'search', search_id: search.id, state: 'running' },
    ...{ steps: '[]', started_at: tx.now, created_at: tx.now, updated_at: tx.now },
  });
  await insertVisits(tx, id, found);
  return id;
}

/** A page of each prospect: the first that was found. */
const foundBy = (tx: Tx, run_id: string): Promise<Planned[]> =>
  tx.all<Planned>(sql`
    select distinct on (r.prospect_id) r.prospect_id, r.url
    from recruitment.run_result r
    join recruitment.prospect p on p.organization_id = r.organization_id and p.id = r.prospect_id and not p.hidden
    where r.organization_id = ${tx.organization_id} and r.run_id = ${run_id} and r.outcome <> 'skipped'
    order by r.prospect_id, r.id`);

const knownOf = (tx: Tx, brand_id: string, found: Planned[]): Promise<Planned[]> =>
  tx.all<Planned>(sql`
    select p.id as prospect_id, p.url
    from recruitment.prospect p
    left join lateral (
      select max(v.done_at) as done_at
      from recruitment.visit v
      where v.organization_id = p.organization_id and v.prospect_id = p.id
    ) as last on true
    where p.organization_id = ${tx.organization_id} and p.brand_id = ${brand_id} and not p.hidden and p.url ~ '^https?://'
      and p.stage not in ('lost', 'active') and p.id <> all(${found.map(({ prospect_id }) => prospect_id)}::text[])
      and (last.done_at is null or last.done_at < ${tx.now}::timestamptz - make_interval(days => ${visited_again_days}))
    order by last.done_at nulls first, p.id
    limit ${most_known}`);

/** Enqueues a job for each, in their order but for hosts with several pages: a host is asked once a second, and others are asked meanwhile. */
export async function insertVisits(tx: Tx, run_id: string, planned: Planned[]): Promise<void> {
  const rows = alternateHosts(planned).map((one, nth) => ({ ...one, number: nth + 1 }));
  await tx.all(sql`
    insert into recruitment.visit (organization_id, run_id, number, prospect_id, url)
    select ${tx.organization_id}, ${run_id}, v.number, v.prospect_id, v.url
    from json_to_recordset(${JSON.stringify(rows)}::json) as v (number integer, prospect_id text, url text)`);
  await updateRun(tx, run_id, sql`visits = ${rows.length}, visits_left = ${rows.length}`);
  const { organization_id } = tx;
  for (const { number } of rows) tx.enqueue('recruitment/visit_prospect', { organization_id, run_id, number });
}

/** The first page of each host, then the second of those that have two, and so on. */
function alternateHosts(planned: Planned[]): Planned[] {
  const pages = new Map<string, number>();
  const placed = planned.map((one) => {
    const host = URL.parse(one.url)?.hostname ?? '';
    const nth = pages.get(host) ?? 0;
    pages.set(host, nth + 1);
    return { one, nth };
  });
  return placed.toSorted((a, b) => a.nth - b.nth).map(({ one }) => one);
}

/** Finishes a scan, whose run is locked and open. */
export async function finishScan(tx: Tx, { id, brand_id, trigger }: Run): Promise<void> {
  const steps = (await stepsOf(tx, id)) ?? [];
  const state = steps.some(({ over }) => over === 'ceiling') ? 'stopped_at_ceiling' : 'done';
  const found = await countFound(tx, id);
  await updateRun(tx, id, sql`state = ${state}, found = ${found}, finished_at = ${tx.now}::timestamptz`);
  await noteScan(tx, brand_id);
  const about = { scan_id: id, brand_id, trigger: trigger as Trigger, state, found } as const;
  tx.emit(event('scan.completed', tx.organization_id, about));
}

/** Counts the prospects that it made, and those with new evidence. What a search had found is not counted again by the scan behind it. */
async function countFound(tx: Tx, run_id: string): Promise<number> {
  const { found } = await tx.one<{ found: number }>(sql`
    select count(*)::integer as found
    from (
      select r.prospect_id
      from recruitment.run_result r
      where r.organization_id = ${tx.organization_id} and r.run_id = ${run_id} and r.outcome = 'new'
      union
      select v.prospect_id
      from recruitment.visit v
      where v.organization_id = ${tx.organization_id} and v.run_id = ${run_id} and v.has_new_evidence
    ) as prospect`);
  return found;
}

const noteScan = (tx: Tx, brand_id: string): Promise<object[]> =>
  tx.all(sql`
    update recruitment.brand t
    set last_scan_at = ${tx.now}::timestamptz
    where t.organization_id = ${tx.organization_id} and t.id = ${brand_id}`);

/** Fails a scan, whose run is locked and open. */
export async function failScan(tx: Tx, { id, brand_id, trigger, credit }: Run, error: ScanError): Promise<void> {
  const credit_refunded = credit === 'taken';
  await updateRun(
    tx,
    id,
    sql`state = 'failed', error = ${error}, finished_at = ${tx.now}::timestamptz,
      credit = ${credit_refunded ? 'refunded' : credit}`,
  );
  if (credit_refunded) await refundCredit(tx, 'scan', { scan_id: id });
  const about = { scan_id: id, brand_id, trigger: trigger as Trigger, error, credit_refunded };
  tx.emit(event('scan.failed', tx.organization_id, about));
}
