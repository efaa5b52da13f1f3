import t, { type Test } from 'tap';
import { type Answer, eventually, type Json, sql, startRail } from '../../harness.ts';
import { effort } from '../../runner/effort.ts';
import { openShop, type Shop } from '../../shop.ts';
import { booksOf, pollAll, settleAll } from './books.ts';
import { setDebtor } from './files/fixture.ts';
import { bank, batchOf, bonus, generated, payee, setRail } from './fixture.ts';
import { PayPalServer } from './rails/paypal_server.ts';

const paypal = await new PayPalServer().start();
t.teardown(() => paypal.stop());
paypal.balances.USD = 1e12;
const rail = await startRail({ provider_urls: { paypal: paypal.url } });

/** Requests of each race, all at the same time. */
const many = effort.racing_requests;
const half = many / 2;
const by_paypal = { method: 'paypal', details: { email: 'ada@partner.example.com' } };

t.beforeEach(() => {
  paypal.next_status = 'SUCCESS';
});

async function openPaying(settings: Json = {}): Promise<Shop> {
  const shop = await openShop(rail, { holding_period_days: 0, min_payout_minor: 1, ...settings });
  await setRail(rail, shop, 'paypal', paypal.credentials);
  await setDebtor(rail, shop);
  await shop.rule();
  return shop;
}

const repeated = <T>(count: number, work: (nth: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, nth) => work(nth)));

/** Partners who are paid by PayPal, each with a bonus that is due. */
const payees = (shop: Shop, count: number): Promise<Json[]> =>
  repeated(count, () => payee(shop, [6000], { payout_method: by_paypal }));

/** Payouts of one batch, each of a partner of its own, with a sale's commission beside the bonus. */
async function payoutsWithSales(shop: Shop, count: number): Promise<{ payout: Json; sale: Json }[]> {
  const partners = await payees(shop, count);
  const sales = await Promise.all(partners.map(({ id }) => shop.sale({ partner_id: id })));
  await batchOf(shop);
  const payouts = await shop.list('payouts', 'status=pending');
  return sales.map((sale) => ({
    sale,
    payout: payouts.find(({ partner_id }) => partner_id === sale.partner_id) as Json,
  }));
}

/** Failed payouts, whose first attempt can still succeed at the provider. */
async function failedPayouts(shop: Shop, count: number): Promise<Json[]> {
  paypal.next_status = 'FAILED';
  await payees(shop, count);
  const { id } = await batchOf(shop);
  await shop.merchant.post(`/v1/payout_batches/${id}/send`);
  await eventually(async () => (await shop.list('payouts', 'status=pending')).length === 0, 'all to be sent');
  await settleAll(rail, shop);
  paypal.next_status = 'SUCCESS';
  return shop.list('payouts', 'status=failed');
}

/** The answers of requests that are made at once, in their order. Only these statuses are right. */
async function atOnce(t: Test, calls: (() => Promise<Answer>)[], ...right: number[]): Promise<Answer[]> {
  const answers = await Promise.all(calls.map((call) => call()));
  const wrong = answers.filter(({ status }) => !right.includes(status));
  t.same(
    wrong.map(({ status, text }) => `${status} ${text}`),
    [],
    `every answer is one of ${right.join(', ')}`,
  );
  return answers;
}

/** Pairs of requests about one thing, interleaved. @returns the answers by pair */
async function pairsAtOnce(t: Test, pairs: [() => Promise<Answer>, () => Promise<Answer>][], ...right: number[]) {
  const answers = await atOnce(
    t,
    pairs.flatMap((pair, nth) => (nth % 2 ? pair.toReversed() : pair)),
    ...right,
  );
  return pairs.map((_, nth) => {
    const pair = answers.slice(2 * nth, 2 * nth + 2) as [Answer, Answer];
    return (nth % 2 ? pair.toReversed() : pair) as [Answer, Answer];
  });
}

const requests = ({ merchant }: Shop) => ({
  send: ({ id }: Json) => merchant.request('POST', `/v1/payouts/${id}/send`),
  retry: ({ id }: Json) => merchant.request('POST', `/v1/payouts/${id}/retry`),
  markPaid: ({ id }: Json) => merchant.request('POST', `/v1/payouts/${id}/mark_paid`),
  deletePayout: ({ id }: Json) => merchant.request('DELETE', `/v1/payouts/${id}`),
  refund: ({ id }: Json, body: Json = {}) => merchant.request('POST', `/v1/sales/${id}/refund`, body),
});

/** Creates batches, and waits for all of them. */
async function batchesOf(shop: Shop, answers: Answer[]): Promise<void> {
  for (const { body } of answers) if (body.object === 'payout_batch') await generated(shop.merchant, body.id);
}

