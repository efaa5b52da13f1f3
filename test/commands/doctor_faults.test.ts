/** Each check of `rail doctor` in its bad state: what is so only after days, or on a server of its own, is read, and judged as if it were. */
import pg from 'pg';
import t from 'tap';
import { diagnose } from '../../src/commands/doctor/doctor.ts';
import { type AnyCheck, examine, type Line, type State } from '../../src/core/doctor/check.ts';
import { loadChecks } from '../../src/products.ts';
import { insertRow } from '../any_row.ts';
import { encryption_key, type Json, startRail } from '../harness.ts';

const rail = await startRail({ worker: false, audit: false });
const client = new pg.Client({ connectionString: rail.url });
client.on('error', () => {});
await client.connect();
t.teardown(() => client.end());
const run = (text: string) => client.query(text);
const insert = (table: string, given: Json) => insertRow(rail.url, table, given);
const ago = (hours: number) => new Date(Date.now() - hours * 3_600_000).toISOString();
const { organization_id } = await rail.organization();

interface Fault {
  make(): Promise<unknown>;
  state: State;
  text: RegExp;
}

const inbox = { daily_limit: 1, min_gap_s: 0, max_gap_s: 0, timezone: 'UTC', connected_at: ago(1) };
const attempt = { number: 1, mode: 'live', rail: 'stripe' };
const message = { direction: 'outbound', purpose: 'test', created_at: ago(1) };
const many = (text: string) => run(`create table core.big_${text} as select n from generate_series(1, 60000) as n`);
async function add(task: string, set: string): Promise<void> {
  const { rows } = await run(`select j.id from graphile_worker.add_job('${task}', '{"id": "x"}') j`);
  await run(`update graphile_worker._private_jobs set ${set} where id = ${rows[0].id}`);
}

