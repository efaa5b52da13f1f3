import t, { type Test } from 'tap';
import { type Answer, eventually, type Json, sql, startRail } from '../harness.ts';
import { effort } from '../runner/effort.ts';
import { fresh, openShop, type Shop, types } from '../shop.ts';

const rail = await startRail();
const many = effort.racing_requests;
const half = many / 2;

const parallel = <T>(call: (nth: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: many }, (_, nth) => call(nth)));

/** Counts the answers by status. */
function statusesOf(answers: Answer[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

const idsOf = (records: Json[]): string[] => [...new Set(records.map(({ id }) => id as string))];
const countOf = async (shop: Shop, type: string) => types(await shop.events()).filter((one) => one === type).length;

/** Every answer but the first is a 409 that shows what the first made. */
function oneWon(t: Test, answers: Answer[]): void {
  t.same(statusesOf(answers), { 201: 1, 409: many - 1 });
  const won = answers.find(({ status }) => status === 201)?.body;
  const shown = answers.filter(({ status }) => status === 409).map(({ body }) => body.existing);
  t.same(idsOf(shown), [won?.id], 'the others are shown the one that was made');
}

t.test('concurrent requests for one charge make one sale and one commission', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  const partner = await shop.partner();
  const customer = await shop.customer({ partner_id: partner.id });
  for (const claim of [{ customer_id: customer.id }, { partner_id: partner.id }, {}]) {
    const sale = {
      program_id: shop.program.id,
      amount_minor: 9_900,
      currency: 'USD',
      external_charge_id: fresh('once'),
    };
    oneWon(t, await parallel(() => shop.merchant.request('POST', '/v1/sales', { ...sale, ...claim })));
  }
  t.equal((await shop.list('sales')).length, 3);
  t.equal((await shop.list('commissions')).length, 2, 'the third names nobody');
});

t.test('concurrent creates with one email or handle make one partner', async (t) => {
  const { merchant, program, list } = await openShop(rail);
  const email = 'Ada@example.com';
  const create = (fields: Json) => merchant.request('POST', '/v1/partners', { program_id: program.id, ...fields });
  oneWon(t, await parallel((nth) => create({ email: nth % 2 ? email : email.toLowerCase() })));
  oneWon(t, await parallel((nth) => create({ email: `b${nth}@example.com`, handle: 'grace' })));

  await t.test('concurrently derived handles are all different', async (t) => {
    const answers = await parallel((nth) => create({ email: `ada@host${nth}.example.com` }));
    t.same(statusesOf(answers), { 201: many });
    t.equal(new Set(answers.map(({ body }) => body.handle)).size, many);
  });
  t.equal((await list('partners')).length, 2 + many);
});

t.test('a handle set for many partners at once goes to one, and the others get 409 with that partner', async (t) => {
  const shop = await openShop(rail);
  const partners = await parallel(() => shop.partner());
  const answers = await parallel((nth) =>
    shop.merchant.request('PATCH', `/v1/partners/${partners[nth]?.id}`, { handle: 'grace' }),
  );
  t.same(statusesOf(answers), { 200: 1, 409: many - 1 });
  const won = answers.find(({ status }) => status === 200)?.body;
  const shown = answers.filter(({ status }) => status === 409).map(({ body }) => body.existing);
  t.same(idsOf(shown), [won?.id]);
});

t.test('a value claimed at once by links and handles of several partners goes to one', async (t) => {
  const shop = await openShop(rail);
  const { merchant, program_id } = shop;
  const partners = await parallel(() => shop.partner());
  const link = (nth: number, value: string) =>
    merchant.request('POST', '/v1/links', {
      program_id,
      partner_id: partners[nth]?.id,
      destination_url: 'https://acme.example.com/',
      value,
    });
  const create = (nth: number, handle: string) =>
    merchant.request('POST', '/v1/partners', { program_id, email: `${fresh('claim')}@host${nth}.example.com`, handle });
  const rename = (nth: number, handle: string) =>
    merchant.request('PATCH', `/v1/partners/${partners[nth]?.id}`, { handle });
  for (const value of ['summer', 'winter', 'autumn']) {
    const answers = await parallel((nth) => ([link, create, rename][nth % 3] as typeof link)(nth, value));
    const won = answers.filter(({ status }) => status !== 409);
    t.equal(won.length, 1);
    const shown = answers.filter(({ status }) => status === 409).map(({ body }) => body.existing);
    t.same(idsOf(shown), [won[0]?.body.id]);
  }

  await t.test('also while url_params change', async (t) => {
    await merchant.patch(`/v1/programs/${program_id}`, { url_params: ['via'] });
    await Promise.all([
      ...partners.slice(0, half).map((_, nth) => link(nth, `both-${nth}`)),
      merchant.request('PATCH', `/v1/programs/${program_id}`, { url_params: ['ref'] }),
      ...partners.slice(0, half).map((_, nth) => create(nth, `both-${nth}`)),
    ]);
    t.same(await rail.audit(), []);
  });
});

t.test('a group deleted while it becomes the default leaves a default group', async (t) => {
  const shop = await openShop(rail);
  const groups = await parallel((nth) =>
    shop.merchant.post('/v1/groups', { program_id: shop.program.id, name: `Group ${nth}` }),
  );
  const answers = await Promise.all(
    groups.flatMap(({ id }) => [
      shop.merchant.request('DELETE', `/v1/groups/${id}`),
      shop.merchant.request('PATCH', `/v1/groups/${id}`, { is_default: true }),
    ]),
  );
  const outcomes = answers.map(({ status }, at) => `${at % 2 === 0 ? 'DELETE' : 'PATCH'} ${status}`);
  const expected = ['DELETE 200', 'DELETE 409', 'PATCH 200', 'PATCH 404'];
  t.same(
    [...new Set(outcomes)].filter((outcome) => !expected.includes(outcome)),
    [],
  );
  t.equal((await shop.list('groups')).filter(({ is_default }) => is_default).length, 1);
});

t.test(
  'joining a group or adding a tag while it is deleted ends in another group, without the tag, or with 404',
  async (t) => {
    const shop = await openShop(rail);
    const { merchant } = shop;
    const program_id = shop.program.id;
    const partners = await parallel(() => shop.partner());
    const groups = await parallel((nth) => merchant.post('/v1/groups', { program_id, name: `Group ${nth}` }));
    const tags = await parallel((nth) => merchant.post('/v1/tags', { program_id, name: `Tag ${nth}` }));
    const answers = await Promise.all(
      partners.flatMap(({ id }, nth) => {
        const [group_id, tag_id] = [groups[nth]?.id, tags[nth]?.id];
        return [
          merchant.request('POST', '/v1/partners', { program_id, email: `${fresh('join')}@example.com`, group_id }),
          merchant.request('POST', '/v1/applications', { program_id, email: `${fresh('join')}@example.com`, group_id }),
          merchant.request('DELETE', `/v1/groups/${group_id}`),
          merchant.request('POST', '/v1/coupons', { program_id, code: fresh('join'), group_id }),
          merchant.request('PATCH', `/v1/partners/${id}`, { group_id }),
          merchant.request('DELETE', `/v1/tags/${tag_id}`),
          merchant.request('PATCH', `/v1/partners/${id}`, { tag_ids: [tag_id] }),
        ];
      }),
    );
    const kinds = ['POST 201', 'POST 201', 'DELETE 200', 'POST 201', 'PATCH 200', 'DELETE 200', 'PATCH 200'];
    const odd = answers.filter(({ status }, at) => {
      const [method, expected] = (kinds[at % kinds.length] as string).split(' ');
      return status !== Number(expected) && (method === 'DELETE' || status !== 404);
    });
    t.same(statusesOf(odd), {});
  },
);

t.test('concurrent refunds never exceed the sale', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  const sale = await shop.sale({ partner_id: (await shop.partner()).id, amount_minor: 10_000 });
  const refund = (body: Json) => shop.merchant.request('POST', `/v1/sales/${sale.id}/refund`, body);
  const amount_minor = 5 * Math.floor(2_980 / many);
  const fitting = Math.floor(10_000 / amount_minor);
  const answers = await parallel(() => refund({ amount_minor }));
  t.same(statusesOf(answers), { 200: fitting, 400: many - fitting });
  t.same(
    [...new Set(answers.filter(({ status }) => status === 400).map(({ body }) => body.error.code))],
    ['refund_exceeds_sale'],
  );
  const refunded_minor = fitting * amount_minor;
  const rest = 10_000 - refunded_minor;
  t.match(await shop.merchant.get(`/v1/sales/${sale.id}`), { refunded_minor, status: 'partially_refunded' });
  t.match(await shop.commissionsOf(sale), [{ amount_minor: rest / 5, base_amount_minor: rest }]);

  await t.test('concurrent requests for one refund make one refund', async (t) => {
    const answers = await parallel(() => refund({ amount_minor: 1, external_refund_id: 're_1' }));
    t.same(statusesOf(answers), { 200: 1, 409: many - 1 });
    t.equal((await shop.merchant.get(`/v1/sales/${sale.id}`)).refunded_minor, refunded_minor + 1);
  });
});

