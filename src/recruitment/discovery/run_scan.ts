/** A first, weekly or manual scan: looks at the brand's website, asks providers, and visits what they found. */
import sql from 'sql-template-tag';
import type { TaskContext } from '../../core/jobs/worker_context.ts';
import { type Tx, transaction } from '../../core/postgres/transaction.ts';
import { type Brand, brands } from '../brands/brand.ts';
import type { Visit } from '../pages/visit.ts';
import { isOpen, lockRun, type Run, type ScanError } from '../runs/run.ts';
import { provider_names } from '../search_providers/provider.ts';
import { availableProviders } from '../search_providers/provider_access.ts';
import { type Asking, askProviders } from './ask_providers.ts';
import { stepsOf } from './next_page.ts';
import { failScan, finishScan, startVisits } from './scan_visits.ts';
import { no_filters } from './skip.ts';
import { planSteps, type Step, textsOfCompetitor } from './steps.ts';
import { Visits } from './visits.ts';

const most_results = 100;
const most_keywords = 10;
const most_competitors = 5;
const most_title_words = 6;

interface ScanId {
  organization_id: string;
  id: string;
}

export async function runScan(scan: ScanId, context: TaskContext): Promise<void> {
  const within = <T>(work: (tx: Tx) => Promise<T>) =>
    transaction(context.store, { organization_id: scan.organization_id, request_id: null }, work);
  const brand = await within((tx) => brandToLookAt(tx, scan.id));
  const { error, title = '' } = brand ? await lookAt(brand, context) : {};
  if (error) return void (await within((tx) => fail(tx, scan.id, error)));
  await askProviders(scan, context, askingOf(scan, title, context));
}

/** Undefined where that was done, or where nothing is to be done. */
async function brandToLookAt(tx: Tx, id: string): Promise<Brand | undefined> {
  const run = await lockRun(tx, id);
  if (!run || !isOpen(run) || (await stepsOf(tx, id)) !== null) return undefined;
  const brand = await brandOf(tx, run);
  if (!brand) await finishScan(tx, run);
  return brand;
}

/** @returns what its website calls itself, or why the scan fails */
async function lookAt(brand: Brand, context: TaskContext): Promise<{ error?: ScanError | undefined; title?: string }> {
  const visits = context.use(Visits);
  const seen = await visits.visit(brand.website_url, context.cut_off);
  if (seen.outcome !== 'page') return { error: errorOf(seen) };
  const read = await visits.reader.forBrand(seen, brand);
  return read ? { title: read.page.title ?? '' } : { error: 'The website cannot be read.' };
}

const brandOf = (tx: Tx, { brand_id }: Run): Promise<Brand | undefined> =>
  brands.find(tx, sql`t.organization_id = ${tx.organization_id} and t.id = ${brand_id}`);

function errorOf(seen: Visit): ScanError | undefined {
  if (seen.outcome === 'unreachable' && seen.reason === 'aborted') throw new Error('The worker stops.');
  if (seen.outcome === 'forbidden' && seen.by !== 'robots_unavailable') return 'The website forbids visits.';
  const is_away = seen.outcome === 'unreachable' || seen.outcome === 'http_error' || seen.outcome === 'forbidden';
  return is_away ? 'The website could not be reached.' : undefined;
}

async function fail(tx: Tx, id: string, error: ScanError): Promise<void> {
  const run = await lockRun(tx, id);
  if (run && isOpen(run)) await failScan(tx, run, error);
}

const askingOf = (scan: ScanId, title: string, { services }: TaskContext): Asking => ({
  async plan(tx, run) {
    const brand = await brandOf(tx, run);
    const available = await availableProviders(tx, services);
    const names = provider_names.filter((name) => available.has(name));
    return brand ? planSteps(wantedBy(brand, title), names) : [];
  },
  async selection(tx, run) {
    const brand = await brandOf(tx, run);
    const { channels = [], website_url = '', competitors = [] } = brand ?? {};
    return { filters: no_filters, channels, own_sites: [website_url, ...competitors], most_results };
  },
  finish: finishAsking,
  giveUp: (tx, run) => failScan(tx, run, 'Interrupted too often.'),
  again: (tx) => tx.enqueue('recruitment/run_scan', scan),
});

/** Keywords and competitors; a brand that names none is searched by what its website calls itself. */
function wantedBy({ keywords, competitors, channels, countries, languages, name }: Brand, title: string) {
  const named = [
    ...keywords.slice(0, most_keywords),
    ...competitors.slice(0, most_competitors).flatMap((domain) => textsOfCompetitor(domain).slice(0, 2)),
  ];
  const words = title.split(/[^\p{L}\p{N}'-]+/u).filter((word) => word !== '');
  const fallback = words.length > 0 ? words.slice(0, most_title_words).join(' ') : name;
  return { texts: named.length > 0 ? named : [fallback], channels, countries, languages };
}

/** Begins the visits. Without an answer there is nothing to visit, unless a ceiling was in the way. */
async function finishAsking(tx: Tx, run: Run, steps: Step[]): Promise<void> {
  const has_answer = steps.some(({ pages }) => pages > 0);
  const is_stopped = steps.some(({ over }) => over === 'ceiling');
  if (!has_answer && !is_stopped) return failScan(tx, run, 'No search provider answered.');
  await startVisits(tx, run);
}
