/** POST /v1/sales/bulk: each sale has the outcome that it would have had by itself, in its place. */
import fc from 'fast-check';
import t from 'tap';
import { type Json, sql, startRail } from '../../harness.ts';
import { fresh, openShop } from '../../shop.ts';
import { idle } from '../processors/chaos.ts';

const rail = await startRail();

/** A shop with partners, customers and rules whose every part decides something about a sale. */
async function furnish({ has_tiers }: { has_tiers: boolean }) {
  const shop = await openShop(rail, { block_self_referrals: true });
  const own = { program_id: shop.program_id };
  const [ada, bob, idle] = [await shop.partner(), await shop.partner(), await shop.partner()];
  const tag = await shop.merchant.post('/v1/tags', { ...own, name: 'VIP', color: '#112233' });
  await shop.merchant.patch(`/v1/partners/${bob.id}`, { tag_ids: [tag.id] });
  await shop.rule();
  await shop.rule({ name: 'VIP', tag_ids: [tag.id], rate_value: 3_000, priority: 5 });
  await shop.rule({
    name: 'First two',
    rate_type: 'fixed',
    rate_value: 700,
    max_payments: 2,
    product_ids: ['tea'],
    priority: 9,
  });
  const tiers = [{ from: 6, rate_value: 2_500 }];
  if (has_tiers)
    await shop.rule({ name: 'Tiers', tier_metric: 'sales_count', tiers, product_ids: ['coffee'], priority: 7 });
  const link = await shop.link(ada, { rate_override: { rate_type: 'percent', rate_value: 5_000 } });
  const coupon = await shop.coupon({ partner_id: bob.id });
  const customers: Json = {};
  const known = async (name: string, fields: Json) => {
    customers[name] = await shop.customer({ external_customer_id: name, ...fields });
  };
  const click = await shop.click(ada, { value: link.value });
  await known('by_link', { click_id: click.id });
  await known('of_bob', { partner_id: bob.id });
  await known('of_ada', { partner_id: ada.id });
  await known('is_bob', { partner_id: bob.id, email: bob.email });
  await known('new', { partner_id: ada.id });
  await known('of_idle', { partner_id: idle.id });
  for (const nth of [1, 2, 3]) await known(`lead_${nth}`, { partner_id: ada.id });
  for (const name of ['refunded', 'undone', 'later', 'between']) await known(name, { partner_id: ada.id });
  const paid = (name: string, occurred_at = '2026-01-02T00:00:00Z', product_id = 'tea') =>
    shop.sale({ external_customer_id: name, external_charge_id: `paid ${name}`, occurred_at, product_id });
  for (const name of ['by_link', 'of_bob', 'of_ada', 'of_idle']) await paid(name);
  await shop.refund(await paid('refunded'), { external_refund_id: fresh('refund') });
  await shop.merchant.delete(`/v1/sales/${(await paid('undone', '2026-01-21T00:00:00Z')).id}`);
  await paid('later', '2026-01-31T00:00:00Z', 'coffee');
  await paid('between', '2026-01-20T02:30:00Z', 'coffee');
  await shop.sale({ external_charge_id: 'charged', external_customer_id: 'of_ada' });
  await shop.merchant.patch(`/v1/partners/${idle.id}`, { status: 'suspended' });
  const visits: Json[] = [];
  const browser = {
    ip: '203.0.113.9',
    user_agent: 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
  };
  for (const [nth, by] of [bob, ada, ada, bob, ada, idle, bob, ada].entries())
    visits.push(await shop.click(by, nth === 4 || nth === 7 ? browser : {}));
  // One has led to somebody, and one was the partner's own.
  await shop.customer({ click_id: visits[6]?.id, email: 'kim@customer.example.com' });
  await shop.merchant.request('POST', '/v1/customers', {
    ...{ program_id: shop.program_id, click_id: visits[7]?.id, email: ada.email },
  });
  return { shop, ada, bob, idle, coupon, customers, visits };
}
type Furnished = Awaited<ReturnType<typeof furnish>>;

