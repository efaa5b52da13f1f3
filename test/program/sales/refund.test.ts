import t from 'tap';
import { type Json, startRail } from '../../harness.ts';
import { fresh, openShop, type Shop } from '../../shop.ts';

const rail = await startRail();

t.test('a refund shrinks the unpaid commission, and tells of both', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  const customer = await shop.referred(await shop.partner());
  const sale = await shop.sale({ customer_id: customer.id });
  await shop.events();
  const after = await shop.refund(sale, { amount_minor: 2_500, external_refund_id: 're_1', reason: 'Late.' });
  t.match(after, { status: 'partially_refunded', refunded_minor: 2_500, refunded_at: String });
  const { partner_id } = customer;
  const [{ id: commission_id }] = sale.commissions;
  t.same(
    (await shop.events()).map(({ type, data }) => ({ type, data })),
    [
      {
        type: 'sale.refunded',
        data: {
          sale_id: sale.id,
          customer_id: customer.id,
          partner_id,
          amount_minor: 2_500,
          currency: 'USD',
          refunded_at: after.refunded_at,
        },
      },
      {
        type: 'commission.updated',
        data: {
          commission_id,
          partner_id,
          amount_minor: 1_500,
          currency: 'USD',
          status: 'pending',
          previous_status: 'pending',
        },
      },
    ],
  );
  t.match(await shop.commissionsOf(sale), [{ id: commission_id, amount_minor: 1_500, base_amount_minor: 7_500 }]);
  t.match(await shop.merchant.get(`/v1/customers/${customer.id}`), { status: 'active' }, 'a part is not all');

  await t.test('the rest voids it, and makes the customer refunded', async (t) => {
    const whole = await shop.refund(sale);
    t.match(whole, { status: 'refunded', refunded_minor: 10_000 });
    t.match(await shop.events(), [
      { type: 'sale.refunded', data: { amount_minor: 7_500 } },
      {
        type: 'commission.voided',
        data: { commission_id, sale_id: sale.id, amount_minor: 1_500, reason: 'sale_refunded' },
      },
    ]);
    t.match(await shop.merchant.get(`/v1/commissions/${commission_id}`), {
      status: 'voided',
      void_reason: 'sale_refunded',
      voided_at: whole.refunded_at,
    });
    t.match(await shop.merchant.get(`/v1/customers/${customer.id}`), { status: 'refunded' });
    t.match(await shop.merchant.request('PATCH', `/v1/customers/${customer.id}`, { status: 'refunded' }), {
      status: 400,
    });
  });

  await t.test('then nothing is left', async (t) => {
    const answer = await shop.merchant.request('POST', `/v1/sales/${sale.id}/refund`, {});
    t.match(answer, { status: 409, body: { error: { type: 'conflict_error', code: 'sale_already_refunded' } } });
  });
});

t.test('a paid or locked commission stays, and a clawback carries the difference', async (t) => {
  const shop = await openShop(rail);
  const rule = await shop.rule();
  const { id: partner_id } = await shop.partner();
  for (const settle of [shop.pay, shop.lock]) {
    const sale = await shop.sale({ partner_id });
    const [paid] = sale.commissions;
    await settle(paid);
    await shop.events();
    await shop.refund(sale, { amount_minor: 2_500 });
    const [refunded, created, ...rest] = await shop.events();
    t.same(rest, []);
    t.equal(refunded?.type, 'sale.refunded');
    const [, clawback] = await shop.commissionsOf(sale);
    t.same(created?.data, {
      commission_id: clawback?.id,
      sale_id: sale.id,
      partner_id,
      amount_minor: -500,
      currency: 'USD',
      status: 'due',
      rule_id: rule.id,
      mature_at: clawback?.mature_at,
      kind: 'clawback',
    });
    t.match(clawback, { kind: 'clawback', clawback_of: paid.id, amount_minor: -500, status: 'due' });
    await shop.refund(sale);
    t.same(
      (await shop.commissionsOf(sale)).map(({ amount_minor }) => amount_minor),
      [2_000, -500, -1_500],
    );
  }
});

t.test('what came after a payment that was undone is taken into account', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  const sale = await shop.sale({ partner_id: (await shop.partner()).id });
  const [first] = sale.commissions;
  await shop.lock(first);
  await shop.merchant.patch(`/v1/sales/${sale.id}`, { amount_minor: 30_000 });
  const [, bonus] = (await shop.commissionsOf(sale)) as [Json, Json];
  t.match(bonus, { kind: 'bonus', amount_minor: 4_000, status: 'due', clawback_of: first.id });
  await shop.pay(bonus);
  await shop.lock(first, false);
  await shop.refund(sale);
  t.match(await shop.commissionsOf(sale), [
    { id: bonus.id, amount_minor: 4_000 },
    { kind: 'clawback', amount_minor: -4_000 },
  ]);
  t.match(await shop.merchant.get(`/v1/commissions/${first.id}`), { status: 'voided', amount_minor: 2_000 });
});

