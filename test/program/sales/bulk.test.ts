/** POST /v1/sales/bulk: each sale has the outcome that it would have had by itself, in its place. */
import fc from 'fast-check';
import t from 'tap';
import { type Json, sql, startRail } from '../../harness.ts';
import { fresh, openShop } from '../../shop.ts';

const rail = await startRail();

/** A shop with partners, customers and rules whose every part decides something about a sale. */
async function furnish() {
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
  for (const name of ['by_link', 'of_bob', 'of_ada', 'of_idle'])
    await shop.sale({ external_customer_id: name, occurred_at: '2026-01-02T00:00:00Z' });
  await shop.sale({ external_charge_id: 'charged', external_customer_id: 'of_ada' });
  await shop.merchant.patch(`/v1/partners/${idle.id}`, { status: 'suspended' });
  const visit = await shop.click(bob);
  return { shop, ada, bob, idle, coupon, customers, visit };
}
type Furnished = Awaited<ReturnType<typeof furnish>>;

/** A sale in words that hold in both shops. */
const someSale = fc.record({
  customer: fc.constantFrom('by_link', 'of_bob', 'of_ada', 'is_bob', 'new', 'of_idle', 'nobody', 'another'),
  named_by: fc.constantFrom('external', 'external', 'id', 'both', 'click', 'none'),
  partner: fc.constantFrom(undefined, undefined, 'ada', 'bob', 'idle', 'part_nothing'),
  coupon: fc.constantFrom(undefined, undefined, undefined, true),
  product: fc.constantFrom(undefined, undefined, 'tea'),
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
});
type SomeSale = typeof someSale extends fc.Arbitrary<infer T> ? T : never;

function bodyOf({ shop, customers, coupon, visit, ...partners }: Furnished, one: SomeSale, nth: number): Json {
  const id = customers[one.customer]?.id ?? 'cus_nothing';
  const names = {
    external: { external_customer_id: one.customer },
    id: { customer_id: id },
    both: { customer_id: id, external_customer_id: 'of_ada' },
    click: { click_id: visit.id },
    none: {},
  }[one.named_by];
  return JSON.parse(
    JSON.stringify({
      program_id: shop.program_id,
      ...names,
      partner_id: one.partner && ((partners as Json)[one.partner]?.id ?? one.partner),
      coupon_external_id: one.coupon && coupon.external_id,
      product_id: one.product,
      amount_minor: one.amount,
      tax_minor: one.tax,
      currency: one.currency,
      external_charge_id: one.charge ?? `charge ${nth}`,
      occurred_at: one.occurred_at,
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
    .filter(({ type }) => /^(sale|commission)\.|^referral\.converted/.test(type))
    .map(({ type, data }) => `${type} ${data.amount_minor ?? ''}`)
    .toSorted();

t.test('has the outcomes of the same sales one by one, whatever they are', async (t) => {
  for (const sample of fc.sample(fc.array(someSale, { minLength: 40, maxLength: 60 }), { numRuns: 4 })) {
    const [one_by_one, in_bulk] = [await furnish(), await furnish()];
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
    t.same(await told(in_bulk), await told(one_by_one), 'and the same events');
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
