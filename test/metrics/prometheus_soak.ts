/**
 * `npm run soak -- prometheus`: a real Prometheus takes the rules and the dashboard that `rail metrics` prints, scrapes a running service, and
 * tells of each fault when it is made. What the rules wait for is shortened: minutes to seconds, and what only grows in days is set by hand.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import t from 'tap';
import { insertRow } from '../any_row.ts';
import { callerOf, type Json, type Rail, sql, startRail, startReceiver } from '../harness.ts';
import { startSmtpServer } from '../mail/smtp.ts';
import { stablePort } from '../ports.ts';
import { type Process, startGate, startProcess } from '../processes.ts';
import { rail as runRail } from '../rail_process.ts';
import { checkRules, findPrometheus, type RuleState, startPrometheus } from './prometheus_server.ts';

const fires_ms = 90_000;

/** Thresholds of what takes long to come about, and what they are here. */
const lowered: [threshold: string, here: string][] = [
  ['rail_postgres_transaction_seconds) > 900', 'rail_postgres_transaction_seconds) > 3'],
  ['> 2000000', '> 20'],
  ['> 10e9', '> 1e5'],
  ['rail_folded_timestamp_seconds) > 600', 'rail_folded_timestamp_seconds) > 5'],
  ['rail_replica_lag_seconds) > 60', 'rail_replica_lag_seconds) > -1'],
];

const hastened = (rules: string): string =>
  lowered
    .reduce((text, [threshold, here]) => text.replace(threshold, here), rules)
    .replaceAll(/\[\d+[mh]\]/g, '[20s]')
    .replaceAll(/offset 1h/g, 'offset 20s')
    .replaceAll(/for: \d+[mh]/g, 'for: 0s');

interface Fault {
  /** The alerts that tell of it. */
  alerts: string[];
  /** Makes it. @returns what ends it */
  make(): Promise<undefined | (() => unknown)>;
}

export function soakPrometheus(): void {
  t.setTimeout(40 * 60_000);
  t.test('Prometheus takes rules and dashboard, and tells of every fault', async (t) => {
    await using stack = new AsyncDisposableStack();
    const programs = await findPrometheus();
    const rail = await startRail({ worker: false, audit: false });
    const environment = { DATABASE_URL: rail.url, BASE_URL: 'https://rail.example.com' };
    const { stdout: rules } = await runRail(t, ['metrics', 'alerts'], environment);
    const { stdout: dashboard } = await runRail(t, ['metrics', 'grafana'], environment);
    await checkRules(programs, rules);

    const service = await openService(rail);
    const prometheus = await startPrometheus(stack, programs, { ports: service.ports, rules: hastened(rules) });
    service.whenChanged(() => prometheus.retarget());
    await service.startWorker();
    await until(async () => (await prometheus.query('rail_workers == 1')).length > 0, 'a worker');

    const panels = (JSON.parse(dashboard) as Json).panels.flatMap(({ targets = [] }: Json) => targets);
    const empty: string[] = [];
    for (const { expr } of panels) {
      const series = await prometheus.query(expr.replaceAll('$__rate_interval', '1m'));
      if (series.length === 0) empty.push(expr);
    }
    t.comment(`${panels.length} expressions of panels; these have no series yet: ${empty.join('; ')}`);

    const told = new Set<string>();
    for (const { alerts, make } of faultsOf(rail, service)) {
      const end = await make();
      const firing = (states: RuleState[]) =>
        new Set(states.filter(({ state }) => state === 'firing').map((r) => r.name));
      const missing = async () => new Set(alerts).difference(firing(await prometheus.rules()));
      await until(async () => (await missing()).size === 0, '').catch(() => {});
      const silent = await missing();
      t.same([...silent], [], `${alerts.join(', ')} tell of their fault`);
      for (const alert of alerts) told.add(alert);
      await end?.();
    }
    const states = await prometheus.rules();
    t.same(
      states.filter(({ lastError }) => lastError),
      [],
    );
    t.same([...new Set(states.map(({ name }) => name)).difference(told)], [], 'every alert has its fault');
  });
}

async function until(holds: () => Promise<boolean>, what: string): Promise<void> {
  for (const end = performance.now() + fires_ms; !(await holds()); await sleep(500))
    if (performance.now() > end) throw new Error(`Not in time: ${what}`);
}

interface Service {
  api: Process;
  gate: Awaited<ReturnType<typeof startGate>>;
  replica: Service['gate'];
  /** As a worker would that reads mail late. */
  showLateReplies(): Promise<() => unknown>;
  ports(): number[];
  whenChanged(then: () => Promise<void>): void;
  startWorker(settings?: NodeJS.ProcessEnv): Promise<() => Promise<void>>;
  stopWorkers(): Promise<void>;
}

