/** Pages that never end to be read, or need more memory than there is: the process goes on, nothing tries them again, and the user is told. */
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import type { TaskContext } from '../../../src/core/jobs/worker_context.ts';
import { PageReader } from '../../../src/recruitment/discovery/page_reader.ts';
import { runReveal } from '../../../src/recruitment/discovery/run_reveal.ts';
import { runScan } from '../../../src/recruitment/discovery/run_scan.ts';
import { visitProspect } from '../../../src/recruitment/discovery/visit_prospect.ts';
import { Visits } from '../../../src/recruitment/discovery/visits.ts';
import { type Caller, type Json, log, services, sql, startRail } from '../../harness.ts';
import { startSearxng } from './search_servers.ts';
import { base, blog, shop, startWeb } from './web.ts';

const web = await startWeb();
const hosts = ['endless.test', 'large.test', 'fairbakes.com'];
web.sites.set('endless.test', { '/': blog('A never-ending story') });
web.sites.set('large.test', { '/': blog('A filling cake') });
web.sites.set('fairbakes.com', {
  '/': `${blog('Fair')}<a href="mailto:ada@fairbakes.com">Mail</a><a href="/about">About</a>`,
  '/about': blog('A never-ending story'),
});
web.sites.set('shop.test', { '/': shop });
const server = await startSearxng(hosts.map((host) => ({ url: web.at(host), title: host })));
const own = { name_servers: web.name_servers, search_credentials: { searxng: { url: server.url } } };
const rail = await startRail({ worker: false, own });

const never = new AbortController().signal;
const own_services = { ...services, ...own };
const poison = new PageReader(log, new URL('./poison_thread.ts', import.meta.url), 500);
const visits = new Visits({ store: rail.store, services: own_services, log }, poison);
const context = {
  ...{ store: rail.store, services: own_services, log, worker_id: 'wrk_test', stopping: never, cut_off: never },
  use: () => visits,
} as unknown as TaskContext;
t.teardown(() => visits.close());

/** A brand, and its first scan. */
async function brandAt(caller: Caller, host: string): Promise<Json> {
  const brand = await caller.post(`${base}/brands`, { name: 'Ovens', website_url: web.at(host) });
  const { data } = await caller.get(`${base}/scans?brand_id=${brand.id}`);
  return { ...brand, scan_id: data[0].id };
}

t.test('a scan leaves out pages that cannot be read, and reads the others', async (t) => {
  const caller = await rail.organization();
  const { organization_id } = caller;
  const { id: brand_id, scan_id: run_id } = await brandAt(caller, 'shop.test');
  await runScan({ organization_id, id: run_id }, context);
  t.match(await caller.get(`${base}/scans/${run_id}`), { state: 'running', visits_left: 3 });
  let answers = 0;
  const all = Promise.all([1, 2, 3].map((number) => visitProspect({ organization_id, run_id, number }, context)));
  let is_over = false;
  void all.finally(() => {
    is_over = true;
  });
  while (!is_over) {
    await caller.get(`${base}/brands/${brand_id}`);
    answers += 1;
    await sleep(50);
  }
  await all;
  t.ok(answers > 0, `${answers} requests were answered meanwhile`);
  t.match(await caller.get(`${base}/scans/${run_id}`), { state: 'done', visits: 3, visits_left: 0 });
  const outcomes = await rail.query<Json>(
    sql`select v.url, v.outcome, v.attempts from recruitment.visit v where v.run_id = ${run_id} order by v.url`,
  );
  t.same(outcomes, [
    { url: web.at('endless.test'), outcome: 'unreadable', attempts: 1 },
    { url: web.at('fairbakes.com'), outcome: 'page', attempts: 1 },
    { url: web.at('large.test'), outcome: 'unreadable', attempts: 1 },
  ]);
});

t.test("a scan says that it cannot read its brand's website", async (t) => {
  const caller = await rail.organization();
  const { scan_id: id } = await brandAt(caller, 'endless.test');
  await runScan({ organization_id: caller.organization_id, id }, context);
  t.match(await caller.get(`${base}/scans/${id}`), { state: 'failed', error: 'The website cannot be read.' });
});

t.test('a reveal says that it cannot read the home page, and leaves out other pages', async (t) => {
  const caller = await rail.organization();
  const { organization_id } = caller;
  const { id: brand_id } = await brandAt(caller, 'shop.test');
  const reveal = async (host: string): Promise<Json> => {
    const { id } = await caller.post(`${base}/prospects`, { brand_id, channel: 'website', url: web.at(host) });
    await caller.post(`${base}/prospects/${id}/reveal`);
    await runReveal({ organization_id, prospect_id: id }, context);
    return caller.get(`${base}/prospects/${id}/reveal`);
  };
  const failed = { state: 'failed', reason: 'The website cannot be read.', credit_refunded: true };
  t.match(await reveal('endless.test'), failed);
  t.match(await reveal('large.test'), failed);
  t.match(await reveal('fairbakes.com'), { state: 'found', addresses: 1, pages: 3 });
});