const createBatch = ({ merchant, program_id }: Shop) => merchant.request('POST', '/v1/payout_batches', { program_id });

/** The sum of what each partner is to get, be it in a payout or not: what must not change by races about payouts. */
const owed = async ({ program_id }: Shop): Promise<number> =>
  (
    await rail.query<{ owed: number }>(sql`
      select coalesce(sum(amount_minor), 0)::bigint as owed from program.commission
      where program_id = ${program_id} and deleted_at is null and status in ('pending', 'approved', 'due')`)
  )[0]?.owed as number;

t.test('batches at the same time take each commission once', async (t) => {
  const shop = await openPaying();
  const partners = await payees(shop, 20);
  await Promise.all(partners.map((partner) => bonus(shop, partner, 500)));
  const before = await owed(shop);
  const answers = await atOnce(
    t,
    Array.from({ length: many }, () => () => createBatch(shop)),
    202,
  );
  await batchesOf(shop, answers);
  const payouts = await shop.list('payouts');
  t.equal(payouts.length, partners.length);
  t.equal(
    payouts.reduce((sum, { amount_minor }) => sum + amount_minor, 0),
    before,
  );
  t.equal(await owed(shop), before);
  t.same(await booksOf(rail, shop, paypal), []);
});

t.test('a batch during refunds, voids, deletions and suspensions pays what is left', async (t) => {
  const shop = await openPaying();
  const { merchant } = shop;
  const partners = await payees(shop, 9);
  const sales = await repeated(30, (nth) => shop.sale({ partner_id: partners[nth % partners.length]?.id }));
  const bonuses = (await shop.list('commissions', 'kind=bonus')).slice(0, 6);
  const calls = [
    ...sales.slice(0, 10).map(
      ({ id }) =>
        () =>
          merchant.request('POST', `/v1/sales/${id}/refund`, { amount_minor: 5000 }),
    ),
    ...sales.slice(10, 15).map(
      ({ id }) =>
        () =>
          merchant.request('POST', `/v1/sales/${id}/refund`, {}),
    ),
    ...sales.slice(15, 20).map(
      ({ id }) =>
        () =>
          merchant.request('DELETE', `/v1/sales/${id}`),
    ),
    ...sales.slice(20, 25).map(
      ({ id }) =>
        () =>
          merchant.request('PATCH', `/v1/sales/${id}`, { amount_minor: 7000 }),
    ),
    ...bonuses.map(
      ({ id }) =>
        () =>
          merchant.request('POST', `/v1/commissions/${id}/void`, { reason: 'race' }),
    ),
    ...partners.slice(0, 3).map(
      ({ id }) =>
        () =>
          merchant.request('PATCH', `/v1/partners/${id}`, { status: 'suspended' }),
    ),
    ...partners.slice(3, 6).map(
      ({ id }) =>
        () =>
          merchant.request('DELETE', `/v1/partners/${id}`),
    ),
  ];
  const batches = Array.from({ length: 15 }, () => () => createBatch(shop));
  const mixed = calls.flatMap((call, nth) =>
    nth % 3 === 0 && batches.length > 0 ? [batches.pop() as never, call] : [call],
  );
  const answers = await atOnce(t, [...mixed, ...batches], 200, 202, 409);
  await batchesOf(shop, answers);
  await batchOf(shop);
  t.same(await booksOf(rail, shop, paypal), []);
  for (const payout of await shop.list('payouts')) await merchant.request('POST', `/v1/payouts/${payout.id}/send`);
  await settleAll(rail, shop);
  t.same(await booksOf(rail, shop, paypal), []);
  const deleted = partners.slice(3, 6).map(({ id }) => id);
  const paid = await shop.list('payouts', 'status=paid');
  t.same(
    paid.filter(({ partner_id }) => deleted.includes(partner_id)),
    [],
    'nothing to who is deleted',
  );
});

t.test('refunds during sending change what is sent, or are carried by a clawback', async (t) => {
  const shop = await openPaying();
  const { send, refund } = requests(shop);
  const pairs = await payoutsWithSales(shop, half);
  const before = await owed(shop);
  await pairsAtOnce(
    t,
    pairs.map(({ payout, sale }) => [() => send(payout), () => refund(sale)]),
    200,
  );
  await settleAll(rail, shop);
  t.same(await booksOf(rail, shop, paypal), []);
  const paid = (await shop.list('payouts', 'status=paid')).reduce((sum, { amount_minor }) => sum + amount_minor, 0);
  t.equal(paid + (await owed(shop)), before - half * 2000, 'all but the refunded commissions is paid or owed');
});

