import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { type Caller, eventually, type Json, sql, startRail, startReceiver } from '../harness.ts';
import { type Process, startGate, startProcess } from '../processes.ts';
import { effort } from '../runner/effort.ts';
import { countStatements, crashAt, openLine } from './line.ts';
import { bringsJobs, openSlice } from './slice.ts';

const rail = await startRail({ worker: false, durability: 'durable' });
const line = await openLine(rail);
/** The process that the test before left: a process takes longer to start than to do the work of a test. */
let left: Process;

t.test('survives kill -9 of the worker between any two statements of the slice', async (t) => {
  // The first time the worker also catches up on the schedules that it missed.
  const statements = Math.min(await countStatements(line), await countStatements(line));
  t.ok(statements > 20, `the worker's part of the slice is ${statements} statements`);
  const rounds = effort.worker_kills;
  let killed = 0;
  for (let round = 0; round < rounds; round++) {
    const nth = 1 + Math.floor((round * statements) / rounds);
    const side = round % 2 === 0 ? 'before' : 'after';
    const outcome = await crashAt(line, side, nth);
    if (outcome.killed) killed++;
    t.same(outcome.faults, [], `killed ${side} statement ${nth}: ${outcome.text}`);
  }
  t.ok(killed > rounds / 2, `${killed} of ${rounds} rounds killed it`);
});

t.test('runs the jobs of a worker that died on another one', async (t) => {
  const merchant = await rail.organization();
  const slice = await openSlice(merchant);
  const { gate, worker: dying } = line;
  const jobs = () => rail.query(sql`select task_identifier from graphile_worker.jobs`);
  await eventually(async () => (await jobs()).length === 0, 'the end of earlier jobs');
  // At the turn of a minute it is given others too.
  const given = gate.stopAt('after', (statement, answer) => {
    return bringsJobs(statement, answer) && answer?.includes('attribute_clicks:') === true;
  });
  await merchant.post('/v1/clicks', {
    program_id: slice.program_id,
    value: 'ada',
    landing_url: 'https://acme.example.com/',
    visitor_token: 'visitor-0001',
  });
  await given;
  left = await startProcess('worker', rail.url);
  const locked = await rail.query(sql`
    select w.process_id from graphile_worker.jobs j join core.worker w on j.locked_by = any (w.pool_ids)
    where j.task_identifier = 'program/attribute_clicks'`);
  t.same(locked, [{ process_id: dying.pid }]);

  await dying.end('SIGKILL');
  gate.cut();
  await eventually(() => slice.receiver.received.length === 1, 'its job on the other worker');
  t.equal(slice.receiver.received[0]?.body.type, 'referral.created');
});

t.test('takes over the endpoint of a worker that died while it was sending', async (t) => {
  const merchant = await rail.organization();
  const receiver = await startHanging(t);
  const workers = [left, await startProcess('worker', rail.url)];
  // A request ends by itself after ten seconds: it must not begin while a worker starts.
  await oneEvent(merchant, receiver.url);
  await eventually(() => receiver.requests.length === 1, 'the first request');
  const [lease] = await rail.query(sql`
    select w.process_id from webhooks.endpoint_queue l join core.worker w on w.id = l.leased_by`);
  const dying = workers.find(({ pid }) => pid === lease?.process_id);
  t.ok(dying, 'one of the two holds the lease');
  receiver.answerFromNowOn();

  await dying?.end('SIGKILL');
  await eventually(() => receiver.requests.length === 2, 'the request of the other worker');
  t.equal(receiver.requests[1]?.id, receiver.requests[0]?.id, 'the same event');
  await settled(merchant);
  left = workers.find((worker) => worker !== dying) as Process;
});

