import t from 'tap';
import { type Caller, eventually, sql, startRail } from '../harness.ts';
import { type Process, startProcess } from '../processes.ts';
import { effort } from '../runner/effort.ts';
import { most_unwritten, type Received, startReceivers } from './receivers.ts';

const endpoint_count = 12;
const event_count = effort.events_of_killed_worker;

const rail = await startRail({ worker: false, durability: 'durable' });
/** Those that go on when the third one was killed, for the tests after that: a process takes longer to start than to do what is looked at. */
let left: Process[];

t.test(
  `loses nothing, reorders nothing and overlaps nowhere when a worker is killed amid ${endpoint_count * event_count} deliveries`,
  async (t) => {
    const merchant = await rail.organization();
    const receivers = await startReceivers(t, endpoint_count);
    const { endpoints, sell } = await openShop(merchant, receivers.urls);
    const start = () => startProcess('worker', rail.url, { WORKER_CONCURRENCY: '1' });
    const workers = await Promise.all([start(), start(), start()]);

    const selling = sell(event_count);
    await eventually(() => receivers.count() > (endpoint_count * event_count) / 4, 'a quarter of the deliveries');
    const { victim, held } = await busiest(workers);
    const killed_at = new Date().toISOString();
    await victim.end('SIGKILL');
    const written = await writtenDeliveries(killed_at);
    const left_at = receivers.received.map((those) => those.length);
    const untouched = held.map((id) => endpoints.indexOf(id));

    await eventually(
      () => untouched.every((nth) => (receivers.received[nth]?.length ?? 0) > (left_at[nth] as number)),
      'every endpoint that the dead worker sent to',
    );
    await selling;
    await eventually(
      () => receivers.received.every((those) => new Set(those.map(({ event_id }) => event_id)).size === event_count),
      'every event at every endpoint',
    );
    await settled();

    const sequence = await sequenceOf(endpoints[0] as string);
    for (const seller of Map.groupBy(sequence, ({ charge }) => charge.split('_')[0]).values()) {
      const sold = seller.map(({ charge }) => Number(charge.split('_')[1]));
      t.same(
        sold,
        sold.toSorted((a, b) => a - b),
        'what was sold after another sale comes after it',
      );
    }
    const position = new Map(sequence.map(({ event_id }, nth) => [event_id, nth]));
    for (const [nth, those] of receivers.received.entries()) {
      const positions = those.map(({ event_id }) => position.get(event_id) as number);
      const steps = positions.map((at, index) => at - (index === 0 ? -1 : (positions[index - 1] as number)));
      const back = steps.filter((step) => step !== 1);
      const name = `endpoint ${nth}${held.includes(endpoints[nth] as string) ? ', to which the dead worker sent' : ''}`;
      t.ok(back.length <= 1, `${name}: in the one sequence of all endpoints, with one step back at most`);
      t.ok(
        back.every((step) => step <= 0 && step > -most_unwritten),
        `${name}: by what was not written at most, ${back}`,
      );
      const seen = new Set<string>();
      const again = those.filter(({ delivery_id }) => seen.size === seen.add(delivery_id).size);
      t.ok(
        again.every(({ delivery_id }) => !written.has(delivery_id)),
        `${name}: nothing again that was written`,
      );
      t.equal(again.length, those.length - event_count, `${name}: what comes again is the same delivery`);
      t.ok(
        those.every(({ attempt }) => attempt === '1'),
        `${name}: and the same attempt`,
      );
    }
    t.equal(receivers.most_at_once(), 1, 'one request at a time');
    t.same(await rail.audit(), []);
    t.same(await deadlocks(), [{ deadlocks: 0 }]);
    left = workers.filter((worker) => worker !== victim);
    t.same(left.flatMap(complaints), [], 'the others went on undisturbed');
  },
);

t.test(
  'lets a worker that stood still for longer than its lease send nothing that another one has taken over',
  async (t) => {
    const merchant = await rail.organization();
    const receivers = await startReceivers(t, 1);
    const { endpoints, sell } = await openShop(merchant, receivers.urls);
    const selling = sell(200);
    await eventually(() => receivers.count() > 50, 'the first deliveries');
    const { victim: stalled } = await busiest(left);
    process.kill(stalled.pid, 'SIGSTOP');
    await selling;
    const distinct = () => new Set(receivers.received[0]?.map(({ event_id }) => event_id)).size;
    await eventually(() => distinct() === 200, 'the deliveries by the other one');
    process.kill(stalled.pid, 'SIGCONT');
    await sell(20);
    await eventually(() => distinct() === 220, 'those that come later');
    await settled();

    const received = receivers.received[0] as Received[];
    const sequence = await sequenceOf(endpoints[0] as string);
    const position = new Map(sequence.map(({ event_id }, nth) => [event_id, nth]));
    const positions = received.map(({ event_id }) => position.get(event_id) as number);
    const back = positions.filter((at, nth) => at !== (positions[nth - 1] ?? -1) + 1);
    t.ok(back.length <= 1, 'one step back, where the other one took over');
    t.ok(received.length - 220 <= most_unwritten, `${received.length - 220} came again`);
    t.equal(receivers.most_at_once(), 1, 'one request at a time');
    t.same(await rail.audit(), []);
    t.equal(await stalled.end('SIGTERM'), 0);
    left = left.filter((worker) => worker !== stalled);
  },
);

