import { raw, type Sql } from 'sql-template-tag';
import t, { type Test } from 'tap';
import { type Tx, transaction } from '../../../src/core/postgres/transaction.ts';
import type { Operation } from '../../../src/core/resource/operation.ts';
import { personalDataOperations } from '../../../src/program/personal_data.ts';
import { assessCustomer } from '../../../src/program/risk/risk.ts';
import { eventually, type Json, sql, startRail, startReceiver } from '../../harness.ts';
import { openShop, type Shop } from '../../shop.ts';

const rail = await startRail();

/** The fields that identify the customer of a test, everywhere where they can be sent. */
const person = {
  email: 'Grace.Hopper@mailinator.com',
  name: 'Grace Brewster',
  identifier: 'user-of-grace',
  external_customer_id: 'cus-of-grace',
  external_subscription_id: 'sub-of-grace',
  metadata: 'navy-of-grace',
  visitor_token: 'token-of-grace',
  user_agent: 'Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0 Graceful',
  search: 'query-of-grace',
  referer: 'mailbox-of-grace',
  note: 'note-of-grace',
};

/** A customer whose person stands wherever a request, a job or a receiver can put it. */
async function openShopOfGrace(settings: Json = {}) {
  const receiver = await startReceiver();
  const shop = await openShop(rail, settings);
  const { merchant } = shop;
  await shop.endpoint(receiver.url);
  await shop.rule();
  const partner = await shop.partner();
  const click = await shop.click(partner, {
    landing_url: `https://acme.example.com/pricing?email=${person.search}&utm_source=${person.search}#${person.search}`,
    visitor_token: person.visitor_token,
    user_agent: person.user_agent,
    referrer: `https://mail.example.com/${person.referer}`,
    ip: '203.0.113.7',
  });
  const { email, name, identifier, external_customer_id } = person;
  const metadata = { rank: person.metadata };
  const customer = await shop.customer({
    ...{ click_id: click.id, email, name, identifier, external_customer_id, metadata },
  });
  const { external_subscription_id } = person;
  const sale = await shop.sale({ customer_id: customer.id, external_subscription_id, metadata });
  await eventually(async () => (await shop.list('risk_flags')).length === 1, 'a flag: the mailbox is disposable');
  const [flag] = (await shop.list('risk_flags')) as [Json];
  await merchant.post(`/v1/risk_flags/${flag.id}/resolve`, { resolution: 'dismissed', note: person.note });
  const resolved = () => receiver.received.some(({ body }) => body.type === 'risk_flag.resolved');
  await eventually(resolved, 'the last event');
  const recorded = async () =>
    (
      await rail.query(sql`
      update webhooks.attempt set response_body = ${`Saved ${email}`}
      where organization_id = ${merchant.organization_id} and delivery_id in (
        select d.id from webhooks.delivery d where d.event_type ~ '^(referral|sale|customer|risk_flag)[.]'
      )
      returning 1`)
    ).length > 4;
  await eventually(recorded, 'the attempts to be recorded');
  return { shop, merchant, partner, click, customer, sale, flag };
}

/** The rows of an organization in any table that hold one of these texts. */
async function rowsWith({ merchant }: Shop, texts: string[]): Promise<string[]> {
  const tables = await rail.query<{ name: string }>(sql`
    select format('%I.%I', c.relnamespace::regnamespace, c.relname) as name
    from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attname = 'organization_id'
    where c.relkind in ('r', 'p') and not c.relispartition
      and c.relnamespace in ('core'::regnamespace, 'webhooks'::regnamespace, 'program'::regnamespace)`);
  const found: string[] = [];
  for (const { name } of tables) {
    const rows = await rail.query<{ text: string }>(
      sql`select t::text as text from ${raw(name)} t where t.organization_id = ${merchant.organization_id}`,
    );
    for (const { text } of rows) {
      const held = texts.filter((one) => text.toLowerCase().includes(one.toLowerCase()));
      if (held.length > 0) found.push(`${name} holds ${held.join(', ')}`);
    }
  }
  return found;
}

t.test('what identifies an erased customer is nowhere any more', async (t) => {
  const { shop, merchant, customer } = await openShopOfGrace();
  const texts = Object.values(person);
  const before = await rowsWith(shop, texts);
  for (const table of ['customer', 'sale', 'click', 'referral', 'risk_flag'])
    t.ok(
      before.some((row) => row.startsWith(`program.${table} `)),
      `it stood in program.${table}`,
    );
  for (const table of ['event', 'attempt'])
    t.ok(
      before.some((row) => row.startsWith(`webhooks.${table} `)),
      `it stood in webhooks.${table}`,
    );
  t.same(await merchant.delete(`/v1/customers/${customer.id}`), {
    id: customer.id,
    object: 'customer',
    deleted: true,
  });
  t.same(await rowsWith(shop, texts), []);
});

