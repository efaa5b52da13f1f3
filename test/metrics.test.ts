import t from 'tap';
import { job_states } from '../src/core/jobs/job_state.ts';
import { newId, timeOfId } from '../src/core/values/id.ts';
import { metrics } from '../src/guides/all_metrics.ts';
import { schedules } from '../src/products.ts';
import { command } from './command_process.ts';
import {
  callerOf,
  encryption_key,
  eventually,
  type Json,
  type Rail,
  sql,
  startRail,
  startReceiver,
} from './harness.ts';
import { stablePort } from './ports.ts';
import { type Process, startGate, startProcess, stopClocks } from './processes.ts';
import { type Family, parseMetrics } from './prometheus.ts';
import { spawnRail } from './rail_process.ts';

const on_own_port = { METRICS_PORT: '0' };

const portOf = ({ logged }: Process): number => logged.find(({ msg }) => msg === 'metrics ready')?.port;

/** The metrics of several processes, together. */
class Scrape {
  readonly text: string;
  readonly families: Map<string, Family>;

  constructor(texts: string[]) {
    this.text = texts.join('');
    this.families = new Map();
    for (const [name, family] of texts.flatMap((text) => [...parseMetrics(text)])) {
      const known = this.families.get(name);
      if (known) known.samples.push(...family.samples);
      else this.families.set(name, family);
    }
  }

  /** The sum of the series that have these labels, or undefined where there is none. */
  get(name: string, labels: Record<string, string> = {}): number | undefined {
    const family = this.families.get(name) ?? this.families.get(name.replace(/_(sum|count|bucket)$/, ''));
    const fitting = family?.samples.filter(
      (sample) =>
        sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
    );
    return fitting?.length ? fitting.reduce((sum, { value }) => sum + value, 0) : undefined;
  }

  values(name: string, label: string): string[] {
    const found = this.families.get(name)?.samples.map(({ labels }) => labels[label] as string) ?? [];
    return [...new Set(found)].sort();
  }
}

const scrape = async (...ports: number[]): Promise<Scrape> => new Scrape(await Promise.all(ports.map(shownOn)));

