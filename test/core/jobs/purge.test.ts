import t from 'tap';
import { purgeExpired, readRetention } from '../../../src/core/jobs/retention.ts';
import { service_opening } from '../../../src/core/jobs/task.ts';
import { transaction } from '../../../src/core/postgres/transaction.ts';
import { default_retention } from '../../../src/core/resource/services.ts';
import { kept } from '../../../src/products.ts';
import { eventually, type Json, sql, startRail } from '../../harness.ts';
import { fresh, openShop } from '../../shop.ts';

const rail = await startRail({ own: { retention: { ...default_retention, click_days: 400 } } });
const merchant = await rail.organization();
const { organization_id } = merchant;

/** Mails of this age, whose subjects say which they are. */
const writeMails = (count: number, subject: string, age: string) =>
  rail.query(sql`
    insert into core.outgoing_mail (organization_id, id, subject, text, created_at)
    select ${organization_id}, core.new_id('mail'), ${subject}, 'A text.', now() - ${age}::interval
    from generate_series(1, ${count})
    returning id`);

const subjects = async (): Promise<string[]> =>
  (
    await rail.query<{ subject: string }>(
      sql`select distinct subject from core.outgoing_mail where organization_id = ${organization_id} order by subject`,
    )
  ).map(({ subject }) => subject);

const isGone = (subject: string) => async () => !(await subjects()).includes(subject);

t.test(
  'mail goes after 90 days by the clock of Postgres, however much there is and whatever time the run is of',
  async (t) => {
    await writeMails(4_001, 'old', '90 days 1 minute');
    await writeMails(3, 'young', '89 days 23 hours');
    await rail.tick('core/purge_expired', '2999-01-01T00:00:00Z');
    await eventually(isGone('old'), 'the old mails to go');
    t.same(await subjects(), ['young']);
  },
);

t.test('scheduled runs go after 90 days', async (t) => {
  const name = 'core/purge_expired';
  const write = (age: string) =>
    rail.query(sql`
      insert into core.scheduled_run (id, name, tick, created_at)
      values (core.new_id('run'), ${name}, now() - ${age}::interval, now() - ${age}::interval) returning id`);
  await write('91 days');
  await write('89 days');
  await rail.tick(name, new Date(Date.now() + 60_000).toISOString());
  const ages = () =>
    rail.query<{ days: number }>(
      sql`select floor(extract(epoch from now() - tick) / 86400)::int as days from core.scheduled_run
        where name = ${name} and tick < now() - interval '1 day'`,
    );
  await eventually(async () => (await ages()).length === 1, 'the old run to go');
  t.same(await ages(), [{ days: 89 }]);
});

t.test('settings say how long, and it is seen what is older than they say', async (t) => {
  const read = async (retention = default_retention) => {
    const all = await readRetention(rail.store.database, kept, retention);
    return (kind: string) => all.find((one) => one.kind === kind);
  };
  await rail.query(sql`delete from core.outgoing_mail`);
  await writeMails(1, 'forgotten', '20 days');
  const ago = (await read())('mails');
  t.match(ago, { setting: 'MAIL_RETENTION_DAYS', days: 90, behind_days: 0 });
  t.equal(Math.round((Date.now() - Date.parse(ago?.oldest_at as string)) / 86_400_000), 20);
  const shorter = { ...default_retention, mail_days: 7, event_days: 7 };
  t.match((await read(shorter))('mails'), { days: 7, behind_days: 12 });
  t.match((await read())('clicks'), { setting: 'CLICK_RETENTION_DAYS', days: null, behind_days: 0 });
  t.match((await read())('idempotency_keys'), { setting: null, days: 1 });
  const now = new Date().toISOString();
  await transaction(rail.store, service_opening, (tx) => purgeExpired(tx, shorter, now, 10));
  t.match((await read(shorter))('mails'), { oldest_at: null, behind_days: 0 });

  const old = sql`now() - interval '24 days'`;
  await rail.query(sql`call core.ensure_weekly_partitions('webhooks.event', 'evt', ${old}, ${old})`);
  t.match((await read())('events'), { setting: 'EVENT_RETENTION_DAYS', days: 30, behind_days: 0 });
  const { behind_days = 0 } = (await read(shorter))('events') ?? {};
  t.ok(behind_days > 8 && behind_days < 17, `${behind_days}`);
  await rail.query(sql`call webhooks.keep_partitions(now(), 'evt', 'whd', interval '30 days')`);
  t.ok(((await read(shorter))('events')?.behind_days ?? 0) > 0, 'it is kept for 30 days');
  await rail.query(sql`call webhooks.keep_partitions(now(), 'evt', 'whd', interval '7 days')`);
  t.equal((await read(shorter))('events')?.behind_days, 0);
});