t.test('a job erases a customer from the events that the request does not look through', async (t) => {
  const { shop, merchant, customer } = await openShopOfGrace();
  const of_shop = sql`e.organization_id = ${merchant.organization_id} and e.program_id = ${shop.program_id}`;
  const copies = (types: Sql, body: Sql, count: number) =>
    rail.query(sql`
      insert into webhooks.event (organization_id, id, position, program_id, type, livemode, body, request_id, created_at)
      select e.organization_id, 'evt_' || core.id_time_part(now()) || 'e00g' || e.type_number || lpad(n::text, 11, '0'),
        nextval('webhooks.event_position'), e.program_id, e.type, e.livemode, ${body}, e.request_id, now()
      from (
        select e.*, ${count > 1 ? 0 : 1} as type_number from webhooks.event e where ${of_shop} and ${types} order by e.position limit 1
      ) as e, generate_series(1, ${count}) as n`);
  await copies(sql`e.type = 'affiliate.created'`, sql`'{"data":{}}'`, 10_000);
  await copies(sql`position(${person.email} in e.body) > 0`, sql`e.body`, 1);
  await merchant.delete(`/v1/customers/${customer.id}`);
  const left = () =>
    rail.query(sql`select from webhooks.event e where ${of_shop} and position(${person.email} in e.body) > 0`);
  await eventually(async () => (await left()).length === 0, 'the job to end', 60_000);
  t.same(await rowsWith(shop, Object.values(person)), []);
});

t.test('the money of an erased customer stays, and can be refunded and corrected', async (t) => {
  const { merchant, customer, sale, partner, shop } = await openShopOfGrace();
  const second = await shop.sale({ customer_id: customer.id });
  const commissions = await shop.list('commissions');
  await merchant.delete(`/v1/customers/${customer.id}`);

  t.match(await merchant.get(`/v1/sales/${sale.id}?expand=customer`), {
    amount_minor: sale.amount_minor,
    partner_id: partner.id,
    customer_id: customer.id,
    customer: { id: customer.id, object: 'customer', deleted: true },
    metadata: null,
  });
  t.same(await shop.list('commissions'), commissions);
  t.equal((await shop.list('sales', `customer_id=${customer.id}`)).length, 2);

  await shop.refund(sale);
  t.same(await shop.commissionsOf(sale), []);
  await merchant.patch(`/v1/sales/${second.id}`, { amount_minor: 20_000 });
  t.match(await shop.commissionsOf(second), [{ amount_minor: 4_000 }]);
  const other = await shop.partner();
  await merchant.patch(`/v1/sales/${second.id}`, { partner_id: other.id });
  t.match(await shop.commissionsOf(second), [{ amount_minor: 4_000, partner_id: other.id }]);
});

t.test('an erased customer is gone, and the external id is free again', async (t) => {
  const { merchant, customer, partner, shop } = await openShopOfGrace();
  const { program_id } = shop;
  await merchant.delete(`/v1/customers/${customer.id}`);
  const missing = { status: 404, body: { error: { code: 'resource_not_found' } } };
  const path = `/v1/customers/${customer.id}`;
  t.match(await merchant.request('GET', path), missing);
  t.match(await merchant.request('PATCH', path, { name: 'Grace' }), missing);
  t.match(await merchant.request('DELETE', path), missing);
  t.match(await merchant.request('GET', `${path}/export`), missing);
  const charge = { program_id, amount_minor: 100, currency: 'USD', external_charge_id: 'ch_late' };
  t.match(await merchant.request('POST', '/v1/sales', { ...charge, customer_id: customer.id }), {
    ...missing,
    body: { error: { param: 'customer_id' } },
  });
  t.match(await merchant.get(`/v1/customers?program_id=${program_id}`), { data: [], total_count: 0 });
  const { external_customer_id } = person;
  const again = await shop.customer({ partner_id: partner.id, external_customer_id });
  t.not(again.id, customer.id);
  t.match(await merchant.get(`/v1/customers?program_id=${program_id}`), { data: [again], total_count: 1 });
});

