import t from 'tap';
import { createKey } from '../../src/core/access/api_key.ts';
import { createOrganization } from '../../src/core/access/organization.ts';
import { openDatabase, run } from '../../src/core/postgres/database.ts';
import { type Answer, callerOf, eventually, patient_database, sql } from '../harness.ts';
import { startProcess } from '../processes.ts';
import { effort } from '../runner/effort.ts';
import { startMortalPostgres } from './mortal_postgres.ts';
import { firstReceipts, openSlice } from './slice.ts';

const clients = 4;
const sales_each = 15;
/** In each of these lives of Postgres so many sales are acknowledged before it dies. */
const lives = [25, 1, 40, 10].slice(0, effort.postgres_kills);

const postgres = await startMortalPostgres();
const { gate } = postgres;
const database = openDatabase(gate.url, { ...patient_database, size: 3, name: 'rail test' });
t.teardown(() => database.end());
const [api, worker] = await Promise.all([startProcess('api', gate.url), startProcess('worker', gate.url)]);

t.test('an activation during which Postgres is killed leaves nothing, and is done once afterwards', async (t) => {
  const { id } = await createOrganization(database, { name: 'Activation', owner_email: 'owner@example.com' });
  const { secret } = await createKey(database, {
    ...{ organization_id: id, name: 'test', mode: 'live', scopes: ['*'], rate_limit: 100_000 },
  });
  const caller = callerOf(api.url, secret, id);
  const acme = { name: 'Acme', website_url: 'https://acme.example.com' };
  const { id: program_id } = await caller.post('/v1/programs', { ...acme, currency: 'USD' });
  const { id: brand_id } = await caller.post('/recruitment/v1/brands', acme);
  const given = { brand_id, channel: 'website', key: 'killed.com', email: 'ada@killed.com' };
  const { id: prospect_id } = await caller.post('/recruitment/v1/prospects', given);
  const terms = { rate_type: 'percent', rate_value: 2_000, currency: 'USD' };
  const deals = '/recruitment/v1/deals';
  const { id: deal_id } = await caller.post(deals, { prospect_id, program_id, terms });
  await caller.post(`${deals}/${deal_id}/agree`);
  const stopped = gate.stopAt(
    'after',
    ({ text }, answer) => answer === undefined && text.includes('insert into program.rule'),
  );
  await caller.post(`${deals}/${deal_id}/activate`);
  await stopped;
  await postgres.kill();
  await postgres.reopen();
  gate.cut();
  const state = async () => (await caller.request('GET', `${deals}/${deal_id}`)).body.status;
  await eventually(async () => (await state()) === 'active', 'the activation');
  const [counted] = await run(
    database,
    sql`
    select
      (select count(*) from program.partner where program_id = ${program_id}) as partners,
      (select count(*) from program.rule where program_id = ${program_id}) as rules,
      (select count(*) from webhooks.event where program_id = ${id} and type = 'affiliate.activated') as events`,
  );
  t.same(counted, { partners: 1, rules: 1, events: 1 });
});

t.test('loses nothing that was acknowledged when Postgres is killed, and recovers without a restart', async (t) => {
  const { id } = await createOrganization(database, { name: 'Acme', owner_email: 'owner@example.com' });
  const scopes = { name: 'test', mode: 'live', scopes: ['*'], rate_limit: 100_000 } as const;
  const { secret } = await createKey(database, { organization_id: id, ...scopes, scopes: ['*'] });
  const merchant = callerOf(api.url, secret, id);
  const { program_id, endpoint_id, receiver } = await openSlice(merchant);
  const { data: partners } = await merchant.get(`/v1/partners?program_id=${program_id}`);

  const acknowledged = new Map<string, string>();
  const refusals: Answer[] = [];
  const record = async (external_charge_id: string): Promise<void> => {
    const sale = { program_id, partner_id: partners[0].id, amount_minor: 5_000, currency: 'USD', external_charge_id };
    await eventually(async () => {
      const answer = await merchant.request('POST', '/v1/sales', sale, { 'Idempotency-Key': external_charge_id });
      if (answer.status === 201) acknowledged.set(external_charge_id, answer.body.id);
      else refusals.push(answer);
      return answer.status === 201;
    }, `the sale ${external_charge_id}`);
  };
  const livesOfWorker = () => worker.logged.filter(({ msg }) => msg === 'worker ready').length;
  for (const [life, sales_before_death] of lives.entries()) {
    await eventually(() => livesOfWorker() > life, 'the worker');
    const before = acknowledged.size;
    const selling = Array.from({ length: clients }, async (_, client) => {
      for (let nth = 0; nth < sales_each; nth++) await record(`ch_${life}_${client}_${nth}`);
    });
    const dying = eventually(() => acknowledged.size >= before + sales_before_death, 'sales').then(async () => {
      await postgres.kill();
      await eventually(async () => {
        const answer = await merchant.request('GET', '/v1/programs');
        if (answer.status !== 200) refusals.push(answer);
        return answer.status !== 200;
      }, 'a refusal while it is away');
      await postgres.reopen();
    });
    await Promise.all([dying, ...selling]);
  }

  t.ok(refusals.length > 0);
  const odd = refusals.filter(
    ({ status, headers, body }) =>
      body.error.code !== 'idempotency_key_in_flight' &&
      !(status === 503 && body.error.code === 'service_unavailable' && headers['retry-after'] === '1'),
  );
  t.same(odd, [], 'every refusal says to come again');

  const total = lives.length * clients * sales_each;
  const events = () =>
    run<{ id: string }>(
      database,
      sql`
      select e.id from webhooks.event e join webhooks.delivery d on d.event_id = e.id and d.endpoint_id = ${endpoint_id} order by d.queue_position`,
    );
  await eventually(() => firstReceipts(receiver.received).length >= 2 * total, 'every webhook');
  t.same(
    firstReceipts(receiver.received),
    (await events()).map((event) => event.id),
    'in the order of their queue positions',
  );

  const [counted] = await run(
    database,
    sql`
    select
      (select count(*) from program.sale) as sales,
      (select count(*) from program.sale where id = any (${[...acknowledged.values()]})) as acknowledged,
      (select count(distinct sale_id) from program.commission) as sales_paid,
      (select count(*) from program.commission) as commissions,
      (select count(*) from webhooks.event where type in ('sale.created', 'commission.created')) as events,
      (select count(*) from webhooks.delivery where endpoint_id = ${endpoint_id}) as deliveries`,
  );
  t.same(counted, {
    ...{ sales: total, acknowledged: total, sales_paid: total, commissions: total },
    ...{ events: 2 * total, deliveries: 2 * total },
  });
  const restless = sql`
    select task_identifier as what from graphile_worker.jobs
    union all select 'event' from webhooks.pending_event
    union all select 'queued' from webhooks.queued_delivery
    union all select 'lease' from webhooks.endpoint_queue where leased_by is not null`;
  await eventually(async () => (await run(database, restless)).length === 0, 'the end of all work');

  t.ok(api.isRunning() && worker.isRunning(), 'by the same processes');
  t.equal(await worker.end('SIGTERM'), 0);
  t.equal(await api.end('SIGTERM'), 0);
});
