import { raw } from 'sql-template-tag';
import t from 'tap';
import { callAbout } from '../../../src/program/payouts/sending/call_rails.ts';
import { connectAs, newLogin } from '../../data/tenant.ts';
import { eventually, type Json, log, sql, startRail } from '../../harness.ts';
import { openShop, type Shop } from '../../shop.ts';
import { quiet } from './books.ts';
import { debtor } from './files/fixture.ts';
import { bank, batchOf, payee, payoutAfter, setRail } from './fixture.ts';
import { PayPalServer } from './rails/paypal_server.ts';
import { StripeServer } from './rails/stripe_server.ts';

const paypal = await new PayPalServer().start();
t.teardown(() => paypal.stop());
const stripe = await new StripeServer().start();
t.teardown(() => stripe.stop());
const rail = await startRail({ provider_urls: { paypal: paypal.url, stripe: stripe.url } });

const by_paypal = { method: 'paypal', details: { email: 'ada@partner.example.com' } };

/** A program that pays by PayPal, and a payout of 60 USD in it. */
async function onePayout(
  settings: Json = {},
  mode = 'live',
): Promise<{ shop: Shop; payout: Json; key(n: number): string }> {
  const shop = await openShop(rail, settings);
  await setRail(rail, shop, 'paypal', paypal.credentials, mode);
  await payee(shop, [6000], { payout_method: by_paypal });
  await batchOf(shop);
  const [payout] = await shop.list('payouts');
  await shop.events();
  return { shop, payout: payout as Json, key: (n) => `${payout?.id}-${n}` };
}

const types = async (shop: Shop) => (await shop.events()).map(({ type }) => type);

let ticks = 0;

/** As if the time of the next look had come. An attempt that is called about is not looked at: nothing else is on its way. */
async function poll(payout: Json): Promise<void> {
  await quiet(rail);
  await rail.query(sql`
    update program.payout_attempt set next_poll_at = '2026-01-01' where payout_id = ${payout.id} and claimed_until is null`);
  await rail.tick('program/poll_payouts', new Date(Date.UTC(2026, 0, 2, 0, ++ticks)).toISOString());
}

/** The payout once it has one of these statuses: PayPal tells it when it is asked. */
async function ended(shop: Shop, payout: Json, ...statuses: string[]): Promise<Json> {
  await eventually(async () => {
    const [attempt] = await rail.query(sql`
      select last_answer from program.payout_attempt where payout_id = ${payout.id} order by number desc limit 1`);
    return attempt?.last_answer !== null;
  }, 'the first answer');
  await poll(payout);
  return payoutAfter(shop, payout, ...statuses);
}

t.test('sends a payout, and settles it when the rail has paid', async (t) => {
  const { shop, payout, key } = await onePayout();
  t.match(await shop.merchant.post(`/v1/payouts/${payout.id}/send`), { status: 'processing', attempt: 1 });
  const paid = await ended(shop, payout, 'paid');
  t.match(paid, { livemode: true, attempt: 1, method: 'paypal' });
  t.match(paypal.movedFor(key(1)), { times: 1, amount_minor: 6000, currency: 'USD' });
  t.same(await types(shop), ['payout.updated', 'payout.paid', 'commission.paid']);
  t.match(await shop.list('commissions'), [{ status: 'paid', payout_id: payout.id }]);
});

t.test('fails a payout that the rail refuses, and pays once when it is retried', async (t) => {
  const { shop, payout, key } = await onePayout();
  paypal.next_status = 'FAILED';
  await shop.merchant.post(`/v1/payouts/${payout.id}/send`);
  const failed = await ended(shop, payout, 'failed');
  t.ok(failed.error_code);
  paypal.next_status = 'SUCCESS';
  t.match(await shop.merchant.post(`/v1/payouts/${payout.id}/retry`), {
    status: 'processing',
    attempt: 2,
    error_code: null,
  });
  await ended(shop, payout, 'paid');
  t.same(await types(shop), ['payout.updated', 'payout.failed', 'payout.updated', 'payout.paid', 'commission.paid']);
  t.equal(paypal.movedFor(key(2))?.times, 1);
});