t.test('a payout is deleted or sent, never both', async (t) => {
  const shop = await openPaying();
  const { send, deletePayout } = requests(shop);
  const pairs = await payoutsWithSales(shop, half);
  const before = await owed(shop);
  const answers = await pairsAtOnce(
    t,
    pairs.map(({ payout }) => [() => send(payout), () => deletePayout(payout)]),
    ...[200, 404, 409],
  );
  for (const [sent, deleted] of answers) {
    t.ok(sent.status === 200 ? deleted.status === 409 : deleted.status === 200 && sent.status === 404);
  }
  await settleAll(rail, shop);
  t.same(await booksOf(rail, shop, paypal), []);
  const paid = (await shop.list('payouts', 'status=paid')).reduce((sum, { amount_minor }) => sum + amount_minor, 0);
  t.equal(paid + (await owed(shop)), before);
});

t.test('a batch is deleted or its payouts are sent, never both', async (t) => {
  const shop = await openPaying();
  const { send, markPaid } = requests(shop);
  const batches: { batch: Json; payout: Json }[] = [];
  for (let nth = 0; nth < half; nth++) {
    await payee(shop, [6000], { payout_method: by_paypal });
    const batch = await batchOf(shop);
    batches.push({ batch, payout: (await shop.list('payouts', `batch_id=${batch.id}`))[0] as Json });
  }
  const sendBatch = ({ id }: Json) => shop.merchant.request('POST', `/v1/payout_batches/${id}/send`);
  const answers = await pairsAtOnce(
    t,
    batches.map(({ batch, payout }, nth) => [
      () => (nth % 3 === 0 ? send(payout) : nth % 3 === 1 ? markPaid(payout) : sendBatch(batch)),
      () => shop.merchant.request('DELETE', `/v1/payout_batches/${batch.id}`),
    ]),
    ...[200, 202, 404, 409],
  );
  await settleAll(rail, shop);
  for (const [nth, [sent, deleted]] of answers.entries()) {
    const { batch, payout } = batches[nth] as { batch: Json; payout: Json };
    const [kept] = await rail.query(sql`select status, deleted_at from program.payout where id = ${payout.id}`);
    const is_deleted = deleted.status === 200;
    t.equal(kept?.deleted_at !== null, is_deleted, `${batch.id}: ${sent.status} ${deleted.status}`);
    t.equal(kept?.status === 'paid', !is_deleted, 'and else it is paid');
  }
  t.same(await booksOf(rail, shop, paypal), []);
});

t.test('a payout is marked as paid once, whatever its rail says meanwhile', async (t) => {
  const shop = await openPaying();
  const { markPaid } = requests(shop);
  const failed = await failedPayouts(shop, half);
  for (const { id } of failed) paypal.settle(`${id}-1`, 'SUCCESS');
  const polled = pollAll(rail, shop);
  const answers = await atOnce(
    t,
    [...failed, ...failed].map((payout) => () => markPaid(payout)),
    200,
    409,
  );
  await polled;
  await settleAll(rail, shop);
  t.same(await booksOf(rail, shop, paypal), []);
  const by_hand = answers.filter(({ status }) => status === 200).length;
  t.equal((await shop.list('payouts', 'status=paid')).length, half);
  t.equal((await shop.list('commissions', 'kind=clawback')).length, by_hand, 'what was paid by both is taken back');
});

t.test('a retry during the late success of the first attempt pays once, or takes the excess back', async (t) => {
  const shop = await openPaying();
  const { retry } = requests(shop);
  const failed = await failedPayouts(shop, half);
  for (const { id } of failed) paypal.settle(`${id}-1`, 'SUCCESS');
  const polled = pollAll(rail, shop);
  const answers = await atOnce(
    t,
    [...failed, ...failed].map((payout) => () => retry(payout)),
    200,
    409,
  );
  await polled;
  await settleAll(rail, shop);
  await settleAll(rail, shop);
  t.same(await booksOf(rail, shop, paypal), []);
  const retried = answers.filter(({ status }) => status === 200).length;
  t.equal((await shop.list('payouts', 'status=paid')).length, half);
  t.equal((await shop.list('commissions', 'kind=clawback')).length, retried);
});

t.test('a payout that is sent many times at once is sent once', async (t) => {
  const shop = await openPaying();
  const { send } = requests(shop);
  const [pair] = await payoutsWithSales(shop, 1);
  const { payout } = pair as { payout: Json };
  const answers = await atOnce(
    t,
    Array.from({ length: many }, () => () => send(payout)),
    200,
    409,
  );
  t.equal(answers.filter(({ status }) => status === 200).length, 1);
  await settleAll(rail, shop);
  t.same(await booksOf(rail, shop, paypal), []);
  t.match(await shop.merchant.get(`/v1/payouts/${payout.id}`), { status: 'paid', attempt: 1 });
  t.equal(paypal.movedFor(`${payout.id}-1`)?.times, 1);
});

