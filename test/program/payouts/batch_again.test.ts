import t from 'tap';
import { eventually, type Json, sql, startRail } from '../../harness.ts';
import { openShop, type Shop } from '../../shop.ts';
import { quiet } from './books.ts';
import { debtor } from './files/fixture.ts';
import { bank, batchOf, payee, setRail } from './fixture.ts';
import { StripeServer } from './rails/stripe_server.ts';

const stripe = await new StripeServer().start();
t.teardown(() => stripe.stop());
const rail = await startRail({ provider_urls: { stripe: stripe.url } });

const by_stripe = { method: 'stripe', details: { account_id: 'acct_partner' } };

/** A batch of payouts by bank transfer that was sent, and its payouts by amount. */
async function sent(amounts: number[], settings: Json = {}): Promise<{ shop: Shop; batch: Json; of: Json[] }> {
  const shop = await openShop(rail, { min_payout_minor: 0, ...settings });
  await setRail(rail, shop, 'bank_transfer', debtor);
  for (const amount of amounts) await payee(shop, [amount]);
  const { id } = await batchOf(shop);
  await act(shop, { id }, 'send');
  await quiet(rail);
  await shop.events();
  return { shop, batch: await batchNow(shop, { id }), of: await payoutsOf(shop, { id }) };
}

const batchNow = ({ merchant }: Shop, { id }: Json): Promise<Json> => merchant.get(`/v1/payout_batches/${id}`);

const payoutsOf = async (shop: Shop, { id }: Json): Promise<Json[]> =>
  (await shop.list('payouts', `batch_id=${id}`)).sort((a, b) => a.amount_minor - b.amount_minor);

const statuses = async (shop: Shop, batch: Json) => (await payoutsOf(shop, batch)).map(({ status }) => status);

const act = ({ merchant }: Shop, { id }: Json, action: 'send' | 'retry' | 'mark_paid', body?: Json) =>
  merchant.request('POST', `/v1/payout_batches/${id}/${action}`, body);

const refusal = (message: RegExp) => ({ status: 409, body: { error: { code: 'payout_locked', message } } });

/** The bank rejects the file. */
async function reject({ merchant }: Shop, { id, files }: Json, nth = 0): Promise<void> {
  const document = `<Document><CstmrPmtStsRpt><OrgnlGrpInfAndSts><OrgnlMsgId>${files[nth].message_id}</OrgnlMsgId><GrpSts>RJCT</GrpSts>
    <StsRsnInf><Rsn><Cd>DT01</Cd></Rsn></StsRsnInf></OrgnlGrpInfAndSts></CstmrPmtStsRpt></Document>`;
  await merchant.post(`/v1/payout_batches/${id}/statuses`, { document });
}

t.test('sends all failed payouts of a batch again, in one file, and lists those that cannot be', async (t) => {
  const { shop, batch, of } = await sent([6000, 7000, 8000, 9000], { payout_methods: ['bank_transfer', 'stripe'] });
  await reject(shop, batch);
  t.same(await statuses(shop, batch), ['failed', 'failed', 'failed', 'failed']);
  const [, , suspended, to_stripe] = of as [Json, Json, Json, Json];
  await shop.merchant.patch(`/v1/partners/${suspended.partner_id}`, { status: 'suspended' });
  await shop.merchant.request('PUT', `/v1/partners/${to_stripe.partner_id}/payout_method`, by_stripe);
  await shop.events();
  t.match(await act(shop, batch, 'retry'), { status: 202, body: { id: batch.id } });
  await act(shop, batch, 'retry');
  await quiet(rail);
  t.same(await statuses(shop, batch), ['processing', 'processing', 'failed', 'failed']);
  const after = await batchNow(shop, batch);
  t.match(after, {
    files: [{ payouts: 4 }, { file: 2, payouts: 2, method: 'bank_transfer' }],
    not_sent: [
      { reason: 'no_credentials', count: 1 },
      { reason: 'partner_suspended', count: 1 },
    ],
  });
  t.same((await shop.events()).map(({ type, data }) => [type, data.previous_status ?? data.reason]).sort(), [
    ['payout.not_eligible', 'partner_suspended'],
    ['payout.updated', 'failed'],
    ['payout.updated', 'failed'],
  ]);
  t.match(
    (await payoutsOf(shop, batch)).map(({ attempt }) => attempt),
    [2, 2, 1, 1],
    'once, for two requests',
  );
  t.same(await rail.audit(), []);
});