/** A sale in words that hold in both shops. */
const someSale = fc.record({
  customer: fc.constantFrom('by_link', 'of_bob', 'of_ada', 'is_bob', 'new', 'of_idle', 'nobody', 'another'),
  named_by: fc.constantFrom('external', 'external', 'id', 'both', 'click', 'none'),
  partner: fc.constantFrom(undefined, undefined, 'ada', 'bob', 'idle', 'part_nothing'),
  coupon: fc.constantFrom(undefined, undefined, undefined, true),
  product: fc.constantFrom(undefined, 'coffee', 'tea'),
  amount: fc.constantFrom(5_000, 12_345, 1, 0, -1, '12'),
  tax: fc.constantFrom(undefined, undefined, 100, 50_000),
  currency: fc.constantFrom('USD', 'USD', 'USD', 'EUR', 'usd'),
  charge: fc.constantFrom('a', 'b', 'c', undefined, undefined, undefined, 'charged'),
  occurred_at: fc.constantFrom(undefined, undefined, '2025-12-31T00:00:00Z', '2026-02-01T00:00:00Z'),
  details: fc.constantFrom(
    undefined,
    undefined,
    { name: 'Kim' },
    { email: 'kim@customer.example.com' },
    { email: 'no address' },
  ),
  metadata: fc.constantFrom(undefined, undefined, { plan: 'pro' }, 'no object'),
  click: fc.constantFrom(undefined, undefined, undefined, 1, 6),
});
type SomeSale = typeof someSale extends fc.Arbitrary<infer T> ? T : never;

const rarely = <T, U>(seldom: T, mostly: U): fc.Arbitrary<T | U> =>
  fc.oneof({ weight: 1, arbitrary: fc.constant(seldom) }, { weight: 30, arbitrary: fc.constant(mostly) });

/** One of those that come in most lists: of customers who are new or have paid before, in the order of their time. */
const usualSale: fc.Arbitrary<SomeSale> = fc.record({
  customer: fc.constantFrom(
    ...['by_link', 'of_bob', 'of_ada', 'new', 'lead_1', 'lead_2', 'lead_3', 'refunded', 'undone', 'later'],
    ...Array.from({ length: 20 }, (_, nth) => `new_${nth}`),
  ),
  named_by: fc.constantFrom('external', 'external', 'external', 'external', 'none'),
  partner: fc.constantFrom(undefined, undefined, 'ada', 'bob'),
  coupon: fc.constantFrom(undefined, undefined, undefined, true),
  product: fc.constantFrom(undefined, 'coffee', 'tea'),
  amount: rarely(-1, 5_000),
  tax: fc.constant(undefined),
  currency: rarely('EUR', 'USD'),
  charge: rarely('charged', undefined),
  occurred_at: fc.constantFrom(undefined, 'in order', 'in order', 'in order'),
  details: rarely({ name: 'Kim' }, undefined),
  metadata: fc.constant(undefined),
  click: fc.constantFrom(undefined, undefined, undefined, 0, 1, 2, 3, 4, 5, 6, 7),
}) as fc.Arbitrary<SomeSale>;

function bodyOf({ shop, customers, coupon, visits, ...partners }: Furnished, one: SomeSale, nth: number): Json {
  const id = customers[one.customer]?.id ?? 'cus_nothing';
  const names = {
    external: { external_customer_id: one.customer },
    id: { customer_id: id },
    both: { customer_id: id, external_customer_id: 'of_ada' },
    click: { click_id: visits[0]?.id },
    none: {},
  }[one.named_by];
  return JSON.parse(
    JSON.stringify({
      program_id: shop.program_id,
      ...names,
      ...(one.click === undefined ? {} : { click_id: visits[one.click]?.id }),
      partner_id: one.partner && ((partners as Json)[one.partner]?.id ?? one.partner),
      coupon_external_id: one.coupon && coupon.external_id,
      product_id: one.product,
      amount_minor: one.amount,
      tax_minor: one.tax,
      currency: one.currency,
      external_charge_id: one.charge ?? `charge ${nth}`,
      occurred_at:
        (one.occurred_at as string) === 'in order'
          ? new Date(Date.UTC(2026, 0, 20, nth)).toISOString()
          : one.occurred_at,
      customer: one.details,
      metadata: one.metadata,
    }),
  );
}

/** Without what differs between two shops: ids, by the order in which they come, and times. */
function comparable(outcome: unknown): Json {
  const ids: string[] = [];
  const text = JSON.stringify(outcome)
    .replace(/[a-z]{3,4}_[0-9a-hjkmnp-tv-z]{26}/g, (id) => {
      if (!ids.includes(id)) ids.push(id);
      return `id ${ids.indexOf(id)}`;
    })
    .replace(/"(created_at|updated_at)":"[^"]*"/g, '"$1":""')
    .replace(/"(occurred_at|mature_at)":"2026-(?!0[123])[^"]*"/g, '"$1":"now"')
    .replace(/(partner|promo|customer)-\d+/g, '$1');
  return JSON.parse(text);
}

const alone = async ({ shop: { merchant } }: Furnished, body: Json): Promise<Json> => {
  const answer = await merchant.request('POST', '/v1/sales', body);
  return answer.status === 201 ? { status: 201, sale: answer.body } : { status: answer.status, ...answer.body };
};

