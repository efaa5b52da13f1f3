import t from 'tap';
import { catalogue } from '../../src/program/events/catalogue.ts';
import { payout_error_codes } from '../../src/program/payouts/rails/rail.ts';
import { eventually, type Json, type Received, sql, startRail, startReceiver } from '../harness.ts';
import { openShop } from '../shop.ts';
import { bank, batchOf, bonus, payee } from './payouts/fixture.ts';
import { PayPalServer } from './payouts/rails/paypal_server.ts';

/** Section 6 of the specification, "Catalogue": type, (PB) where a partner's postback may receive it, and all fields of `data`. */
const specified = `
affiliate.created | partner_id, email, handle, status, group_id
affiliate.updated | partner_id, status, reason
affiliate.confirmed | partner_id, email, handle, group_id
affiliate.deleted | partner_id
application.submitted | application_id, partner_id, email, handle, answers
application.approved | partner_id, application_id, email, handle, reviewed_by, reason
application.rejected | partner_id, application_id, email, handle, reviewed_by, reason
affiliate_link.created | link_id, partner_id, url, param, value, destination_url
affiliate_link.updated | link_id, partner_id, url, destination_url
affiliate_link.deleted | link_id, partner_id
affiliate_coupon.created | coupon_id, partner_id, code, active
affiliate_coupon.updated | coupon_id, partner_id, code, active
affiliate_coupon.activated | coupon_id, partner_id, code, active
affiliate_coupon.deactivated | coupon_id, partner_id, code, active
affiliate_coupon.deleted | coupon_id, partner_id
referral.created (PB) | referral_id, partner_id, link_id, landing_url, tracked_by, expires_at
referral.lead (PB) | referral_id, customer_id, partner_id, email, tracked_by
referral.converted (PB) | referral_id, customer_id, partner_id, sale_id
referral.deleted (PB) | referral_id, partner_id, reason
sale.created | sale_id, customer_id, partner_id, amount_minor, currency, is_first_sale, external_charge_id, occurred_at
sale.updated | sale_id, partner_id, amount_minor, currency, previous_amount_minor
sale.refunded | sale_id, customer_id, partner_id, amount_minor, currency, refunded_at
sale.deleted | sale_id, partner_id
commission.created (PB) | commission_id, sale_id, partner_id, amount_minor, currency, status, rule_id, mature_at
commission.updated (PB) | commission_id, partner_id, amount_minor, currency, status, previous_status
commission.paid (PB) | commission_id, partner_id, payout_id, amount_minor, currency, paid_at
commission.voided (PB) | commission_id, sale_id, partner_id, amount_minor, currency, reason
commission.deleted (PB) | commission_id, partner_id
payout.created (PB) | payout_id, batch_id, partner_id, amount_minor, currency, status, due_at
payout.updated (PB) | payout_id, partner_id, status, previous_status
payout.due (PB) | payout_id, partner_id, amount_minor, currency, due_at
payout.paid (PB) | payout_id, partner_id, amount_minor, currency, method, external_id, paid_at
payout.failed (PB) | payout_id, partner_id, amount_minor, currency, method, error_code, error_message
payout.not_eligible (PB) | payout_id, partner_id, amount_minor, currency, reason, reason_text
payout.deleted (PB) | payout_id, partner_id
risk_flag.created | risk_flag_id, partner_id, customer_id, kind, severity, evidence
risk_flag.resolved | risk_flag_id, partner_id, customer_id, kind, severity, status, note, resolved_by
customer.enrolled_as_partner | customer_id, partner_id, handle, email, group_id, source
rule.updated | rule_id, name, before, after
rule.deleted | rule_id, name
rule.status_changed | rule_id, name, status`;

const rows = specified
  .trim()
  .split('\n')
  .map((line) => {
    const [, type, postback, fields] = /^(\S+)( \(PB\))? \| (.*)$/.exec(line) as unknown as [
      string,
      string,
      string?,
      string?,
    ];
    return { type, postback: postback !== undefined, fields: (fields as string).split(', ').sort() };
  });
const fieldsOf = new Map(rows.map(({ type, fields }) => [type, fields]));

/** Fields of one event's data, without the one that clawbacks have besides. */
const keysOf = ({ kind, ...data }: Json): string[] =>
  Object.keys(data)
    .concat(kind === 'clawback' || kind === undefined ? [] : ['kind'])
    .sort();

