import t from 'tap';
import { api } from '../../../src/program/api.ts';
import { type Json, startRail } from '../../harness.ts';

const { operations } = api;
const rail = await startRail({ worker: false });
const openapi = (await (await fetch(`${rail.address}/v1/openapi.json`)).json()) as Json;

/** Everything that the description shows as an example: replies, bodies, and the data of events, each with where it stands. */
const shown: { at: string; value: Json }[] = [
  ...operations.flatMap((operation) => {
    const { responses, requestBody } = openapi.paths[operation.path][operation.method.toLowerCase()];
    const { content } = responses[operation.status];
    const reply = ((content['application/json'] ?? content['application/x-ndjson'])?.example ?? {}) as Json;
    const body = requestBody?.content['application/json'].example as Json | undefined;
    const replies = (Array.isArray(reply.data) ? reply.data : [reply]).map((value: Json) => ({
      at: `reply of ${operation.name}`,
      value,
    }));
    return [...replies, ...(body ? [{ at: `body of ${operation.name}`, value: body }] : [])];
  }),
  ...Object.entries<Json>(openapi.webhooks).map(([type, { post }]) => ({
    at: type,
    value: post.requestBody.content['application/json'].example.data as Json,
  })),
];
const replyOf = (name: string): Json => shown.find(({ at }) => at === `reply of ${name}`)?.value as Json;
const bodyOf = (name: string): Json => shown.find(({ at }) => at === `body of ${name}`)?.value as Json;
const dataOf = (type: string): Json => shown.find(({ at }) => at === type)?.value as Json;

/** Fields of bodies that mean something else than the record's of the same name. */
const other_meaning: Record<string, string[]> = {
  'sales.refund': ['amount_minor'],
  'refunds.reverse': ['reason'],
};
/** Bob, who applies, Grace as a partner, and a test event, which is in no log. */
const elsewhere = [
  replyOf('applications.get').partner_id,
  dataOf('customer.enrolled_as_partner').partner_id,
  replyOf('webhook_endpoints.ping').event_id,
];

t.test('a reply says what its body sent, and an update what it changed', async (t) => {
  for (const { name, method } of operations.filter(({ method }) => method !== 'GET' && method !== 'DELETE')) {
    const [body, reply] = [bodyOf(name) ?? {}, replyOf(name)];
    const common = Object.keys(body).filter((field) => field in reply && !other_meaning[name]?.includes(field));
    for (const field of common) t.same(reply[field], body[field], `${name}: ${field}`);
    if (method === 'PATCH') t.ok(reply.updated_at > reply.created_at, `${name} is later than the creation`);
  }
});

t.test('each id is that of a record which the examples show, or of one that the API does not have', async (t) => {
  const ids = new Set(shown.map(({ value }) => value.id).filter(Boolean));
  const resources = operations.filter(({ name }) => name.endsWith('.get')).map(({ name }) => replyOf(name));
  for (const { id, object } of resources) {
    const named = shown.filter(({ value }) => value[`${object}_id`] && !elsewhere.includes(value[`${object}_id`]));
    for (const { at, value } of named) t.ok(ids.has(value[`${object}_id`]), `${at}: ${object}_id is ${id}`);
  }
});

t.test('a commission is its rate times its base, and events say the same amounts', async (t) => {
  const commission = replyOf('commissions.get');
  const sale = replyOf('sales.get');
  t.equal(commission.amount_minor, (commission.base_amount_minor * commission.rate_value) / 10_000);
  t.equal(commission.base_amount_minor, sale.amount_minor);
  t.match(commission, { sale_id: sale.id, partner_id: sale.partner_id, currency: sale.currency });
  t.equal(commission.rate_value, replyOf('rules.get').rate_value);
  t.same(replyOf('sales.create').commissions, [commission]);
  t.match(dataOf('sale.created'), { sale_id: sale.id, amount_minor: sale.amount_minor, occurred_at: sale.occurred_at });
  t.match(dataOf('commission.created'), {
    ...{ commission_id: commission.id, sale_id: sale.id, rule_id: commission.rule_id },
    ...{ amount_minor: commission.amount_minor, mature_at: commission.mature_at, status: commission.status },
  });
  t.equal(dataOf('sale.refunded').amount_minor, bodyOf('sales.refund').amount_minor);
  t.equal(replyOf('sales.refund').refunded_minor, bodyOf('sales.refund').amount_minor);
  t.equal(dataOf('sale.updated').amount_minor, bodyOf('sales.update').amount_minor);
  t.equal(dataOf('sale.updated').previous_amount_minor, sale.amount_minor);
  t.equal(dataOf('payout.paid').amount_minor, dataOf('commission.paid').amount_minor);
  t.ok(dataOf('payout.paid').amount_minor >= replyOf('programs.get').min_payout_minor);
});

t.test('what matures and expires does so after the days of the program', async (t) => {
  const { cookie_days, holding_period_days } = replyOf('programs.get');
  const days = (from: string, to: string) => (Date.parse(to) - Date.parse(from)) / 86_400_000;
  t.equal(days(replyOf('clicks.get').created_at, replyOf('referrals.get').expires_at), cookie_days);
  t.equal(days(replyOf('sales.get').occurred_at, replyOf('commissions.get').mature_at), holding_period_days);
});

t.test('a status fits the times and the reasons beside it', async (t) => {
  t.match(replyOf('partners.create'), { status: 'active', suspension_reason: null });
  t.match(replyOf('partners.update'), { status: 'suspended', suspension_reason: /\w/ });
  t.match(replyOf('coupons.create'), { active: true });
  t.match(replyOf('coupons.deactivate'), { active: false });
  t.match(replyOf('customers.create'), { status: 'lead', converted_at: null });
  t.match(replyOf('customers.get'), { status: 'active', converted_at: replyOf('sales.get').occurred_at });
  t.match(replyOf('commissions.void'), { status: 'voided', voided_at: /Z$/, void_reason: /\w/ });
  t.match(replyOf('commissions.approve'), { status: 'approved', approved_at: /Z$/ });
  t.match(replyOf('sales.refund'), { status: 'partially_refunded', refunded_at: /Z$/ });
  t.match(replyOf('webhook_endpoints.disable'), { status: 'disabled', disabled_reason: 'disabled_by_hand' });
  t.match(replyOf('webhook_deliveries.replay'), { status: 'pending', replay_of: replyOf('webhook_deliveries.get').id });
  for (const { at, value } of shown.filter(({ value }) => value.created_at && value.updated_at)) {
    t.ok(value.created_at <= value.updated_at, `${at}: created before it was updated`);
  }
});

t.test('an event happened when its record says so, and the log shows the same event', async (t) => {
  const envelopeOf = (type: string): Json =>
    openapi.webhooks[type].post.requestBody.content['application/json'].example;
  t.equal(envelopeOf('sale.created').created_at, replyOf('sales.get').created_at);
  t.equal(envelopeOf('affiliate.created').created_at, replyOf('partners.get').created_at);
  t.equal(envelopeOf('referral.created').created_at, replyOf('referrals.get').created_at);
  const { id, type, created_at, data, request } = replyOf('events.get');
  t.same({ id, type, created_at, data, request }, envelopeOf('sale.created'));
  const delivery = replyOf('webhook_deliveries.get');
  t.same(JSON.parse(delivery.request_body), envelopeOf('sale.created'));
  t.match(delivery, { event_id: id, event_type: type, endpoint_id: replyOf('webhook_endpoints.get').id });
});