t.test('what was cancelled by hand stays cancelled, and what corrected it goes with the next refund', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  const sale = await shop.sale({ partner_id: (await shop.partner()).id });
  const [first] = sale.commissions;
  await shop.lock(first);
  await shop.refund(sale, { amount_minor: 5_000 });
  await shop.lock(first, false);
  await shop.merchant.post(`/v1/commissions/${first.id}/void`);
  await shop.refund(sale, { amount_minor: 1_000 });
  const left = await shop.commissionsOf(sale);
  t.equal(
    left.reduce((sum, { amount_minor }) => sum + amount_minor, 0),
    0,
  );
  t.ok(left.every(({ kind }) => kind !== 'sale'));
});

t.test(
  'a commission that came back and was deleted by hand stays deleted, whatever became of the one before',
  async (t) => {
    const shop = await openShop(rail);
    await shop.rule();
    const customer = await shop.referred(await shop.partner());
    const sale = await shop.sale({ customer_id: customer.id });
    await shop.refund(sale);
    const corrected = await shop.merchant.patch(`/v1/sales/${sale.id}`, { amount_minor: 30_000 });
    const [back] = await shop.commissionsOf(sale);
    t.match(back, { amount_minor: 4_000, status: 'pending' });
    await shop.merchant.delete(`/v1/commissions/${back?.id}`);
    await shop.refund(corrected, { amount_minor: 5_000 });
    t.same(await shop.commissionsOf(sale), []);
  },
);

/** A paid commission of 2,000, and the clawback of so much of its sale of 10,000. */
async function clawedBack(amount_minor: number): Promise<{ shop: Shop; sale: Json; clawback: Json }> {
  const shop = await openShop(rail);
  await shop.rule();
  const sale = await shop.sale({ partner_id: (await shop.partner()).id });
  await shop.pay(sale.commissions[0]);
  await shop.refund(sale, { amount_minor });
  const [, clawback] = (await shop.commissionsOf(sale)) as [Json, Json];
  return { shop, sale, clawback };
}

/** Cancels a commission by hand. */
const cancelBy = (shop: Shop, cancel: string, path: string): Promise<Json> =>
  cancel === 'delete' ? shop.merchant.delete(path) : shop.merchant.post(`${path}/${cancel}`);

const amounts = (some: Json[]): number[] => some.map(({ amount_minor }) => amount_minor);

t.test('a clawback that was cancelled by hand is not made again by the next refund', async (t) => {
  for (const cancel of ['void', 'reject', 'delete']) {
    const { shop, sale, clawback } = await clawedBack(5_000);
    const path = `/v1/commissions/${clawback.id}`;
    await cancelBy(shop, cancel, path);
    t.same(await rail.audit(), [], 'which is no fault');
    await shop.refund(sale, { amount_minor: 1_000 });
    t.same(amounts(await shop.commissionsOf(sale)), [2_000, -200], cancel);
    await shop.refund(sale);
    t.same(amounts(await shop.commissionsOf(sale)), [2_000, -200, -800], cancel);
    await shop.merchant.delete(`/v1/sales/${sale.id}`);
    t.equal(
      (await shop.commissionsOf(sale)).reduce((sum, { amount_minor }) => sum + amount_minor, 0),
      1_000,
    );
  }
});

t.test('a clawback that was edited stays so, and the next refund asks for its own part', async (t) => {
  const { shop, sale, clawback } = await clawedBack(5_000);
  for (const amount_minor of [-700, -400])
    await shop.merchant.patch(`/v1/commissions/${clawback.id}`, { amount_minor });
  await shop.refund(sale, { amount_minor: 1_000 });
  t.same(amounts(await shop.commissionsOf(sale)), [2_000, -400, -200]);
});

