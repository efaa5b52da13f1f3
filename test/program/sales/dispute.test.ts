import t from 'tap';
import { type Json, sql, startRail } from '../../harness.ts';
import { fresh, openShop, type Shop } from '../../shop.ts';

const rail = await startRail();

const is = ['type', 'commission_id', 'status', 'previous_status', 'amount_minor', 'kind', 'reason'];
const told = async (shop: Shop) =>
  (await shop.events()).map(({ type, data }) =>
    Object.fromEntries(Object.entries({ type, ...data }).filter(([name]) => is.includes(name))),
  );

const dispute = (shop: Shop, sale: Json, fields: Json = {}) =>
  shop.merchant.post('/v1/disputes', { sale_id: sale.id, external_dispute_id: fresh('dp'), ...fields });
const close = (shop: Shop, { id }: Json, outcome: string) =>
  shop.merchant.post(`/v1/disputes/${id}/close`, { outcome });

async function shopWithSale(fields: Json = {}) {
  const shop = await openShop(rail);
  await shop.rule();
  const customer = await shop.referred(await shop.partner());
  const sale = await shop.sale({ customer_id: customer.id, ...fields });
  const [commission] = sale.commissions as [Json];
  await shop.events();
  return { shop, customer, sale, commission, get: async () => shop.merchant.get(`/v1/commissions/${commission.id}`) };
}

t.test('an open dispute puts the unpaid commission on hold, and raises a flag', async (t) => {
  const { shop, customer, sale, commission, get } = await shopWithSale();
  const opened = await dispute(shop, sale, { external_dispute_id: 'dp_1', reason: 'fraudulent', amount_minor: 4_000 });
  t.match(opened, {
    ...{
      object: 'dispute',
      id: /^dsp_/,
      program_id: shop.program_id,
      sale_id: sale.id,
      amount_minor: 4_000,
      currency: 'USD',
    },
    ...{ status: 'open', external_dispute_id: 'dp_1', reason: 'fraudulent', refund_id: null, closed_at: null },
  });
  t.match(await get(), { status: 'on_hold', hold_reason: 'dispute', held_at: String, mature_at: commission.mature_at });
  t.match(await told(shop), [
    { type: 'commission.updated', commission_id: commission.id, status: 'on_hold', previous_status: 'pending' },
    { type: 'risk_flag.created' },
  ]);
  const [flag] = await shop.list('risk_flags', 'kind=dispute');
  const evidence = { dispute_id: opened.id, sale_id: sale.id, amount_minor: 4_000, currency: 'USD' };
  t.match(flag, { partner_id: customer.partner_id, customer_id: customer.id, severity: 'high', evidence });

  await t.test('which does not mature, and which no batch pays', async (t) => {
    await rail.tick('program/mature_commissions', new Date(Date.now() + 400 * 86_400_000).toISOString());
    const { data } = await shop.merchant.get(`/v1/commissions/maturing?program_id=${shop.program_id}&status=on_hold`);
    t.same(
      data.map(({ id }: Json) => id),
      [commission.id],
    );
    t.match(await get(), { status: 'on_hold' });
    t.match(await shop.merchant.request('POST', `/v1/commissions/${commission.id}/release`), {
      status: 409,
      body: { error: { code: 'invalid_state_transition', message: /Close the dispute/ } },
    });
  });

  await t.test('a repeated id answers with the dispute, and lists filter by it', async (t) => {
    const answer = await shop.merchant.request('POST', '/v1/disputes', {
      sale_id: sale.id,
      external_dispute_id: 'dp_1',
    });
    const error = { code: 'resource_already_exists', param: 'external_dispute_id' };
    t.match(answer, { status: 409, body: { error, existing: { id: opened.id } } });
    for (const query of ['external_dispute_id=dp_1', 'status=open', `sale_id=${sale.id}`])
      t.match(await shop.list('disputes', query), [{ id: opened.id }]);
    t.same(await shop.list('disputes', 'status=lost'), []);
  });

  await t.test('one that is won releases it', async (t) => {
    await shop.events();
    const won = await close(shop, opened, 'won');
    t.match(won, { status: 'won', closed_at: String, refund_id: null });
    t.match(await get(), { status: 'pending', hold_reason: null, held_at: null, amount_minor: 2_000 });
    t.match(await told(shop), [{ type: 'commission.updated', status: 'pending', previous_status: 'on_hold' }]);
    t.match(await shop.merchant.request('POST', `/v1/disputes/${opened.id}/close`, { outcome: 'lost' }), {
      status: 409,
      body: { error: { message: /already won.*another dispute/s } },
    });
  });
});