t.test('finds out what became of a call whose answer was lost, and pays once', async (t) => {
  const { shop, payout, key } = await onePayout();
  paypal.fail({ method: 'POST', path: '/v1/payments/payouts', fault: { kind: 'drop', when: 'after' } });
  await shop.merchant.post(`/v1/payouts/${payout.id}/send`);
  await eventually(async () => {
    const [attempt] = await rail.query(
      sql`select last_answer from program.payout_attempt where payout_id = ${payout.id}`,
    );
    return attempt?.last_answer?.startsWith('unknown') === true;
  }, 'the answer to be lost');
  t.match(await shop.merchant.get(`/v1/payouts/${payout.id}`), { status: 'processing' });
  await ended(shop, payout, 'paid');
  t.equal(paypal.movedFor(key(1))?.times, 1);
});

t.test('keeps what is unknown beyond the life of its key in processing, and emails the owner once', async (t) => {
  const { shop, payout, key } = await onePayout();
  const fault = { kind: 'drop', when: 'after' } as const;
  paypal.fail({ method: 'POST', path: '/v1/payments/payouts', fault, times: 3 });
  const asked = (times: number) =>
    eventually(async () => {
      const [attempt] = await rail.query(sql`select polls from program.payout_attempt where payout_id = ${payout.id}`);
      return attempt?.polls === times;
    }, `${times} calls without an answer`);
  const mails = () =>
    rail.query(sql`
      select subject, text from core.outgoing_mail
      where organization_id = ${shop.merchant.organization_id} and subject like '%needs your attention'`);
  await shop.merchant.post(`/v1/payouts/${payout.id}/send`);
  await asked(1);
  t.same(await mails(), [], 'it is asked again first');
  await rail.query(sql`
    update program.payout_attempt set began_at = now() - interval '30 days' where payout_id = ${payout.id}`);
  for (const times of [2, 3]) {
    await poll(payout);
    await asked(times);
  }
  await eventually(async () => (await mails()).length > 0, 'the owner to be emailed');
  await quiet(rail);
  t.match(await mails(), [{ subject: `Payout ${payout.id} needs your attention`, text: new RegExp(key(1)) }]);
  t.match(await shop.merchant.get(`/v1/payouts/${payout.id}`), { status: 'processing', attempt: 1 });
  t.match(await shop.merchant.request('DELETE', `/v1/payouts/${payout.id}`), { status: 409 });
  await ended(shop, payout, 'paid');
  t.equal(paypal.movedFor(key(1))?.times, 1);
});

t.test('makes a paid payout failed when it comes back, and its commissions due', async (t) => {
  const { shop, payout, key } = await onePayout();
  await shop.merchant.post(`/v1/payouts/${payout.id}/send`);
  await ended(shop, payout, 'paid');
  await shop.events();
  paypal.settle(key(1), 'REFUNDED');
  t.match(await ended(shop, payout, 'failed'), { error_code: 'returned', paid_at: null });
  t.same(await types(shop), ['payout.failed', 'commission.updated']);
  t.match(await shop.list('commissions'), [{ status: 'due', payout_id: payout.id, paid_at: null }]);
});

t.test('keeps the statement of a payment that came back, whatever becomes of its payout', async (t) => {
  for (const mode of ['live', 'test']) {
    const { shop, payout, key } = await onePayout();
    const psql = await connectAs(await newLogin(rail, shop.merchant));
    const path = `/v1/payouts/${payout.id}/statement`;
    const listed = async () => (await psql.query('select * from data.payout_statement'))[0] as Json;
    await shop.merchant.post(`/v1/payouts/${payout.id}/send`);
    const { paid_at } = await ended(shop, payout, 'paid');
    paypal.settle(key(1), 'REFUNDED');
    await ended(shop, payout, 'failed');
    const stated = await shop.merchant.get(path);
    const payment = { status: 'failed', paid_at };
    t.match(stated, { number: /^\d{4}-00001$/, livemode: true, payout: payment, totals: { bonus_minor: 6000 } });
    const row = await listed();
    t.match(row, { statement_number: stated.number, status: 'failed', bonus_minor: '6000', total_minor: '6000' });
    t.equal(row.paid_at.toISOString(), paid_at);

    await rail.query(sql`update program.rail set mode = ${mode} where program_id = ${shop.program_id}`);
    paypal.next_status = 'PENDING';
    await shop.merchant.post(`/v1/payouts/${payout.id}/retry`);
    t.match(await shop.merchant.get(`/v1/payouts/${payout.id}`), { status: 'processing', paid_at: null });
    t.same(await shop.merchant.get(path), stated, 'while it is sent again');
    t.same(await listed(), row);
    await eventually(() => paypal.has(key(2)), 'the second attempt');
    paypal.settle(key(2), 'FAILED');
    await ended(shop, payout, 'failed');
    paypal.next_status = 'SUCCESS';
    if (mode === 'live') {
      await eventually(async () => {
        const { status } = await shop.merchant.request('DELETE', `/v1/payouts/${payout.id}`);
        return status === 200;
      }, 'the look-up to allow it');
    }
    t.same(await shop.merchant.get(path), stated, 'once it is given up');
    t.same(await listed(), row);
    await batchOf(shop);
    const next = (await shop.list('payouts')).find(({ id }) => id !== payout.id) as Json;
    const again = await shop.merchant.post(`/v1/payouts/${next.id}/mark_paid`, {});
    await quiet(rail);
    t.same(await shop.merchant.get(path), stated, 'once another one has paid its commissions');
    t.same(
      (await psql.query('select payout_id, status, paid_at from data.payout_statement order by statement_number')).map(
        (row) => ({ ...row, paid_at: row.paid_at.toISOString() }),
      ),
      [
        { payout_id: payout.id, ...payment },
        { payout_id: next.id, status: 'paid', paid_at: again.paid_at },
      ],
    );
  }
});

