/** Sales that come together share a transaction; each is answered for itself, and its events name its request. */
import t from 'tap';
import { eventually, type Json, sql, startRail } from '../../harness.ts';
import { fresh, openShop, type Shop } from '../../shop.ts';

const rail = await startRail();
const together = 40;

/** A shop with customers who have paid before, and what a sale of one of them sends. */
async function open() {
  const shop = await openShop(rail);
  await shop.rule();
  const partner = await shop.partner();
  const customers = await Promise.all(
    Array.from({ length: together }, () =>
      shop.customer({ partner_id: partner.id, external_customer_id: fresh('known') }),
    ),
  );
  const sale = (nth: number, fields: Json = {}): Json => ({
    ...{ program_id: shop.program_id, external_customer_id: customers[nth % together]?.external_customer_id },
    ...{ amount_minor: 5_000 + nth, currency: 'USD', external_charge_id: fresh('charge'), ...fields },
  });
  await Promise.all(customers.map((_, nth) => shop.merchant.post('/v1/sales', sale(nth))));
  await shop.events();
  return { shop, partner, customers, sale };
}

const ask = ({ merchant }: Shop, bodies: Json[]) =>
  Promise.all(bodies.map((body) => merchant.request('POST', '/v1/sales', body)));

const rowsOf = (shop: Shop, ids: string[]) =>
  rail.query<{ id: string; inserted_in: string }>(
    sql`select id, inserted_in::text from program.sale where program_id = ${shop.program_id} and id = any(${ids})`,
  );

t.test('each is answered for itself', async (t) => {
  const { shop, partner, sale } = await open();
  const repeated = sale(0);
  await shop.merchant.post('/v1/sales', repeated);
  const bodies = Array.from({ length: together }, (_, nth) => sale(nth));
  bodies[3] = repeated;
  bodies[7] = sale(7, { amount_minor: -1 });
  bodies[11] = sale(11, { partner_id: 'part_nobody' });
  bodies[15] = sale(15, { external_customer_id: fresh('new'), partner_id: partner.id });
  const answers = await ask(shop, bodies);
  for (const [nth, { status, body }] of answers.entries()) {
    if (nth === 3)
      t.match({ status, body }, { status: 409, body: { existing: { amount_minor: repeated.amount_minor } } });
    else if (nth === 7) t.match({ status, body }, { status: 400, body: { error: { param: 'amount_minor' } } });
    else if (nth === 11) t.match({ status, body }, { status: 404, body: { error: { param: 'partner_id' } } });
    else {
      t.match(
        { status, body },
        { status: 201, body: { amount_minor: 5_000 + nth, partner_id: partner.id, is_first_sale: nth === 15 } },
      );
      t.match(body.commissions, [{ sale_id: body.id, amount_minor: Math.round(0.2 * (5_000 + nth)) }]);
    }
  }
  const made = answers.filter(({ status }) => status === 201);
  const rows = await rowsOf(
    shop,
    made.map(({ body }) => body.id),
  );
  t.equal(rows.length, made.length);
  t.ok(new Set(rows.map(({ inserted_in }) => inserted_in)).size < rows.length / 2, 'in few transactions');
  const logged = await rail.query<{ sale_id: string; type: string; request_id: string }>(sql`
    select (body::json -> 'data' ->> 'sale_id') as sale_id, type, request_id from webhooks.event
    where program_id = ${shop.program_id} and type in ('sale.created', 'commission.created')`);
  for (const { headers, body } of made) {
    const own = logged.filter(({ sale_id }) => sale_id === body.id);
    t.same(own.map(({ type }) => type).toSorted(), ['commission.created', 'sale.created']);
    t.ok(
      own.every(({ request_id }) => request_id === headers['rail-request-id']),
      'its events name its request',
    );
  }
});

t.test('one whose customer is locked waits alone', async (t) => {
  const { shop, customers, sale } = await open();
  const holder = await rail.store.database.connect();
  try {
    await holder.query('begin');
    await holder.query('select from program.customer where id = $1 for no key update', [customers[5]?.id]);
    let isLast = false;
    const waiting = shop.merchant.request('POST', '/v1/sales', sale(5)).finally(() => {
      isLast = true;
    });
    const others = await ask(
      shop,
      Array.from({ length: together }, (_, nth) => sale(nth)).filter((_, nth) => nth !== 5),
    );
    t.ok(others.every(({ status }) => status === 201));
    t.notOk(isLast);
    await holder.query('rollback');
    t.equal((await waiting).status, 201);
  } finally {
    holder.release(true);
  }
});

t.test(
  'of a customer who has paid before, all that come at once are recorded, and pay as often as the rule says',
  async (t) => {
    const { shop, partner } = await open();
    await shop.rule({
      name: 'First three',
      rate_type: 'fixed',
      rate_value: 100,
      max_payments: 3,
      product_ids: ['tea'],
      priority: 9,
    });
    const external_customer_id = fresh('known');
    await shop.customer({ partner_id: partner.id, external_customer_id });
    const sale = (): Json => ({
      ...{ program_id: shop.program_id, external_customer_id, product_id: 'tea', amount_minor: 5_000, currency: 'USD' },
      external_charge_id: fresh('charge'),
    });
    await shop.merchant.post('/v1/sales', sale());
    const answers = await ask(shop, Array.from({ length: 20 }, sale));
    t.ok(answers.every(({ status }) => status === 201));
    const fixed = answers.filter(({ body }) => body.commissions[0]?.amount_minor === 100);
    t.equal(fixed.length, 2);
    await eventually(
      async () => (await shop.events()).filter(({ type }) => type === 'sale.created').length >= 20,
      'the events',
    );
  },
);