t.test('a clawback that withholds more by hand and is cancelled later leaves the partner all of it', async (t) => {
  for (const cancel of ['void', 'reject', 'delete', 'edit']) {
    const { shop, sale, clawback } = await clawedBack(1_000);
    const path = `/v1/commissions/${clawback.id}`;
    await shop.merchant.patch(path, { amount_minor: -700 });
    await shop.refund(sale, { amount_minor: 5_000 });
    t.same(amounts(await shop.commissionsOf(sale)), [2_000, -700, -500], 'what was withheld is not taken back too');
    if (cancel === 'edit') await shop.merchant.patch(path, { amount_minor: -100 });
    else await cancelBy(shop, cancel, path);
    t.same(await rail.audit(), [], cancel);
    await shop.refund(sale, { amount_minor: 1_000 });
    const left = cancel === 'edit' ? [2_000, -100, -500, -200] : [2_000, -500, -200];
    t.same(amounts(await shop.commissionsOf(sale)), left, `${cancel}: and the next refund asks for its own part`);
  }
});

t.test('an edited commission stays edited: refunds and corrections scale it', async (t) => {
  for (const rule of [{}, { rate_type: 'fixed', rate_value: 700 }, { max_commission_minor: 900 }]) {
    const shop = await openShop(rail);
    await shop.rule(rule);
    const sale = await shop.sale({ partner_id: (await shop.partner()).id });
    const [{ id }] = sale.commissions;
    await shop.merchant.patch(`/v1/commissions/${id}`, { amount_minor: 1_501 });
    const now = async () => amounts(await shop.commissionsOf(sale));
    await shop.refund(sale, { amount_minor: 5_000 });
    t.same(await now(), [751], 'half away from zero');
    await shop.merchant.patch(`/v1/sales/${sale.id}`, { amount_minor: 20_000 });
    t.same(await now(), [2_252], 'of what is left of the base');
    await shop.merchant.patch(`/v1/sales/${sale.id}`, { amount_minor: 5_000 });
    t.same(await now(), []);
    await shop.merchant.patch(`/v1/sales/${sale.id}`, { amount_minor: 10_000 });
    t.same(await now(), [751], 'also when it comes back');
    t.same(await rail.audit(), []);
    const [back] = (await shop.commissionsOf(sale)) as [Json];
    await shop.pay(back);
    await shop.refund(sale, { amount_minor: 2_500 });
    t.same(await now(), [751, -376], 'and when it is paid');
  }
});

t.test('a fixed commission is whole until all is refunded', async (t) => {
  const shop = await openShop(rail, { currency: 'JPY' });
  await shop.rule({ rate_type: 'fixed', rate_value: 700 });
  const sale = await shop.sale({ partner_id: (await shop.partner()).id });
  await shop.refund(sale, { amount_minor: 9_999 });
  t.match(await shop.commissionsOf(sale), [{ amount_minor: 700, currency: 'JPY' }]);
  await shop.refund(sale);
  t.same(await shop.commissionsOf(sale), []);
});

t.test('a customer is refunded as long as a correction leaves nothing of the sale', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  const { id: customer_id } = await shop.customer({ partner_id: (await shop.partner()).id });
  const sale = await shop.sale({ customer_id });
  const status = async () => (await shop.merchant.get(`/v1/customers/${customer_id}`)).status;
  await shop.refund(sale, { amount_minor: 4_000 });
  await shop.merchant.patch(`/v1/sales/${sale.id}`, { amount_minor: 4_000 });
  t.equal(await status(), 'refunded');
  await shop.merchant.patch(`/v1/sales/${sale.id}`, { amount_minor: 10_000 });
  t.equal(await status(), 'active');
});

t.test('the base of a capped commission follows the refund, though the amount does not', async (t) => {
  const shop = await openShop(rail);
  await shop.rule({ max_commission_minor: 500 });
  const sale = await shop.sale({ partner_id: (await shop.partner()).id });
  await shop.refund(sale, { amount_minor: 5_000 });
  t.match(await shop.commissionsOf(sale), [{ amount_minor: 500, base_amount_minor: 5_000 }]);
});

t.test('what was approved stays approved when it comes back', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  const sale = await shop.sale({ partner_id: (await shop.partner()).id });
  const { approved_at } = await shop.merchant.post(`/v1/commissions/${sale.commissions[0].id}/approve`);
  await shop.merchant.patch(`/v1/sales/${sale.id}`, { amount_minor: 0 });
  await shop.events();
  await shop.merchant.patch(`/v1/sales/${sale.id}`, { amount_minor: 10_000 });
  t.match(await shop.commissionsOf(sale), [{ status: 'approved', approved_at, amount_minor: 2_000 }]);
  const told = (await shop.events()).filter(({ type }) => type.startsWith('commission.'));
  t.match(told, [
    { type: 'commission.created', data: { status: 'pending', amount_minor: 2_000 } },
    { type: 'commission.updated', data: { status: 'approved', previous_status: 'pending' } },
  ]);
  t.equal(told.length, 2);
});