/** In the order in which they are made. */
const faults: Record<string, Fault> = {
  'postgres/data_logins': {
    async make() {
      const role = `data_${process.pid}`;
      await run(`create role ${role} login`);
      t.teardown(() => client.query(`drop owned by ${role}; drop role ${role}`));
      await insert('core.data_login', {
        ...{ role_name: role, organization_id, name: 'Team', expires_at: new Date(Date.now() + 36 * 3_600_000) },
      });
    },
    state: 'warning',
    text: /may do too much/,
  },
  'service/expiry': { make: async () => {}, state: 'warning', text: /^Expiring: data login .* in 1 day\.$/ },
  'postgres/vacuum': {
    async make() {
      await many('dead');
      await run('alter table core.big_dead set (autovacuum_enabled = false)');
      await run('delete from core.big_dead');
      await run('select pg_stat_force_next_flush()');
    },
    state: 'warning',
    text: /^Dead rows: core\.big_dead 60,000 beside 0 live, vacuumed never/,
  },
  'postgres/statistics': {
    async make() {
      await many('new');
      await run('alter table core.big_new set (autovacuum_enabled = false)');
      await run('select pg_stat_force_next_flush()');
    },
    state: 'warning',
    text: /tables? without statistics: .*core\.big_new/,
  },
  'postgres/indexes': {
    async make() {
      await run('create table core.twice as select 1 as n from generate_series(1, 2)');
      await run('create unique index concurrently twice_n on core.twice (n)').catch(() => {});
    },
    state: 'warning',
    text: /^Invalid: core\.twice_n\./,
  },
  'service/held': {
    make: () => run("select core.hold_for('an operator')"),
    state: 'error',
    text: /held since .*: an operator held them/,
  },
  'service/workers': { make: async () => {}, state: 'error', text: /^No worker runs/ },
  'jobs/oldest': {
    make: () => add('core/send_mail', "run_at = now() - interval '1 hour'"),
    state: 'error',
    text: /^1 job is due; the oldest, of core\/send_mail, for 60 minutes/,
  },
  'jobs/running': {
    make: () => add('program/mail_owner', "locked_at = now() - interval '2 hours', locked_by = 'nobody'"),
    state: 'warning',
    text: /^Running for long: \d+ \(program\/mail_owner\) for 2 hours/,
  },
  'jobs/retrying': {
    make: () => add('program/assess_risk', "attempts = 7, last_error = 'no', run_at = now() + interval '1 hour'"),
    state: 'warning',
    text: /^1 job has failed 5 times or more: program\/assess_risk \(1\)/,
  },
  'jobs/failed': {
    make: () => add('program/assess_risk', "attempts = max_attempts, last_error = 'no'"),
    state: 'error',
    text: /^1 job has failed for good: program\/assess_risk/,
  },
  'service/mail': {
    make: () =>
      insert('core.outgoing_mail', { organization_id, id: 'mail_1', recipient: 'a@b.example', error: '550 no' }),
    state: 'warning',
    text: /^1 email of the last 7 days to owners and partners was not sent/,
  },
  'webhooks/events': {
    async make() {
      await insert('webhooks.event', { organization_id, id: 'evt_1', created_at: ago(1), position: 1 });
      await insert('webhooks.pending_event', { organization_id, event_id: 'evt_1', position: -1 });
    },
    state: 'error',
    text: /oldest event without its deliveries is 60 minutes old/,
  },
  'webhooks/deliveries': {
    async make() {
      await insert('webhooks.delivery', { organization_id, id: 'whd_1', updated_at: ago(1), next_attempt_at: null });
      await insert('webhooks.queued_delivery', {
        ...{ organization_id, delivery_id: 'whd_1', endpoint_id: 'whe_1', queue_position: 1 },
      });
      await insert('webhooks.endpoint_queue', { organization_id, endpoint_id: 'whe_1' });
    },
    state: 'error',
    text: /^Deliveries wait at 1 endpoint that answer in time, the oldest for 60 minutes/,
  },
  'webhooks/retries': {
    make: () => insert('webhooks.delivery', { organization_id, id: 'whd_2', next_attempt_at: ago(1) }),
    state: 'warning',
    text: /was due 60 minutes ago/,
  },
  'webhooks/endpoints': {
    async make() {
      await insert('webhooks.endpoint', { organization_id, id: 'whe_2', status: 'enabled' });
      // One that took its deliveries until now.
      for (const [nth, status] of ['delivered', 'failed', 'failed', 'failed'].entries())
        await insert('webhooks.delivery', { organization_id, id: `whd_2${nth}`, endpoint_id: 'whe_2', status });
    },
    state: 'warning',
    text: /^1 endpoint takes none of its newest deliveries: whe_2 of org_/,
  },
  'webhooks/disabled': {
    make: () =>
      insert('webhooks.endpoint', {
        ...{ organization_id, id: 'whe_3', status: 'disabled', updated_at: ago(1) },
        disabled_reason: 'Disabled: the last 20 events failed.',
      }),
    state: 'warning',
    text: /^Disabled within 7 days because they failed: whe_3 of org_/,
  },
  'webhooks/leases': {
    make: () =>
      insert('webhooks.endpoint_queue', { organization_id, endpoint_id: 'whe_4', leased_by: 'x', lease_until: ago(1) }),
    state: 'error',
    text: /^1 endpoint is held by a worker that is gone/,
  },
  'program/payouts_in_doubt': {
    make: () =>
      insert('program.payout_attempt', {
        ...{ ...attempt, id: 'pa_1', payout_id: 'po_1', status: 'in_doubt', began_at: ago(5), next_poll_at: ago(1) },
      }),
    state: 'warning',
    text: /^1 payout in doubt: po_1 \(stripe\) for 5 hours/,
  },
  'program/payouts_processing': {
    make: () =>
      insert('program.payout_attempt', {
        ...{
          ...attempt,
          id: 'pa_2',
          payout_id: 'po_2',
          status: 'processing',
          began_at: ago(240),
          next_poll_at: ago(1),
        },
      }),
    state: 'warning',
    text: /^With their provider: po_2 \(stripe\) for 10 days/,
  },
  'program/payout_batches': {
    make: () =>
      insert('program.payout_batch', {
        organization_id,
        id: 'pb_1',
        stage: 'generating',
        cutoff: ago(4),
        created_at: ago(3),
      }),
    state: 'error',
    text: /^Being created: pb_1 for 3 hours/,
  },
  'program/sums': {
    make: () =>
      add('program/fold_reports', "created_at = now() - interval '1 hour', run_at = now() + interval '1 hour'"),
    state: 'warning',
    text: /has been there for 60 minutes/,
  },
  'program/processor_totals': {
    make: () =>
      insert('program.processor_total', {
        ...{ organization_id, program_id: 'prg_1', processor: 'stripe', day: ago(24).slice(0, 10), kind: 'charge' },
        ...{ currency: 'USD', theirs_minor: 3_000, ours_minor: 1_000, uncredited_minor: 500 },
      }),
    state: 'warning',
    text: /^1 daily total of billing processors differ.*USD 15\.00 of charges at stripe on \d{4}-\d\d-\d\d \(prg_1\)/,
  },
  'program/processors_disconnected': {
    make: () =>
      insert('program.processor', {
        ...{ organization_id, id: 'prc_1', program_id: 'prg_1', processor: 'stripe', mode: 'live' },
        ...{ status: 'disconnected', disconnected_reason: 'Invalid API Key provided' },
      }),
    state: 'warning',
    text: /^Disconnected: stripe of prg_1\./,
  },
  'program/first_party': {
    async make() {
      const key = {
        organization_id,
        program_id: 'prg_1',
        mode: 'live',
        last_used_at: ago(1),
        signing_secret: Buffer.of(1),
      };
      const allowed_origins = ['https://acme.example.com'];
      await insert('program.publishable_key', { ...key, id: 'pub_1', key: 'a', allowed_origins, setup: 'first_party' });
      await insert('program.publishable_key', { ...key, id: 'pub_2', key: 'b', allowed_origins, setup: 'third_party' });
      const revoked_at = ago(1);
      await insert('program.publishable_key', {
        ...key,
        id: 'pub_3',
        key: 'c',
        allowed_origins,
        setup: 'third_party',
        revoked_at,
      });
    },
    state: 'warning',
    text: /^Not first party: pub_2 of prg_1 is third_party for https:\/\/acme\.example\.com\. /,
  },
  'recruitment/inboxes': {
    make: () =>
      insert('recruitment.inbox', {
        ...{ ...inbox, organization_id, id: 'inb_1', email: 'a@acme.example.com', status: 'disconnected' },
        ...{ disconnected_reason: 'auth_failed', disconnected_at: ago(1) },
      }),
    state: 'warning',
    text: /^1 inbox is disconnected: inb_1 of org_\w+ \(auth_failed\)/,
  },
  'recruitment/replies': {
    make: () =>
      insert('recruitment.inbox', {
        ...{ ...inbox, organization_id, id: 'inb_2', email: 'b@acme.example.com', status: 'connected' },
      }),
    state: 'warning',
    text: /^Not read: inb_2 for 60 minutes/,
  },
  'recruitment/emails': {
    make: () =>
      insert('recruitment.message', { ...message, id: 'msg_1', rfc_message_id: '1', state: 'planned', due_at: ago(1) }),
    state: 'error',
    text: /has waited for 60 minutes/,
  },
  'recruitment/emails_unknown': {
    make: () =>
      insert('recruitment.message', {
        ...{ ...message, id: 'msg_2', rfc_message_id: '2', state: 'unknown', claimed_at: ago(1), look_up_at: ago(1) },
      }),
    state: 'warning',
    text: /^1 email may have been sent, .* late by 60 minutes/,
  },
  'recruitment/runs': {
    make: () =>
      insert('recruitment.run', {
        ...{ organization_id, id: 'run_1', kind: 'scan', trigger: 'weekly', state: 'running', created_at: ago(9) },
      }),
    state: 'warning',
    text: /^Running: run_1 for 9 hours/,
  },
  'postgres/restored': {
    make: () => run('update core.cluster set system_identifier = 1'),
    state: 'error',
    text: /restored from a dump, and not migrated/,
  },
};