t.test('pays a failed payout that succeeds late, and takes back what a second attempt pays', async (t) => {
  const { shop, payout, key } = await onePayout();
  paypal.next_status = 'FAILED';
  await shop.merchant.post(`/v1/payouts/${payout.id}/send`);
  await ended(shop, payout, 'failed');
  paypal.next_status = 'SUCCESS';
  await shop.merchant.post(`/v1/payouts/${payout.id}/retry`);
  await ended(shop, payout, 'paid');
  await shop.events();
  paypal.settle(key(1), 'SUCCESS');
  await poll(payout);
  await eventually(async () => (await shop.list('commissions', 'kind=clawback')).length === 1, 'the clawback');
  t.match(await shop.list('commissions', 'kind=clawback'), [
    { amount_minor: -6000, status: 'due', clawback_of: null, payout_id: null },
  ]);
  t.same(await types(shop), ['commission.created', 'risk_flag.created']);
  t.match(await shop.list('risk_flags'), [{ kind: 'double_payout' }]);
});

t.test('never counts a payout of a rail in test mode, and frees its commissions at the end', async (t) => {
  const { shop, payout } = await onePayout({}, 'test');
  t.equal(payout.livemode, false);
  await shop.merchant.post(`/v1/payouts/${payout.id}/send`);
  t.match(await ended(shop, payout, 'paid'), { livemode: false });
  t.same(await types(shop), ['payout.updated', 'payout.deleted']);
  t.match(await shop.list('commissions'), [{ status: 'due', payout_id: null }]);
  for (const action of ['retry', 'mark_paid']) {
    t.match(await shop.merchant.request('POST', `/v1/payouts/${payout.id}/${action}`), { status: 409 });
  }
  t.match(await shop.merchant.request('DELETE', `/v1/payouts/${payout.id}`), { status: 409 });
});