t.test('what is held by hand is on hold when it comes back, until it is released by hand', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  for (const is_approved of [true, false]) {
    const sale = await shop.sale({ partner_id: (await shop.partner()).id });
    const act = (action: string, { id }: Json, body: Json = {}) =>
      shop.merchant.post(`/v1/commissions/${id}/${action}`, body);
    if (is_approved) await act('approve', sale.commissions[0]);
    await act('hold', sale.commissions[0], { reason: 'under review' });
    for (const _ of [1, 2]) {
      await shop.refund(sale);
      t.same(await shop.commissionsOf(sale), []);
      const [refund] = (await shop.list('refunds')) as [Json];
      await shop.merchant.post(`/v1/refunds/${refund.id}/reverse`);
      const held = { status: 'on_hold', hold_reason: 'under review', held_at: String, amount_minor: 2_000 };
      t.match(await shop.commissionsOf(sale), [held]);
    }
    const [commission] = (await shop.commissionsOf(sale)) as [Json];
    t.match(await act('release', commission), { status: is_approved ? 'approved' : 'pending', hold_reason: null });
    await shop.refund(sale);
    const [refund] = (await shop.list('refunds')) as [Json];
    await shop.merchant.post(`/v1/refunds/${refund.id}/reverse`);
    t.match(await shop.commissionsOf(sale), [{ status: is_approved ? 'approved' : 'pending' }]);
  }
});

t.test('the audit computes a base to the last unit, however large', async () => {
  const shop = await openShop(rail, { commission_on_net_revenue: true });
  await shop.rule({ rate_value: 10_000 });
  const { id: partner_id } = await shop.partner();
  const sale = await shop.sale({ partner_id, amount_minor: 9_007_198_998_307_933, tax_minor: 512_866_116 });
  await shop.refund(sale, { amount_minor: 3_134_901_420 });
});

t.test('a clawback of a deleted sale may be forgiven', async () => {
  const shop = await openShop(rail);
  await shop.rule();
  const { id: partner_id } = await shop.partner();
  const sale = await shop.sale({ partner_id });
  await shop.pay(sale.commissions[0]);
  await shop.merchant.delete(`/v1/sales/${sale.id}`);
  const clawback = (await shop.commissionsOf(sale)).find(({ kind }) => kind === 'clawback') as Json;
  await shop.merchant.post(`/v1/commissions/${clawback.id}/void`);
});

t.test('more than is left is refused, and so is a refund that was told before', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  const { id: partner_id } = await shop.partner();
  const [sale, other] = [await shop.sale({ partner_id }), await shop.sale({ partner_id })];
  const refund = ({ id }: Json, body: Json) => shop.merchant.request('POST', `/v1/sales/${id}/refund`, body);
  t.match(await refund(sale, { amount_minor: 10_001 }), {
    status: 400,
    body: { error: { code: 'refund_exceeds_sale', param: 'amount_minor' } },
  });
  for (const amount_minor of [0, -1, 1.5]) t.equal((await refund(sale, { amount_minor })).status, 400);
  const external_refund_id = fresh('refund');
  t.equal((await refund(sale, { amount_minor: 100, external_refund_id })).status, 200);
  for (const again of [sale, other]) {
    t.match(await refund(again, { amount_minor: 100, external_refund_id }), {
      status: 409,
      body: {
        error: { code: 'resource_already_exists', param: 'external_refund_id' },
        existing: { object: 'refund', id: /^rfd_/, sale_id: sale.id, external_refund_id, amount_minor: 100 },
      },
    });
  }
  t.match(await shop.merchant.get(`/v1/sales/${other.id}`), { refunded_minor: 0 });
});

t.test('an import that was rolled back can be told again, refunds included', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  const { id: partner_id } = await shop.partner();
  const [external_charge_id, external_refund_id] = [fresh('charge'), fresh('refund')];
  for (let nth = 0; nth < 2; nth++) {
    const sale = await shop.sale({ partner_id, external_charge_id });
    t.match(await shop.refund(sale, { amount_minor: 100, external_refund_id }), { refunded_minor: 100 });
    await shop.merchant.delete(`/v1/sales/${sale.id}`);
  }
});