t.test('one payout is sent by requests, its batch and the schedule at once, and once', async (t) => {
  const shop = await openPaying({ auto_payouts_enabled: true });
  const { send } = requests(shop);
  await payees(shop, 10);
  const { id } = await batchOf(shop, { due_at: '2026-01-01T00:00:00Z' });
  const payouts = await shop.list('payouts');
  const calls = payouts.flatMap((payout) => [
    () => send(payout),
    () => shop.merchant.request('POST', `/v1/payout_batches/${id}/send`),
    () => send(payout),
  ]);
  const scheduled = rail.tick('program/send_due_payouts', new Date().toISOString());
  await atOnce(t, calls, 200, 202, 409);
  await scheduled;
  await settleAll(rail, shop);
  t.same(await booksOf(rail, shop, paypal), []);
  t.match(
    await shop.list('payouts', 'status=paid'),
    payouts.map(() => ({ attempt: 1 })),
  );
});

t.test('a batch is approved or deleted, and what was deleted is not sent', async (t) => {
  const shop = await openPaying({ payout_approval_required: true });
  const other = await rail.key(shop.merchant.organization_id);
  const batches: Json[] = [];
  for (let nth = 0; nth < half; nth++) {
    await payee(shop, [6000], { payout_method: by_paypal });
    batches.push(await batchOf(shop));
  }
  const before = await owed(shop);
  const answers = await pairsAtOnce(
    t,
    batches.map(({ id }) => [
      () => other.request('POST', `/v1/payout_batches/${id}/approve`),
      () => shop.merchant.request('DELETE', `/v1/payout_batches/${id}`),
    ]),
    ...[200, 404],
  );
  t.ok(
    answers.every(([, deleted]) => deleted.status === 200),
    'none was sent, so each can be deleted',
  );
  t.same(await shop.list('payouts'), []);
  t.equal(await owed(shop), before);
});

t.test('a payout is sent to the method that its partner had then', async (t) => {
  const shop = await openPaying();
  const { send } = requests(shop);
  const pairs = await payoutsWithSales(shop, half);
  const put = ({ partner_id }: Json, nth: number) =>
    shop.merchant.request(
      'PUT',
      `/v1/partners/${partner_id}/payout_method`,
      nth % 2 ? bank : { method: 'paypal', details: { email: 'ada@other.example.org' } },
    );
  const answers = await pairsAtOnce(
    t,
    pairs.map(({ payout }, nth) => [() => send(payout), () => put(payout, nth)]),
    ...[200, 409],
  );
  t.ok(answers.every(([, stored]) => stored.status === 200));
  await settleAll(rail, shop);
  const attempts = await rail.query<Json>(sql`
    select a.id, a.rail, a.destination_hint, a.request, p.method, p.destination_hint as shown
    from program.payout_attempt a join program.payout p on p.id = a.payout_id where a.program_id = ${shop.program_id}`);
  for (const { id, rail: by, destination_hint, request, method, shown } of attempts) {
    const { destination } = JSON.parse(rail.services.vault.decrypt(request, id));
    t.ok((destination.email?.split('@')[0] ?? destination.iban).endsWith(destination_hint));
    t.same([by, destination_hint], [method, shown]);
    t.equal(by === 'paypal', destination.email !== undefined);
  }
  t.same(await booksOf(rail, shop, paypal), []);
});

t.test(
  'partners who are deleted while their payouts are sent, settled or deleted own nothing afterwards',
  async (t) => {
    const shop = await openPaying();
    const { send, deletePayout } = requests(shop);
    const failed = await failedPayouts(shop, half);
    const pending = await payoutsWithSales(shop, half);
    const deletePartner = ({ partner_id }: Json) => shop.merchant.request('DELETE', `/v1/partners/${partner_id}`);
    await rail.query(sql`update program.payout_attempt set looked_up_at = now() where program_id = ${shop.program_id}`);
    await pairsAtOnce(
      t,
      [
        ...failed.map((payout): [() => Promise<Answer>, () => Promise<Answer>] => [
          () => deletePayout(payout),
          () => deletePartner(payout),
        ]),
        ...pending.map(({ payout }): [() => Promise<Answer>, () => Promise<Answer>] => [
          () => send(payout),
          () => deletePartner(payout),
        ]),
      ],
      ...[200, 404, 409],
    );
    await settleAll(rail, shop);
    t.same(await booksOf(rail, shop, paypal), []);
    t.same(await shop.list('payouts', 'status=pending'), []);
  },
);