t.test('approving a commission and refunding its sale concurrently leaves nothing earned', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  const partner = await shop.partner();
  const sales = await parallel(() => shop.sale({ partner_id: partner.id }));
  const answers = await Promise.all(
    sales.flatMap(({ id, commissions: [{ id: commission_id }] }) => [
      shop.merchant.request('POST', `/v1/sales/${id}/refund`, {}),
      shop.merchant.request('POST', `/v1/commissions/${commission_id}/approve`),
    ]),
  );
  const [refunds, approvals] = [0, 1].map((which) => answers.filter((_, at) => at % 2 === which)) as [
    Answer[],
    Answer[],
  ];
  t.same(statusesOf(refunds), { 200: many });
  const { 200: approved = 0, 409: late = 0 } = statusesOf(approvals);
  t.equal(approved + late, many);
  const commissions = await shop.list('commissions');
  t.same([...new Set(commissions.map(({ status }) => status))], ['voided']);
});

t.test('concurrent clicks of one visitor make one referral', async (t) => {
  const shop = await openShop(rail);
  const partner = await shop.partner();
  await parallel(() => shop.click(partner, { visitor_token: 'visitor-0001' }));
  await attributed(shop);
  const [referral, ...others] = await shop.list('referrals');
  t.same(others, []);
  const clicks = await shop.list('clicks');
  t.same([...new Set(clicks.map(({ referral_id }) => referral_id))], [referral?.id]);
  t.equal(await countOf(shop, 'referral.created'), 1);

  await t.test('also through two partners: one live referral at a time', async (t) => {
    const other = await shop.partner();
    await parallel((nth) => shop.click(nth % 2 ? partner : other, { visitor_token: 'visitor-0002' }));
    await attributed(shop);
    t.equal((await shop.list('referrals')).length, 2, 'one of each visitor');
    const told = types(await shop.events()).filter((type) => type.startsWith('referral.'));
    t.ok(told.length > 0);
    const turns = told.map((_, at) => (at % 2 === 0 ? 'referral.created' : 'referral.deleted'));
    t.same(told, turns, 'one ends before the next begins');
  });
});

