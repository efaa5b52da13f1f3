import t from 'tap';
import { eventually, type Json, sql, startRail } from '../../harness.ts';
import { fresh, openShop, types } from '../../shop.ts';

const rail = await startRail();

t.test('a commission is approved, matures, and is paid: then it is final', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  const sale = await shop.sale({ partner_id: (await shop.partner()).id });
  const [{ id, mature_at }] = sale.commissions;
  const act = (verb: string, body?: Json) => shop.merchant.request('POST', `/v1/commissions/${id}/${verb}`, body);
  await shop.events();
  t.match(await act('approve'), { status: 200, body: { status: 'approved', approved_at: String } });
  const refusal = { status: 409, body: { error: { code: 'invalid_state_transition' } } };
  t.match(await act('approve'), refusal);

  const before = new Date(Date.parse(mature_at) - 1).toISOString();
  const early = await rail.tick('program/mature_commissions', before);
  const run_id = await rail.tick('program/mature_commissions', mature_at);
  t.not(early, run_id);
  await eventually(async () => (await shop.merchant.get(`/v1/commissions/${id}`)).status === 'due', 'it to be due');
  t.match(
    (await shop.events()).map(({ data: { status, previous_status } }) => [previous_status, status]),
    [
      ['pending', 'approved'],
      ['approved', 'due'],
    ],
  );

  await shop.lock(sale.commissions[0]);
  const locked = { status: 409, body: { error: { code: 'commission_locked' } } };
  for (const verb of ['reject', 'void', 'approve']) t.match(await act(verb), locked, verb);
  t.match(await shop.merchant.request('PATCH', `/v1/commissions/${id}`, { note: 'x' }), locked);
  t.match(await shop.merchant.request('DELETE', `/v1/commissions/${id}`), locked);

  await shop.pay(sale.commissions[0]);
  for (const verb of ['reject', 'void', 'approve']) t.match(await act(verb), refusal, verb);
  t.match(await shop.merchant.request('PATCH', `/v1/commissions/${id}`, { amount_minor: 1 }), refusal);
  t.match(await shop.merchant.request('DELETE', `/v1/commissions/${id}`), refusal);
});

t.test('an unpaid commission is edited, rejected, voided or deleted by hand, and each is told', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  const { id: partner_id } = await shop.partner();
  const earn = async () => {
    const sale = await shop.sale({ partner_id });
    await shop.events();
    return sale.commissions[0].id as string;
  };
  const told = async () => (await shop.events()).map(({ type, data }) => ({ type, data }));

  const edited = await earn();
  await shop.merchant.patch(`/v1/commissions/${edited}`, { amount_minor: 1, note: 'Agreed by phone.' });
  t.match(await told(), [
    {
      type: 'commission.updated',
      data: { commission_id: edited, amount_minor: 1, status: 'pending', previous_status: 'pending' },
    },
  ]);
  const negative = await shop.merchant.request('PATCH', `/v1/commissions/${edited}`, { amount_minor: -1 });
  t.match(negative, { status: 400, body: { error: { param: 'amount_minor' } } });

  const rejected = await earn();
  t.match(await shop.merchant.post(`/v1/commissions/${rejected}/reject`, { note: 'Brand search.' }), {
    status: 'rejected',
    note: 'Brand search.',
  });
  t.match(await told(), [{ type: 'commission.updated', data: { status: 'rejected', previous_status: 'pending' } }]);

  const voided = await earn();
  t.match(await shop.merchant.post(`/v1/commissions/${voided}/void`), {
    status: 'voided',
    void_reason: 'voided_by_hand',
    voided_at: String,
  });
  t.match(await told(), [
    { type: 'commission.voided', data: { commission_id: voided, amount_minor: 2_000, reason: 'voided_by_hand' } },
  ]);

  const deleted = await earn();
  t.same(await shop.merchant.delete(`/v1/commissions/${deleted}`), {
    id: deleted,
    object: 'commission',
    deleted: true,
  });
  t.same(await told(), [{ type: 'commission.deleted', data: { commission_id: deleted, partner_id } }]);
  t.equal((await shop.merchant.request('GET', `/v1/commissions/${deleted}`)).status, 404);

  for (const id of [rejected, voided]) {
    const again = await shop.merchant.request('POST', `/v1/commissions/${id}/approve`);
    t.match(again, { status: 409, body: { error: { code: 'invalid_state_transition' } } });
  }
});

