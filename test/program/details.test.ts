import t, { type Test } from 'tap';
import { type Answer, type Json, sql, startRail } from '../harness.ts';
import { fresh, openShop } from '../shop.ts';

/** No fact is refused for what a visitor, a browser, a proxy or a shop puts into its details. */
const rail = await startRail();
const shop = await openShop(rail, { holding_period_days: 0, blocked_countries: ['T1'] });
await shop.rule();
const partner = await shop.partner({ handle: 'ada' });
const { merchant, program_id } = shop;

const nul = 'a\0b';
const half = 'a\ud800b';
const no_texts = [5, true, {}, ['a']];

/** The value that is sent, the value that is stored, and the warning of the reply. */
type Case = [given: unknown, stored: unknown, said?: 'detail_changed' | 'detail_left_out'];

const textCases = (most: number): Case[] => [
  [null, null],
  ['x'.repeat(most), 'x'.repeat(most)],
  ['x'.repeat(most + 1), 'x'.repeat(most), 'detail_changed'],
  [nul, 'ab', 'detail_changed'],
  [half, 'a\ufffdb', 'detail_changed'],
  ['😀'.repeat(most), '😀'.repeat(most)],
  ['😀'.repeat(most + 1), '😀'.repeat(most), 'detail_changed'],
  ...no_texts.map((given): Case => [given, null, 'detail_left_out']),
];

const page = 'https://acme.example.com/';
const click_cases: Record<string, Case[]> = {
  user_agent: textCases(1024),
  referrer: textCases(2048),
  device: textCases(64),
  country: [
    ...(['de', 'DE', ' de '] as const).map((given): Case => [given, 'DE']),
    ['T1', 'T1'],
    ['XX', 'XX'],
    ['', null],
    [null, null],
    ...['DEU', 'Germany', '1T', '-', 'D', 'Д1', nul, ...no_texts].map(
      (given): Case => [given, null, 'detail_left_out'],
    ),
  ],
  landing_url: [
    [null, null],
    ['', null],
    [`${page}?q=1`, `${page}?q=1`],
    [`${page}${'ü'.repeat(2000)}`, `${page}${'%C3%BC'.repeat(337)}`, 'detail_changed'],
    [`${page}?q=${'x'.repeat(3000)}`, `${page}?q=${'x'.repeat(2020)}`, 'detail_changed'],
    [`${page}${half}`, `${page}a%EF%BF%BDb`, 'detail_changed'],
    ...['/pricing', 'acme.example.com', 'javascript:alert(1)', 'https://', nul, ...no_texts].map(
      (given): Case => [given, null, 'detail_left_out'],
    ),
  ],
};

const email_cases: Case[] = [
  ['hana..sato.@docomo.ne.jp', 'hana..sato.@docomo.ne.jp'],
  ['.ada@example.com', '.ada@example.com'],
  ['ada@localhost', 'ada@localhost'],
  [' ada@example.com ', 'ada@example.com'],
  ['ada@müller.example', 'ada@xn--mller-kva.example'],
  ['Ada <ada@example.com>', 'ada@example.com'],
  ['mailto: ada @example.com?subject=Hi', 'ada@example.com'],
  ['', null],
  [null, null],
  ...[
    'n/a',
    'ada',
    'ada@',
    '@example.com',
    'a b@example.com',
    `${'x'.repeat(250)}@example.com`,
    'a\0@b.example',
    ...no_texts,
  ].map((given): Case => [given, null, 'detail_left_out']),
];
const many = Object.fromEntries(Array.from({ length: 51 }, (_, nth) => [`key_${nth}`, nth]));
const metadata_cases: Case[] = [
  [{ a: { b: [nul, 1] } }, { a: { b: ['ab', 1] } }, 'detail_changed'],
  [{ [nul]: half }, { ab: 'a\ufffdb' }, 'detail_changed'],
  [null, null],
  ...[many, { text: 'x'.repeat(17_000) }, { n: 2 ** 53 }, 'text', 5, ['a']].map(
    (given): Case => [given, null, 'detail_left_out'],
  ),
];

async function each(t: Test, param: string, cases: Case[], send: (given: unknown) => Promise<[Answer, unknown]>) {
  for (const [given, stored, said] of cases) {
    const what = `${param} ${JSON.stringify(given).slice(0, 60)}`;
    const [answer, kept] = await send(given);
    t.ok(answer.status === 201 || answer.status === 200, `${what}: ${answer.status} ${answer.text.slice(0, 200)}`);
    t.strictSame(kept, stored, what);
    const told = (answer.body.warnings ?? []).filter((warning: Json) => warning.param === param);
    t.same(
      told.map(({ code }: Json) => code),
      said ? [said] : [],
      `${what}: what is said`,
    );
  }
}

const pathed = (param: string, given: unknown): Json =>
  param.startsWith('customer.') ? { customer: { [param.slice(9)]: given } } : { [param]: given };