const attributed = ({ program }: Shop) =>
  eventually(async () => {
    const [left] = await rail.query<{ clicks: number }>(
      sql`select count(*) as clicks from program.click where program_id = ${program.id} and attributed_at is null`,
    );
    return left?.clicks === 0;
  }, 'all clicks to be attributed');

t.test('concurrent sign-ups with one click make the visitor a lead once', async (t) => {
  const shop = await openShop(rail);
  const { id: click_id } = await shop.click(await shop.partner());
  const customers = await parallel(() => shop.customer({ click_id }));
  t.equal(new Set(customers.map(({ referral_id }) => referral_id)).size, 1);
  const told = types(await shop.events());
  t.equal(told.filter((type) => type === 'referral.lead').length, 1);
  t.equal(told.filter((type) => type === 'referral.created').length, 1);
});

t.test('a partner deleted during concurrent sales has no open commission', async (t) => {
  const shop = await openShop(rail);
  const { merchant, program } = shop;
  await shop.rule();
  const [partner, other] = [await shop.partner(), await shop.partner()];
  const customers = await parallel(() => shop.customer({ partner_id: partner.id }));
  const of_other = await parallel(() => shop.sale({ partner_id: other.id }));
  const sell = (fields: Json) =>
    merchant.request('POST', '/v1/sales', {
      program_id: program.id,
      amount_minor: 5_000,
      currency: 'USD',
      external_charge_id: fresh('charge'),
      ...fields,
    });
  const bonus = { program_id: program.id, partner_id: partner.id, amount_minor: 100 };
  const work = Array.from({ length: many }, (_, nth) => [
    () => sell(nth % 2 ? { partner_id: partner.id } : { customer_id: customers[nth]?.id }),
    () => merchant.request('POST', '/v1/commissions', bonus),
    () => merchant.request('PATCH', `/v1/sales/${of_other[nth]?.id}`, { partner_id: partner.id }),
  ]).flat();
  work.splice(many, 0, () => merchant.request('DELETE', `/v1/partners/${partner.id}`));
  const statuses = statusesOf(await Promise.all(work.map((call) => call())));
  t.same(
    Object.keys(statuses).filter((status) => !['200', '201', '404'].includes(status)),
    [],
  );
  const left = await shop.list('commissions', `partner_id=${partner.id}`);
  t.same(
    [...new Set(left.map(({ status }) => status))].filter((status) => status !== 'voided'),
    [],
  );
});