/** The id of a time, with the end of another one. */
const idOf = (prefix: string, age: string, id = sql`core.new_id('x')`) =>
  sql`${`${prefix}_`} || core.id_time_part(now() - ${age}::interval) || right(${id}, 16)`;

t.test('clicks go after as long as the operator says, but for those that led to a customer or a sale', async (t) => {
  const shop = await openShop(rail, {}, merchant);
  await shop.rule();
  const [partner, other] = [await shop.partner(), await shop.partner()];
  /** A click of long ago. */
  const ages = async (click: Json, age: string): Promise<string> => {
    const [row] = await rail.query<{ id: string }>(sql`
      update program.click t set id = ${idOf('clk', age, sql`t.id`)}, created_at = now() - ${age}::interval
      where t.id = ${click.id} returning t.id`);
    return row?.id as string;
  };
  const visit = (visitor_token: string, by = partner) => shop.click(by, { visitor_token });
  const bought = await visit('customer-visitor');
  const customer = await shop.customer({ click_id: bought.id });
  const elsewhere = await visit('customer-visitor', other);
  const charged = await visit('buyer-visitor');
  await shop.sale({ click_id: charged.id });
  const idle = [await visit('idle-visitor'), await visit('idle-visitor')];
  const young = await visit('young-visitor');
  await eventually(
    async () => (await rail.query(sql`select from program.click where attributed_at is null limit 1`)).length === 0,
    'the clicks to be attributed',
  );
  const kept = [await ages(bought, '500 days'), await ages(elsewhere, '500 days'), await ages(charged, '500 days')];
  kept.push(await ages(young, '399 days'));
  const gone = [await ages(idle[0] as Json, '401 days'), await ages(idle[1] as Json, '900 days')];
  // More than a step.
  await rail.query(sql`
    insert into program.click (organization_id, id, program_id, partner_id, param, value, visitor_token, attributed_at, created_at)
    select ${organization_id}, ${idOf('clk', '600 days')}, ${shop.program_id}, ${other.id}, 'ref', 'x', 'many-' || n, now(), now() - interval '600 days'
    from generate_series(1, 2100) as n`);

  await rail.tick('program/purge_clicks', '2999-01-01T00:00:00Z');
  const left = () =>
    rail.query<{ id: string }>(sql`select id from program.click where program_id = ${shop.program_id}`);
  await eventually(async () => (await left()).length <= kept.length, 'the old clicks to go');
  t.same((await left()).map(({ id }) => id).sort(), kept.sort());
  t.equal((await merchant.get(`/v1/clicks?program_id=${shop.program_id}`)).total_count, kept.length);

  const renewal = await shop.sale({ click_id: kept.find((id) => id.endsWith(bought.id.slice(-16))) });
  t.match(renewal, { customer_id: customer.id, partner_id: partner.id }, 'a later sale by the click is credited');
  const forgotten = await shop.sale({ click_id: gone[0] });
  t.match(forgotten, { partner_id: null, warnings: [{ code: 'no_partner_attributed' }] });
  const { body } = await merchant.request('POST', '/v1/sales', {
    ...{ program_id: shop.program_id, amount_minor: 100, currency: 'USD', external_charge_id: fresh('charge') },
    click_id: 'clk_00000000000000000000000000',
  });
  t.equal(body.error?.code, 'resource_not_found', 'one that never was is refused');
});