t.test('one that is lost refunds the sale, and one that is won after that gives it back', async (t) => {
  const { shop, customer, sale, get } = await shopWithSale({ occurred_at: '2026-01-05T10:00:00.000Z' });
  const opened = await dispute(shop, sale, { amount_minor: 2_500 });
  t.match(await get(), { status: 'on_hold' });
  const lost = await close(shop, opened, 'lost');
  const refund = await shop.merchant.get(`/v1/refunds/${lost.refund_id}`);
  t.match(refund, {
    ...{ sale_id: sale.id, amount_minor: 2_500, reason: 'dispute_lost', reversed_at: null },
    external_refund_id: opened.external_dispute_id,
  });
  t.match(await shop.merchant.get(`/v1/sales/${sale.id}`), { status: 'partially_refunded', refunded_minor: 2_500 });
  t.match(await get(), { status: 'due', amount_minor: 1_500, hold_reason: null }, 'what is left is released');

  const won = await close(shop, opened, 'won');
  t.match(won, { status: 'won', refund_id: refund.id });
  t.match(await shop.merchant.get(`/v1/refunds/${refund.id}`), { reversed_at: String, reversal_reason: 'dispute_won' });
  t.match(await shop.merchant.get(`/v1/sales/${sale.id}`), { status: 'paid', refunded_minor: 0, refunded_at: null });
  t.match(await get(), { status: 'due', amount_minor: 2_000 });
  t.match(await shop.merchant.get(`/v1/customers/${customer.id}`), { status: 'active' });
});

t.test('one that is lost takes its amount, in whichever order a refund of the sale fails', async (t) => {
  const cases = [
    { refunded: 10_000, disputed: 10_000 },
    { refunded: 6_000, disputed: 7_000 },
  ];
  for (const { refunded, disputed } of cases)
    for (const order of ['fails lost', 'lost fails']) {
      const { shop, sale } = await shopWithSale({ occurred_at: '2026-01-05T10:00:00.000Z' });
      await shop.refund(sale, { amount_minor: refunded, refunded_at: '2026-01-10T00:00:00.000Z' });
      const [refund] = await shop.list('refunds');
      const opened = await dispute(shop, sale, { amount_minor: disputed });
      const steps: Record<string, () => Promise<Json>> = {
        fails: () => shop.merchant.post(`/v1/refunds/${refund?.id}/reverse`),
        lost: () => close(shop, opened, 'lost'),
      };
      for (const step of order.split(' ')) await steps[step]?.();
      const { refund_id } = await shop.merchant.get(`/v1/disputes/${opened.id}`);
      const taken = { amount_minor: disputed, external_refund_id: opened.external_dispute_id, reversed_at: null };
      t.match(await shop.merchant.get(`/v1/refunds/${refund_id}`), taken, order);
      t.match(await shop.merchant.get(`/v1/sales/${sale.id}`), { refunded_minor: disputed }, order);
      const earned = (await shop.commissionsOf(sale)).map(({ amount_minor }) => amount_minor);
      t.same(earned, disputed === 10_000 ? [] : [600], order);
      await close(shop, opened, 'won');
      t.match(await shop.merchant.get(`/v1/sales/${sale.id}`), { refunded_minor: 0, status: 'paid' }, order);
      t.match(await shop.commissionsOf(sale), [{ amount_minor: 2_000 }], order);
    }
});

