import { z } from 'zod';
import { eventType } from '../webhooks/catalogue.ts';
import { draftOf } from '../webhooks/event.ts';

const text = z.string();
const nullableText = text.nullable();
const minor = z.int();
const time = z.iso.datetime();
const everything = { omit: [] };

const sample = {
  partner_id: 'part_01kap3b6n8f2v9w4x7y0z1a2b3',
  customer_id: 'cus_01kap3b6n8f2v9w4x7y0z1a2b4',
  referral_id: 'ref_01kap3b6n8f2v9w4x7y0z1a2b5',
  link_id: 'lnk_01kap3b6n8f2v9w4x7y0z1a2b6',
  sale_id: 'sale_01kap3b6n8f2v9w4x7y0z1a2b7',
  commission_id: 'com_01kap3b6n8f2v9w4x7y0z1a2b8',
  rule_id: 'flw_01kap3b6n8f2v9w4x7y0z1a2b9',
  group_id: 'grp_01kap3b6n8f2v9w4x7y0z1a2c0',
  email: 'ada@example.com',
  handle: 'ada',
  at: '2026-11-21T09:30:00.000Z',
  later: '2026-12-21T09:30:00.000Z',
};

const rate = z.strictObject({ rate_type: text, rate_value: z.int(), priority: z.int(), status: text });

/** Every event of the program service: section 6 of the specification, "Catalogue". */
export const catalogue = {
  'affiliate.created': eventType(
    'A partner record exists (portal signup, invite, dashboard, import).',
    { partner_id: text, email: text, handle: text, status: text, group_id: nullableText },
    {
      partner_id: sample.partner_id,
      email: sample.email,
      handle: sample.handle,
      status: 'active',
      group_id: sample.group_id,
    },
  ),
  'affiliate.updated': eventType(
    'Profile, group or status changed; status is the new value, reason the optional note.',
    { partner_id: text, status: text, reason: nullableText },
    { partner_id: sample.partner_id, status: 'suspended', reason: 'Paid search on the brand name.' },
  ),
  'affiliate_link.created': eventType(
    'A link was created.',
    { link_id: text, partner_id: text, url: text, param: text, value: text, destination_url: text },
    {
      link_id: sample.link_id,
      partner_id: sample.partner_id,
      url: 'https://example.com/pricing?ref=ada',
      param: 'ref',
      value: 'ada',
      destination_url: 'https://example.com/pricing',
    },
  ),
  'affiliate_link.updated': eventType(
    'Destination, label or short slug changed.',
    { link_id: text, partner_id: text, url: text, destination_url: text },
    {
      link_id: sample.link_id,
      partner_id: sample.partner_id,
      url: 'https://example.com/?ref=ada',
      destination_url: 'https://example.com/',
    },
  ),
  'referral.created': eventType(
    'A new visitor came via a link; repeat visits by the same browser do not fire again.',
    {
      referral_id: text,
      partner_id: text,
      link_id: nullableText,
      landing_url: nullableText,
      tracked_by: text,
      expires_at: time,
    },
    {
      referral_id: sample.referral_id,
      partner_id: sample.partner_id,
      link_id: sample.link_id,
      landing_url: 'https://example.com/pricing?ref=ada',
      tracked_by: 'link',
      expires_at: sample.later,
    },
    everything,
  ),
  'referral.lead': eventType(
    'The visitor signed up; postbacks receive it without `email`.',
    { referral_id: text, customer_id: text, partner_id: text, email: nullableText, tracked_by: text },
    {
      referral_id: sample.referral_id,
      customer_id: sample.customer_id,
      partner_id: sample.partner_id,
      email: 'grace@example.com',
      tracked_by: 'link',
    },
    { omit: ['email'] },
  ),
  'referral.converted': eventType(
    'First payment; once per referral, alongside the first `sale.created`.',
    { referral_id: text, customer_id: text, partner_id: text, sale_id: text },
    {
      referral_id: sample.referral_id,
      customer_id: sample.customer_id,
      partner_id: sample.partner_id,
      sale_id: sample.sale_id,
    },
    everything,
  ),
  'referral.deleted': eventType(
    'The referral was deleted, usually flagged as self-referral or fraud.',
    { referral_id: text, partner_id: text, reason: text },
    { referral_id: sample.referral_id, partner_id: sample.partner_id, reason: 'self_referral' },
    everything,
  ),
  'sale.created': eventType(
    'An attributed charge was recorded; always precedes the `commission.created` it produced.',
    {
      sale_id: text,
      customer_id: nullableText,
      partner_id: text,
      amount_minor: minor,
      currency: text,
      is_first_sale: z.boolean(),
      external_charge_id: text,
      occurred_at: time,
    },
    {
      sale_id: sample.sale_id,
      customer_id: sample.customer_id,
      partner_id: sample.partner_id,
      amount_minor: 9900,
      currency: 'USD',
      is_first_sale: true,
      external_charge_id: 'ch_3PqT',
      occurred_at: sample.at,
    },
  ),
  'commission.created': eventType(
    'A commission was earned; status starts `pending` or `due`. A clawback also has kind `clawback` and a negative amount.',
    {
      commission_id: text,
      sale_id: nullableText,
      partner_id: text,
      amount_minor: minor,
      currency: text,
      status: text,
      rule_id: nullableText,
      mature_at: time,
      kind: z.literal('clawback').optional(),
    },
    {
      commission_id: sample.commission_id,
      sale_id: sample.sale_id,
      partner_id: sample.partner_id,
      amount_minor: 1980,
      currency: 'USD',
      status: 'pending',
      rule_id: sample.rule_id,
      mature_at: sample.later,
    },
    everything,
  ),
  'commission.updated': eventType(
    'A commission matured, was approved or rejected by hand, or was edited.',
    { commission_id: text, partner_id: text, amount_minor: minor, currency: text, status: text, previous_status: text },
    {
      commission_id: sample.commission_id,
      partner_id: sample.partner_id,
      amount_minor: 1980,
      currency: 'USD',
      status: 'due',
      previous_status: 'pending',
    },
    everything,
  ),
  'rule.updated': eventType(
    'A rule was edited; it applies to every later payment, renewals included.',
    { rule_id: text, name: text, before: rate, after: rate },
    {
      rule_id: sample.rule_id,
      name: 'Standard',
      before: { rate_type: 'percent', rate_value: 2000, priority: 0, status: 'active' },
      after: { rate_type: 'percent', rate_value: 2500, priority: 0, status: 'active' },
    },
  ),
  'rule.status_changed': eventType(
    'A rule was switched on or off.',
    { rule_id: text, name: text, status: text },
    { rule_id: sample.rule_id, name: 'Standard', status: 'inactive' },
  ),
};

/** An event of the program service, ready for `tx.emit`. */
export const event = draftOf(catalogue);