t.test('a click is recorded whatever a browser or a proxy says', async (t) => {
  for (const [param, cases] of Object.entries(click_cases)) {
    await each(t, param, cases, async (given) => {
      const body = {
        program_id,
        value: 'ada',
        visitor_token: fresh('visitor-token'),
        landing_url: page,
        [param]: given,
      };
      const answer = await merchant.request('POST', '/v1/clicks', body);
      const kept = await merchant.get(`/v1/clicks/${answer.body.id}`);
      return [answer, kept[param === 'referrer' ? 'referer' : param]];
    });
  }
});

t.test('an address is read without its port and zone, and is none where it is none', async (t) => {
  const hashed = (ip: string) => rail.services.vault.hash(ip);
  const cases: Case[] = [
    ...(['198.51.100.7', '198.51.100.7:52311', '[::ffff:198.51.100.7]:80'] as const).map(
      (given): Case => [given, hashed('198.51.100.7')],
    ),
    ['[2001:db8::7%eth0]:443', hashed('2001:db8::7')],
    ['', null],
    [null, null],
    ...['unknown', '1.2.3', nul, '198.51.100.7, 10.0.0.1', ...no_texts].map(
      (given): Case => [given, null, 'detail_left_out'],
    ),
  ];
  await each(t, 'ip', cases, async (ip) => {
    const answer = await merchant.request('POST', '/v1/clicks', {
      ...{ program_id, value: 'ada', visitor_token: fresh('visitor-token'), landing_url: page },
      ip,
    });
    const [row] = await rail.query<Json>(sql`select ip_hash from program.click where id = ${answer.body.id}`);
    return [answer, row?.ip_hash];
  });
});

t.test('a sale and a sign-up are recorded whatever the details of the customer', async (t) => {
  const kept_email = (cases: Case[]) => cases;
  for (const [param, cases] of Object.entries({
    'customer.email': kept_email(email_cases),
    'customer.name': textCases(200),
    metadata: metadata_cases,
  })) {
    await each(t, param, cases, async (given) => {
      const details = { customer: { external_customer_id: fresh('ext') }, partner_id: partner.id };
      const { customer, ...field } = pathed(param, given);
      const answer = await merchant.request('POST', '/v1/sales', {
        ...{
          program_id,
          amount_minor: 9900,
          currency: 'USD',
          external_charge_id: fresh('charge'),
          ...details,
          ...field,
        },
        customer: { ...details.customer, ...customer },
      });
      t.equal(answer.body.activity_outcome, 'commission_created');
      if (param === 'metadata') return [answer, answer.body.metadata];
      return [answer, (await merchant.get(`/v1/customers/${answer.body.customer_id}`))[param.slice(9)]];
    });
  }
  for (const [param, cases] of Object.entries({ email: email_cases, name: textCases(200), metadata: metadata_cases })) {
    await each(t, param, cases, async (given) => {
      const body = { program_id, partner_id: partner.id, [param]: given };
      const answer = await merchant.request('POST', '/v1/customers', body);
      return [answer, answer.body[param]];
    });
  }
});

t.test('a refund is recorded whatever its reason', async (t) => {
  await each(t, 'reason', textCases(1000), async (reason) => {
    const sale = await shop.sale({ partner_id: partner.id });
    const answer = await merchant.request('POST', `/v1/sales/${sale.id}/refund`, { amount_minor: 100, reason });
    const [refund] = await shop.list('refunds', `sale_id=${sale.id}`);
    return [answer, refund?.reason];
  });
});

t.test('nothing in an optional field is as if it were left out', async (t) => {
  const bodies: [string, Json][] = [
    [
      '/v1/sales',
      {
        ...{ program_id, amount_minor: 9900, currency: 'USD', partner_id: partner.id, customer: { identifier: null } },
        ...{ customer_id: null, external_customer_id: null, click_id: '', coupon_external_id: '', tax_minor: null },
        ...{ external_subscription_id: null, product_id: '  ', occurred_at: null, discount_minor: '' },
      },
    ],
    ['/v1/customers', { program_id, partner_id: partner.id, click_id: null, identifier: '', status: null }],
    ['/v1/coupons', { program_id, code: fresh('CODE'), partner_id: null, group_id: '', external_id: '' }],
    [
      '/v1/links',
      { program_id, partner_id: partner.id, destination_url: page, value: fresh('v'), param: null, label: null },
    ],
    ['/v1/tags', { program_id, name: fresh('tag'), color: '' }],
  ];
  for (const [path, body] of bodies) {
    const sent = path === '/v1/sales' ? { ...body, external_charge_id: fresh('charge') } : body;
    const { status, text, body: reply } = await merchant.request('POST', path, sent);
    t.equal(status, 201, `${path}: ${text}`);
    t.notOk(reply.warnings, path);
  }
  const sale = await shop.sale({ partner_id: partner.id });
  const refund = { external_refund_id: null, refunded_at: '', reason: null };
  const refused = await merchant.request('POST', `/v1/sales/${sale.id}/refund`, { ...refund, amount_minor: null });
  t.match(refused, { status: 400, body: { error: { param: 'amount_minor' } } }, 'which would be all of the sale');
  await merchant.post(`/v1/sales/${sale.id}/refund`, { ...refund, amount_minor: 100 });
  const required = await merchant.request('POST', '/v1/tags', { program_id, name: '' });
  t.match(required, { status: 400, body: { error: { param: 'name' } } });
  const [link] = await shop.list('links');
  t.match(await merchant.request('PATCH', `/v1/links/${link?.id}`, { destination_url: null }), { status: 400 });
});