t.test('hands the jobs back that it had fetched and not begun, and fails none', async (t) => {
  const merchant = await rail.organization();
  const { program_id } = await openSlice(merchant);
  const [partner] = (await merchant.get(`/v1/partners?program_id=${program_id}`)).data;
  const customer = (nth: number) => ({ program_id, partner_id: partner.id, email: `grace${nth}@mailinator.com` });
  const flags = async () =>
    (await rail.query(sql`select id from program.risk_flag where program_id = ${program_id}`)).length;

  // The jobs that are begun wait for this lock until the worker stops: so it has begun some and not all, however fast it is.
  const release = await lockTable('program.risk_flag');
  await Promise.all(Array.from({ length: 100 }, (_, nth) => merchant.post('/v1/customers', customer(nth))));
  const worker = left;
  await eventually(() => isAwaited('program.risk_flag'), 'the first of many jobs');
  const exit_code = worker.end('SIGTERM');
  await eventually(() => worker.logged.some(({ msg }) => /^stopping/.test(msg)), 'the worker to stop');
  await release();
  t.equal(await exit_code, 0);
  const done = await flags();
  t.ok(done > 0 && done < 100, `it stopped in the midst of them, after ${done}`);
  const jobs = await rail.query(sql`select last_error, locked_at from graphile_worker.jobs`);
  t.ok(jobs.length > 0);
  t.ok(jobs.every(({ last_error, locked_at }) => last_error === null && locked_at === null));
  t.same(
    worker.logged.filter(({ level }) => level >= 50),
    [],
  );

  left = await startProcess('worker', rail.url);
  await eventually(async () => (await flags()) === 100, 'all of them');
});

t.test('forgets no click when it dies with a job at work and another that waits for its turn', async (t) => {
  const merchant = await rail.organization();
  const { program_id, receiver } = await openSlice(merchant);
  const release = await lockTable('program.referral');
  const click = async (nth: number) => {
    const page = { program_id, value: 'ada', landing_url: 'https://acme.example.com/' };
    await merchant.post('/v1/clicks', { ...page, visitor_token: `visitor-${nth}` });
  };
  await click(1);
  await eventually(() => isAwaited('program.referral'), 'the job that is at work');
  await click(2);
  const waiting = async () =>
    (await rail.query(sql`select from pg_locks where locktype = 'advisory' and classid = 3 and not granted`)).length;
  await eventually(async () => (await waiting()) === 1, 'the one that waits');
  for (const nth of [3, 4, 5]) await click(nth);
  const begun = sql`select from graphile_worker.jobs where task_identifier = 'program/attribute_clicks' and locked_at is not null`;
  await eventually(async () => (await rail.query(begun)).length === 2, 'the others to be done with');
  t.equal(await waiting(), 1);

  await left.end('SIGKILL');
  await release();
  left = await startProcess('worker', rail.url);
  await eventually(() => receiver.received.length >= 5, 'what follows from all clicks');
  const rows = sql`select from program.click where program_id = ${program_id} and attributed_at is not null`;
  t.equal((await rail.query(rows)).length, 5);
  const jobs = sql`select from graphile_worker.jobs`;
  await eventually(async () => (await rail.query(jobs)).length === 0, 'the end of the jobs that others have replaced');
});

/** Locks a table against writes. @returns what lets go of it */
async function lockTable(table: string): Promise<() => Promise<void>> {
  const client = await rail.store.database.connect();
  await client.query('begin');
  await client.query(`lock table ${table} in exclusive mode`);
  return async () => {
    await client.query('rollback');
    client.release();
  };
}

async function isAwaited(table: string): Promise<boolean> {
  const waiting = await rail.query(sql`
    select from pg_locks l join pg_database d on d.oid = l.database
    where d.datname = current_database() and l.relation = ${table}::regclass and not l.granted`);
  return waiting.length > 0;
}

t.test('stops while a receiver hangs, counts no attempt, and leaves nothing locked', async (t) => {
  const merchant = await rail.organization();
  const receiver = await startHanging(t);
  await oneEvent(merchant, receiver.url);
  await eventually(() => receiver.requests.length === 1, 'the first request');
  t.equal(await left.end('SIGTERM'), 0);
  t.same(
    await rail.query(sql`
      select task_identifier as what from graphile_worker.jobs where locked_at is not null or attempts >= max_attempts
      union all select 'lease' from webhooks.endpoint_queue where leased_by is not null or lease_until is not null
      union all select 'worker' from core.worker`),
    [],
  );
  t.same(await deliveriesOf(merchant), [{ status: 'pending', attempt: 0, next_attempt_at: null }]);

  receiver.answerFromNowOn();
  left = await startProcess('worker', rail.url);
  await settled(merchant);
  t.same(
    receiver.requests.map(({ attempt }) => attempt),
    ['1', '1'],
    'what was cut off is the first attempt still',
  );
});