t.test('settles what a rail has paid at once, in groups, and what fails of one concerns no other', async (t) => {
  const shop = await openShop(rail, { payout_methods: ['stripe'] });
  const { organization_id } = shop.merchant;
  await setRail(rail, shop, 'stripe', stripe.credentials);
  const by_stripe = { method: 'stripe', details: { account_id: 'acct_partner' } };
  for (const amounts of [[6000, 100], [7000], [8000, 200], [9000]]) {
    await payee(shop, amounts, { payout_method: by_stripe });
  }
  const { id: batch_id } = await batchOf(shop);
  const sent = await shop.list('payouts');
  const [broken] = sent as [Json];
  await shop.events();
  const busy = { kind: 'answer', when: 'before', answer: { status: 429, body: {} } } as const;
  stripe.fail({ method: 'POST', path: '/v1/transfers', fault: busy, times: 4 });
  await shop.merchant.post(`/v1/payout_batches/${batch_id}/send`);
  await quiet(rail);

  // The constraint that it adds up refuses to have it settled, and its group with it.
  await miscount(broken, 1);
  await rail.query(sql`
    update program.payout_attempt set status = 'prepared', last_sent_at = null, polls = 0 where organization_id = ${organization_id}`);
  const attempts = sent.map(({ id }) => ({ id: id as string, number: 1 }));
  await t.rejects(
    callAbout(
      { organization_id, request_id: null, payouts: attempts },
      { store: rail.store, services: rail.services, log, stopping: never, cut_off: never },
    ),
    { message: /does not add up/ },
  );
  t.equal((await shop.list('payouts', 'status=paid')).length, 3);
  await miscount(broken, -1);
  await rail.query(sql`update program.payout_attempt set claimed_until = null where payout_id = ${broken.id}`);
  await poll(broken);
  await payoutAfter(shop, broken, 'paid');
  await quiet(rail);
  const told = await shop.events();
  for (const { id, commission_count } of sent) {
    t.equal(stripe.movedFor(`${id}-1`)?.times, 1);
    t.same(
      told.filter(({ data }) => data.payout_id === id).map(({ type }) => type),
      ['payout.updated', 'payout.paid', ...Array(commission_count).fill('commission.paid')],
    );
  }
  t.match(
    await rail.query(sql`
      select a.status, a.settled, a.error_code, p.statement_number is not null as is_numbered, p.partner_notified_of = p.paid_at as is_told
      from program.payout_attempt a join program.payout p on p.organization_id = a.organization_id and p.id = a.payout_id
      where p.organization_id = ${organization_id}`),
    Array(4).fill({ status: 'paid', settled: true, error_code: null, is_numbered: true, is_told: true }),
  );
  t.same(await rail.audit(), []);
});

const never = new AbortController().signal;

async function miscount(payout: Json, change: number): Promise<void> {
  const checked = (action: 'disable' | 'enable') =>
    rail.query(raw(`alter table program.payout ${action} trigger payout_adds_up`));
  await checked('disable');
  await rail.query(
    sql`update program.payout set commission_count = commission_count + ${change} where id = ${payout.id}`,
  );
  await checked('enable');
}

t.test('does not send to a partner who is not eligible any more, and says so', async (t) => {
  const { shop, payout } = await onePayout();
  await shop.merchant.patch(`/v1/partners/${payout.partner_id}`, { status: 'suspended' });
  await shop.events();
  const refused = await shop.merchant.request('POST', `/v1/payouts/${payout.id}/send`);
  t.match(refused, { status: 409, body: { error: { code: 'payout_locked' } } });
  t.match(refused.body.error.message, /partner_suspended/);
  const again = await shop.merchant.request('POST', `/v1/payouts/${payout.id}/send`);
  t.equal(again.status, 409);
  t.match(
    (await shop.events()).map(({ type, data }) => ({ type, ...data })),
    [{ type: 'payout.not_eligible', payout_id: payout.id, reason: 'partner_suspended' }],
    'told once',
  );
  t.match(await shop.merchant.get(`/v1/payouts/${payout.id}`), { status: 'pending' });
});

t.test('calls a partner the same in a call to a rail and in a file', async (t) => {
  const shop = await openShop(rail);
  await setRail(rail, shop, 'paypal', paypal.credentials);
  await setRail(rail, shop, 'bank_transfer', debtor);
  const person = { first_name: 'Ada', last_name: 'Lovelace' };
  for (const names of [{ ...person, company_name: 'Ada Ltd' }, person, {}]) {
    for (const payout_method of [by_paypal, bank]) {
      const { id } = await payee(shop, [6000], { ...names, payout_method });
      await shop.merchant.patch(`/v1/partners/${id}`, { display_name: 'Countess' });
    }
  }
  await payee(shop, [6000], { email: 'nameless@partner.example.com', payout_method: by_paypal });
  await batchOf(shop);
  const sent = (await shop.list('payouts')).reverse();
  for (const { id } of sent) await shop.merchant.post(`/v1/payouts/${id}/send`);
  const attempts = await rail.query(sql`
    select a.id, a.rail, a.request from program.payout_attempt a where a.program_id = ${shop.program_id} order by a.payout_id`);
  t.same(
    attempts.map((attempt) => [
      attempt.rail,
      JSON.parse(rail.services.vault.decrypt(attempt.request, attempt.id)).partner_name,
    ]),
    [
      ...['Ada Ltd', 'Ada Lovelace', 'Countess'].flatMap((name) => [
        ['paypal', name],
        ['bank_transfer', name],
      ]),
      ['paypal', 'nameless@partner.example.com'],
    ],
  );
});