t.test('a refund of a lost dispute that a request reverses is not made again', async (t) => {
  const { shop, sale } = await shopWithSale();
  const { refund_id } = await close(shop, await dispute(shop, sale, { amount_minor: 4_000 }), 'lost');
  await shop.refund(sale, { amount_minor: 6_000 });
  for (const { id } of await shop.list('refunds')) await shop.merchant.post(`/v1/refunds/${id}/reverse`);
  t.match(await shop.merchant.get(`/v1/sales/${sale.id}`), { refunded_minor: 0 });
  t.match(await shop.merchant.get(`/v1/refunds/${refund_id}`), { reversed_at: String });
});

t.test('the refund of a lost dispute is of when it was decided, and not before the sale', async (t) => {
  for (const [closed_at, refunded_at] of [
    ['2026-03-01T10:00:00.000Z', '2026-03-01T10:00:00.000Z'],
    ['2025-12-01T10:00:00.000Z', '2026-01-05T10:00:00.000Z'],
  ]) {
    const { shop, sale } = await shopWithSale({ occurred_at: '2026-01-05T10:00:00.000Z' });
    const { id } = await dispute(shop, sale);
    const closed = await shop.merchant.post(`/v1/disputes/${id}/close`, { outcome: 'lost', closed_at });
    t.match(await shop.merchant.get(`/v1/refunds/${closed.refund_id}`), { refunded_at });
    t.match(await shop.merchant.get(`/v1/sales/${sale.id}`), { refunded_at });
  }
});

t.test('of a paid commission, a lost dispute is clawed back, and a reversal pays it again', async (t) => {
  const { shop, customer, sale, commission, get } = await shopWithSale();
  await shop.pay(commission);
  const opened = await dispute(shop, sale);
  t.match(await get(), { status: 'paid' }, 'what is paid stays');
  await shop.events();
  const lost = await close(shop, opened, 'lost');
  t.match(await shop.merchant.get(`/v1/customers/${customer.id}`), { status: 'refunded' });
  t.match(await shop.commissionsOf(sale), [{}, { kind: 'clawback', amount_minor: -2_000, status: 'due' }]);

  await shop.events();
  const reversed = await shop.merchant.post(`/v1/refunds/${lost.refund_id}/reverse`, { reason: 'The bank erred.' });
  t.match(reversed, { id: lost.refund_id, reversed_at: String, reversal_reason: 'The bank erred.' });
  t.match(
    await told(shop),
    [
      { type: 'customer.updated', status: 'active' },
      { type: 'sale.updated', amount_minor: 10_000 },
      { type: 'commission.created', amount_minor: 2_000, status: 'due' },
    ].slice(1),
  );
  t.match(await shop.commissionsOf(sale), [{}, { kind: 'clawback' }, { kind: 'bonus', amount_minor: 2_000 }]);
  t.match(await shop.merchant.get(`/v1/customers/${customer.id}`), { status: 'active' });
  const entries = await rail.query<Json>(
    sql`select kind, cause, amount_minor, refund_id from program.commission_entry where sale_id = ${sale.id} order by position`,
  );
  t.match(entries.at(-1), {
    kind: 'adjusted',
    cause: 'refund_reversed',
    amount_minor: 2_000,
    refund_id: lost.refund_id,
  });
  const again = await shop.merchant.request('POST', `/v1/refunds/${lost.refund_id}/reverse`);
  t.match(again, { status: 409, body: { error: { message: 'The refund is already reversed.' } } });
});

t.test('a commission that a payout frees is on hold while its sale is disputed', async (t) => {
  const { shop, sale, commission, get } = await shopWithSale({ occurred_at: '2026-01-05T10:00:00.000Z' });
  await rail.query(sql`update program.program set payout_methods = '{bank_transfer}' where id = ${shop.program_id}`);
  await shop.lock(commission);
  const payout_id = (await get()).payout_id;
  const opened = await dispute(shop, sale);
  t.match(await get(), { status: 'due', payout_id }, 'it was sent');
  await rail.query(
    sql`update program.payout_attempt set status = 'failed', ended_at = now() where payout_id = ${payout_id}`,
  );
  await rail.query(sql`update program.payout set status = 'failed', failed_at = now() where id = ${payout_id}`);
  await shop.merchant.delete(`/v1/payouts/${payout_id}`);
  t.match(await get(), { status: 'on_hold', hold_reason: 'dispute', payout_id: null });
  await close(shop, opened, 'won');
  t.match(await get(), { status: 'due' });
});

