import t from 'tap';
import { type Json, startRail } from '../../harness.ts';
import { fresh, openShop } from '../../shop.ts';

const rail = await startRail();

async function open() {
  const shop = await openShop(rail);
  await shop.rule();
  const [ada, bob] = [await shop.partner(), await shop.partner()];
  const claims = (fields: Json) =>
    shop.merchant.post('/v1/sale_claims', { program_id: shop.program_id, partner_id: bob.id, ...fields });
  return { shop, ada, bob, claims };
}

t.test('answers at once what is known of a sale', async (t) => {
  const { shop, ada, bob, claims } = await open();
  const visitor_token = fresh('visitor');
  await shop.click(bob, { visitor_token });
  const { id: click_id } = await shop.click(ada, { visitor_token });
  const clicked = await shop.sale({ click_id, external_charge_id: 'order-clicked' });
  const customer = await shop.customer({ partner_id: ada.id, email: 'Grace@customer.example.com' });
  await shop.sale({ customer_id: customer.id, occurred_at: '2026-03-01T10:00:00Z' });
  const march = await shop.sale({ customer_id: customer.id, occurred_at: '2026-03-09T10:00:00Z' });
  const last = await shop.sale({ customer_id: customer.id, occurred_at: '2026-05-01T10:00:00Z' });
  const coupon = await shop.coupon({ partner_id: bob.id, code: 'BOB10' });
  const used = await shop.sale({
    ...{ customer_id: customer.id, coupon_external_id: coupon.external_id, occurred_at: '2026-06-01T10:00:00Z' },
  });
  const mine = await shop.sale({ partner_id: bob.id, external_charge_id: 'order-mine' });
  const cases: [fields: Json, finding: string, sale_id: string | null][] = [
    [{ external_charge_id: 'order-mine' }, 'credited', mine.id],
    [{ external_charge_id: 'order-clicked' }, 'found_with_click', clicked.id],
    [{ email: 'grace@CUSTOMER.example.com', occurred_at: '2026-03-09T20:00:00Z' }, 'found_without_click', march.id],
    [{ email: 'grace@customer.example.com' }, 'found_without_click', used.id],
    [{ coupon_code: 'bob10', occurred_at: '2026-06-01T20:00:00Z' }, 'found_without_click', used.id],
    [{ coupon_code: 'bob10', occurred_at: '2026-06-05T20:00:00Z' }, 'not_found', null],
    [{ email: 'grace@customer.example.com', occurred_at: '2026-04-01T20:00:00Z' }, 'not_found', null],
    [{ external_charge_id: 'order-unknown' }, 'not_found', null],
    [{ external_charge_id: 'order-unknown', email: 'grace@customer.example.com' }, 'not_found', null],
  ];
  for (const [fields, finding, sale_id] of cases) {
    const status = finding === 'credited' ? 'accepted' : 'open';
    t.match(await claims(fields), { finding, sale_id, status }, JSON.stringify(fields));
  }
  t.equal((await shop.list('sale_claims', 'status=open')).length, cases.length - 1);
  t.ok(last);
});

t.test('a claim that is accepted credits its partner, and one that is rejected changes nothing', async (t) => {
  const { shop, ada, bob, claims } = await open();
  const sale = await shop.sale({ partner_id: ada.id, external_charge_id: 'order-1' });
  const resolve = ({ id }: Json, fields: Json) =>
    shop.merchant.request('POST', `/v1/sale_claims/${id}/resolve`, fields);
  const [rejected, accepted] = [
    await claims({ external_charge_id: 'order-1' }),
    await claims({ external_charge_id: 'order-1' }),
  ];
  t.match((await resolve(rejected, { resolution: 'rejected', resolution_note: 'No.' })).body, {
    status: 'rejected',
    resolution_note: 'No.',
  });
  t.equal((await shop.merchant.get(`/v1/sales/${sale.id}`)).partner_id, ada.id);
  t.match((await resolve(accepted, { resolution: 'accepted' })).body, { status: 'accepted', sale_id: sale.id });
  t.match(await shop.commissionsOf(sale), [{ partner_id: bob.id, amount_minor: 2_000 }]);
  t.match(await resolve(accepted, { resolution: 'accepted' }), {
    status: 409,
    body: { error: { code: 'invalid_state_transition' } },
  });
  const unknown = await claims({ external_charge_id: 'order-2' });
  t.match(await resolve(unknown, { resolution: 'accepted' }), { status: 400, body: { error: { param: 'sale_id' } } });
  const found = await shop.sale({ external_charge_id: 'order-two' });
  t.match((await resolve(unknown, { resolution: 'accepted', sale_id: found.id })).body, { sale_id: found.id });
  const other = await openShop(rail, {}, shop.merchant);
  const elsewhere = await other.sale();
  const again = await claims({ external_charge_id: 'order-3' });
  t.match(await resolve(again, { resolution: 'rejected', sale_id: elsewhere.id }), {
    status: 404,
    body: { error: { param: 'sale_id' } },
  });
  t.match(await resolve(again, { resolution: 'accepted', sale_id: elsewhere.id }), {
    status: 404,
    body: { error: { param: 'sale_id' } },
  });
});

