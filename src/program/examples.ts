import { access_operations, access_records } from '../core/access/examples.ts';
import type { Examples } from '../core/description/example.ts';
import { sampleId } from '../core/values/fields.ts';
import { catalogue } from './events/catalogue.ts';
import * as story from './events/story.ts';

const {
  program,
  group,
  partner,
  application,
  link,
  coupon,
  customer,
  sale,
  commission,
  risk_flag,
  refund,
  dispute,
  times,
} = story;

/** The fields of a record that a body has too. */
const pick = <Record_ extends object>(record: Record_, ...fields: (keyof Record_)[]) =>
  Object.fromEntries(fields.map((field) => [field, record[field]]));

const changed = { updated_at: times.change };
const reviewed = { ...changed, reviewed_by_user_id: sampleId('key'), reviewed_at: times.change };
const by_hand = { ...story.payout_batch, scheduled_for: null };
const no_progress = { state: 'running', partners_looked_at: 0, payouts: 0, amounts: [], not_eligible: [] };
const sent = { status: 'processing', submitted_at: times.due, attempt: 1, updated_at: times.due };
const secret = 'whsec_c2FtcGxlLXNlY3JldC1zYW1wbGUtc2VjcmV0';

const event = {
  ...{ id: sampleId('evt'), program_id: program.id, partner_id: partner.id, type: 'sale.created' },
  ...{ data: catalogue['sale.created'].example, request: { id: sampleId('req') }, created_at: times.sale },
};
const endpoint = {
  ...{ id: sampleId('whe'), program_id: program.id, partner_id: null, url: 'https://hooks.example.com/rail' },
  ...{ description: 'Billing', event_types: [], personal_data: true, status: 'enabled', disabled_reason: null },
  ...{ secret_last_rotated_at: null, created_at: times.program, updated_at: times.program },
};
const { type, created_at, data, request } = event;
const sent_at = String(Date.parse(times.sale) / 1000);
const rail_signature = `t=${sent_at},v1=${'4f9c1e7a'.repeat(8)}`;
const webhook_signature = `v1,${'Zm9yIHRo'.repeat(5)}aXM=`;
const delivery = {
  ...{ id: sampleId('whd'), program_id: program.id, endpoint_id: endpoint.id, event_id: event.id },
  ...{ event_type: type, status: 'delivered', attempt: 1, next_attempt_at: null, replay_of: null },
  request_body: JSON.stringify({ id: event.id, type, created_at, data, request }),
  attempts: [
    {
      ...{ attempt: 1, at: times.sale, duration_ms: 84, status_code: 200, response_body: 'ok', error: null },
      url: endpoint.url,
      request_headers: {
        ...{ 'Content-Type': 'application/json', 'User-Agent': 'Rail-Webhooks/1.0', 'Rail-Signature': rail_signature },
        ...{ 'Rail-Event': type, 'Rail-Event-Id': event.id, 'Rail-Delivery-Id': sampleId('whd'), 'Rail-Attempt': '1' },
        ...{ 'Rail-Request-Id': request.id, 'webhook-id': event.id, 'webhook-timestamp': sent_at },
        'webhook-signature': webhook_signature,
      },
    },
  ],
  ...{ created_at: times.sale, updated_at: times.sale },
};
const debtor = { name: 'Acme GmbH', iban: 'DE89370400440532013000', bic: 'COBADEFFXXX' };
const rail = {
  ...{ id: sampleId('rail'), program_id: program.id, rail: 'bank_transfer', mode: 'live', account: debtor.name },
  ...{ hint: '3000', warnings: [], webhook_url: null, version: 1, created_at: times.change, updated_at: times.change },
};
const processor = {
  ...{ id: sampleId('prc'), program_id: program.id, processor: 'stripe', mode: 'test', status: 'connected' },
  ...{ disconnected_reason: null, account: 'acct_51Sample', hint: 'mple', warnings: [] },
  ...{ webhook_url: `https://rail.example.com/processors/stripe/${program.id}`, backfill: null },
  ...{ created_at: times.change, updated_at: times.change },
};
const processor_event = {
  ...{ id: sampleId('pev'), program_id: program.id, processor: 'stripe', external_event_id: 'evt_1Sample' },
  ...{
    type: 'charge.succeeded',
    external_object_id: sale.external_charge_id,
    external_customer_id: customer.external_customer_id,
  },
  ...{ livemode: false, status: 'done', waiting_for: null, reason: null, message: null, result_id: sale.id },
  ...{
    run_id: sampleId('run'),
    occurred_at: times.sale,
    worked_at: times.sale,
    created_at: times.sale,
    updated_at: times.sale,
  },
};
const sale_claim = {
  ...{ id: sampleId('clm'), program_id: program.id, partner_id: partner.id, external_charge_id: 'order-1042' },
  ...{ email: null, coupon_code: null, occurred_at: times.sale, note: 'My reader bought the annual plan.' },
  ...{ finding: 'not_found', sale_id: null, processor_event_id: null, status: 'open' },
  ...{ resolution_note: null, resolved_at: null, created_at: times.change, updated_at: times.change },
};
const publishable_key = {
  ...{ id: sampleId('pub'), program_id: program.id, name: 'Website', mode: 'live' },
  ...{ key: 'rail_pk_live_c2FtcGxlLXNhbXBsZS1zYW1wbGUtc2Ft', allowed_origins: ['https://acme.example.com'] },
  ...{ setup: 'first_party', last_used_at: times.change, revoked_at: null },
  ...{ created_at: times.program, updated_at: times.program },
};
const queued = { status: 'pending', attempt: 0, attempts: [], created_at: times.change, updated_at: times.change };
const replayed = { id: sampleId('whd').replace(/.$/, '4'), replay_of: delivery.id };