t.test('holds a payout that has no account to be paid from, until it goes into a file', async (t) => {
  const shop = await openShop(rail);
  await payee(shop, [6000]);
  await batchOf(shop);
  const [payout] = await shop.list('payouts');
  const holdOf = () => rail.query(sql`select held_reason, held_until from program.payout where id = ${payout?.id}`);
  t.equal((await shop.merchant.request('POST', `/v1/payouts/${payout?.id}/send`)).status, 409);
  t.match(await holdOf(), [{ held_reason: 'no_credentials', held_until: /./ }]);
  await setRail(rail, shop, 'bank_transfer', debtor);
  t.match(await shop.merchant.post(`/v1/payouts/${payout?.id}/send`), { status: 'processing' });
  t.match(await holdOf(), [{ held_reason: null, held_until: null }]);
});

t.test(
  'makes one file a method from one sending, also of partners whose method has changed since the batch',
  async (t) => {
    const shop = await openShop(rail, { payout_methods: ['paypal', 'bank_transfer'] });
    await setRail(rail, shop, 'bank_transfer', debtor);
    await payee(shop, [6000]);
    const changed = await payee(shop, [7000], { payout_method: by_paypal });
    const { id } = await batchOf(shop);
    await shop.merchant.request('PUT', `/v1/partners/${changed.id}/payout_method`, bank);
    await shop.merchant.post(`/v1/payout_batches/${id}/send`);
    for (const payout of await shop.list('payouts')) await payoutAfter(shop, payout, 'processing');
    t.match((await shop.merchant.get(`/v1/payout_batches/${id}`)).files, [{ method: 'bank_transfer', payouts: 2 }]);
  },
);

t.test('says why nothing of a batch was sent', async (t) => {
  const shop = await openShop(rail, { payout_methods: ['paypal', 'bank_transfer'] });
  await payee(shop, [6000]);
  await payee(shop, [7000], { payout_method: by_paypal });
  const { id } = await batchOf(shop);
  const send = () => shop.merchant.request('POST', `/v1/payout_batches/${id}/send`);
  t.match(await send(), {
    status: 409,
    body: { error: { code: 'payout_locked', message: /no_credentials.*bank_transfer, paypal/ } },
  });
  await setRail(rail, shop, 'paypal', paypal.credentials);
  t.match(await send(), { status: 202, body: { not_sent: [] } });
  const read = () => shop.merchant.get(`/v1/payout_batches/${id}`);
  await eventually(async () => (await read()).not_sent.length > 0, 'the batch to say what was not sent');
  t.match((await read()).not_sent, [{ reason: 'no_credentials', reason_text: /credentials/, count: 1 }]);
  await setRail(rail, shop, 'bank_transfer', debtor);
  t.equal((await send()).status, 202);
  await eventually(async () => (await read()).not_sent.length === 0, 'the rest to be sent');
});

t.test('pays an approved batch only where its money was to go when the batch was created', async (t) => {
  const { shop, payout, key } = await onePayout({ payout_approval_required: true });
  const approver = await rail.key(shop.merchant.organization_id);
  const putMethod = (details: Json) =>
    shop.merchant.request('PUT', `/v1/partners/${payout.partner_id}/payout_method`, { method: 'paypal', details });
  const send = () => shop.merchant.request('POST', `/v1/payouts/${payout.id}/send`);
  await approver.post(`/v1/payout_batches/${payout.batch_id}/approve`);
  await putMethod({ email: 'mallory@elsewhere.example.com' });
  const refused = await send();
  t.match(refused, { status: 409, body: { error: { code: 'payout_locked' } } });
  t.match(refused.body.error.message, /destination_not_approved/);
  await putMethod(by_paypal.details);
  t.match(await send(), { status: 409 }, 'changed back is changed: nobody approved it');
  t.equal(paypal.movedFor(key(1)), undefined);

  await shop.merchant.delete(`/v1/payouts/${payout.id}`);
  const batch = await batchOf(shop);
  await putMethod(by_paypal.details);
  await approver.post(`/v1/payout_batches/${batch.id}/approve`);
  const [next] = await shop.list('payouts');
  t.match(
    await shop.merchant.post(`/v1/payouts/${next?.id}/send`),
    { status: 'processing' },
    'the same again is no change',
  );
});