/** An API behind a gate, with few connections and a replica; and workers as the faults need them. */
async function openService(rail: Rail): Promise<Service> {
  const gate = await startGate(rail.url);
  const replica = await startGate(rail.url);
  const api = await startProcess('api', gate.url, {
    ...{ METRICS_PORT: '0', DATABASE_POOL_SIZE: '6', DATABASE_READ_URL: replica.url, RATE_LIMIT_PER_ADDRESS: '0' },
  });
  const workers = new Set<Process>();
  const others: number[] = [];
  let changed = async () => {};
  const portOf = ({ logged }: Process): number => logged.find(({ msg }) => msg === 'metrics ready')?.port;
  const stop = async (worker: Process) => {
    await worker.end('SIGTERM');
    workers.delete(worker);
    await changed();
  };
  return {
    api,
    gate,
    replica,
    async showLateReplies() {
      let count = 0;
      const server = createServer((_, response) => {
        count += 10;
        const bucket = (le: string, value: number) => `rail_mail_lag_seconds_bucket{le="${le}"} ${value}\n`;
        response.setHeader('Content-Type', 'text/plain; version=0.0.4');
        response.end(
          `# TYPE rail_mail_lag_seconds histogram\n${bucket('60', 0)}${bucket('300', count)}${bucket('+Inf', count)}`,
        );
      });
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      others.push((server.address() as AddressInfo).port);
      await changed();
      return () => server.close();
    },
    ports: () => [...[api, ...workers].map(portOf), ...others],
    whenChanged(then) {
      changed = then;
    },
    async startWorker(settings = {}) {
      const worker = await startProcess('worker', rail.url, { METRICS_PORT: '0', ...settings });
      workers.add(worker);
      await changed();
      return () => stop(worker);
    },
    async stopWorkers() {
      for (const worker of workers) await stop(worker);
    },
  };
}

