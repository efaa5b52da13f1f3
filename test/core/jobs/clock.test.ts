import { createHmac } from 'node:crypto';
import { join } from 'node:path';
import { pino } from 'pino';
import t from 'tap';
import { runDue } from '../../../src/core/jobs/schedule.ts';
import { readClock, watchClock } from '../../../src/core/metrics/clock.ts';
import { databaseTime } from '../../../src/core/values/clock.ts';
import { newId, timeOfId } from '../../../src/core/values/id.ts';
import { schedules } from '../../../src/products.ts';
import { startWorker } from '../../../src/worker.ts';
import { callerOf, eventually, type Json, log, services, sql, startRail } from '../../harness.ts';
import { startProcess } from '../../processes.ts';
import { parseMetrics } from '../../prometheus.ts';
import { openShop } from '../../shop.ts';

const rail = await startRail({ worker: false });
const day_ms = 86_400_000;
const until_2099 = Date.UTC(2099, 0, 1) - Date.now();

const shifted = (ms: number) => ({
  CLOCK_SHIFT_MS: String(ms),
  METRICS_PORT: '0',
  NODE_OPTIONS: `--import ${join(import.meta.dirname, '../../shifted_clock.ts')}`,
});

t.test('processes whose clocks are wrong mature, delete and schedule nothing, and say so', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  const sale = await shop.sale({ partner_id: (await shop.partner()).id });
  const [commission] = sale.commissions;
  await shop.merchant.post(
    '/v1/partners',
    { program_id: shop.program_id, email: 'ada@example.com' },
    {
      'Idempotency-Key': 'once',
    },
  );
  await rail.query(sql`
    insert into core.schedule (name, since)
    select name, now() - interval '3 hours' from unnest(${schedules.map(({ name }) => name)}::text[]) as name
    on conflict (name) do update set since = excluded.since`);
  const kept = async () =>
    rail.query(sql`
      select
        (select count(*) from webhooks.event) as events,
        (select count(*) from core.idempotency_key) as keys,
        (select array_agg(c.relname order by c.relname) from pg_inherits i join pg_class c on c.oid = i.inhrelid) as partitions`);
  const before = await kept();

  const shifts = [40 * day_ms, -40 * day_ms, until_2099];
  const wrong = await Promise.all(shifts.map((ms) => startProcess('worker', rail.url, shifted(ms))));
  t.same(
    await rail.query(sql`select name, tick from core.scheduled_run`),
    [],
    'none of them schedules what was missed',
  );
  for (const [nth, { logged }] of wrong.entries()) {
    const shift_s = (shifts[nth] as number) / 1_000;
    const said = logged.filter(({ msg }) => /clock of this process/.test(msg));
    t.equal(said.length, 1, 'it says so once');
    t.match(said[0]?.msg, shift_s > 0 ? /seconds ahead of Postgres'/ : /seconds behind Postgres'/);
    const port = logged.find(({ msg }) => msg === 'metrics ready')?.port;
    const metrics = parseMetrics(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text());
    const skew = metrics.get('rail_clock_skew_seconds')?.samples[0]?.value as number;
    t.ok(Math.abs(skew - shift_s) < 60, `the gauge shows ${skew}`);
  }

  const good = startWorker({ url: rail.url, store: rail.store, services, concurrency: 2, log });
  t.teardown(() => good.stop());
  await good.ready;
  const ahead = sql`select count(*) filter (where tick > now()) as ahead, count(*) as all from core.scheduled_run`;
  const [{ ahead: early, all }] = (await rail.query<Json>(ahead)) as [Json];
  t.equal(early, 0, 'a good one schedules what was missed, as of times that have come');
  t.ok(all >= schedules.filter(({ cron }) => cron === '* * * * *').length);
  await eventually(
    async () =>
      (await rail.query(sql`select from graphile_worker._private_jobs where attempts > 0 or run_at <= now()`))
        .length === 0,
    'the jobs to be done, by whichever worker takes them',
  );
  t.equal((await shop.merchant.get(`/v1/commissions/${commission.id}`)).status, 'pending');
  t.same(await kept(), before);
});