/** The amounts that are told, in no order: the sales that are recorded in sets are told first. */
const told = async ({ shop }: Furnished): Promise<string[]> =>
  (await shop.events())
    .filter(({ type }) => /^(sale|commission)\.|^referral\.(lead|converted)/.test(type))
    .map(({ type, data }) => `${type} ${data.amount_minor ?? ''}`)
    .toSorted();

/** What is recorded in the end, without ids and times. */
const stateOf = ({ shop: { program_id } }: Furnished): Promise<Json[]> =>
  rail.query<Json>(sql`
    with partner as (select p.id, row_number() over (order by p.id) as nth from program.partner p where p.program_id = ${program_id})
    select s.external_charge_id, s.is_first_sale, s.coupon_id is null as no_coupon, s.referral_id is null as no_referral, of_sale.nth as partner,
      s.decision ->> 'by' as by, s.decision ->> 'outcome' as outcome, s.decision ->> 'unknown_customer' as unknown_customer, case when s.external_charge_id like 'charge%' then s.decision -> 'facts' -> 'month' end as month,
      (select array_agg(v.value order by v.value) from jsonb_each_text(s.decision -> 'facts' -> 'payments') v) as payments,
      (select array_agg(k.key order by k.key) from jsonb_object_keys(s.decision -> 'candidates') k (key)) as candidates,
      (select sum(k.amount_minor) from program.commission k where k.sale_id = s.id and k.status <> 'voided' and k.deleted_at is null) as earned,
      c.external_customer_id, c.status, c.tracked_by, of_customer.nth as partner_of_customer, c.coupon_id is null as bound_by_no_coupon,
      c.known_from, c.converted_at is null as unpaid, c.origin_tracked_by, c.name, r.status as referral
    from program.sale s
    left join program.customer c on c.id = s.customer_id
    left join program.referral r on r.id = c.referral_id
    left join partner of_sale on of_sale.id = s.partner_id
    left join partner of_customer on of_customer.id = c.partner_id
    where s.program_id = ${program_id} and s.deleted_at is null
    order by s.external_charge_id`);

t.test('has the outcomes of the same sales one by one, whatever they are', async (t) => {
  const inOrder = usualSale.map((one) => ({ ...one, occurred_at: 'in order' }) as unknown as SomeSale);
  const usual = fc.sample(inOrder, { numRuns: 1 })[0] as SomeSale;
  const each = (customer: string, product: string) =>
    [0, 1, 2].map(
      () =>
        ({
          ...usual,
          customer,
          product,
          named_by: 'external',
          partner: undefined,
          coupon: undefined,
          amount: 5_000,
        }) as SomeSale,
    );
  const few = [
    ...each('lead_2', 'coffee'),
    ...each('lead_2', 'coffee'),
    ...each('lead_1', 'tea'),
    ...each('undone', 'tea'),
    ...each('refunded', 'tea'),
  ];
  const by_click = [0, 1, 2, 3, 4, 5].flatMap((click) =>
    each(`new_${click}`, 'tea').map((one) => ({ ...one, click }) as unknown as SomeSale),
  );
  const by_coupon = by_click.map((one) => ({ ...one, coupon: true, occurred_at: undefined }) as unknown as SomeSale);
  const samples = [
    ...[few, few.slice(0, 9), by_click, by_coupon],
    ...[someSale, inOrder, usualSale, inOrder].flatMap((sale) =>
      fc.sample(fc.array(sale, { minLength: 40, maxLength: 60 }), { numRuns: 2 }),
    ),
  ];
  for (const [nth, sample] of samples.entries()) {
    const has_tiers = nth % 2 === 1;
    const [one_by_one, in_bulk] = [await furnish({ has_tiers }), await furnish({ has_tiers })];
    await Promise.all([one_by_one.shop.events(), in_bulk.shop.events()]);
    const expected: Json[] = [];
    for (const [nth, one] of sample.entries()) expected.push(await alone(one_by_one, bodyOf(one_by_one, one, nth)));
    const { data } = await in_bulk.shop.merchant.post(
      '/v1/sales/bulk',
      sample.map((one, nth) => bodyOf(in_bulk, one, nth)),
    );
    t.equal(data.length, sample.length);
    for (const [nth, outcome] of data.entries()) {
      t.same(comparable(outcome), comparable(expected[nth]), JSON.stringify(sample[nth]));
    }
    await idle(rail);
    // A sale that comes before others of the month has their rates corrected: once for a list, and maybe after each of its sales.
    if (!has_tiers) t.same(await told(in_bulk), await told(one_by_one), 'and the same events');
    // Sales of a list that have no time are of the same one, and those that come one by one are not.
    if (has_tiers && sample.some(({ occurred_at }) => occurred_at === undefined)) continue;
    t.same(await stateOf(in_bulk), await stateOf(one_by_one), 'and leads to the same');
  }
});