/** In an order in which none hides the next: first with a worker, then without. */
function faultsOf(rail: Rail, service: Service): Fault[] {
  const run = async (statement: Parameters<Rail['query']>[0]) => void (await rail.query(statement));
  const client = async () => {
    const opened = new pg.Client({ connectionString: rail.url });
    await opened.connect();
    return opened;
  };
  const insert = (table: string, given: Json) => insertRow(rail.url, table, given);
  const lock = async (table: string) => {
    const by = await client();
    await by.query(`begin; lock table ${table} in access exclusive mode`);
    return () => by.end();
  };
  const hour_ago = new Date(Date.now() - 3_600_000).toISOString();
  const hours_ago = new Date(Date.now() - 5 * 3_600_000).toISOString();
  const repeat = (work: () => Promise<unknown>) => {
    let is_over = false;
    void (async () => {
      while (!is_over) {
        await work().catch(() => {});
        await sleep(100);
      }
    })();
    return () => {
      is_over = true;
    };
  };
  let merchant: ReturnType<typeof callerOf>;
  let program_id = '';
  return [
    {
      alerts: ['RailDeliveriesFail'],
      async make() {
        const { organization_id, key } = await rail.organization();
        merchant = callerOf(service.api.url, key, organization_id);
        const program = { name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' };
        program_id = (await merchant.post('/v1/programs', program)).id;
        const url = `http://127.0.0.1:${await stablePort()}/hook`;
        await merchant.post('/v1/webhook_endpoints', { program_id, url, event_types: ['affiliate.created'] });
        let nth = 0;
        const email = () => `partner${nth++}@partner.example.com`;
        return repeat(() => merchant.post('/v1/partners', { program_id, email: email() }));
      },
    },
    {
      alerts: ['RailEndpointDisabled'],
      async make() {
        const receiver = await startReceiver(() => 500);
        const endpoint = { program_id, url: receiver.url, event_types: ['affiliate.created'] };
        const { id } = await merchant.post('/v1/webhook_endpoints', endpoint);
        await run(sql`update webhooks.endpoint set failures_count_from = now() - interval '60 days' where id = ${id}`);
        for (let nth = 0; nth < 25; nth++)
          await merchant.post('/v1/partners', { program_id, email: `failing${nth}@partner.example.com` });
        await receiver.until(25);
        await sleep(1_000);
        await run(sql`
          update webhooks.delivery d
          set status = 'failed', attempt = 8, next_attempt_at = null, updated_at = now() - s.nth * interval '7 hours'
          from (select d.id, row_number() over (order by d.id) as nth from webhooks.delivery d where d.endpoint_id = ${id}) as s
          where d.id = s.id`);
        await run(
          sql`select graphile_worker.add_job('webhooks/disable_failing_endpoint', json_build_object('endpoint_id', ${id}::text))`,
        );
        return undefined;
      },
    },
    {
      alerts: ['RailJobsRetry', 'RailJobsFailed'],
      async make() {
        await run(sql`select graphile_worker.add_job('core/send_mail', '{}') from generate_series(1, 20)`);
        await run(sql`select graphile_worker.add_job('core/send_mail', '{}', max_attempts => 1)`);
        return repeat(() => run(sql`select graphile_worker.add_job('core/send_mail', '{}', max_attempts => 1)`));
      },
    },
    {
      alerts: ['RailMailFails'],
      async make() {
        await service.stopWorkers();
        await startSmtpServer();
        await service.startWorker({
          SMTP_URL: `smtp://127.0.0.1:${await stablePort()}`,
          MAIL_FROM: 'a@rail.example.com',
        });
        const { organization_id } = await rail.organization();
        return repeat(async () => {
          const id = `mail_${crypto.randomUUID()}`;
          await insert('core.outgoing_mail', { organization_id, id, recipient: 'a@acme.example.com', subject: 'x' });
          await run(
            sql`select graphile_worker.add_job('core/send_mail', json_build_object('organization_id', ${organization_id}::text, 'id', ${id}::text))`,
          );
          await sleep(1_000);
        });
      },
    },
    {
      alerts: ['RailClockSkew'],
      make: () =>
        service.startWorker({
          NODE_OPTIONS: `--import ${new URL('../shifted_clock.ts', import.meta.url).href}`,
          CLOCK_SHIFT_MS: '60000',
        }),
    },
    {
      alerts: ['RailSumsLate'],
      async make() {
        const fold = sql`select graphile_worker.add_job('program/fold_tallies', json_build_object('run_id', 'run_x', 'tick', ${hour_ago}::text))`;
        await run(fold);
        return undefined;
      },
    },
    {
      alerts: ['RailHeld'],
      async make() {
        await run(sql`select core.hold_for('an operator')::text`);
        return () => run(sql`select core.resume(true, true)::text`);
      },
    },
    {
      alerts: ['RailNoWorker', 'RailScheduleLate', 'RailJobsLate', 'RailJobHangs'],
      async make() {
        await service.stopWorkers();
        await run(sql`delete from core.scheduled_run`);
        await run(sql`update core.schedule set since = ${hours_ago}::timestamptz`);
        await run(sql`select graphile_worker.add_job('core/send_mail', '{}', run_at => ${hour_ago}::timestamptz)`);
        await run(sql`select graphile_worker.add_job('core/purge_expired', '{}')`);
        await run(sql`
          update graphile_worker._private_jobs set locked_at = ${hours_ago}::timestamptz, locked_by = 'nobody'
          where id = (select max(id) from graphile_worker._private_jobs)`);
        return undefined;
      },
    },
    {
      alerts: ['RailEventsLate', 'RailDeliveriesLate', 'RailRetriesLate', 'RailLeasesExpired'],
      async make() {
        const of = { organization_id: 'org_x', created_at: hour_ago, position: 1 };
        await insert('webhooks.event', { ...of, id: 'evt_x' });
        await insert('webhooks.pending_event', {
          organization_id: 'org_x',
          event_id: 'evt_x',
          position: -1,
          for_partner: false,
        });
        await insert('webhooks.delivery', {
          organization_id: 'org_x',
          id: 'whd_x',
          updated_at: hour_ago,
          next_attempt_at: hour_ago,
        });
        await insert('webhooks.queued_delivery', {
          organization_id: 'org_x',
          delivery_id: 'whd_x',
          endpoint_id: '0',
          queue_position: 1,
        });
        await insert('webhooks.endpoint_queue', { endpoint_id: '0', leased_by: 'x', lease_until: hour_ago });
        return undefined;
      },
    },
    {
      alerts: ['RailAuditFound', 'RailAuditOld'],
      async make() {
        await run(sql`insert into core.audit_result (finished_at, violations) values (now() - interval '30 days', 3)`);
        return () => run(sql`delete from core.audit_result`);
      },
    },
    {
      alerts: ['RailProcessorEventsLate'],
      async make() {
        const of = { organization_id: 'org_x', program_id: 'prg_x', processor: 'stripe' };
        await insert('program.processor', { ...of, status: 'connected', mode: 'live', warnings: '{}' });
        await insert('program.processor_event', { ...of, id: 'evt_x', status: 'pending', created_at: hour_ago });
        return () => run(sql`delete from program.processor_event where id = 'evt_x'`);
      },
    },
    {
      alerts: ['RailProcessorDifference'],
      async make() {
        const [day] = new Date(Date.now() - 86_400_000).toISOString().split('T');
        await insert('program.processor_total', { processor: 'stripe', day, kind: 'charge', theirs_minor: 100 });
        return undefined;
      },
    },
    {
      alerts: ['RailPayoutInDoubt', 'RailPayoutPollsLate'],
      async make() {
        await insert('program.payout_attempt', {
          ...{ number: 1, mode: 'live', status: 'in_doubt', began_at: hours_ago, next_poll_at: hour_ago },
        });
        return undefined;
      },
    },
    {
      alerts: ['RailEmailsLate', 'RailLookUpsLate', 'RailEmailsUnknown', 'RailInboxUnread', 'RailInboxDisconnected'],
      async make() {
        await sleep(25_000); // what grows is compared with what was seen before
        const of = { direction: 'outbound', purpose: 'test' };
        const past = { due_at: hour_ago, created_at: hour_ago, look_up_at: hour_ago };
        await insert('recruitment.message', {
          ...of,
          ...past,
          id: 'msg_1',
          rfc_message_id: '1',
          state: 'planned',
          look_up_at: null,
        });
        await insert('recruitment.message', {
          ...of,
          ...past,
          id: 'msg_2',
          rfc_message_id: '2',
          state: 'unknown',
          claimed_at: hour_ago,
        });
        const inbox = { daily_limit: 1, min_gap_s: 0, max_gap_s: 0, timezone: 'UTC', connected_at: hour_ago };
        await insert('recruitment.inbox', { ...inbox, id: 'inb_1', email: 'a@acme.example.com' });
        await insert('recruitment.inbox', {
          ...{ ...inbox, id: 'inb_2', email: 'b@acme.example.com', status: 'disconnected' },
          ...{ disconnected_reason: 'auth_failed', disconnected_at: hour_ago },
        });
        return undefined;
      },
    },
    {
      alerts: ['RailTransactionOpen', 'RailSnapshotOld'],
      async make() {
        const by = await client();
        await by.query('begin isolation level repeatable read; select count(*) from core.organization');
        for (let nth = 0; nth < 30; nth++) await run(sql`select pg_current_xact_id()`);
        return () => by.end();
      },
    },
    {
      alerts: ['RailPostgresConnections'],
      async make() {
        const [{ free }] = (await rail.query(sql`
          select (current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int) * 0.95
            - (select count(*) from pg_stat_activity where backend_type = 'client backend') as free`)) as [Json];
        const opened = await Promise.all(Array.from({ length: Math.ceil(Number(free)) }, client));
        return () => Promise.all(opened.map((one) => one.end()));
      },
    },
    {
      alerts: ['RailPartitionsMissing'],
      async make() {
        const weeks = await rail.query<{ name: string }>(sql`
          select c.oid::regclass::text as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
          where i.inhparent = 'program.click'::regclass and c.relname ~ '_\\d{8}$' and right(c.relname, 8) > to_char(now(), 'YYYYMMDD')`);
        const by = await client();
        for (const { name } of weeks) await by.query(`drop table ${name}`);
        await by.end();
        return undefined;
      },
    },
    {
      alerts: ['RailSlotBehind'],
      async make() {
        await run(sql`select pg_create_physical_replication_slot('soak', true)`);
        await run(
          sql`create table public.written as select repeat(md5(n::text), 10) as text from generate_series(1, 10000) as n`,
        );
        return () => run(sql`select pg_drop_replication_slot('soak')`);
      },
    },
    { alerts: ['RailReplicaLags'], make: async () => undefined },
    {
      alerts: ['RailReplicaDown'],
      async make() {
        service.replica.leadTo(1);
        service.replica.cut();
        return undefined;
      },
    },
    { alerts: ['RailRepliesLate'], make: () => service.showLateReplies() },
    {
      alerts: ['RailRequestsSlow', 'RailConnectionsScarce'],
      async make() {
        const ends: (() => unknown)[] = [];
        for (let nth = 0; nth < 10; nth++) ends.push(repeat(() => merchant.request('GET', '/v1/programs')));
        const slow = repeat(async () => {
          const unlock = await lock('program.program');
          await sleep(4_000);
          await unlock();
        });
        return () => {
          for (const end of [...ends, slow]) end();
        };
      },
    },
    {
      alerts: ['RailPostgresUnreadable', 'RailRequestsFail', 'RailUnobserved'],
      async make() {
        service.gate.leadTo(1);
        service.gate.cut();
        const end = repeat(() => merchant.request('GET', '/v1/programs'));
        return () => {
          end();
          service.gate.leadTo(Number(new URL(rail.url).port));
        };
      },
    },
  ];
}
