import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { Client, type Dispatcher, Pool } from 'undici';
import {
  type Answer,
  type Caller,
  callerOf,
  eventually,
  type Json,
  persistent,
  type Received,
  sql,
  startRail,
  startReceiver,
} from './harness.ts';
import { startProcess } from './processes.ts';

/** The test's own process holds the database and looks on; what serves and works are four processes. */
const rail = await startRail({ worker: false });
await countJobs();
const [apis, workers] = await Promise.all([
  Promise.all([startProcess('api', rail.url, { DRAIN_SECONDS: '4' }), startProcess('api', rail.url)]),
  Promise.all([startProcess('worker', rail.url), startProcess('worker', rail.url)]),
]);
const through = (caller: Caller, nth: number): Caller =>
  callerOf(apis[nth % apis.length]?.url as string, caller.key, caller.organization_id);
const surelyThrough = (caller: Caller, nth: number): Caller => persistent(through(caller, nth));

const partners_each = 2;
const customers_each = 5;
const sales_each = 3;

t.test(
  'delivers each event once to each endpoint, in one sequence and one at a time, over two APIs and two workers',
  async (t) => {
    const merchant = await rail.organization();
    const programs = await Promise.all(
      ['USD', 'EUR', 'GBP', 'CHF'].map((currency, nth) => openProgram(merchant, currency, nth)),
    );

    const sales = programs.flatMap(({ customers, currency, program_id }) =>
      customers.flatMap((customer_id) =>
        Array.from({ length: sales_each }, (_, nth) => ({
          program_id,
          customer_id,
          currency,
          amount_minor: 1_000 + nth,
          external_charge_id: `ch_${customer_id}_${nth}`,
        })),
      ),
    );
    t.equal(sales.length, 60);
    // Sales of one customer side by side, in both APIs.
    await inParallel(16, sales, (sale, nth) => surelyThrough(merchant, nth).post('/v1/sales', sale));

    for (const { program_id, endpoints } of programs) {
      const events = await rail.query<{ id: string; type: string; request_id: string }>(
        sql`select id, type, request_id from webhooks.event where program_id = ${program_id} order by position`,
      );
      t.equal(events.filter(({ type }) => type === 'sale.created').length, customers_each * sales_each);
      t.equal(events.filter(({ type }) => type === 'commission.created').length, customers_each * sales_each);
      t.equal(events.filter(({ type }) => type === 'referral.converted').length, customers_each);
      for (const { id, types, receiver, most_at_once } of endpoints) {
        const expected = events.filter(({ type }) => types.length === 0 || types.includes(type));
        await receiver.until(expected.length);
        await drained(id);
        const ids = receiver.received.map(({ body }) => body.id as string);
        t.same(ids.toSorted(), expected.map((event) => event.id).toSorted(), 'none lost, none twice');
        t.equal(most_at_once(), 1, 'one request at a time');

        const log = await rail.query<{ event_id: string; status: string; attempt: number }>(
          sql`select event_id, status, attempt from webhooks.delivery where endpoint_id = ${id} order by queue_position`,
        );
        t.same(
          ids,
          log.map(({ event_id }) => event_id),
          'in the order of the queue',
        );
        t.ok(log.every(({ status, attempt }) => status === 'delivered' && attempt === 1));
        const [{ attempts }] = (await rail.query<{ attempts: number }>(
          sql`select count(*) as attempts from webhooks.attempt a join webhooks.delivery d on d.id = a.delivery_id where d.endpoint_id = ${id}`,
        )) as [{ attempts: number }];
        t.equal(attempts, expected.length);

        const position = new Map(events.map((event, nth) => [event.id, nth]));
        const by_cause = Map.groupBy(receiver.received, ({ body }) => body.request.id);
        const positions = [...by_cause.values()].map((those) =>
          those.map(({ body }) => position.get(body.id) as number),
        );
        t.ok(positions.every(isAscending), 'what one request caused comes in the order of cause');
      }
      const [first, second] = endpoints.map(({ receiver }) => receiver.received.map(({ body }) => body.id));
      t.same(first, second, 'the two endpoints that take everything saw the same sequence');
    }
  },
);

t.test('runs each tick once, whichever of the workers comes first', async (t) => {
  const name = 'program/mature_commissions';
  const { length: before } = await ticksOf(name);
  let ticks: TickOf[] = [];
  await eventually(async () => {
    ticks = await ticksOf(name);
    return ticks.length > before && ticks.every(({ jobs_left }) => jobs_left === 0);
  }, 'the next minute, and the end of its job');

  t.equal(new Set(ticks.map(({ tick }) => tick)).size, ticks.length, 'one row a tick');
  for (const { tick, added, taken } of ticks)
    t.same({ added, taken }, { added: 1, taken: 1 }, `the job of ${tick} ran once`);
});