t.test('an API whose clock is wrong checks times by that of Postgres, and makes ids by it', async (t) => {
  const shop = await openShop(rail);
  const { url } = await startProcess('api', rail.url, shifted(until_2099));
  const merchant = callerOf(url, shop.merchant.key, shop.merchant.organization_id);
  const partner = await merchant.post('/v1/partners', { program_id: shop.program_id, email: 'grace@example.com' });
  t.ok(Math.abs(timeOfId(partner.id) - Date.now()) < 60_000);
  const sale = { program_id: shop.program_id, external_charge_id: 'ch_1', amount_minor: 100, currency: 'USD' };
  const in_days = (days: number) => ({ ...sale, occurred_at: new Date(Date.now() + days * day_ms).toISOString() });
  t.match(await merchant.request('POST', '/v1/sales', in_days(3)), {
    status: 400,
    body: { error: { param: 'occurred_at' } },
  });
  const body = JSON.stringify(in_days(0));
  const time = Math.floor(Date.now() / 1_000);
  const signature = createHmac('sha256', shop.merchant.key).update(`${time}.${body}`).digest('hex');
  t.match(
    await merchant.request('POST', '/v1/sales', body, {
      'Rail-Signature': `t=${time},v1=${signature}`,
      'Content-Type': 'application/json',
    }),
    { status: 201 },
  );
  const origin = 'https://acme.example.com';
  const page = { program_id: shop.program_id, allowed_origins: [origin] };
  const { key } = await merchant.post('/v1/publishable_keys', page);
  const visit = await fetch(`${url}/v1/c`, {
    method: 'POST',
    headers: { Origin: origin, 'User-Agent': 'Mozilla/5.0 (X11; Linux x86_64) Chrome/142.0.0.0 Safari/537.36' },
    body: JSON.stringify({ key, param: 'ref', value: partner.handle }),
  });
  const [, seconds] = /Max-Age=(\d+)/.exec(visit.headers.get('set-cookie') ?? '') ?? [];
  t.ok(Number(seconds) > 29 * 86_400, 'a visitor keeps the click');
});

t.test('the log says that a clock is wrong once, and again when that changes', async (t) => {
  const lines: Json[] = [];
  const own_log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const rightNow = Date.now;
  t.teardown(() => {
    Date.now = rightNow;
  });
  const reading = async (shift_ms: number) => {
    Date.now = () => rightNow() + shift_ms;
    const { is_off, now } = await readClock(rail.store.database, own_log);
    t.ok(Math.abs(now - rightNow()) < 60_000);
    return is_off;
  };
  for (const shift_ms of [0, 4_000, -4_000]) t.equal(await reading(shift_ms), false, `${shift_ms} ms are no fault`);
  for (const shift_ms of [3_600_000, 3_600_900, 3_600_000]) t.equal(await reading(shift_ms), true);
  t.equal(await reading(-3_600_000), true);
  const id = newId('run');
  t.ok(Math.abs(timeOfId(id) - rightNow()) < 60_000, 'ids are of the right time');
  t.equal(await reading(0), false);
  t.equal(await reading(0), false);
  t.same(
    lines.map(({ level, skew_s }) => [level, skew_s]),
    [
      [40, 3_600],
      [40, -3_600],
      [30, undefined],
    ],
  );
});

t.test('a clock that is set is looked at soon, not with the next minute', async (t) => {
  const lines: Json[] = [];
  const own_log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const rightNow = Date.now;
  const unwatch = await watchClock(rail.store.database, own_log);
  t.teardown(() => {
    Date.now = rightNow;
    unwatch();
  });
  Date.now = () => rightNow() + 86_400_000;
  await eventually(() => lines.length === 1, 'the warning');
  t.ok(Math.abs(databaseTime() - rightNow()) < 60_000);
  Date.now = rightNow;
  await eventually(() => lines.length === 2, 'the good news');
  t.same(
    lines.map(({ skew_s }) => skew_s),
    [86_400, undefined],
  );
});

t.test('of ticks that were missed for decades, those of the last year are run', async (t) => {
  const schedule = { name: 'test/decades', cron: '0 0 1 * *', missed: 'each' as const };
  await rail.query(sql`insert into core.schedule (name, since) values (${schedule.name}, '1999-01-01T00:00:00Z')`);
  await runDue(rail.store, [schedule], new Date('2026-03-15T00:00:00Z'));
  const [found] = await rail.query<Json>(
    sql`select count(*) as runs, min(tick) as first from core.scheduled_run where name = ${schedule.name}`,
  );
  t.same(found, { runs: 12, first: '2025-04-01T00:00:00.000Z' });
});