t.test('refunds are records, newest first, of a program or of a sale', async (t) => {
  const shop = await openShop(rail, { currency: 'JPY' });
  const { id: partner_id } = await shop.partner();
  const [sale, other] = [await shop.sale({ partner_id }), await shop.sale({ partner_id })];
  const external_refund_id = fresh('refund');
  await shop.refund(sale, { amount_minor: 2_500, external_refund_id, reason: 'Late.' });
  await shop.refund(sale, { amount_minor: 500 });
  const { refunded_at } = await shop.refund(other);
  const all = await shop.list('refunds');
  t.same(
    all.map(({ sale_id, amount_minor }) => [sale_id, amount_minor]),
    [
      [other.id, 10_000],
      [sale.id, 500],
      [sale.id, 2_500],
    ],
  );
  const [newest, , first] = all as [Json, Json, Json];
  t.same(newest, {
    id: newest.id,
    object: 'refund',
    program_id: shop.program_id,
    sale_id: other.id,
    amount_minor: 10_000,
    currency: 'JPY',
    external_refund_id: null,
    reason: null,
    refunded_at,
    reversed_at: null,
    reversal_reason: null,
    created_at: refunded_at,
    updated_at: refunded_at,
  });
  t.match(newest.id, /^rfd_/);
  t.match(first, { external_refund_id, reason: 'Late.' });
  t.same(await shop.merchant.get(`/v1/refunds/${first.id}`), first);
  t.match(await shop.list('refunds', `sale_id=${other.id}`), [{ id: newest.id }]);
  t.match(await shop.list('refunds', `external_refund_id=${external_refund_id}`), [{ id: first.id }]);
  t.equal((await shop.list('refunds', `starting_after=${newest.id}`)).length, 2);
  t.match((await shop.list('refunds', 'expand[]=sale'))[0], { sale: { id: other.id } });

  await t.test('which go with their sale', async (t) => {
    await shop.merchant.delete(`/v1/sales/${other.id}`);
    t.equal((await shop.list('refunds')).length, 2);
    t.equal((await shop.merchant.request('GET', `/v1/refunds/${newest.id}`)).status, 404);
  });
});

t.test('a refund may say when it happened: after the sale, and at most a day from now', async (t) => {
  const shop = await openShop(rail);
  const { id: partner_id } = await shop.partner();
  const sale = await shop.sale({ partner_id, occurred_at: '2026-02-01T00:00:00Z' });
  const at = (refunded_at: string, amount_minor = 100) => ({ amount_minor, refunded_at });
  await shop.events();
  t.match(await shop.refund(sale, at('2026-03-02T01:00:00+01:00')), { refunded_at: '2026-03-02T00:00:00.000Z' });
  t.match(await shop.events(), [{ type: 'sale.refunded', data: { refunded_at: '2026-03-02T00:00:00.000Z' } }]);
  t.match(
    await shop.refund(sale, at('2026-02-01T00:00:00Z')),
    { refunded_at: '2026-03-02T00:00:00.000Z' },
    'the last one',
  );
  t.match(await shop.events(), [{ data: { refunded_at: '2026-02-01T00:00:00.000Z' } }], 'of this refund');
  const days = (count: number) => new Date(Date.now() + count * 86_400_000).toISOString();
  t.match(await shop.refund(sale, at(days(0.9))), { status: 'partially_refunded' });
  for (const refunded_at of ['2026-01-31T23:59:59.999Z', days(1.1)]) {
    t.match(await shop.merchant.request('POST', `/v1/sales/${sale.id}/refund`, at(refunded_at)), {
      status: 400,
      body: { error: { code: 'invalid_parameter', param: 'refunded_at' } },
    });
  }
  t.match(
    (await shop.list('refunds')).map(({ refunded_at }) => refunded_at),
    [String, '2026-02-01T00:00:00.000Z', '2026-03-02T00:00:00.000Z'],
  );
});

t.test('a refund may be from before Rail recorded its sale', async (t) => {
  const shop = await openShop(rail);
  const late = await shop.sale({ occurred_at: '2026-02-01T00:00:00Z' });
  const refund = (sale: Json, refunded_at: string) =>
    shop.merchant.request('POST', `/v1/sales/${sale.id}/refund`, { amount_minor: 100, refunded_at });
  t.match(await refund(late, '2026-02-01T00:00:00Z'), { status: 200 });
  t.match(await refund(late, '2026-01-31T23:59:59Z'), { status: 400, body: { error: { param: 'refunded_at' } } });
  const untimed = await shop.sale();
  t.match(await refund(untimed, '2026-02-02T00:00:00Z'), {
    status: 200,
    body: { refunded_at: '2026-02-02T00:00:00.000Z' },
  });
});

t.test('a sale of 0 has nothing to refund', async (t) => {
  const shop = await openShop(rail);
  const sale = await shop.sale({ amount_minor: 0 });
  const { status, body } = await shop.merchant.request('POST', `/v1/sales/${sale.id}/refund`, {});
  t.equal(status, 400);
  t.match(body.error, { code: 'refund_exceeds_sale', message: /amount of the sale is 0/ });
});