t.test('bad claims say which field is wrong', async (t) => {
  const { shop, bob } = await open();
  for (const [fields, param] of [
    [{}, 'external_charge_id'],
    [{ coupon_code: 'BOB10' }, 'occurred_at'],
    [{ external_charge_id: 'x', partner_id: 'part_01m8j0hf99eh5va148mhqd9fw8' }, 'partner_id'],
  ] as const) {
    const body = { program_id: shop.program_id, partner_id: bob.id, ...fields };
    const answer = await shop.merchant.request('POST', '/v1/sale_claims', body);
    t.equal(answer.body.error?.param, param, JSON.stringify(fields));
  }
});

t.test('an erased customer is in no claim', async (t) => {
  const { shop, ada, claims } = await open();
  const customer = await shop.customer({ partner_id: ada.id, email: 'gone@customer.example.com' });
  const sale = await shop.sale({ customer_id: customer.id, external_charge_id: 'order-gone' });
  const by_sale = await claims({ external_charge_id: 'order-gone', note: 'Gone told me.' });
  const by_email = await claims({ email: 'Gone@customer.example.com' });
  const exported = await shop.merchant.get(`/v1/customers/${customer.id}/export`);
  t.same(exported.sale_claims.map(({ id }: Json) => id).sort(), [by_sale.id, by_email.id].sort());
  await shop.merchant.request('DELETE', `/v1/customers/${customer.id}`);
  for (const { id } of [by_sale, by_email])
    t.match(await shop.merchant.get(`/v1/sale_claims/${id}`), { email: null, note: null, sale_id: sale.id });
});

t.test('accepts one claim of a sale at most, also of two that are accepted at once', async (t) => {
  const { shop, ada, bob } = await open();
  const eve = await shop.partner();
  const claimOf = (partner: Json, fields: Json) =>
    shop.merchant.post('/v1/sale_claims', { program_id: shop.program_id, partner_id: partner.id, ...fields });
  const resolve = ({ id }: Json, resolution = 'accepted') =>
    shop.merchant.request('POST', `/v1/sale_claims/${id}/resolve`, { resolution });
  for (let nth = 0; nth < 5; nth++) {
    const external_charge_id = fresh('order-claimed-twice');
    const sale = await shop.sale({ partner_id: ada.id, external_charge_id });
    const claims = [await claimOf(bob, { external_charge_id }), await claimOf(eve, { external_charge_id })];
    const answers = await Promise.all(claims.map((claim) => resolve(claim)));
    t.same(answers.map(({ status }) => status).sort(), [200, 409]);
    const refused = answers.findIndex(({ status }) => status === 409);
    t.match(answers[refused]?.body.error, {
      ...{ code: 'invalid_state_transition', message: /of another partner is accepted for this sale/ },
    });
    const winner = [bob, eve][1 - refused] as Json;
    t.equal((await shop.merchant.get(`/v1/sales/${sale.id}`)).partner_id, winner.id);
    t.equal((await resolve(claims[refused] as Json, 'rejected')).status, 200);
    // Given to the other one by hand: the claim of theirs is not accepted beside.
    const loser = [bob, eve][refused] as Json;
    await shop.merchant.patch(`/v1/sales/${sale.id}`, { partner_id: loser.id });
    t.match(await claimOf(loser, { external_charge_id }), { finding: 'credited', status: 'open' });
    t.match(await claimOf(winner, { external_charge_id }), { finding: /^found/, status: 'open' });
  }
});