t.test('sends again what failed before the request alone', async (t) => {
  const { shop, batch, of } = await sent([6000, 7000]);
  await reject(shop, batch);
  const { organization_id } = shop.merchant;
  const [{ now }] = (await rail.query(sql`select now()::text as now`)) as [Json];
  await act(shop, batch, 'retry');
  await quiet(rail);
  await reject(shop, await batchNow(shop, batch), 1);
  await rail.query(sql`
    select graphile_worker.add_job('program/send_payout_batch', ${JSON.stringify({
      ...{ organization_id, request_id: null, id: batch.id, retry_requested_at: new Date(now).toISOString() },
    })}::json)`);
  await quiet(rail);
  t.match(
    await payoutsOf(shop, batch),
    Array(of.length).fill({ status: 'failed', attempt: 2 }),
    'as a job that is run again',
  );
});

t.test('refuses a retry of nothing, and leaves what is open and what is not approved', async (t) => {
  const { shop, batch, of } = await sent([6000]);
  t.match(await act(shop, batch, 'retry'), refusal(/nothing to retry/));
  await reject(shop, batch);
  const [payout] = of as [Json];
  await rail.query(sql`update program.payout_attempt set status = 'in_doubt' where payout_id = ${payout.id}`);
  await act(shop, batch, 'retry');
  await quiet(rail);
  t.match(await batchNow(shop, batch), { not_sent: [{ reason: 'attempt_open', count: 1 }] });
  t.same(await statuses(shop, batch), ['failed']);

  const careful = await openShop(rail, { payout_approval_required: true });
  await payee(careful, [6000]);
  const unapproved = await batchOf(careful);
  for (const action of ['retry', 'mark_paid'] as const)
    t.match(await act(careful, unapproved, action), refusal(/not approved yet/));
});

t.test('tells of a payout that came back before it was ever sent that it had failed', async (t) => {
  const shop = await openShop(rail);
  await setRail(rail, shop, 'bank_transfer', debtor);
  await payee(shop, [6000]);
  const batch = await batchOf(shop);
  t.match(await act(shop, batch, 'mark_paid', { statuses: ['pending'], external_id: 'CHECK-1' }), { status: 202 });
  await quiet(rail);
  const [paid] = (await payoutsOf(shop, batch)) as [Json];
  t.match(paid, { status: 'paid', external_id: 'CHECK-1', attempt: 0 });
  await shop.merchant.post(`/v1/payouts/${paid.id}/mark_returned`);
  await shop.events();
  await act(shop, batch, 'retry');
  await quiet(rail);
  t.match(await shop.events(), [{ type: 'payout.updated', data: { previous_status: 'failed', status: 'processing' } }]);
});

t.test('marks what is in processing by file as paid, a file or the whole batch', async (t) => {
  const { shop, batch, of } = await sent([6000, 7000, 8000], { payout_methods: ['bank_transfer', 'stripe'] });
  const [one] = of as [Json];
  await reject(shop, batch);
  await act(shop, batch, 'retry');
  await quiet(rail);
  await shop.events();
  t.match(await act(shop, batch, 'mark_paid', { file: 1 }), refusal(/in file 1/));
  t.match(await act(shop, batch, 'mark_paid', { file: 3 }), {
    status: 400,
    body: { error: { code: 'invalid_parameter', param: 'file' } },
  });
  t.match(await act(shop, batch, 'mark_paid', { paid_at: '2999-01-01T00:00:00Z' }), { status: 400 });
  const payment = { file: 2, external_id: 'BOOKING-1', paid_at: '2026-11-21T00:00:00.000Z' };
  t.match(await act(shop, batch, 'mark_paid', payment), { status: 202, body: { id: batch.id } });
  await quiet(rail);
  t.match(
    await payoutsOf(shop, batch),
    Array(3).fill({ status: 'paid', external_id: 'BOOKING-1', paid_at: payment.paid_at, attempt: 2 }),
  );
  t.same((await shop.events()).map(({ type }) => type).sort(), [
    ...Array(3).fill('commission.paid'),
    ...Array(3).fill('payout.paid'),
  ]);
  t.match(await act(shop, batch, 'mark_paid'), refusal(/no payout that can be marked/));
  t.match(await batchNow(shop, batch), { status: 'completed' });
  t.match(await shop.merchant.get(`/v1/payouts/${one.id}/statement`), { payout: { status: 'paid' } });
  t.same(await rail.audit(), []);
});