async function shownOn(port: number): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}/metrics`);
  if (!/^text\/plain; version=0\.0\.4/.test(response.headers.get('content-type') ?? '') || response.status !== 200)
    throw new Error(`/metrics answered ${response.status}`);
  return response.text();
}

/** The queues are read anew every few seconds. */
async function scrapeUntil(ports: number[], holds: (scraped: Scrape) => boolean, what: string): Promise<Scrape> {
  let last: Scrape | undefined;
  await eventually(async () => {
    last = await scrape(...ports);
    return holds(last);
  }, what);
  return last as Scrape;
}

const countOf = async (rail: Rail, statement: ReturnType<typeof sql>): Promise<number> =>
  ((await rail.query<{ count: number }>(statement))[0] as { count: number }).count;

t.test('shows what was done and what waits, and nothing of whose it is', async (t) => {
  const rail = await startRail({ worker: false });
  const gate = await startGate(rail.url);
  const api = await startProcess('api', gate.url, on_own_port);
  const { organization_id, key } = await rail.organization();
  const merchant = callerOf(api.url, key, organization_id);
  const good = await startReceiver();
  const failing = await startReceiver(() => 500);
  const gone = `http://127.0.0.1:${await stablePort()}/hook`;

  const program = { name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' };
  const { id: program_id } = await merchant.post('/v1/programs', program);
  const endpoints: Json[] = [];
  for (const url of [good.url, failing.url, gone])
    endpoints.push(
      await merchant.post('/v1/webhook_endpoints', { program_id, url, event_types: ['affiliate.created'] }),
    );
  for (let nth = 0; nth < 5; nth++)
    await merchant.post('/v1/partners', { program_id, email: `partner${nth}@partner.example.com` });
  await merchant.request('POST', '/v1/partners', { program_id, email: 'partner0@partner.example.com' });
  for (const path of ['/v1/nothing', '/v1/nothing/else']) await merchant.request('GET', path);
  await merchant.request('PUT', `/v1/partners/${program_id}`);
  await callerOf(api.url, 'rail_live_unknown', '').request('GET', '/v1/programs');
  const hasty = callerOf(api.url, (await rail.key(organization_id, { rate_limit: 1 })).key, organization_id);
  const answers = await Promise.all(Array.from({ length: 12 }, () => hasty.request('GET', '/v1/tags')));
  const refused = answers.filter(({ status }) => status === 429).length;

  const ofApi = await scrape(portOf(api));
  const requests = (operation: string, status: number) =>
    ofApi.get('rail_http_requests_total', { operation, status: `${status}` });
  t.equal(requests('partners.create', 201), 5);
  t.equal(requests('partners.create', 409), 1);
  t.equal(requests('webhook_endpoints.create', 201), 3);
  t.equal(requests('programs.list', 401), 1);
  t.equal(requests('none', 404), 2, 'paths that do not exist are one');
  t.equal(requests('none', 405), 1, 'nor is what they do not take any route');
  t.equal(requests('tags.list', 429), refused);
  t.equal(ofApi.get('rail_rate_limited_total'), refused);
  t.equal(ofApi.get('rail_http_request_seconds_count', { operation: 'partners.create' }), 6);
  t.ok((ofApi.get('rail_http_request_seconds_sum', { operation: 'partners.create' }) ?? 0) > 0);

  const events = await countOf(rail, sql`select count(*) from webhooks.pending_event`);
  t.ok(events >= 5);
  t.equal(ofApi.get('rail_queue_size', { queue: 'pending_events' }), events);
  t.ok((ofApi.get('rail_queue_oldest_seconds', { queue: 'pending_events' }) ?? 0) > 0);
  t.equal(ofApi.get('rail_queue_size', { queue: 'waiting_deliveries' }), 0);
  t.equal(ofApi.get('rail_workers'), 0);
  t.same(ofApi.values('rail_pool_connections', 'pool'), ['rail']);

  // Its clock would send what is to be tried again after a minute, at 1 or 31 minutes past.
  await stopClocks(rail);
  const worker = await startProcess('worker', rail.url, on_own_port);
  await good.until(5);
  await failing.until(5);
  await merchant.post(`/v1/webhook_endpoints/${endpoints[1]?.id}/ping`);
  await failing.until(6);
  const made = (one: Scrape, outcome: string, answer: string) =>
    one.get('rail_delivery_attempts_total', { outcome, answer });
  const size = (one: Scrape, queue: string) => one.get('rail_queue_size', { queue });
  const both = [portOf(api), portOf(worker)];
  const ofBoth = await scrapeUntil(
    both,
    (one) =>
      made(one, 'failed', '5xx') === 1 &&
      size(one, 'retrying_deliveries') === 10 &&
      size(one, 'waiting_deliveries') === 0 &&
      size(one, 'pending_events') === 0,
    'all attempts, and empty queues',
  );
  t.equal(made(ofBoth, 'delivered', '2xx'), 5);
  t.equal(made(ofBoth, 'retrying', '5xx'), 5);
  t.equal(made(ofBoth, 'retrying', 'refused'), 5);
  t.equal(ofBoth.get('rail_delivery_attempts_total'), 16);
  t.equal(ofBoth.get('rail_delivery_attempt_seconds_count'), 16);
  t.equal(ofBoth.get('rail_delivery_latency_seconds_count', { attempt: 'first', made: 'at_once' }), 5);
  t.equal(ofBoth.get('rail_delivery_latency_seconds_count'), 5, 'what was not acknowledged has none');
  t.equal(ofBoth.get('rail_fan_out_events_sum'), events);
  t.equal(ofBoth.get('rail_fan_out_events_bucket', { le: '1' }), 0, 'they went out together');
  t.equal(ofBoth.get('rail_workers'), 1);
  t.equal(ofBoth.get('rail_backlog_readable'), 2);
  t.same(ofBoth.values('rail_jobs', 'state'), [...job_states].sort());
  t.same(ofBoth.values('rail_endpoint_queues', 'state'), ['expired', 'leased', 'waiting']);
  t.same(ofBoth.values('rail_schedule_lag_seconds', 'schedule'), schedules.map(({ name }) => name).sort());
  t.same(ofBoth.values('rail_build_info', 'role'), ['api', 'worker']);
  t.ok((ofBoth.get('rail_job_seconds_count', { outcome: 'done' }) ?? 0) > 0);
  t.ok((ofBoth.get('rail_pool_wait_seconds_count') ?? 0) > events);
  t.ok((ofBoth.get('rail_postgres_connections', { state: 'open' }) ?? 0) > 2);
  t.ok((ofBoth.get('rail_partitions_ahead_days') ?? 0) > 28);
  t.equal(ofBoth.get('rail_audit_age_seconds'), undefined, 'there was no audit');
  const ofWorker = await scrape(portOf(worker));
  t.same(ofWorker.values('rail_pool_connections', 'pool'), ['jobs', 'rail']);
  t.equal(ofApi.get('rail_pool_connections', { pool: 'rail', state: 'most' }), 19, 'one is for the metrics');
  t.equal(ofWorker.get('rail_pool_connections', { pool: 'rail', state: 'most' }), 11);
  t.equal(ofWorker.get('rail_pool_connections', { pool: 'jobs', state: 'most' }), 7, 'the last one proves it alive');

  t.equal(ofApi.get('rail_metrics_reader'), 1, 'the first that was asked reads the database');
  t.equal(ofWorker.get('rail_metrics_reader'), 0);
  for (const { name } of metrics.filter(({ is_shared }) => is_shared)) t.equal(ofWorker.get(name), undefined, name);
  const series = (one: Scrape) => one.text.split('\n').filter((line) => line && !line.startsWith('#')).length;
  t.ok(series(ofWorker) < 500, `${series(ofWorker)} series of a worker`);
  t.ok(series(ofApi) < 1_200, `${series(ofApi)} series of the process that reads`);

  for (const { text, families } of [ofApi, ofWorker]) {
    t.ok(families.has('process_cpu_seconds_total') && families.has('nodejs_eventloop_lag_seconds'));
    for (const { name, help } of families.values())
      t.ok(/^(rail|process|nodejs)_/.test(name) && help.length > 10, name);
    t.notMatch(text, /[a-z]_[0-9a-hjkmnp-tv-z]{26}/, 'no id');
    for (const secret of [key, organization_id, 'example.com', 'Acme', '127.0.0.1', encryption_key.toString('base64')])
      t.notOk(text.includes(secret), 'neither secret nor tenant');
  }
  t.equal((await fetch(`http://127.0.0.1:${portOf(api)}/`)).status, 404);
  t.equal((await fetch(`${api.url}/metrics`)).status, 404, 'and not on the port of the API');

  await t.test('goes on without Postgres, and says that it does', async (t) => {
    gate.leadTo(1);
    gate.cut();
    const without = await scrapeUntil([portOf(api)], (one) => one.get('rail_backlog_readable') === 0, 'no Postgres');
    for (const name of ['rail_queue_size', 'rail_jobs', 'rail_workers']) t.equal(without.get(name), undefined);
    t.ok((without.get('process_start_time_seconds') ?? 0) > 0);
    gate.leadTo(Number(new URL(rail.url).port));
    const again = await scrapeUntil([portOf(api)], (one) => one.get('rail_backlog_readable') === 1, 'Postgres');
    t.equal(again.get('rail_workers'), 1);
  });

  await t.test('has another process read the database when the one that did has ended', async (t) => {
    await api.end('SIGTERM');
    const shown = await scrapeUntil(
      [portOf(worker)],
      (one) => one.get('rail_metrics_reader') === 1,
      'the worker to read',
    );
    t.equal(shown.get('rail_workers'), 1);
  });
});