/** The readings, as they would be read. */
const judged: Record<string, [found: unknown, state: State, text: RegExp][]> = {
  'postgres/server': [[{ version: '18.4', is_replica: true, user: 'rail', up_s: 1 }, 'error', /^It is a replica/]],
  'postgres/clock': [
    [60_000, 'error', /60 seconds ahead of Postgres'/],
    [-60_000, 'error', /60 seconds behind Postgres'/],
  ],
  'postgres/wraparound': [
    [{ age: 1_100_000_000 }, 'warning', /1,100,000,000 transactions old/],
    [{ age: 1_700_000_000 }, 'error', /refuses writes/],
  ],
  'postgres/snapshot': [[{ age: 2_000_000, who: 'pid 7 (psql, ada, idle)' }, 'warning', /2,000,000 .*pid 7/]],
  'postgres/replicas': [
    [[{ name: 'one', state: 'streaming', bytes: 5 * 1024 ** 3, seconds: 90 }], 'warning', /5\.0 GB and 90 seconds/],
    [[{ name: 'one', state: null, bytes: null, seconds: null }], 'ok', /pg_monitor/],
  ],
  'postgres/slots': [
    [[{ name: 'cdc', active: false, bytes: 2 * 1024 ** 3, wal_status: 'extended' }], 'warning', /fills the disk/],
    [[{ name: 'cdc', active: false, bytes: null, wal_status: 'lost' }], 'error', /cdc \(inactive, lost\)/],
  ],
  'postgres/wal': [
    [{ bytes: 5 * 1024 ** 3, most: 1024 ** 3 }, 'warning', /takes 5\.0 GB/],
    [{ bytes: null, most: 1024 ** 3 }, 'ok', /pg_monitor/],
  ],
};

/** Seen in doctor.test.ts, which has them come about by the service itself; the size is only said. */
const elsewhere = [
  ...['migrations', 'privileges', 'connections', 'settings', 'transactions', 'locks', 'partitions', 'size'].map(
    (name) => `postgres/${name}`,
  ),
  ...['access/keys', 'service/processes', 'service/clocks', 'jobs/tasks', 'jobs/schedules'],
];

t.test('every check has been seen in its bad state', async (t) => {
  const names = (await loadChecks()).map(({ name }) => name);
  const seen = [...Object.keys(faults), ...Object.keys(judged), ...elsewhere];
  t.same(names.toSorted(), seen.toSorted());
});

t.test('each fault is told of, with its remedy', async (t) => {
  for (const { make } of Object.values(faults)) await make();
  const environment = { DATABASE_URL: rail.url, RAIL_ENCRYPTION_KEY: encryption_key.toString('base64') };
  const lines = new Map((await Array.fromAsync(diagnose(environment))).map((line) => [line.name, line]));
  for (const [name, { state, text }] of Object.entries(faults)) {
    const line = lines.get(name) as Line;
    t.match(line, { state, text }, name);
    t.ok(line.remedy, name);
  }
});

t.test('what takes days, or a server of its own, is judged as it would be read', async (t) => {
  const checks = await loadChecks();
  for (const [name, cases] of Object.entries(judged)) {
    const one = checks.find((check) => check.name === name) as AnyCheck;
    const [now] = (await Array.fromAsync(examine([one], client))) as [Line];
    t.notMatch(now.text, /could not be checked/, name);
    for (const [found, state, text] of cases) {
      const finding = one.assess(found);
      t.match(finding, { state, text }, name);
      t.equal(finding.state === 'ok', finding.remedy === undefined, `${name} says what to do`);
    }
  }
});