t.test('imports, results of searches, visits and pages go; searches, what they cost and prospects stay', async (t) => {
  const v1 = '/recruitment/v1';
  const { id: brand_id } = await merchant.post(`${v1}/brands`, {
    name: 'Acme',
    website_url: 'https://acme.example.com',
  });
  const { id: prospect_id } = await merchant.post(`${v1}/prospects`, {
    brand_id,
    channel: 'website',
    url: 'https://blog.example.net/',
  });
  const write = async (age: string, refused: number) => {
    const [found] = await rail.query<{ import_id: string; run_id: string }>(sql`
      with import as (
        insert into recruitment.import (
          organization_id, id, brand_id, state, format, mapping, dry_run, update_existing, total, rows_read, refused, finished_at, created_at
        )
        values (
          ${organization_id}, ${idOf('fim', age)}, ${brand_id}, 'done', 'ndjson', '{}', false, false, ${refused}, ${refused}, ${refused},
          now() - ${age}::interval, now() - ${age}::interval
        )
        returning id
      ),
      run as (
        insert into recruitment.run (organization_id, id, brand_id, kind, search_type, state, finished_at, created_at)
        values (${organization_id}, ${idOf('fsc', age)}, ${brand_id}, 'search', 'keyword', 'done', now() - ${age}::interval, now() - ${age}::interval)
        returning id
      )
      select import.id as import_id, run.id as run_id from import, run`);
    const { import_id, run_id } = found as { import_id: string; run_id: string };
    await rail.query(sql`
      insert into recruitment.import_error (organization_id, id, import_id, line, reason)
      select ${organization_id}, core.new_id('fie'), ${import_id}, n, 'It is refused.' from generate_series(1, ${refused}) as n`);
    await rail.query(sql`
      insert into recruitment.run_result (organization_id, id, run_id, provider, url, title, description, prospect_id, outcome, created_at)
      select ${organization_id}, ${idOf('fsr', age)}, ${run_id}, 'list', 'https://blog.example.net/' || n, '', '', ${prospect_id}, 'known', now() - ${age}::interval
      from generate_series(1, 3) as n`);
    await rail.query(sql`
      insert into recruitment.visit (organization_id, run_id, number, prospect_id, url, outcome, done_at)
      values (${organization_id}, ${run_id}, 1, ${prospect_id}, 'https://blog.example.net/', 'page', now())`);
    await rail.query(sql`
      with paid as (
        update recruitment.run set spent_micros = 500 where id = ${run_id} returning 1
      ),
      month as (
        insert into recruitment.spending (organization_id, month, spent_micros)
        select ${organization_id}, date_trunc('month', (now() - ${age}::interval) at time zone 'UTC')::date, 500 from paid
      )
      insert into recruitment.run_page (organization_id, run_id, number, step, provider, state, price_micros, reserved_at)
      select ${organization_id}, ${run_id}, n, 0, 'list', 'stored', (n - 1) * 500, now() - ${age}::interval
      from generate_series(1, 2) as n`);
    await rail.query(sql`
      insert into recruitment.page (organization_id, url, host, domain, title, description, text, fetched_at)
      select ${organization_id}, 'https://' || replace(${age}, ' ', '-') || '.example.net/' || n, 'h', 'd', '', '', 'A text.', now() - ${age}::interval
      from generate_series(1, ${refused}) as n`);
    return { import_id, run_id };
  };
  const [old, young] = [await write('366 days', 450), await write('80 days', 2)];
  await rail.tick('recruitment/purge_expired', '2999-01-01T00:00:00Z');
  const counts = () =>
    rail.query(sql`
      select
        (select array_agg(id) from recruitment.import where organization_id = ${organization_id}) as imports,
        (select count(*)::integer from recruitment.import_error where organization_id = ${organization_id}) as refused,
        (select array_agg(distinct run_id) from recruitment.run_result where organization_id = ${organization_id}) as results,
        (select array_agg(distinct run_id) from recruitment.visit where organization_id = ${organization_id} and outcome = 'page') as visits,
        (select array_agg(array[run_id, price_micros::text] order by run_id, number) from recruitment.run_page where organization_id = ${organization_id}) as asked,
        (select array_agg(distinct host_of.age order by host_of.age) from (
          select split_part(split_part(url, '//', 2), '.', 1) as age from recruitment.page where organization_id = ${organization_id}
        ) as host_of) as pages`);
  const asked = [
    [old.run_id, '500'],
    [young.run_id, '0'],
    [young.run_id, '500'],
  ];
  const found = { imports: [young.import_id], refused: 2, results: [young.run_id], visits: [young.run_id] };
  const expected = [{ ...found, asked, pages: ['80-days'] }];
  const oldest = async () =>
    (await readRetention(rail.store.database, kept, default_retention)).find(({ kind }) => kind === 'pages')?.oldest_at;

  await eventually(async () => JSON.stringify(await counts()) === JSON.stringify(expected), 'the old ones to go');
  t.equal(Math.round((Date.now() - Date.parse((await oldest()) as string)) / 86_400_000), 80);
  t.match(await merchant.get(`${v1}/searches/${old.run_id}`), { state: 'done' });
  t.match(await merchant.get(`${v1}/prospects/${prospect_id}`), { id: prospect_id });
});
