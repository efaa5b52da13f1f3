import { z } from 'zod';
import { eventTypes } from './examples.ts';
import { coupon_id, destination_url, link_id, partner_id, text, url } from './fields.ts';

const coupon = {
  coupon_id,
  partner_id,
  code: text.describe('The code that customers enter.'),
  active: z.boolean().describe('Whether the coupon attributes sales.'),
};

export const linkAndCouponEvents = eventTypes({
  'affiliate_link.created': {
    doc: 'A link was created.',
    data: {
      link_id,
      partner_id,
      url,
      param: text.describe('The query parameter that carries the value.'),
      value: text.describe('The value of the query parameter.'),
      destination_url,
    },
  },
  'affiliate_link.updated': {
    doc: "A link's destination, label or short slug changed.",
    data: { link_id, partner_id, url, destination_url },
  },
  'affiliate_link.deleted': {
    doc: 'A link was deleted. Its clicks no longer attribute.',
    data: { link_id, partner_id },
  },
  'affiliate_coupon.created': { doc: 'A coupon was assigned to a partner.', data: coupon },
  'affiliate_coupon.updated': { doc: "A coupon's partner, code or external id changed.", data: coupon },
  'affiliate_coupon.activated': { doc: 'A coupon was activated.', data: coupon },
  'affiliate_coupon.deactivated': {
    doc: 'A coupon was deactivated. Its purchases no longer attribute.',
    data: coupon,
  },
  'affiliate_coupon.deleted': {
    doc: 'A coupon was deleted, or no longer belongs to a partner.',
    data: { coupon_id, partner_id },
  },
});