t.test('by hand', async (t) => {
  const { shop, commission, get } = await shopWithSale();
  const post = (action: string, body: Json = {}) =>
    shop.merchant.request('POST', `/v1/commissions/${commission.id}/${action}`, body);
  await post('approve');
  t.match((await post('hold', { reason: ' under review ' })).body, { status: 'on_hold', hold_reason: 'under review' });
  t.match(await post('hold'), { status: 409, body: { error: { message: /on hold. Release it first/ } } });
  t.match((await post('release')).body, { status: 'approved', hold_reason: null }, 'what it was');
  t.match(await post('release'), { status: 409 });
  t.match(await post('hold', { reason: 'dispute' }), { status: 400, body: { error: { param: 'reason' } } });
  t.match((await post('hold')).body, { hold_reason: 'held_by_hand' });
  t.match((await post('void')).body, { status: 'voided', hold_reason: null, held_at: null });
  t.match(await get(), { status: 'voided' });
});

t.test('what is held by hand stays so while its sale is disputed', async (t) => {
  const { shop, sale, commission, get } = await shopWithSale();
  const release = () => shop.merchant.request('POST', `/v1/commissions/${commission.id}/release`);
  await shop.merchant.post(`/v1/commissions/${commission.id}/hold`);
  const opened = await dispute(shop, sale);
  t.match(await release(), { status: 409, body: { error: { message: /Close the dispute first/ } } });
  t.match(await get(), { status: 'on_hold', hold_reason: 'held_by_hand' });
  await close(shop, opened, 'won');
  t.match(await get(), { status: 'on_hold', hold_reason: 'held_by_hand' });
  t.match(await release(), { status: 200, body: { status: 'pending' } });
});

t.test('of an erased customer, a dispute raises a flag about the partner', async (t) => {
  const { shop, customer, sale } = await shopWithSale();
  await shop.merchant.delete(`/v1/customers/${customer.id}`);
  const { id } = await dispute(shop, sale);
  t.match(await shop.list('risk_flags', 'kind=dispute'), [
    { partner_id: customer.partner_id, customer_id: null, evidence: { dispute_id: id, sale_id: sale.id } },
  ]);
});

t.test('what cannot be', async (t) => {
  const { shop, sale } = await shopWithSale();
  const request = (body: Json) => shop.merchant.request('POST', '/v1/disputes', { sale_id: sale.id, ...body });
  t.match(await request({ amount_minor: 10_001 }), { status: 400, body: { error: { param: 'amount_minor' } } });
  t.match(await request({ sale_id: 'sale_00000000000000000000000000' }), { status: 404 });
  t.match(await request({ opened_at: '2999-01-01T00:00:00.000Z' }), {
    status: 400,
    body: { error: { param: 'opened_at' } },
  });
  const free = await shop.sale({ amount_minor: 0 });
  t.match(await request({ sale_id: free.id }), { status: 400, body: { error: { param: 'sale_id' } } });
  const nobodys = await shop.sale();
  t.match(await request({ sale_id: nobodys.id }), { status: 201 }, 'of a sale without a partner it is recorded');
});

t.test('a deleted sale frees the ids of its disputes', async (t) => {
  const { shop, sale } = await shopWithSale();
  const { external_dispute_id, id } = await dispute(shop, sale);
  await shop.merchant.delete(`/v1/sales/${sale.id}`);
  t.match(await shop.merchant.request('GET', `/v1/disputes/${id}`), { status: 404 });
  t.match(await dispute(shop, await shop.sale(), { external_dispute_id }), { status: 'open' });
});

t.test('the audit finds nothing', async (t) => {
  t.same(await rail.query(sql`select * from program.audit()`), []);
});