t.test('an id of a processor is the same however it is padded, and one that is a detail is left out', async (t) => {
  const ids = (id: string) => [` ${id}`, `${id}\n`, `${id}\t`, `${id}\u200b`, `\ufeff${id}\u00a0`];
  const charge = fresh('ch');
  const body = { program_id, amount_minor: 9900, currency: 'USD', partner_id: partner.id };
  const customer = fresh('cus');
  const first = await merchant.post('/v1/sales', {
    ...body,
    external_charge_id: `${charge} `,
    external_customer_id: customer,
  });
  t.equal(first.external_charge_id, charge);
  for (const external_charge_id of ids(charge))
    t.match(await merchant.request('POST', '/v1/sales', { ...body, external_charge_id }), { status: 409 });
  const found = await shop.list('sales', `external_charge_id=${encodeURIComponent(`${charge} `)}`);
  t.same(
    found.map(({ id }) => id),
    [first.id],
  );
  for (const external_customer_id of ids(customer)) {
    const again = { ...body, external_charge_id: fresh('ch'), external_customer_id };
    t.equal((await merchant.post('/v1/sales', again)).customer_id, first.customer_id);
  }
  const refund = fresh('re');
  await merchant.post(`/v1/sales/${first.id}/refund`, { amount_minor: 1, external_refund_id: refund });
  for (const external_refund_id of ids(refund))
    t.match(await merchant.request('POST', `/v1/sales/${first.id}/refund`, { amount_minor: 1, external_refund_id }), {
      status: 409,
    });
  const promotion = fresh('promo');
  await merchant.post('/v1/coupons', { program_id, code: fresh('C'), external_id: promotion });
  for (const external_id of ids(promotion))
    t.match(await merchant.request('POST', '/v1/coupons', { program_id, code: fresh('C'), external_id }), {
      status: 409,
    });
  const long = { ...body, external_charge_id: fresh('ch'), external_subscription_id: 'x'.repeat(300) };
  t.match(await merchant.post('/v1/sales', long), {
    external_subscription_id: null,
    warnings: [{ code: 'detail_left_out', param: 'external_subscription_id' }],
  });
});

t.test('what decides money or identity is still refused', async (t) => {
  const sale = { program_id, amount_minor: 9900, currency: 'USD', external_charge_id: 'charge-of-this-test' };
  for (const fields of [
    { amount_minor: 1.5 },
    { currency: 'dollar' },
    { external_charge_id: nul },
    { customer: { identifier: 'x'.repeat(256) } },
    { customer: 5 },
    { coupon_external_id: 5 },
    { nickname: 'Ada' },
  ]) {
    t.equal((await merchant.request('POST', '/v1/sales', { ...sale, ...fields })).status, 400, JSON.stringify(fields));
  }
  const click = { program_id, value: 'ada', visitor_token: 'visitor-token', landing_url: page };
  for (const fields of [{ value: nul }, { visitor_token: 'short' }, { landing_url: undefined }, { referer: page }]) {
    t.equal(
      (await merchant.request('POST', '/v1/clicks', { ...click, ...fields })).status,
      400,
      JSON.stringify(fields),
    );
  }
});

t.test('clicks of a blocked network earn no referral, and a repeated request is answered alike', async (t) => {
  const body = { program_id, value: 'ada', visitor_token: fresh('visitor-token'), landing_url: page };
  const headers = { 'Idempotency-Key': fresh('key') };
  const send = () => merchant.request('POST', '/v1/clicks', { ...body, country: 'T1', device: 5 }, headers);
  const [first, second] = [await send(), await send()];
  t.match(first.body, { country: 'T1', warnings: [{ code: 'detail_left_out', param: 'device' }] });
  t.same(second.body, first.body);
  const refused = await merchant.request('POST', '/v1/customers', { program_id, click_id: first.body.id });
  t.match(refused.body, { error: { code: 'click_without_credit' } });
  t.equal((await shop.list('clicks', 'country=T1')).length, 2);
});

t.test('an address that no mail can reach is that of a customer, and of no partner', async (t) => {
  const enrolling = await openShop(rail, { auto_enrol_customers: true });
  const { id: partner_id } = await enrolling.partner();
  const customer = { email: 'hana..sato.@docomo.ne.jp', external_customer_id: fresh('ext') };
  const { customer_id } = await enrolling.sale({ partner_id, customer });
  t.equal((await enrolling.list('partners')).length, 1);
  const found = await enrolling.list('customers', `email=${customer.email}`);
  t.match(found, [{ id: customer_id }]);
  const changed = await enrolling.merchant.patch(`/v1/customers/${customer_id}`, { email: '.hana@docomo.ne.jp' });
  t.equal(changed.email, '.hana@docomo.ne.jp');
});