t.test('restarts by itself when others must take it for dead, and first drops what it is sending', async (t) => {
  const merchant = await rail.organization();
  const receiver = await startHanging(t);
  const worker = left;
  await oneEvent(merchant, receiver.url);
  await eventually(() => receiver.requests.length === 1, 'the first request');
  receiver.answerFromNowOn();

  await rail.query(sql`
    select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'rail worker' and datname = current_database()`);
  await settled(merchant);
  t.same(
    receiver.requests.map(({ id }) => id),
    Array(2).fill(receiver.requests[0]?.id),
  );
  t.equal(receiver.most_at_once(), 1, 'the first was dropped before the second came');
  // A worker runs jobs as soon as its pools have started, and is ready once its schedule runs as well.
  const starts = () => worker.logged.filter(({ msg }) => msg === 'worker ready').length;
  await eventually(() => starts() >= 2, 'the worker to be ready again');
  t.ok(worker.isRunning());
  t.equal(await worker.end('SIGTERM'), 0);
  t.equal(starts(), 2, 'it restarted once');
});

t.test('queues each replay once, although the worker dies before its job is done', async (t) => {
  const gate = await startGate(rail.url);
  const dying = await startProcess('worker', gate.url);
  const merchant = await rail.organization();
  const receiver = await startReceiver();
  await oneEvent(merchant, receiver.url);
  await settled(merchant);
  const [endpoint] = await rail.query<{ endpoint_id: string }>(
    sql`select endpoint_id from webhooks.delivery where organization_id = ${merchant.organization_id}`,
  );
  const window = {
    from: new Date(Date.now() - 3_600_000).toISOString(),
    to: new Date(Date.now() + 3_600_000).toISOString(),
  };
  // The notification of its commit names the job that goes on.
  const committed = gate.stopAt('after', ({ text }) => /^commit;.*replay_many/s.test(text));
  await merchant.post(`/v1/webhook_endpoints/${endpoint?.endpoint_id}/replay`, window);
  await committed;
  t.equal((await deliveriesOf(merchant)).length, 2, 'it has queued its replay');
  await dying.end('SIGKILL');
  gate.cut();
  const other = await startProcess('worker', gate.url);
  await eventually(
    async () => (await rail.query(sql`select from graphile_worker._private_jobs`)).length === 0,
    'all jobs',
  );
  await receiver.until(2);
  t.equal((await deliveriesOf(merchant)).length, 2);
  t.equal(await other.end('SIGTERM'), 0);
});

interface Hanging {
  url: string;
  requests: { id: string; attempt: string }[];
  most_at_once(): number;
  answerFromNowOn(): void;
}

/** A receiver that takes requests and does not answer, until it is told to. */
async function startHanging(t: { teardown(work: () => unknown): void }): Promise<Hanging> {
  const requests: Hanging['requests'] = [];
  let isAnswering = false;
  let at_once = 0;
  let most = 0;
  const server = createServer((request, response: ServerResponse) => {
    requests.push({ id: String(request.headers['rail-event-id']), attempt: String(request.headers['rail-attempt']) });
    most = Math.max(most, ++at_once);
    response.on('close', () => at_once--);
    if (isAnswering) response.end('ok');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    requests,
    most_at_once: () => most,
    answerFromNowOn() {
      isAnswering = true;
    },
  };
}

/** Lets an event wait for the endpoint at a URL. */
async function oneEvent(merchant: Caller, url: string): Promise<void> {
  const fields = { name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' };
  const { id: program_id } = await merchant.post('/v1/programs', fields);
  await merchant.post('/v1/webhook_endpoints', { program_id, url, event_types: ['sale.created'] });
  const partner = await merchant.post('/v1/partners', { program_id, email: 'ada@partner.example.com' });
  const sale = { program_id, partner_id: partner.id, amount_minor: 100, currency: 'USD', external_charge_id: 'ch_1' };
  await merchant.post('/v1/sales', sale);
}

function deliveriesOf({ organization_id }: Caller): Promise<Json[]> {
  return rail.query(
    sql`select status, attempt, next_attempt_at from webhooks.delivery where organization_id = ${organization_id}`,
  );
}

function settled(merchant: Caller): Promise<void> {
  return eventually(async () => (await deliveriesOf(merchant))[0]?.status === 'delivered', 'the delivery');
}