t.test('counts a key exactly over two APIs: 25 requests of one second pass, and no more', async (t) => {
  const { organization_id } = await rail.organization();
  for (let isLimited = false; !isLimited; ) {
    const limited = await rail.key(organization_id, { rate_limit: 25 });
    await secondBegins();
    const answers = await Promise.all(
      Array.from({ length: 32 }, (_, nth) => through(limited, nth).request('GET', '/v1/programs')),
    );
    const by_second = Map.groupBy(answers, ({ headers }) => headers['x-ratelimit-reset'] as string);
    for (const [second, those] of by_second) {
      const passed = those.filter(({ status }) => status === 200);
      t.equal(passed.length, Math.min(25, those.length), `of ${those.length} in the second before ${second}`);
      t.same(
        remaining(passed),
        Array.from({ length: passed.length }, (_, nth) => 25 - passed.length + nth),
      );
      const unexpected = those.filter(
        ({ status, body }) => status !== 200 && body.error.code !== 'rate_limit_exceeded',
      );
      t.same(unexpected, []);
      // A slow machine spreads the requests over more than one second.
      isLimited ||= those.length > 25;
    }
  }
});

t.test('lets go of everything when the workers are told to stop', async (t) => {
  t.same(await Promise.all(workers.map((worker) => worker.end('SIGTERM'))), [0, 0]);
  const held = await rail.query(sql`
    select task_identifier as what from graphile_worker.jobs where locked_at is not null
    union all select 'lease' from webhooks.endpoint_queue where leased_by is not null
    union all select 'worker' from core.worker`);
  t.same(held, []);
});