const paypal = await new PayPalServer().start();
t.teardown(() => paypal.stop());
const rail = await startRail({ provider_urls: { paypal: paypal.url } });
const shop = await openShop(rail, { auto_enrol_customers: true });
const { merchant } = shop;
const program_id = shop.program.id;
const [all, own] = [await startReceiver(), await startReceiver()];
const ada = await shop.partner({ handle: 'ada' });
await merchant.post('/v1/webhook_endpoints', { program_id, url: all.url });
await merchant.post('/v1/webhook_endpoints', { program_id, url: own.url, partner_id: ada.id });

const identity = {
  email: 'grace@customer.example.com',
  name: 'Grace Hopper',
  identifier: 'merchants-own-4711',
  external_customer_id: 'processors-own-4711',
};

/** A program's life: everything happens at least once. */
async function live(): Promise<void> {
  const rule = await shop.rule({ name: 'Standard' });
  const bob = await shop.partner();
  await merchant.patch(`/v1/partners/${bob.id}`, { first_name: 'Bob' });

  const apply = (name: string) =>
    merchant.post('/v1/applications', {
      program_id,
      email: `${name}@applicant.example.com`,
      answers: { why: 'money' },
    });
  await merchant.post(`/v1/applications/${(await apply('carol')).id}/approve`);
  await merchant.post(`/v1/applications/${(await apply('dan')).id}/reject`);

  const link = await shop.link(ada);
  await merchant.patch(`/v1/links/${link.id}`, { label: 'Footer' });
  const coupon = await shop.coupon({ partner_id: ada.id });
  await merchant.patch(`/v1/coupons/${coupon.id}`, { external_id: 'promo_2' });
  await merchant.post(`/v1/coupons/${coupon.id}/deactivate`);
  await merchant.post(`/v1/coupons/${coupon.id}/activate`);

  const landing_url = `https://acme.example.com/?email=${encodeURIComponent(identity.email)}&plan=pro`;
  const click = await shop.click(ada, { value: link.value, landing_url });
  const customer = await shop.customer({ ...identity, click_id: click.id });
  const sale = await shop.sale({ customer_id: customer.id });
  await merchant.patch(`/v1/sales/${sale.id}`, { amount_minor: 8_000 });
  await shop.refund(sale);
  const paid = await shop.sale({ customer_id: customer.id });
  await shop.pay(paid.commissions[0]);
  await shop.refund(paid, { amount_minor: 5_000 });
  const wrong = await shop.sale({ customer_id: customer.id });
  await merchant.delete(`/v1/sales/${wrong.id}`);
  await shop.sale({ partner_id: bob.id });

  await pay();

  const self = await shop.click(ada);
  const refused = { program_id, click_id: self.id, email: ada.email };
  await merchant.request('POST', '/v1/customers', refused);
  const [flag] = await shop.list('risk_flags');
  await merchant.post(`/v1/risk_flags/${flag?.id}/resolve`, { resolution: 'dismissed', note: 'A test of hers.' });

  await merchant.patch(`/v1/rules/${rule.id}`, { rate_value: 1_000 });
  await merchant.patch(`/v1/rules/${rule.id}`, { status: 'inactive' });
  await merchant.delete(`/v1/rules/${rule.id}`);
  await merchant.delete(`/v1/coupons/${coupon.id}`);
  await merchant.delete(`/v1/links/${link.id}`);
  await merchant.delete(`/v1/partners/${bob.id}`);
  const wanted = await shop.referred(ada, { email: undefined });
  const reason = `${identity.email} asked us to`;
  await merchant.request('DELETE', `/v1/referrals/${wanted.referral_id}`, { reason });
  const last = await shop.referred(ada, { email: undefined });
  await merchant.request('DELETE', `/v1/referrals/${last.referral_id}`, { reason: 'the_end' });
}