t.test('a click of the visitor whose job has not run yet is erased with the others', async (t) => {
  const { shop, partner, customer } = await openShopOfGrace();
  const late = await shop.click(partner, {
    landing_url: `https://acme.example.com/?e=${person.search}`,
    visitor_token: person.visitor_token,
  });
  const of_late = sql`organization_id = ${shop.merchant.organization_id} and id = ${late.id}`;
  const attributed = async () =>
    (await rail.query(sql`select from program.click where ${of_late} and attributed_at is not null`)).length === 1;
  await eventually(attributed, 'the job of the click');
  await rail.query(sql`update program.click set attributed_at = null, referral_id = null where ${of_late}`);
  await shop.merchant.delete(`/v1/customers/${customer.id}`);
  t.match(await shop.merchant.get(`/v1/clicks/${late.id}`), {
    landing_url: 'https://acme.example.com/',
    referral_id: customer.referral_id,
  });
});

t.test('clicks of the visitor that earned no credit are erased and exported too, and still counted', async (t) => {
  const { shop, merchant, customer, partner } = await openShopOfGrace({ blocked_countries: ['KP'] });
  const other = await shop.partner();
  const { visitor_token, user_agent, search } = person;
  const browser = {
    visitor_token,
    user_agent,
    ip: '203.0.113.7',
    referrer: `https://mail.example.com/${person.referer}`,
  };
  const clicks = [
    await shop.click(other, { ...browser, landing_url: `https://acme.example.com/?gclid=${search}` }),
    await shop.click(partner, { ...browser, country: 'KP', landing_url: `https://acme.example.com/?e=${search}` }),
  ];
  const flags = async () => (await shop.list('risk_flags', 'status=open')).map(({ kind }) => kind).sort();
  const ids = clicks.map(({ id }) => id);
  await eventually(
    async () =>
      (await rail.query(sql`select from program.click where id = any(${ids}) and attributed_at is not null`)).length ===
        2 && (await flags()).join() === 'blocked_country,paid_ad_traffic',
    'the jobs of the clicks',
  );
  for (const { id } of clicks) t.match(await merchant.get(`/v1/clicks/${id}`), { referral_id: null });
  const { clicks: exported, risk_flags } = await merchant.get(`/v1/customers/${customer.id}/export`);
  t.equal(exported.length, 3);
  t.equal(risk_flags.length, 3);
  const counted = async () => (await merchant.get(`/v1/partners/${other.id}?include[]=stats`)).stats.clicks;
  t.equal(await counted(), 1);
  await merchant.delete(`/v1/customers/${customer.id}`);
  t.same(await rowsWith(shop, Object.values(person)), []);
  t.equal(await counted(), 1);
  t.match(await merchant.get(`/v1/clicks/${ids[1]}`), { country: 'KP', landing_url: 'https://acme.example.com/' });
});

t.test('a fraud check that comes after the erasure raises no flag', async (t) => {
  const { merchant, customer, shop } = await openShopOfGrace();
  await rail.query(sql`delete from program.risk_flag where customer_id = ${customer.id}`);
  await merchant.delete(`/v1/customers/${customer.id}`);
  await transaction(rail.store, { organization_id: merchant.organization_id, request_id: null }, (tx) =>
    assessCustomer(tx, customer.id),
  );
  t.same(await shop.list('risk_flags'), []);
});

t.test('a customer who is a partner too stays one, and nothing says so any more', async (t) => {
  const { merchant, customer, shop } = await openShopOfGrace({ auto_enrol_customers: true });
  const [enrolled] = (await shop.list('partners', 'email=grace.hopper@mailinator.com')) as [Json];
  await merchant.delete(`/v1/customers/${customer.id}`);
  t.match(await merchant.get(`/v1/partners/${enrolled.id}`), { email: enrolled.email, handle: enrolled.handle });
  const [event] = (await shop.list('events', 'type=customer.enrolled_as_partner')) as [Json];
  t.match(event.data, { customer_id: customer.id, email: 'erased', handle: 'erased' });
});