t.test('loses no request of a proxy that keeps connections when an API is stopped', async (t) => {
  const merchant = await rail.organization();
  const { id: program_id } = await merchant.post('/v1/programs', {
    ...{ name: 'Proxied', website_url: 'https://shop.example.com', currency: 'USD' },
  });
  // Idle connections are kept for less than the API drains.
  const idle = { keepAliveTimeout: 300, keepAliveMaxTimeout: 300 };
  const upstreams = apis.map(({ url }) => ({ url, pool: new Pool(url, idle), is_ready: true }));
  const lost: string[] = [];
  let made = 0;
  let isOver = false;
  const kept = new Client(upstreams[0]?.url as string);
  t.teardown(async () => {
    isOver = true;
    await Promise.all([kept, ...upstreams.map(({ pool }) => pool)].map((one) => one.destroy()));
  });
  const looks = upstreams.map(async (upstream) => {
    while (!isOver) {
      upstream.is_ready = await fetch(`${upstream.url}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      );
      await sleep(100);
    }
  });
  /** As a proxy, which repeats only what reached nobody: a body is sent once. */
  const post = async (through: Dispatcher, nth: number) => {
    const body = JSON.stringify({ program_id, email: `proxied-${nth}@partner.example.com` });
    const headers = { authorization: `Bearer ${merchant.key}`, 'content-type': 'application/json' };
    const answer = await through.request({ method: 'POST', path: '/v1/partners', headers, body });
    await answer.body.dump();
    return answer;
  };
  const send = async (nth: number): Promise<void> => {
    const ready = upstreams.filter(({ is_ready }) => is_ready);
    const { pool } = (ready[nth % ready.length] ?? upstreams[1]) as (typeof upstreams)[number];
    try {
      const answer = await post(pool, nth);
      if (answer.statusCode !== 201) lost.push(`${answer.statusCode}`);
      made++;
    } catch (error) {
      const { code, message } = error as Error & { code?: string };
      if (code !== 'ECONNREFUSED') lost.push(`${code} ${message}`);
      else await send(nth);
    }
  };
  let sent = 0;
  const writes = Array.from({ length: 8 }, async (_, writer) => {
    while (!isOver) {
      await send(sent++);
      await sleep(writer * 8);
    }
  });
  await eventually(() => made > 100, 'requests through both');
  await post(kept, sent++);
  const ended = apis[0]?.end('SIGTERM');
  await eventually(() => upstreams[0]?.is_ready === false, 'the API to be left out');
  const last = await post(kept, sent++);
  t.match(
    [last.statusCode, last.headers.connection],
    [201, 'close'],
    'a connection that was idle is closed by an answer',
  );
  made += 2;
  t.equal(await ended, 0);
  const then = made;
  await eventually(() => made > then + 50, 'requests through the other one');
  isOver = true;
  await Promise.all([...looks, ...writes]);
  t.same(lost, []);
  const { total_count } = await merchant.get(`/v1/partners?program_id=${program_id}`);
  t.equal(total_count, made, 'and none was made twice');
});

t.test('opens no port for metrics unless a process is told to', (t) => {
  for (const { logged } of [...apis, ...workers]) t.notOk(logged.some(({ msg }) => msg === 'metrics ready'));
  t.end();
});

t.test('came through all of it without a deadlock', async (t) => {
  t.same(await rail.query(sql`select deadlocks from pg_stat_database where datname = current_database()`), [
    { deadlocks: 0 },
  ]);
});

interface Program {
  program_id: string;
  currency: string;
  customers: string[];
  endpoints: {
    id: string;
    types: string[];
    receiver: Awaited<ReturnType<typeof startReceiver>>;
    most_at_once(): number;
  }[];
}

/** A program with a rule, customers of its partners, and three endpoints: two that take everything and one that takes sales. */
async function openProgram(merchant: Caller, currency: string, nth: number): Promise<Program> {
  const api = surelyThrough(merchant, nth);
  const fields = { name: `Shop ${nth}`, website_url: 'https://shop.example.com', currency };
  const { id: program_id } = await api.post('/v1/programs', fields);
  await api.post('/v1/rules', { program_id, name: 'Standard', rate_type: 'percent', rate_value: 1_000 });
  const endpoints = [];
  for (const types of [[], [], ['sale.created']]) endpoints.push(await openEndpoint(api, program_id, types));
  const partners: Json[] = [];
  for (let each = 0; each < partners_each; each++)
    partners.push(await api.post('/v1/partners', { program_id, email: `partner${each}@example.com` }));
  const customers = await Promise.all(
    Array.from({ length: customers_each }, (_, each) =>
      signUp(api, program_id, partners[each % partners_each] as Json, each),
    ),
  );
  return { program_id, currency, customers: customers.map(({ id }) => id), endpoints };
}

async function signUp(api: Caller, program_id: string, partner: Json, nth: number): Promise<Json> {
  const click = await api.post('/v1/clicks', {
    program_id,
    value: partner.handle,
    landing_url: 'https://shop.example.com/',
    visitor_token: `visitor-${nth}`,
  });
  return api.post('/v1/customers', { program_id, click_id: click.id, email: `customer${nth}@example.com` });
}

const isAscending = (numbers: number[]): boolean =>
  numbers.every((number, nth) => nth === 0 || number > (numbers[nth - 1] as number));

async function openEndpoint(api: Caller, program_id: string, types: string[]): Promise<Program['endpoints'][number]> {
  let at_once = 0;
  let most = 0;
  const receiver = await startReceiver(async (_: Received) => {
    at_once += 1;
    most = Math.max(most, at_once);
    await sleep(1);
    at_once -= 1;
    return 200;
  });
  const { id } = await api.post('/v1/webhook_endpoints', { program_id, url: receiver.url, event_types: types });
  return { id, types, receiver, most_at_once: () => most };
}

async function inParallel<T>(
  width: number,
  items: T[],
  work: (item: T, nth: number) => Promise<unknown>,
): Promise<void> {
  const waiting = items.entries();
  const workThrough = async () => {
    for (const [nth, item] of waiting) await work(item, nth);
  };
  await Promise.all(Array.from({ length: width }, workThrough));
}

const drained = (endpoint_id: string): Promise<void> =>
  eventually(async () => {
    const open = sql`
      select 1 from webhooks.queued_delivery where endpoint_id = ${endpoint_id}
      union all select 1 from webhooks.endpoint_queue where endpoint_id = ${endpoint_id} and leased_by is not null`;
    return (await rail.query(open)).length === 0;
  }, 'the end of the deliveries');

interface TickOf {
  tick: string;
  added: number;
  taken: number;
  jobs_left: number;
}

/** The ticks of a schedule that have a row or a job, as one statement sees them. */
const ticksOf = (name: string): Promise<TickOf[]> =>
  rail.query(sql`
    select coalesce(run.tick, job.tick) as tick, coalesce(job.added, 0) as added, coalesce(job.taken, 0) as taken,
      (select count(*) from graphile_worker.jobs where task_identifier = ${name}) as jobs_left
    from (select tick from core.scheduled_run where name = ${name}) as run
    full join (
      select (payload ->> 'tick')::timestamptz as tick, count(*) filter (where what = 'added') as added,
        count(*) filter (where what = 'taken') as taken
      from public.job_count group by 1
    ) as job on job.tick = run.tick`);

/** Counts, in the database, how often a tick's job was added and taken up. */
async function countJobs(): Promise<void> {
  await rail.store.database.query(`
    create table public.job_count (what text not null, payload json not null);
    create function public.count_job() returns trigger language plpgsql as $$
    begin
      insert into public.job_count
      select case tg_op when 'INSERT' then 'added' else 'taken' end, new.payload
      from graphile_worker._private_tasks t
      where t.id = new.task_id and t.identifier = 'program/mature_commissions';
      return null;
    end $$;
    create trigger count_added after insert on graphile_worker._private_jobs for each row execute function public.count_job();
    create trigger count_taken after update on graphile_worker._private_jobs for each row
      when (old.locked_at is null and new.locked_at is not null) execute function public.count_job()`);
}

const remaining = (answers: Answer[]): number[] =>
  answers.map(({ headers }) => Number(headers['x-ratelimit-remaining'])).toSorted((a, b) => a - b);

/** Waits for the database's clock. */
async function secondBegins(): Promise<void> {
  const second = async () =>
    (await rail.query<{ now: number }>(sql`select floor(extract(epoch from clock_timestamp()))::int as now`))[0]?.now;
  const started = await second();
  await eventually(async () => (await second()) !== started, 'the next second');
}