/** The examples of the description: the records of one story, and their state after each operation. */
export const examples: Examples = {
  records: {
    ...{ program, group, partner, application, link, coupon, customer, sale, commission, risk_flag, refund, dispute },
    ...{ tag: story.tag, rule: story.rule, click: story.click, referral: story.referral },
    ...{ payout: story.payout, payout_batch: story.payout_batch },
    ...{ event, webhook_endpoint: endpoint, webhook_delivery: delivery },
    link_qr: { link_id: link.id, url: link.short_url, svg: '<svg xmlns="http://www.w3.org/2000/svg">…</svg>' },
    magic_link: {
      ...{ url: 'https://rail.example.com/portal/sign_in?token=kQ3v7Yp2', expires_at: '2026-11-16T11:15:00.000Z' },
    },
    payout_method: { method: 'bank_transfer', hint: '3000', updated_at: times.change },
    tax_form: { status: 'verified', updated_at: times.change },
    ...{ rail, processor, processor_event, sale_claim, publishable_key },
    ...access_records,
    inbound_signing: { required: false, updated_at: times.change },
    webhook_replay: { from: '2026-11-21T09:30:00.000Z', to: '2026-11-21T12:30:00.000Z' },
  },
  operations: {
    'programs.create': { body: pick(program, 'name', 'website_url', 'currency', 'min_payout_minor') },
    'programs.update': { body: { cookie_days: 90 } },
    'groups.create': { body: pick(group, 'program_id', 'name', 'description', 'landing_url') },
    'groups.update': { body: { description: 'Newsletters, blogs and podcasts' } },
    'tags.create': { body: pick(story.tag, 'program_id', 'name', 'color') },
    'tags.update': { body: { name: 'Ambassador' } },
    'partners.create': {
      body: {
        ...pick(partner, 'program_id', 'email', 'first_name', 'last_name', 'company_name', 'website_url'),
        ...pick(partner, 'country_code', 'handle', 'group_id', 'metadata'),
      },
    },
    'partners.update': { body: { status: 'suspended', suspension_reason: 'Paid search on the brand name' } },
    'partners.put_payout_method': {
      body: {
        method: 'bank_transfer',
        details: { account_holder: 'Ada Lovelace', iban: 'DE89370400440532013000', bic: 'COBADEFFXXX' },
      },
    },
    'partners.put_tax_form': { body: { status: 'verified' } },
    'processors.backfill': {
      body: { since: '2026-01-01T00:00:00.000Z' },
      reply: {
        ...changed,
        backfill: {
          ...{ since: '2026-01-01T00:00:00.000Z', dry_run: false, status: 'running', read: 0, found: 0, error: null },
          updated_at: changed.updated_at,
        },
      },
    },
    'processors.put': { body: { mode: processor.mode, credentials: { secret_key: 'rk_test_51SampleSampleSample' } } },
    'processor_events.retry': { reply: { ...changed, status: 'pending', worked_at: null } },
    'rails.put': { body: { mode: rail.mode, credentials: debtor } },
    'applications.create': {
      body: {
        ...pick(application, 'program_id', 'email', 'group_id', 'answers', 'source'),
        ...{
          first_name: 'Bob',
          last_name: 'Kahn',
          website_url: 'https://bob.example.com',
          handle: story.applicant.handle,
        },
      },
    },
    'applications.approve': { body: { reason: 'A good fit' }, reply: { ...reviewed, status: 'approved' } },
    'applications.reject': {
      body: { reason: 'We only work with newsletters about databases.' },
      reply: {
        ...reviewed,
        status: 'rejected',
        rejection_reason: 'We only work with newsletters about databases.',
      },
    },
    'applications.withdraw': { reply: { ...changed, status: 'withdrawn' } },
    'links.create': { body: { program_id: program.id, ...pick(link, 'partner_id', 'destination_url', 'label') } },
    'links.update': { body: { label: 'Footer', short_slug: 'ada-summer' } },
    'coupons.create': { body: pick(coupon, 'program_id', 'code', 'partner_id', 'external_id') },
    'coupons.update': { body: { external_id: 'promo_ada20_2027' } },
    'coupons.activate': { reply: changed },
    'coupons.deactivate': { reply: { ...changed, active: false } },
    'clicks.create': {
      body: {
        ...{ program_id: program.id, value: link.value, landing_url: link.url, visitor_token: 'v_5f0c1d2e3a4b' },
        ...{
          referrer: 'https://ada.example.com/',
          ip: '203.0.113.7',
          user_agent: 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
          country: 'US',
        },
        device: 'desktop',
      },
      reply: { referral_id: null },
    },
    'publishable_keys.create': {
      body: pick(publishable_key, 'program_id', 'name', 'allowed_origins'),
      reply: {
        ...{ setup: null, last_used_at: null, signing_secret: `rail_sig_${'c2FtcGxl'.repeat(5)}c2E` },
        snippet: `<script async src="https://rail.example.com/rail.js" data-key="${publishable_key.key}"></script>`,
      },
    },
    'publishable_keys.update': {
      body: { allowed_origins: ['https://acme.example.com', 'https://app.acme.example.com'] },
      reply: { ...changed, allowed_origins: ['https://acme.example.com', 'https://app.acme.example.com'] },
    },
    'publishable_keys.revoke': { reply: { ...changed, revoked_at: times.change } },
    'referrals.delete': { body: { reason: 'deleted_by_hand' } },
    'customers.create': {
      body: {
        ...pick(customer, 'program_id', 'email', 'name', 'identifier', 'external_customer_id'),
        click_id: story.click.id,
      },
      reply: { status: 'lead', converted_at: null, updated_at: times.sign_up, external_subscription_id: null },
    },
    'customers.update': { body: { name: 'Grace B. Hopper' } },
    'rules.create': { body: pick(story.rule, 'program_id', 'name', 'rate_type', 'rate_value') },
    'rules.update': { body: { rate_value: 2500 } },
    'sales.create': {
      body: {
        ...pick(sale, 'program_id', 'customer_id', 'amount_minor', 'currency', 'external_charge_id'),
        ...pick(sale, 'external_subscription_id', 'product_id'),
      },
      reply: { activity_outcome: 'commission_created', commissions: [{ ...commission, object: 'commission' }] },
    },
    'sales.update': { body: { amount_minor: 8900 }, reply: { net_amount_minor: 8900 } },
    'sales.refund': {
      body: pick(refund, 'amount_minor', 'external_refund_id', 'reason'),
      reply: {
        ...changed,
        ...{ status: 'partially_refunded', refunded_minor: refund.amount_minor, refunded_at: refund.refunded_at },
      },
    },
    'refunds.reverse': {
      body: { reason: "The customer's bank refused the refund." },
      reply: { reversed_at: times.change, reversal_reason: "The customer's bank refused the refund." },
    },
    'disputes.create': {
      body: pick(dispute, 'sale_id', 'external_dispute_id', 'reason'),
    },
    'disputes.close': {
      body: { outcome: 'won' },
      reply: { ...changed, status: 'won', closed_at: times.change },
    },
    'sale_claims.create': {
      body: pick(sale_claim, 'program_id', 'partner_id', 'external_charge_id', 'occurred_at', 'note'),
    },
    'sale_claims.resolve': {
      body: { resolution: 'accepted', sale_id: sale.id, resolution_note: 'Found under another order number.' },
      reply: {
        ...{ sale_id: sale.id, status: 'accepted', resolved_at: times.change, updated_at: times.change },
        resolution_note: 'Found under another order number.',
      },
    },
    'commissions.create': {
      body: {
        ...pick(commission, 'program_id', 'partner_id', 'currency'),
        ...{ amount_minor: 5000, note: 'Launch bonus' },
      },
      reply: {
        ...{ id: sampleId('com').replace(/.$/, '4'), kind: 'bonus', customer_id: null, sale_id: null, rule_id: null },
        ...{ amount_minor: 5000, base_amount_minor: null, rate_type: null, rate_value: null, note: 'Launch bonus' },
        ...{ status: 'due', mature_at: times.change, created_at: times.change, updated_at: times.change },
      },
    },
    'commissions.update': { body: { amount_minor: 1500, note: 'Agreed with Ada' } },
    'commissions.approve': { reply: { ...changed, status: 'approved', approved_at: times.change } },
    'commissions.reject': {
      body: { note: 'The order was a test.' },
      reply: { ...changed, status: 'rejected', note: 'The order was a test.' },
    },
    'commissions.void': {
      body: { reason: 'order_cancelled' },
      reply: { ...changed, status: 'voided', voided_at: times.change, void_reason: 'order_cancelled' },
    },
    'commissions.hold': {
      body: { reason: 'order_under_review' },
      reply: { ...changed, status: 'on_hold', hold_reason: 'order_under_review', held_at: times.change },
    },
    'commissions.release': { reply: changed },
    'payout_batches.create': {
      body: pick(story.payout_batch, 'program_id'),
      reply: { ...by_hand, status: 'generating', progress: no_progress },
    },
    'payout_batches.approve': {
      reply: {
        ...{ approval_required: true, approved_by_user_id: sampleId('usr'), approved_at: times.due },
        updated_at: times.due,
      },
    },
    'payout_batches.mark_paid': { body: { external_id: 'booking_0001' } },
    'payouts.send': { reply: sent },
    'payouts.retry': { reply: { ...sent, submitted_at: times.paid, attempt: 2, updated_at: times.paid } },
    'payouts.mark_paid': {
      body: { external_id: 'transfer_0001' },
      reply: { status: 'paid', external_id: 'transfer_0001', paid_at: times.paid, updated_at: times.paid },
    },
    'payouts.mark_returned': {
      body: { reason: 'The account is closed.' },
      reply: {
        ...{ status: 'failed', error_code: 'returned', error_message: 'The account is closed.' },
        ...{ failed_at: times.paid, updated_at: times.paid },
      },
    },
    'payouts.mark_failed': {
      body: { reason: 'The bank has no record of it.' },
      reply: {
        ...{ status: 'failed', error_code: 'provider_rejected', error_message: 'The bank has no record of it.' },
        ...{ failed_at: times.paid, updated_at: times.paid },
      },
    },
    'risk_flags.resolve': {
      body: { resolution: 'dismissed', note: 'Two people in one household.' },
      reply: {
        ...changed,
        ...{ status: 'dismissed', note: 'Two people in one household.', resolved_by: sampleId('key') },
        resolved_at: times.change,
      },
    },
    ...access_operations,
    'inbound_signing.set': { body: { required: false } },
    'webhook_endpoints.create': { reply: { secret } },
    'webhook_endpoints.update': { body: { event_types: ['sale.created', 'commission.created'] } },
    'webhook_endpoints.enable': { reply: changed },
    'webhook_endpoints.disable': { reply: { ...changed, status: 'disabled', disabled_reason: 'disabled_by_hand' } },
    'webhook_endpoints.rotate_secret': { reply: { ...changed, secret, secret_last_rotated_at: times.change } },
    'webhook_endpoints.ping': {
      body: { event_type: 'sale.created' },
      reply: { ...queued, event_id: `evt_test_${sampleId('evt').slice(-26)}` },
    },
    'webhook_deliveries.replay': { reply: { ...queued, ...replayed } },
  },
  event_times: {
    'affiliate.created': times.partner,
    'affiliate.confirmed': times.partner,
    'application.submitted': times.application,
    'application.approved': times.review,
    'application.rejected': times.review,
    'affiliate_link.created': times.link,
    'affiliate_coupon.created': times.coupon,
    'referral.created': times.click,
    'referral.lead': times.sign_up,
    'referral.converted': times.sale,
    'sale.created': times.sale,
    'commission.created': times.sale,
    'commission.updated': times.mature,
    'commission.paid': times.paid,
    'payout.created': times.payout,
    'payout.not_eligible': times.payout,
    'payout.due': times.due,
    payout: times.paid,
    'risk_flag.created': times.flag,
    customer: times.sale,
  },
  values: {
    object: 'program',
    value: 'ada',
    handle: 'ada',
    event_type: 'sale.created',
    type: 'sale.created',
    period: '2026-11',
    landing_page: 'acme.example.com/pricing',
    product_id: 'pro',
    external_customer_id: customer.external_customer_id,
    external_charge_id: sale.external_charge_id,
  },
};