t.test(
  'what corrected a commission goes with it when it is cancelled, and nothing is left to edit of a refunded sale',
  async (t) => {
    const shop = await openShop(rail);
    await shop.rule();
    const { id: partner_id } = await shop.partner();
    const come = async ({ id }: Json) =>
      (await shop.list('commissions', `sale_id=${id}`))
        .filter(({ status }: Json) => !['voided', 'rejected'].includes(status))
        .map(({ kind, amount_minor }: Json) => [kind, amount_minor]);
    /** Makes the commission of a sale that was refunded while it was in a payout. */
    const freed = async (refund: Json) => {
      const sale = await shop.sale({ partner_id });
      const [commission] = sale.commissions;
      await shop.lock(commission);
      await shop.refund(sale, refund);
      await shop.lock(commission, false);
      return { sale, path: `/v1/commissions/${commission.id}`, clawback: (await come(sale))[0] };
    };
    const refused = {
      status: 409,
      body: { error: { code: 'invalid_state_transition', message: /Nothing is left of the sale/ } },
    };
    for (const [method, verb] of [
      ['POST', '/void'],
      ['POST', '/reject'],
      ['DELETE', ''],
    ] as const) {
      const whole = await freed({});
      t.same(whole.clawback, ['clawback', -2_000]);
      t.match(await shop.merchant.request('PATCH', whole.path, { amount_minor: 500 }), refused);
      t.equal((await shop.merchant.patch(whole.path, { note: 'Refunded.' })).note, 'Refunded.');
      const half = await freed({ amount_minor: 5_000 });
      t.same(half.clawback, ['clawback', -1_000]);
      for (const { path, sale } of [whole, half]) {
        await shop.events();
        t.equal((await shop.merchant.request(method, `${path}${verb}`)).status, 200);
        t.same(await come(sale), [], `${method} ${verb}`);
        const told = (await shop.events()).map(({ type }) => type);
        t.same(told.slice(-1), ['commission.deleted'], 'of the clawback');
      }
    }
    const { sale, path } = await freed({});
    const [clawback] = await shop.list('commissions', `sale_id=${sale.id}&kind=clawback`);
    await shop.lock(clawback as Json);
    await shop.merchant.post(`${path}/void`);
    const left = [
      ['bonus', 2_000],
      ['clawback', -2_000],
    ];
    t.same((await come(sale)).toSorted(), left, 'a clawback in a payout is balanced');
    t.same(await rail.audit(), []);
  },
);

t.test('only an active partner can get a bonus', async (t) => {
  const shop = await openShop(rail);
  const [suspended, pending] = [await shop.partner(), await shop.partner({ status: 'pending' })];
  await shop.merchant.patch(`/v1/partners/${suspended.id}`, { status: 'suspended' });
  const bonus = ({ id }: { id?: string }) =>
    shop.merchant.request('POST', '/v1/commissions', {
      program_id: shop.program_id,
      partner_id: id,
      amount_minor: 500,
    });
  for (const partner of [suspended, pending]) {
    t.match(await bonus(partner), { status: 409, body: { error: { code: 'invalid_state_transition' } } });
  }
  await shop.merchant.patch(`/v1/partners/${suspended.id}`, { status: 'active' });
  t.match(await bonus(suspended), { status: 201 });
});

t.test('a bonus is due at once, or when it says', async (t) => {
  const shop = await openShop(rail);
  const partner = await shop.partner();
  await shop.events();
  const bonus = { program_id: shop.program.id, partner_id: partner.id, amount_minor: 5_000 };
  const now = await shop.merchant.post('/v1/commissions', { ...bonus, note: 'Thank you.' });
  t.match(now, { kind: 'bonus', status: 'due', currency: 'USD', sale_id: null, rule_id: null, customer_id: null });
  t.same(
    (await shop.events()).map(({ type, data }) => ({ type, data })),
    [
      {
        type: 'commission.created',
        data: {
          commission_id: now.id,
          sale_id: null,
          partner_id: partner.id,
          amount_minor: 5_000,
          currency: 'USD',
          status: 'due',
          rule_id: null,
          mature_at: now.mature_at,
        },
      },
    ],
  );
  const later = await shop.merchant.post('/v1/commissions', {
    ...bonus,
    mature_at: '2100-01-01T00:00:00Z',
    currency: 'EUR',
  });
  t.match(later, { status: 'pending', mature_at: '2100-01-01T00:00:00.000Z', currency: 'EUR' });
  for (const amount_minor of [0, -1]) {
    t.equal((await shop.merchant.request('POST', '/v1/commissions', { ...bonus, amount_minor })).status, 400);
  }
});