t.test('exactly one of several concurrent first sales is the first', async (t) => {
  const shop = await openShop(rail);
  await shop.rule({ name: 'First', applies_to: 'first', rate_value: 5_000, priority: 1 });
  await shop.rule({ name: 'Renewals', applies_to: 'renewals', rate_value: 1_000 });
  const customer = await shop.referred(await shop.partner());
  const sales = await parallel(() => shop.sale({ customer_id: customer.id }));
  t.equal(sales.filter(({ is_first_sale }) => is_first_sale).length, 1);
  t.equal(sales.filter(({ commissions: [{ amount_minor }] }) => amount_minor === 5_000).length, 1);
  t.equal(await countOf(shop, 'referral.converted'), 1);
});

t.test('concurrent sales of a new customer create one customer', async (t) => {
  const shop = await openShop(rail, { auto_enrol_customers: true });
  const partner = await shop.partner();
  const { external_id } = await shop.coupon({ partner_id: partner.id });
  for (const claim of [{ partner_id: partner.id }, { coupon_external_id: external_id }]) {
    const external_customer_id = fresh('cus_processor');
    const customer = { external_customer_id, email: `${external_customer_id}@customer.example.com` };
    const sales = await parallel(() => shop.sale({ ...claim, customer }));
    t.equal(new Set(sales.map(({ customer_id }) => customer_id)).size, 1);
    t.equal(sales.filter(({ is_first_sale }) => is_first_sale).length, 1);
    t.equal((await shop.list('customers', `external_customer_id=${external_customer_id}`)).length, 1);
    t.equal(await countOf(shop, 'customer.enrolled_as_partner'), 1);
  }
});

t.test('concurrent sales of one customer by id and by click are all recorded', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  const ada = await shop.partner();
  const { id: click_id } = await shop.click(ada);
  const { id: customer_id } = await shop.customer({ click_id });
  const sales = await Promise.all(
    Array.from({ length: many }, (_, nth) => shop.sale(nth % 2 ? { click_id } : { customer_id })),
  );
  t.ok(sales.every((sale) => sale.customer_id === customer_id && sale.commissions.length === 1));
  t.equal(sales.filter(({ is_first_sale }) => is_first_sale).length, 1);
});

t.test('a sale during the sign-up of its customer belongs to that customer', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  const { id: partner_id } = await shop.partner();
  const pairs = Array.from({ length: half }, async () => {
    const external_customer_id = fresh('customer');
    const [sale, customer] = await Promise.all([
      shop.sale({ partner_id, customer: { external_customer_id } }),
      shop.merchant.request('POST', '/v1/customers', { program_id: shop.program.id, partner_id, external_customer_id }),
    ]);
    const known = customer.status === 201 ? customer.body : customer.body.existing;
    t.equal(sale.customer_id, known.id);
  });
  await Promise.all(pairs);
});

t.test('customers with one email who pay concurrently become one partner', async (t) => {
  const shop = await openShop(rail, { auto_enrol_customers: true });
  const partner = await shop.partner();
  const sales = await parallel(() =>
    shop.sale({ partner_id: partner.id, customer: { email: 'grace@customer.example.com' } }),
  );
  t.equal(new Set(sales.map(({ customer_id }) => customer_id)).size, many);
  t.equal(await countOf(shop, 'customer.enrolled_as_partner'), 1);
  t.equal((await shop.list('partners', 'email=grace@customer.example.com')).length, 1);
});