t.test('sends what is due by itself where the program wants that, within the limit of a day', async (t) => {
  const shop = await openShop(rail, { auto_payouts_enabled: true, payout_limit_minor: 10_000 });
  await setRail(rail, shop, 'paypal', paypal.credentials);
  await payee(shop, [6000], { payout_method: by_paypal });
  await payee(shop, [6000], { payout_method: by_paypal });
  await batchOf(shop, { due_at: '2026-01-01T00:00:00Z' });
  await rail.tick('program/send_due_payouts', new Date().toISOString());
  await eventually(async () => (await shop.list('payouts', 'status=processing')).length === 1, 'the first to be sent');
  t.equal((await shop.list('payouts', 'status=pending')).length, 1, 'the second would exceed the limit');
  await eventually(async () => {
    const mail = await rail.query(sql`
      select subject from core.outgoing_mail
      where organization_id = ${shop.merchant.organization_id} and subject like 'The payout limit%'`);
    return mail.length === 1;
  }, 'the owner to be emailed');
});

t.test('deletes a failed payout once the rail has said that nothing was paid', async (t) => {
  const { shop, payout } = await onePayout();
  paypal.next_status = 'FAILED';
  await shop.merchant.post(`/v1/payouts/${payout.id}/send`);
  await ended(shop, payout, 'failed');
  paypal.next_status = 'SUCCESS';
  await rail.query(
    sql`update program.payout_attempt set claimed_until = null, looked_up_at = null where payout_id = ${payout.id}`,
  );
  const first = await shop.merchant.request('DELETE', `/v1/payouts/${payout.id}`);
  t.match(first, { status: 409, body: { error: { code: 'payout_locked' } } });
  t.ok(first.headers['retry-after']);
  await eventually(async () => {
    const { status } = await shop.merchant.request('DELETE', `/v1/payouts/${payout.id}`);
    return status === 200;
  }, 'the look-up to allow it');
  t.match(await shop.list('commissions'), [{ status: 'due', payout_id: null }]);
});

t.test('leaves a payout that failed as it is while an attempt of it can still be paid', async (t) => {
  const { shop, payout, key } = await onePayout();
  paypal.next_status = 'FAILED';
  await shop.merchant.post(`/v1/payouts/${payout.id}/send`);
  await ended(shop, payout, 'failed');
  paypal.next_status = 'PENDING';
  await shop.merchant.post(`/v1/payouts/${payout.id}/retry`);
  paypal.settle(key(1), 'SUCCESS');
  await ended(shop, payout, 'paid');
  paypal.settle(key(1), 'REFUNDED');
  t.match(await ended(shop, payout, 'failed'), { error_code: 'returned' });
  for (const [method, action] of [
    ['POST', '/retry'],
    ['POST', '/mark_paid'],
    ['DELETE', ''],
  ] as const) {
    const { status, body } = await shop.merchant.request(method, `/v1/payouts/${payout.id}${action}`);
    t.match({ status, message: body.error.message }, { status: 409, message: new RegExp(key(2)) });
  }
  paypal.next_status = 'SUCCESS';
  await ended(shop, payout, 'paid');
  t.equal(paypal.movedFor(key(2))?.times, 1);
});

t.test('a worker that stops gives back what it has not called about yet, as if it had not been claimed', async (t) => {
  const { shop, payout, key } = await onePayout();
  await shop.merchant.post(`/v1/payouts/${payout.id}/send`);
  await quiet(rail);
  await rail.query(sql`
    update program.payout_attempt set status = 'prepared', last_sent_at = null, state = '{}' where id = ${key(1)}`);
  const calls = paypal.calls.length;
  let looks = 0;
  const stopping = {
    /** From the second look on: once the attempt is claimed. */
    get aborted() {
      looks++;
      return looks > 1;
    },
  } as AbortSignal;
  const { organization_id } = shop.merchant;
  await callAbout(
    { organization_id, request_id: null, payouts: [{ id: payout.id, number: 1 }] },
    { store: rail.store, services: rail.services, log, stopping, cut_off: new AbortController().signal },
  );
  t.equal(paypal.calls.length, calls);
  t.match(
    await rail.query(sql`select status, last_sent_at, claimed_until from program.payout_attempt where id = ${key(1)}`),
    [{ status: 'prepared', last_sent_at: null, claimed_until: null }],
  );
});