t.test('many commissions mature in one run, each told once, but for one that a transaction holds', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  const { id: partner_id } = await shop.partner();
  // More than two transactions of it, most of the same moment.
  const sale = { program_id: shop.program_id, partner_id, amount_minor: 10_000, currency: 'USD' };
  const newSale = (occurred_at: string) => ({ ...sale, external_charge_id: fresh('charge'), occurred_at });
  const [first, later] = [2, 1].map((days) => new Date(Date.now() - days * 86_400_000).toISOString()) as [
    string,
    string,
  ];
  const sales = [newSale(first), ...Array.from({ length: 1_199 }, () => newSale(later))];
  for (const some of [sales.slice(0, 600), sales.slice(600)]) await shop.merchant.post('/v1/sales/bulk', some);
  const [held] = await shop.list('commissions');
  await shop.events();

  const client = await rail.store.database.connect();
  await client.query('begin');
  await client.query('select from program.commission where id = $1 for update', [held?.id]);
  const at = new Date(Date.now() + 31 * 86_400_000).toISOString();
  await rail.tick('program/mature_commissions', at);
  const due = sql`select from program.commission where program_id = ${shop.program_id} and status = 'due'`;
  await eventually(async () => (await rail.query(due)).length === 1_199, 'all others to be due');
  await client.query('rollback');
  client.release();
  t.equal(await rail.tick('program/mature_commissions', at), undefined, 'a tick is run once');
  await rail.tick('program/mature_commissions', new Date(Date.parse(at) + 60_000).toISOString());
  await eventually(async () => (await rail.query(due)).length === 1_200, 'the one that was held');

  const events = await shop.events();
  t.same(types(events), Array(1_200).fill('commission.updated'));
  const told = events.map(({ data }) => data.commission_id);
  t.equal(new Set(told).size, 1_200, 'each once');
  const [oldest] = await rail.query(
    sql`select id from program.commission where program_id = ${shop.program_id} order by mature_at limit 1`,
  );
  t.same([told[0], told.at(-1)], [oldest?.id, held?.id], 'from the oldest on');
});

t.test('maturing commissions are those that may be paid, unless a status is asked for', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  const { id: partner_id } = await shop.partner();
  const ids: Json = {};
  for (const status of ['pending', 'approved', 'voided', 'rejected']) {
    ids[status] = (await shop.sale({ partner_id })).commissions[0].id;
  }
  for (const [how, status] of Object.entries({ approve: 'approved', void: 'voided', reject: 'rejected' })) {
    await shop.merchant.post(`/v1/commissions/${ids[status]}/${how}`);
  }
  const listed = async (query = '') => (await shop.list('commissions/maturing', query)).map(({ id }) => id);
  t.same(await listed(), [ids.pending, ids.approved]);
  for (const [status, id] of Object.entries(ids)) t.same(await listed(`status=${status}`), [id]);
  const page = await shop.merchant.get(`/v1/commissions/maturing?program_id=${shop.program_id}&limit=1`);
  t.match(page, { total_count: 2, has_more: true });
});

t.test('maturing commissions are filtered by customer', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  const partner = await shop.partner();
  const [one, other] = [await shop.referred(partner), await shop.referred(partner)];
  const sale = await shop.sale({ customer_id: one.id });
  await shop.sale({ customer_id: other.id });
  const listed = await shop.list('commissions/maturing', `customer_id=${one.id}`);
  t.match(listed, [{ id: sale.commissions[0].id, customer_id: one.id }]);
  t.equal(listed.length, 1);
});