/** One payout of Ada is paid, and one is deleted; Eve cannot be paid. */
async function pay(): Promise<void> {
  const { id: eve_id } = await shop.partner();
  await merchant.request('PUT', `/v1/partners/${ada.id}/payout_method`, bank);
  await bonus(shop, ada, 12_345);
  await bonus(shop, { id: eve_id }, 6_000);
  const first = await batchOf(shop, { due_at: '2026-11-01T00:00:00Z' });
  const [paid] = await shop.list('payouts', `batch_id=${first.id}`);
  await merchant.post(`/v1/payouts/${paid?.id}/mark_paid`, { external_id: 'transfer_1' });
  await bonus(shop, ada, 7_000);
  const second = await batchOf(shop);
  const [deleted] = await shop.list('payouts', `batch_id=${second.id}`);
  await merchant.delete(`/v1/payouts/${deleted?.id}`);
  await failByPayPal();
}

/** PayPal refuses a payout. */
async function failByPayPal(): Promise<void> {
  await merchant.request('PUT', `/v1/programs/${program_id}/rails/paypal`, {
    mode: 'live',
    credentials: paypal.credentials,
  });
  const details = { email: 'zoe@partner.example.com' };
  await payee(shop, [8_000], { payout_method: { method: 'paypal', details } });
  const batch = await batchOf(shop);
  const [payout] = await shop.list('payouts', `batch_id=${batch.id}&method=paypal`);
  paypal.next_status = 'FAILED';
  await merchant.post(`/v1/payouts/${payout?.id}/send`);
  let minute = 0;
  await eventually(async () => {
    // As if the time of the next look had come.
    await rail.query(sql`
      update program.payout_attempt set next_poll_at = '2026-01-01' where payout_id = ${payout?.id} and claimed_until is null`);
    await rail.tick('program/poll_payouts', new Date(Date.UTC(2026, 0, 2, 0, ++minute)).toISOString());
    return (await merchant.get(`/v1/payouts/${payout?.id}`)).status === 'failed';
  }, 'PayPal to refuse the payout');
}

await live();
const isLast = ({ body }: Received): boolean => body.data.reason === 'the_end';
await eventually(() => [all, own].every(({ received }) => received.some(isLast)), 'the last event');

t.test('the catalogue has the types and the fields of the specification', async (t) => {
  t.same(Object.keys(catalogue).sort(), rows.map(({ type }) => type).sort());
  for (const { type, postback, fields } of rows) {
    const known = catalogue[type as keyof typeof catalogue];
    const optional = type === 'commission.created' ? ['kind'] : [];
    t.same(Object.keys(known.data.shape).sort(), [...fields, ...optional].sort(), type);
    t.equal(known.postback !== false, postback, `${type} is${postback ? '' : ' not'} for postbacks`);
  }
});

t.test('every example is valid', async (t) => {
  for (const [type, { data, example }] of Object.entries(catalogue)) {
    const { success, error } = data.safeParse(example);
    t.ok(success, `${type} ${error?.message ?? ''}`);
  }
});

t.test(
  'every type is emitted with exactly the fields of the specification, and the values of the catalogue',
  async (t) => {
    for (const { type, fields } of rows) {
      const told = all.received.filter(({ body }) => body.type === type);
      t.ok(told.length > 0, `${type} was told`);
      for (const { body } of told) {
        t.same(keysOf(body.data), fields, type);
        t.same(catalogue[type as keyof typeof catalogue].data.safeParse(body.data).error, undefined, type);
      }
    }
  },
);