t.test('marks as paid neither what a provider reports, nor what was sent or failed since the request', async (t) => {
  const shop = await openShop(rail, { payout_methods: ['stripe', 'bank_transfer'], min_payout_minor: 0 });
  await setRail(rail, shop, 'bank_transfer', debtor);
  await setRail(rail, shop, 'stripe', stripe.credentials);
  await payee(shop, [6000], { payout_method: bank });
  await payee(shop, [7000], { payout_method: by_stripe });
  const batch = await batchOf(shop);
  const busy = { kind: 'answer', when: 'before', answer: { status: 429, body: {} } } as const;
  stripe.fail({ method: 'POST', path: '/v1/transfers', fault: busy, times: 20 });
  await act(shop, batch, 'send');
  await eventually(async () => !(await statuses(shop, batch)).includes('pending'), 'all to be sent');
  await act(shop, batch, 'mark_paid', { statuses: ['pending', 'processing', 'failed'] });
  await eventually(async () => (await statuses(shop, batch)).includes('paid'), 'the first to be marked');
  await quiet(rail);
  t.same(await statuses(shop, batch), ['paid', 'processing']);

  const late = await sent([6000]);
  const [{ now }] = (await rail.query(sql`select now()::text as now`)) as [Json];
  await reject(late.shop, late.batch);
  const marking = {
    ...{ statuses: ['processing', 'failed'], file: null, external_id: null, paid_at: new Date(now).toISOString() },
    requested_at: new Date(now).toISOString(),
  };
  const { organization_id } = late.shop.merchant;
  const payload = { organization_id, request_id: null, id: late.batch.id, marking };
  await rail.query(sql`select graphile_worker.add_job('program/mark_payout_batch', ${JSON.stringify(payload)}::json)`);
  await quiet(rail);
  t.same(await statuses(late.shop, late.batch), ['failed']);
});

/** As a request leaves it to a worker, which does not come to it until the job is added. */
const leave = (action: string, { id }: Json) =>
  rail.query(sql`update program.payout set in_progress = ${action} where id = ${id}`);

const makeChange = ({ merchant: { organization_id } }: Shop, { id }: Json, change: Json, status: string) =>
  rail.query(sql`
    select graphile_worker.add_job('program/change_payout', ${JSON.stringify({
      ...{ organization_id, request_id: null, id, change, status },
    })}::json, job_key => ${`change:${id}`})`);

t.test('a payout that is being marked as paid keeps its commissions when their sale is refunded', async (t) => {
  const shop = await openShop(rail, { min_payout_minor: 0, holding_period_days: 0 });
  await shop.rule();
  const ada = await payee(shop, []);
  const sale = await shop.sale({ partner_id: ada.id });
  const batch = await batchOf(shop);
  const [payout] = (await payoutsOf(shop, batch)) as [Json];
  const change = { action: 'mark_paid', external_id: null, paid_at: new Date().toISOString() };
  await leave('mark_paid', payout);
  await shop.refund(sale);
  t.match((await payoutsOf(shop, batch))[0], { amount_minor: payout.amount_minor, status: 'pending' });
  await makeChange(shop, payout, change, 'pending');
  await quiet(rail);
  t.match((await payoutsOf(shop, batch))[0], { amount_minor: payout.amount_minor, status: 'paid', in_progress: null });
  const kinds = (await shop.list('commissions')).map(({ kind, amount_minor }) => [kind, amount_minor]);
  t.same(kinds.filter(([kind]) => kind === 'clawback').length, 1, 'the refund is taken back from the next payout');
  t.equal(
    kinds.reduce((sum, [, amount_minor]) => sum + amount_minor, 0),
    0,
  );
});

t.test('what the bank says before the worker holds', async (t) => {
  const { shop, batch, of } = await sent([6000]);
  const [payout] = of as [Json];
  await leave('mark_paid', payout);
  await reject(shop, batch);
  t.match((await payoutsOf(shop, batch))[0], { status: 'failed' });
  const change = { action: 'mark_paid', external_id: null, paid_at: new Date().toISOString() };
  await makeChange(shop, payout, change, 'processing');
  await quiet(rail);
  t.match((await payoutsOf(shop, batch))[0], { status: 'failed', in_progress: null });
});