/** A shop with a customer who has paid before, and a sale of theirs. */
async function open() {
  const shop = await openShop(rail);
  await shop.rule();
  const external_customer_id = fresh('known');
  await shop.customer({ partner_id: (await shop.partner()).id, external_customer_id });
  const { program_id } = shop;
  const sale = (fields: Json = {}): Json => ({
    ...{ program_id, external_customer_id, amount_minor: 5_000, currency: 'USD', external_charge_id: fresh('charge') },
    ...fields,
  });
  await shop.merchant.post('/v1/sales', sale());
  return { shop, sale };
}

const statusesOf = ({ data }: Json): number[] => data.map(({ status }: Json) => status);

t.test('takes 1,000 in one request, once', async (t) => {
  const { shop, sale } = await open();
  const list = Array.from({ length: 1_000 }, () => sale());
  const key = { 'Idempotency-Key': fresh('key') };
  const answer = await shop.merchant.post('/v1/sales/bulk', list, key);
  t.ok(statusesOf(answer).every((status) => status === 201));
  t.same(
    answer.data.map(({ sale: { external_charge_id } }: Json) => external_charge_id),
    list.map(({ external_charge_id }) => external_charge_id),
  );
  t.ok(answer.data.every(({ sale: { commissions } }: Json) => commissions[0].amount_minor === 1_000));
  t.same(await shop.merchant.post('/v1/sales/bulk', list, key), answer, 'a retry has the stored answer');
  const again = await shop.merchant.post('/v1/sales/bulk', list.slice(0, 2));
  t.same(again.data[1], {
    ...again.data[1],
    status: 409,
    existing: { ...again.data[1].existing, id: answer.data[1].sale.id },
  });
  const [{ count }] = (await rail.query<{ count: number }>(
    sql`select count(*) as count from program.sale where program_id = ${shop.program_id}`,
  )) as [{ count: number }];
  t.equal(count, 1_001);
});

t.test('takes lines of JSON, each with an outcome of its own', async (t) => {
  const { shop, sale } = await open();
  const lines = [
    JSON.stringify(sale()),
    '{"amount_minor": ',
    '',
    JSON.stringify(sale({ amount: 1 })),
    'null',
    '{"a":1,"a":2}',
    JSON.stringify(sale()),
  ];
  const { status, body } = await shop.merchant.request('POST', '/v1/sales/bulk', lines.join('\r\n'), {
    'Content-Type': 'application/x-ndjson',
  });
  t.equal(status, 200);
  t.same(statusesOf(body), [201, 400, 400, 400, 400, 201]);
  t.same(
    body.data.map(({ error }: Json) => error?.code),
    [undefined, 'invalid_json', 'unknown_parameter', 'invalid_parameter', 'invalid_json', undefined],
  );
});

t.test('is refused as a whole where it is no list of 1 to 1,000', async (t) => {
  const { shop, sale } = await open();
  for (const [body, message] of [
    [sale(), /must be a list/],
    [[], /at least 1 object/],
    [Array.from({ length: 1_001 }, () => sale()), /has 1,001 objects. Send at most 1,000/],
    [[{ metadata: Array.from({ length: 100_001 }, () => 0) }], /more than 100,000 values/],
  ] as const) {
    const answer = await shop.merchant.request('POST', '/v1/sales/bulk', body);
    t.equal(answer.status, 400);
    t.match(answer.body.error, { code: 'invalid_parameter', message });
  }
  const other = await shop.merchant.request('POST', '/v1/sales/bulk', 'a,b', { 'Content-Type': 'text/csv' });
  t.match(other.body.error, { code: 'unsupported_media_type', message: /application\/x-ndjson/ });
});

t.test('one that cannot be stored spoils no other', async (t) => {
  const { shop, sale } = await open();
  const most = Number.MAX_SAFE_INTEGER;
  const answer = await shop.merchant.post('/v1/sales/bulk', [
    sale(),
    sale({ metadata: { a: '\u0000' } }),
    sale({ amount_minor: most }),
  ]);
  t.same(statusesOf(answer), [201, 201, 201]);
  t.match(answer.data[1].sale.warnings, [{ param: 'metadata' }]);
});

t.test('of two bulks with the same charges at once, one records each', async (t) => {
  const { shop, sale } = await open();
  const list = Array.from({ length: 50 }, () => sale());
  const answers = await Promise.all(
    [list, list.toReversed()].map((some) => shop.merchant.post('/v1/sales/bulk', some)),
  );
  t.equal(answers.flatMap(statusesOf).filter((status) => status === 201).length, 50);
  t.equal(answers.flatMap(statusesOf).filter((status) => status === 409).length, 50);
});