t.test('answers on the same port whether the process lives and is ready', async (t) => {
  const rail = await startRail({ worker: false });
  const gate = await startGate(rail.url);
  const settings = { DATABASE_URL: gate.url, RAIL_ENCRYPTION_KEY: encryption_key.toString('base64'), ...on_own_port };
  await rail.query(
    sql`update migration.applied set name = 'migrations/0001_unknown.sql' where name = 'migrations/0001_core.sql'`,
  );
  const worker = spawnRail(t, ['worker'], settings);
  const [, port] = await worker.until(/"port":(\d+),"msg":"metrics ready"/);
  const ask = async (path: string) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`);
    return { status: response.status, body: (await response.json()) as Json };
  };
  await worker.until(/missing migrations|lacks migrations/);
  t.match(await ask('/readyz'), { status: 503, body: { status: 'not_ready', reason: /Run 'npx --no rail migrate'/ } });
  t.same(await ask('/healthz'), { status: 200, body: { status: 'ok' } });
  t.equal((await scrape(Number(port))).get('rail_workers'), 0, 'while its metrics do not show that it waits');

  await rail.query(
    sql`update migration.applied set name = 'migrations/0001_core.sql' where name = 'migrations/0001_unknown.sql'`,
  );
  await worker.until(/worker ready/);
  t.same(await ask('/readyz'), { status: 200, body: { status: 'ready' } });
  gate.leadTo(1);
  gate.cut();
  t.match(await ask('/readyz'), { status: 503, body: { reason: /^The database/ } });
  t.equal((await ask('/healthz')).status, 200);
  gate.leadTo(Number(new URL(rail.url).port));
  await eventually(async () => (await ask('/readyz')).status === 200, 'the worker to be ready again');
  t.equal((await worker.stop()).code, 0);
});

t.test('opens one port for all of a process', async (t) => {
  const rail = await startRail({ worker: false });
  const own = { DATABASE_URL: rail.url, RAIL_ENCRYPTION_KEY: encryption_key.toString('base64'), PORT: '0' };
  const whole = spawnRail(t, ['start'], { ...own, ...on_own_port, RAIL_DATA_DIR: t.testdir({}) });
  await whole.until(/Ctrl-C stops it/);
  await whole.until(/"msg":"metrics ready"/);
  const ports = [...whole.said().stderr.matchAll(/"port":(\d+),"msg":"metrics ready"/g)].map(([, port]) =>
    Number(port),
  );
  t.equal(ports.length, 1);
  const [port] = ports as [number];
  const both = await scrape(port);
  t.same(both.values('rail_pool_connections', 'pool'), ['jobs', 'rail']);
  t.equal(both.get('rail_workers'), 1);

  const second = await command(['api'], { ...own, METRICS_PORT: `${port}` });
  t.equal(second.code, 1);
  t.match(second.stderr, new RegExp(`rail: Port ${port} of 127.0.0.1 is taken: .*METRICS_PORT`));
  t.equal((await whole.stop('SIGTERM')).code, 0);
  await t.rejects(fetch(`http://127.0.0.1:${port}/metrics`), 'it is closed with the rest');
});

t.test('an id tells when it was made', (t) => {
  const before = Date.now();
  const made = timeOfId(newId('evt'));
  t.ok(made >= before && made <= Date.now());
  t.equal(timeOfId('evt_01h455vb4pex5vsknk084sn02q'), 0x01890a5d_ac96);
  t.end();
});