t.test('payouts are told with what they are of', async (t) => {
  const told = (type: string) =>
    all.received
      .filter(({ body }) => body.type === type && body.data.partner_id === ada.id)
      .map(({ body }) => body.data);
  const created = told('payout.created')[0] as Json;
  const { payout_id, batch_id } = created;
  const clawback = told('commission.created').find(({ kind }) => kind === 'clawback') as Json;
  const money = { payout_id, partner_id: ada.id, amount_minor: 12_345 + clawback.amount_minor, currency: 'USD' };
  const due_at = '2026-11-01T00:00:00.000Z';
  t.same(created, { ...money, batch_id, status: 'pending', due_at });
  t.same(told('payout.due'), [{ ...money, due_at }]);
  const [paid] = told('payout.paid') as [Json];
  t.same(paid, { ...money, method: 'bank_transfer', external_id: 'transfer_1', paid_at: paid.paid_at });
  const commissions = told('commission.paid');
  t.same(
    commissions.map(({ amount_minor }) => amount_minor).sort((a, b) => a - b),
    [clawback.amount_minor, 12_345],
    'clawbacks are paid too',
  );
  for (const { commission_id, amount_minor, ...rest } of commissions)
    t.same(rest, { payout_id, partner_id: ada.id, currency: 'USD', paid_at: paid.paid_at }, commission_id);
  const refused = all.received.find(({ body }) => body.type === 'payout.not_eligible')?.body.data as Json;
  t.match(refused, { payout_id: null, amount_minor: 6_000, currency: 'USD', reason: 'no_payout_method' });
  t.match(refused.reason_text, /no payout method/);
  const [deleted] = told('payout.deleted') as [Json];
  t.same(deleted, { payout_id: deleted.payout_id, partner_id: ada.id });
  t.not(deleted.payout_id, payout_id);
  const failed = all.received.find(({ body }) => body.type === 'payout.failed')?.body.data as Json;
  const { payout_id: failed_id, partner_id } = failed;
  const why = { method: 'paypal', error_code: failed.error_code, error_message: failed.error_message };
  t.same(failed, { payout_id: failed_id, partner_id, amount_minor: 8_000, currency: 'USD', ...why });
  t.match(failed.error_code, new RegExp(`^(${payout_error_codes.join('|')})$`));
  t.match(failed.error_message, /\w/);
  const updated = all.received.filter(({ body }) => body.type === 'payout.updated').map(({ body }) => body.data);
  t.same(updated, [{ payout_id: failed_id, partner_id, status: 'processing', previous_status: 'pending' }]);
});

t.test('the body has the keys of the specification, and sums and times are of the right kind', async (t) => {
  for (const { body, headers } of all.received) {
    t.same(Object.keys(body), ['id', 'type', 'created_at', 'data', 'request']);
    t.same(body.request, { id: headers['rail-request-id'] ?? null });
    for (const [field, value] of Object.entries(body.data)) {
      if (field.endsWith('_minor'))
        t.ok(Number.isSafeInteger(value) && 'currency' in body.data, `${body.type} ${field}`);
      if (field.endsWith('_at')) t.match(value, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/, `${body.type} ${field}`);
      if (field.endsWith('_id') && !field.startsWith('external_')) t.match(value ?? 'x_0', /^[a-z]+_\w+$/);
    }
  }
});

t.test('only the event of a clawback has a kind, and it has a negative amount', async (t) => {
  const created = all.received.filter(({ body }) => body.type === 'commission.created');
  const [clawback, ...others] = created.filter(({ body }) => 'kind' in body.data);
  t.same(others, []);
  t.match(clawback?.body.data, { kind: 'clawback', partner_id: ada.id });
  t.ok(clawback?.body.data.amount_minor < 0);
});

t.test(
  "a partner's postback receives only that partner's events of the postback types, in the same order",
  async (t) => {
    const families = new Set(rows.filter(({ postback }) => postback).map(({ type }) => type));
    const expected = all.received.filter(({ body }) => families.has(body.type) && body.data.partner_id === ada.id);
    t.same(
      own.received.map(({ body }) => [body.type, body.id]),
      expected.map(({ body }) => [body.type, body.id]),
    );
    t.ok(all.received.some(({ body }) => body.type === 'commission.created' && body.data.partner_id !== ada.id));
  },
);

t.test("a partner's postback never contains the customer's email address", async (t) => {
  for (const { body, raw } of own.received) {
    const fields = (fieldsOf.get(body.type) as string[]).filter((field) => field !== 'email');
    t.same(keysOf(body.data), fields, body.type);
    t.notMatch(raw, /@|%40/);
    for (const secret of Object.values(identity)) t.notOk(raw.includes(secret), `${body.type} does not tell ${secret}`);
  }
  const told = (received: Received[], type: string) =>
    received.filter(({ body }) => body.type === type).map(({ body }) => body.data);
  t.ok(told(own.received, 'referral.created').some(({ landing_url }) => /\?email=hidden&plan=pro$/.test(landing_url)));
  t.ok(told(own.received, 'referral.deleted').some(({ reason }) => reason === 'hidden asked us to'));
  t.ok(told(all.received, 'referral.created').some(({ landing_url }) => /\?email=grace%40/.test(landing_url)));
  const lead = all.received.find(({ body }) => body.type === 'referral.lead' && body.data.email !== null);
  t.equal(lead?.body.data.email, identity.email, 'the merchant is told');
});