t.test('the export of a customer holds everything that is stored about the person', async (t) => {
  const { merchant, customer, click, sale, flag, shop } = await openShopOfGrace();
  await shop.refund(sale, { amount_minor: 1_000, external_refund_id: 're-of-grace' });
  await shop.referred(await shop.partner(), { email: 'other@customer.example.com' });
  const answer = await merchant.request('GET', `/v1/customers/${customer.id}/export`);
  t.equal(answer.status, 200);
  const told = answer.body;
  t.match(told, {
    object: 'customer_export',
    customer: { id: customer.id, email: person.email, metadata: { rank: person.metadata } },
    referrals: [{ id: customer.referral_id, visitor_token: person.visitor_token }],
    clicks: [{ id: click.id, user_agent: person.user_agent, visitor_token: person.visitor_token }],
    sales: [{ id: sale.id, metadata: { rank: person.metadata } }],
    refunds: [{ sale_id: sale.id, amount_minor: 1_000, external_refund_id: 're-of-grace' }],
    commissions: [{ sale_id: sale.id, customer_id: customer.id }],
    risk_flags: [{ id: flag.id, note: person.note }],
  });
  const lists = ['clicks', 'sales', 'refunds', 'commissions', 'risk_flags'];
  for (const name of lists) t.equal(told[name].length, 1, name);
  const types = told.events.map(({ type }: Json) => type);
  for (const type of ['referral.created', 'referral.lead', 'sale.created', 'risk_flag.created', 'sale.refunded'])
    t.ok(types.includes(type), type);
  t.equal(told.events.length, new Set(told.events.map(({ id }: Json) => id)).size);
  t.notOk(answer.text.includes('other@customer.example.com'));
});

t.test('erasing and exporting read the rows of the customer, not those of the organization', async (t) => {
  const { merchant, customer, click, sale, shop } = await openShopOfGrace();
  const deleted = await shop.sale({ customer_id: customer.id });
  await merchant.delete(`/v1/sales/${deleted.id}`);
  await copyRows('program.sale', sale.id, { customer_id: null, is_first_sale: false });
  await copyRows('program.referral', customer.referral_id, { status: 'visit' });
  await copyRows('program.click', click.id, { referral_id: null });
  await addOldEvents(shop, t);
  for (const name of ['customers.export', 'customers.delete']) {
    const operation = personalDataOperations.find((one) => one.name === name) as Operation;
    await transaction(rail.store, { organization_id: merchant.organization_id, request_id: null }, async (tx) => {
      const before = await rowsRead(tx);
      const document = (await operation.run({ tx, params: { id: customer.id } } as never)) as Json;
      if (document.sales)
        t.match(document.sales, [{ id: sale.id }, { id: deleted.id }], 'deleted sales are part of it');
      for (const [table, rows] of await rowsRead(tx)) {
        const more = rows - (before.get(table) ?? 0);
        t.ok(more < 100, `${name} reads ${more} rows of program.${table}`);
      }
    });
  }
});

/** Counts the rows that the connection has read from tables: also before the transaction, where that is not yet passed on to the server's statistics. */
async function rowsRead(tx: Tx): Promise<Map<string, number>> {
  const read = await tx.all<{ relname: string; rows: number }>(sql`
    select relname, seq_tup_read + idx_tup_fetch as rows from pg_stat_xact_user_tables
    where relname ~ '^(sale|referral|click.*|event_default)$'`);
  return new Map(read.map(({ relname, rows }) => [relname, rows]));
}

/** Thousands of events of the shop that are older than any id. */
async function addOldEvents({ program_id }: Shop, t: Test): Promise<void> {
  await rail.query(sql`
    insert into webhooks.event
    select (jsonb_populate_record(e, jsonb_build_object('id', 'evt_01' || nth))).*
    from (select t from webhooks.event t where t.program_id = ${program_id} and t.type = 'sale.created' limit 1) as one (e)
    cross join generate_series(100, 4000) as nth`);
  t.teardown(() => rail.query(sql`delete from webhooks.event where program_id = ${program_id} and length(id) < 12`));
}

/** Thousands of rows like this one, of other customers and browsers; half of them are deleted. */
async function copyRows(table: string, id: string, changes: Json = {}): Promise<void> {
  await rail.query(sql`
    insert into ${raw(table)}
    select copy.*
    from ${raw(table)} t
    cross join generate_series(1, 4000) as nth
    cross join lateral jsonb_populate_record(t, ${JSON.stringify(changes)}::jsonb || jsonb_build_object(
      'id', t.id || nth, 'external_charge_id', 'ch_' || nth, 'visitor_token', 'copy-' || nth,
      'deleted_at', case when nth % 2 = 0 then now() end
    )) as copy
    where t.id = ${id}`);
  await rail.query(sql`vacuum (analyze) ${raw(table)}`);
}

t.test('erasing needs customers:write, exporting customers:read', async (t) => {
  const { merchant, customer } = await openShopOfGrace();
  const reader = await rail.key(merchant.organization_id, { scopes: ['customers:read'] });
  t.match(await reader.request('DELETE', `/v1/customers/${customer.id}`), {
    status: 403,
    body: { error: { param: 'customers:write' } },
  });
  t.equal((await reader.request('GET', `/v1/customers/${customer.id}/export`)).status, 200);
});