t.test('goes on when the job queue loses a deadlock', async (t) => {
  const merchant = await rail.organization();
  const receivers = await startReceivers(t, 1);
  const { sell } = await openShop(merchant, receivers.urls);
  const [worker] = left as [Process];
  await rail.store.database.query(`
    create sequence public.deletions;
    create function public.lose_once() returns trigger language plpgsql as $$
    begin
      if nextval('public.deletions') = 1 then
        raise exception 'This once it is lost.' using errcode = '40P01';
      end if;
      return old;
    end $$;
    create trigger lose_once before delete on graphile_worker._private_jobs for each row execute function public.lose_once()`);
  await sell(1);
  await eventually(() => receivers.count() === 1, 'the delivery');
  await settled();
  t.equal(await worker.end('SIGTERM'), 0);
  t.equal(worker.logged.filter(({ msg }) => msg === 'worker ready').length, 1, 'it need not restart');
  t.same(
    complaints(worker).filter((complaint) => !/maxPoolSize/.test(complaint)),
    [],
  );
});

async function openShop(merchant: Caller, urls: string[]) {
  const fields = { name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' };
  const { id: program_id } = await merchant.post('/v1/programs', fields);
  const endpoints: string[] = [];
  for (const url of urls) {
    const endpoint = { program_id, url, event_types: ['sale.created'] };
    endpoints.push((await merchant.post('/v1/webhook_endpoints', endpoint)).id);
  }
  const { id: partner_id } = await merchant.post('/v1/partners', { program_id, email: 'ada@partner.example.com' });
  const sale = { program_id, partner_id, amount_minor: 100, currency: 'USD' };
  let sold = 0;
  /** Makes so many events, some at a time. */
  const sell = async (count: number): Promise<void> => {
    const charges = Array.from({ length: count }, () => ++sold).values();
    const seller = async (_: unknown, nth: number) => {
      for (const charge of charges)
        await merchant.post('/v1/sales', { ...sale, external_charge_id: `seller${nth}_${charge}` });
    };
    await Promise.all(Array.from({ length: 8 }, seller));
  };
  return { endpoints, sell };
}

/** The worker that sends to the most endpoints, and those. */
async function busiest(workers: Process[]): Promise<{ victim: Process; held: string[] }> {
  let found: { process_id: number; held: string[] } | undefined;
  // Between two sales there may be nothing to send.
  await eventually(async () => {
    [found] = await rail.query<{ process_id: number; held: string[] }>(sql`
      select w.process_id, array_agg(l.endpoint_id) as held
      from webhooks.endpoint_queue l
      join core.worker w on w.id = l.leased_by
      group by w.process_id
      order by count(*) desc
      limit 1`);
    return found !== undefined;
  }, 'a worker that sends');
  const { process_id, held } = found as { process_id: number; held: string[] };
  return { victim: workers.find(({ pid }) => pid === process_id) as Process, held };
}

/** The events in the order of their queue positions at an endpoint, with the charges that they tell of. */
const sequenceOf = (endpoint_id: string) =>
  rail.query<{ event_id: string; charge: string }>(sql`
    select d.event_id, e.body::json #>> '{data,external_charge_id}' as charge
    from webhooks.delivery d
    join webhooks.event e on e.organization_id = d.organization_id and e.id = d.event_id
    where d.endpoint_id = ${endpoint_id}
    order by d.queue_position`);

/** Those that were sent before a time: whoever takes over writes what it sends again, perhaps before this asks. */
async function writtenDeliveries(before: string): Promise<Set<string>> {
  const attempts = await rail.query<{ id: string }>(
    sql`select a.delivery_id as id from webhooks.attempt a where a.at < ${before}::timestamptz`,
  );
  return new Set(attempts.map(({ id }) => id));
}

/** Waits until nothing waits or is held. */
const settled = (): Promise<void> =>
  eventually(async () => {
    const left = await rail.query(sql`
        select task_identifier as what from graphile_worker.jobs
        union all select 'event' from webhooks.pending_event
        union all select 'queued' from webhooks.queued_delivery
        union all select 'lease' from webhooks.endpoint_queue where lease_until is not null`);
    return left.length === 0;
  }, 'the end of all work');

/** Returns the warnings of a worker, the death of another one and the settings of tests aside. */
const complaints = ({ logged }: Process): string[] =>
  logged
    .filter(({ level, msg }) => level >= 40 && !/^workers died|^RAIL_WEBHOOK_ALLOW_PRIVATE/.test(msg))
    .map(({ msg, err }) => `${msg}: ${err?.message}`);

const deadlocks = () => rail.query(sql`select deadlocks from pg_stat_database where datname = current_database()`);
