/** A visit of a prospect's page: what it says becomes evidence, and the page is kept for the index. */
import sql from 'sql-template-tag';
import type { TaskContext } from '../../core/jobs/worker_context.ts';
import { type Tx, transaction } from '../../core/postgres/transaction.ts';
import { type Brand, brands } from '../brands/brand.ts';
import type { Visit } from '../pages/visit.ts';
import { addEvidence } from '../prospects/evidence.ts';
import { isOpen, lockRun, type Run, updateRun } from '../runs/run.ts';
import { storePageOf } from './page_index.ts';
import type { ReadForBrand } from './page_reader.ts';
import { failScan, finishScan } from './scan_visits.ts';
import { busyUntil, Visits } from './visits.ts';

const most_attempts = 3;
const most_interruptions = 20;
/** The longest wait of a job for its host: beyond it, the job comes back later. */
const longest_wait_ms = 3_000;

interface VisitId {
  organization_id: string;
  run_id: string;
  number: number;
}

export async function visitProspect(id: VisitId, context: TaskContext): Promise<void> {
  const within = <T>(work: (tx: Tx) => Promise<T>) =>
    transaction(context.store, { organization_id: id.organization_id, request_id: null }, work);
  const begun = await within((tx) => begin(tx, id));
  if (!begun) return;
  const next_at = await busyUntil(context.store.database, URL.parse(begun.url)?.hostname ?? '', longest_wait_ms);
  if (next_at !== undefined) return void (await within((tx) => comeBack(tx, id, next_at)));
  const visits = context.use(Visits);
  const seen = await visits.visit(begun.url, context.cut_off);
  if (seen.outcome === 'unreachable' && seen.reason === 'aborted') throw new VisitAborted();
  const read = seen.outcome === 'page' ? await visits.reader.forBrand(seen, begun.brand) : undefined;
  await within((tx) => record(tx, id, begun, seen, read));
}

class VisitAborted extends Error {
  override readonly name = 'VisitAborted';
  constructor() {
    super('The worker stops: another one visits the page.');
  }
}

interface Begun {
  url: string;
  prospect_id: string;
  brand: Brand;
}

/** Counts the attempt: a visit that was begun too often and has no outcome is given up. Undefined where nothing is to be visited. */
async function begin(tx: Tx, { run_id, number }: VisitId): Promise<Begun | undefined> {
  const visit = await openVisit(tx, run_id, number);
  if (!visit) return undefined;
  const brand = await brands.find(tx, sql`t.organization_id = ${tx.organization_id} and t.id = ${visit.brand_id}`);
  const is_given_up = visit.attempts >= most_attempts;
  if (is_given_up && (await countInterruption(tx, run_id))) return undefined;
  if (is_given_up || !brand) {
    await end(tx, run_id, number, 'interrupted', false);
    return undefined;
  }
  await setAttempts(tx, run_id, number, visit.attempts + 1);
  return { ...visit, brand };
}

interface OpenVisit {
  url: string;
  prospect_id: string;
  brand_id: string;
  attempts: number;
}

const openVisit = (tx: Tx, run_id: string, number: number): Promise<OpenVisit | undefined> =>
  tx.maybe<OpenVisit>(sql`
    select v.url, v.prospect_id, v.attempts, r.brand_id
    from recruitment.visit v
    join recruitment.run r on r.organization_id = v.organization_id and r.id = v.run_id and r.state = 'running'
    where v.organization_id = ${tx.organization_id} and v.run_id = ${run_id} and v.number = ${number} and v.done_at is null
    for no key update of v`);

const setAttempts = (tx: Tx, run_id: string, number: number, attempts: number): Promise<object[]> =>
  tx.all(sql`
    update recruitment.visit v
    set attempts = ${attempts}
    where v.organization_id = ${tx.organization_id} and v.run_id = ${run_id} and v.number = ${number}`);

/** @returns whether the scan ended by it */
async function countInterruption(tx: Tx, run_id: string): Promise<boolean> {
  const run = await lockRun(tx, run_id);
  if (!run || !isOpen(run)) return true;
  await updateRun(tx, run_id, sql`interruptions = t.interruptions + 1`);
  if (run.interruptions < most_interruptions) return false;
  await failScan(tx, run, 'Interrupted too often.');
  return true;
}

/** The host is busy for a while: what was begun was not. */
async function comeBack(tx: Tx, { organization_id, run_id, number }: VisitId, run_at: string): Promise<void> {
  const visit = await openVisit(tx, run_id, number);
  if (!visit) return;
  await setAttempts(tx, run_id, number, Math.max(0, visit.attempts - 1));
  tx.enqueue('recruitment/visit_prospect', { organization_id, run_id, number }, { run_at });
}

async function record(
  tx: Tx,
  { run_id, number }: VisitId,
  { prospect_id, url }: Begun,
  { outcome }: Visit,
  read: ReadForBrand | undefined,
): Promise<void> {
  if (!(await openVisit(tx, run_id, number))) return;
  const added = read ? await addFindings(tx, prospect_id, read) : 0;
  if (read) await storePageOf(tx, prospect_id, url, read.page);
  await end(tx, run_id, number, outcome === 'page' && !read ? 'unreadable' : outcome, added > 0);
}

async function addFindings(tx: Tx, prospect_id: string, { page, evidence, score }: ReadForBrand): Promise<number> {
  const { description, language_code, country_code } = page;
  const name = page.site_name ?? page.title;
  const added = await addEvidence(tx, prospect_id, evidence, { name, description, language_code, country_code, score });
  return added ?? 0;
}

/** Ends a visit; the last one ends the scan. */
async function end(tx: Tx, run_id: string, number: number, outcome: string, has_new_evidence: boolean): Promise<void> {
  const ended = await tx.maybe(sql`
    update recruitment.visit v
    set outcome = ${outcome}, has_new_evidence = ${has_new_evidence}, done_at = ${tx.now}::timestamptz
    where v.organization_id = ${tx.organization_id} and v.run_id = ${run_id} and v.number = ${number} and v.done_at is null
    returning v.number`);
  if (!ended) return;
  const run = await lockRun(tx, run_id);
  if (!run || !isOpen(run)) return;
  const visits_left = await openVisits(tx, run_id);
  await updateRun(tx, run_id, sql`visits_left = ${visits_left}`);
  if (visits_left === 0) await finishScan(tx, run satisfies Run);
}

/** Counted under the run's lock: a prospect that is erased takes its visits along. */
const openVisits = async (tx: Tx, run_id: string): Promise<number> =>
  (
    await tx.one<{ open: number }>(sql`
      select count(*)::integer as open
      from recruitment.visit v
      where v.organization_id = ${tx.organization_id} and v.run_id = ${run_id} and v.done_at is null`)
  ).open;
