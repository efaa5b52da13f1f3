import t from 'tap';
import { eventually, type Json, sql, startRail } from '../harness.ts';
import { type Process, spawnProcess, startGate, startProcess } from '../processes.ts';
import { brave_key, startBrave } from '../recruitment/discovery/search_servers.ts';
import { base, blog, ended, scanBehind, scannedBrand, shop, startWeb } from '../recruitment/discovery/web.ts';

const web = await startWeb();
web.sites.set('shop.test', { '/': shop });
const listed = Array.from({ length: 60 }, (_, nth) => ({ url: web.at(`blog${nth}.test`, '/review') }));
for (let nth = 0; nth < 60; nth++) web.sites.set(`blog${nth}.test`, { '/review': blog(`Blog ${nth}`) });
const brave = await startBrave(listed);
const own = {
  ...{ name_servers: web.name_servers, provider_urls: { brave: brave.url } },
  search_credentials: { brave: { api_key: brave_key } },
};
const rail = await startRail({ worker: false, durability: 'durable', own });
const gate = await startGate(rail.url);
const settings = {
  ...{
    RAIL_BRAVE_URL: brave.url,
    RAIL_BRAVE_API_KEY: brave_key,
    RAIL_WEBHOOK_NAME_SERVERS: web.name_servers.join(','),
  },
};
let worker: Process = await startProcess('worker', gate.url, settings);
/** @param isDead called before the next worker starts. That one works before it is ready, so that it may be killed before that. */
const replace = async (isDead = () => {}) => {
  await worker.end('SIGKILL');
  gate.cut();
  isDead();
  const next = spawnProcess('worker', gate.url, settings);
  worker = next;
  await next.ready;
};

/** Checks the invariants once a search and the scan behind it have ended, whatever was killed. */
async function check(t: Test, organization_id: string, offsets: string[], found: number): Promise<void> {
  t.same(offsets, [...new Set(offsets)], 'no page is paid twice');
  const told = await rail.query<{ type: string; body: string }>(sql`
    select e.type, e.body from webhooks.event e where e.organization_id = ${organization_id} and e.type <> 'scan.failed' order by e.position`);
  t.same(
    told.map(({ type, body }) => [type, (JSON.parse(body) as Json).data.found]),
    [
      ['scan.completed', 0],
      ['search.completed', found],
      ['scan.completed', found],
    ],
  );
  t.same(await rail.audit(), []);
}
type Test = Parameters<Parameters<typeof t.test>[0]>[0];

/** @param max_results 20 to a page */
async function search(max_results: number): Promise<{ organization_id: string; ended(): Promise<Json> }> {
  const caller = await rail.organization();
  await caller.patch(`${base}/plan`, { spending_ceiling_minor: 0 });
  const { id: brand_id } = await scannedBrand(caller, { website_url: web.at('shop.test') });
  await caller.patch(`${base}/plan`, { spending_ceiling_minor: null });
  brave.calls.length = 0;
  const asked = { brand_id, search_type: 'keyword', query: 'ovens', providers: ['brave'], max_results };
  const { id } = await caller.post(`${base}/searches`, asked);
  return {
    organization_id: caller.organization_id,
    async ended() {
      await eventually(async () => (await caller.get(`${base}/searches/${id}`)).finished_at !== null, 'the search');
      const done = await ended(caller, 'searches', id);
      await eventually(
        async () => (await caller.get(`${base}/scans/${done.scan_id}`)).finished_at !== null,
        'the scan',
      );
      await scanBehind(caller, id);
      return done;
    },
  };
}
const offsetsAsked = () => brave.calls.map(({ query }) => query.offset as string);

t.test(
  'a worker that is killed while a page is asked for: the page stays paid, and is never asked for again',
  async (t) => {
    let replaced: Promise<void> | undefined;
    brave.fault = (call) => {
      if (call.query.offset === '1' && !replaced) replaced = replace();
      return undefined;
    };
    const run = await search(500);
    const done = await run.ended();
    await replaced;
    brave.fault = () => undefined;
    t.match(done, { state: 'done', spent_minor: 2 });
    t.ok(replaced);
    await check(t, run.organization_id, offsetsAsked(), done.found);
    t.ok(done.found >= 40, 'the pages around it are there');
  },
);

const statements = [
  ['before', 'insert into recruitment.run_result'],
  ['after', 'insert into recruitment.visit '],
  ['before', 'update recruitment.visit v set outcome'],
] as const;
t.test(
  'workers that are killed one after the other, on either side of what they write: the last one goes on',
  async (t) => {
    const killed: string[] = [];
    let replaced: Promise<void> = Promise.resolve();
    const arm = ([statement, ...later]: (typeof statements)[number][]): void => {
      if (!statement) return;
      const [side, text] = statement;
      void gate
        .stopAt(side, (seen) => seen.text.replaceAll(/\s+/g, ' ').includes(text))
        .then(() => {
          killed.push(`${side} ${text}`);
          replaced = Promise.all([replaced, replace(() => arm(later))]).then(() => {});
        });
    };
    arm([...statements]);
    const run = await search(40);
    const done = await run.ended();
    gate.disarm();
    await replaced;
    t.same(
      killed,
      statements.map(([side, text]) => `${side} ${text}`),
    );
    t.match(done, { state: 'done' });
    await check(t, run.organization_id, offsetsAsked(), done.found);
  },
);
