import t, { type Test } from 'tap';
import { type Caller, eventually, type Json, sql, startRail } from '../../harness.ts';
import { blogs, coupon_sites } from '../farm/blogs.ts';
import { startFarm } from '../farm/farm.ts';
import { brand, type GoldenSite } from '../farm/golden.ts';
import { hidden } from '../farm/hidden.ts';
import { hostile } from '../farm/hostile.ts';
import { languages } from '../farm/languages.ts';
import { podcasts } from '../farm/podcasts.ts';
import { shops } from '../farm/shops.ts';
import { Tally } from '../farm/tally.ts';
import { base, ended, scannedBrand } from './web.ts';

const sites: GoldenSite[] = [...blogs, ...coupon_sites, ...podcasts, ...languages, ...shops, ...hidden, ...hostile];
const farm = await startFarm(t as unknown as Test, sites);
/** Private addresses are refused as in production, but for the one that the farm is at. */
const rail = await startRail({
  own: {
    ...{ name_servers: farm.nameServers, allow_private_addresses: false, trusted_addresses: ['127.0.0.1'] },
    // The time of a site that never ends its page.
    patience_ms: { visit: 30_000, login: 60_000 },
  },
});
const own_sites = ['brewly.com', 'blog.brewly.com', 'percolator.com', 'www.beanworks.de', 'shop.moka-house.it'];

const rowsOf = async (caller: Caller, path: string): Promise<Json[]> =>
  (await caller.request('GET', `${base}/${path}`)).body.data;

t.test('a search over the farm and the scan behind it find on each site what a person finds there', async (t) => {
  const caller = await rail.organization();
  const { id: brand_id } = await scannedBrand(caller, { ...brand, website_url: farm.url('brewly.com') });
  farm.requests.length = 0;
  const query = sites.map(({ host, path }) => farm.url(host, path)).join(' ');
  const asked = { brand_id, search_type: 'url_list', query, max_results: 500 };
  const { id: search_id } = await caller.post(`${base}/searches`, asked);
  const { scan_id, state, found } = await ended(caller, 'searches', search_id);
  t.match({ state, found }, { state: 'done', found: sites.length - own_sites.length });
  await eventually(async () => (await caller.get(`${base}/scans/${scan_id}`)).visits_left === 0, 'the scan', 180_000);
  t.match(await caller.get(`${base}/scans/${scan_id}`), { state: 'done', trigger: 'search', visits: found });

  await compareSites(t, caller, { brand_id, search_id, scan_id });
  await compareEvents(t, caller, { brand_id, search_id, scan_id });
  const pages = farm.requests.filter(({ host }) => host !== 'round-and-round.com').map(({ host, path }) => host + path);
  t.equal(new Set(pages).size, pages.length, 'no page is visited twice');
});

interface Ids {
  brand_id: string;
  search_id: string;
  scan_id: string;
}

async function compareSites(t: Test, caller: Caller, { brand_id, search_id, scan_id }: Ids): Promise<void> {
  const [results, prospects, visits] = await Promise.all([
    rowsOf(caller, `searches/${search_id}/results?format=ndjson`),
    rowsOf(caller, `prospects?brand_id=${brand_id}&format=ndjson`),
    rail.query<{ url: string; outcome: string }>(sql`
      select v.url, v.outcome from recruitment.visit v where v.run_id = ${scan_id}`),
  ]);
  const by_url = new Map(results.map((result) => [result.url, result]));
  const by_id = new Map(prospects.map((prospect) => [prospect.id, prospect]));
  const outcomes = new Map(visits.map(({ url, outcome }) => [url, outcome]));
  t.equal(outcomes.size, visits.length, 'each page has one visit');
  const tally = new Tally();
  for (const { host, path, golden } of sites) {
    const { prospect_id, skipped_because } = by_url.get(farm.url(host, path)) ?? {};
    if (own_sites.includes(host)) t.equal(skipped_because, 'own_site', host);
    else compareSite(t, tally, { host, golden }, by_id.get(prospect_id), outcomes.get(farm.url(host, path)));
  }
  tally.check(t, 'evidence');
}

type Compared = Pick<GoldenSite, 'host' | 'golden'>;

function compareSite(t: Test, tally: Tally, { host, golden }: Compared, prospect?: Json, outcome?: string): void {
  if (!prospect) {
    t.fail(`${host} is no prospect`);
    return;
  }
  const { evidence, score, language_code } = prospect;
  t.equal(outcome, golden.outcome ?? 'page', host);
  if (golden.evidence) tally.compare(host, evidence.map(nameOf), golden.evidence);
  if (golden.language !== undefined) t.equal(language_code, golden.language, host);
  if (!golden.score) return;
  const [least, most] = golden.score;
  t.ok(least <= score && score <= most, `${host}: ${score} is within ${golden.score}`);
}

async function compareEvents(t: Test, caller: Caller, { brand_id, search_id, scan_id }: Ids): Promise<void> {
  const rows = await rail.query<{ type: string; body: string }>(sql`
    select e.type, e.body from webhooks.event e where e.organization_id = ${caller.organization_id} order by e.position`);
  const events = rows.map(({ type, body }): [string, Json] => [type, JSON.parse(body).data]);
  const { found } = await caller.get(`${base}/scans/${scan_id}`);
  t.same(
    events.filter(([, data]) => data.search_id === search_id || data.scan_id === scan_id),
    [
      [
        'search.completed',
        { search_id, brand_id, search_type: 'url_list', state: 'done', found: sites.length - own_sites.length },
      ],
      ['scan.completed', { scan_id, brand_id, trigger: 'search', state: 'done', found }],
    ],
    'each is told once',
  );
}

function nameOf({ kind, url, text }: Json): string {
  return `${kind} ${kind === 'coupon_page' ? URL.parse(url)?.pathname : text.split(': ')[0]}`;
}
