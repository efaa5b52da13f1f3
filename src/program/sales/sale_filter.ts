import sql, { type Sql } from 'sql-template-tag';
import type { Filter } from '../../core/resource/list_query.ts';
import { countryValue, groupFilter, keyFilter, timeFilters } from '../programs/period.ts';

/** "Referrals freeze country and landing page; sales inherit them." */
const ofReferral = (column: Sql): Sql => sql`(
  select ${column} from program.referral r where r.organization_id = t.organization_id and r.id = t.referral_id)`;

/** Filters of sales that reports have too. With a time, the list holds what reports count. */
export const saleReportFilters: Record<string, Filter> = {
  partner_id: keyFilter(sql`t.partner_id`, 'Returns only sales that this partner is credited with.'),
  customer_id: keyFilter(sql`t.customer_id`, 'Returns only sales to this customer.'),
  link_id: keyFilter(sql`t.link_id`, 'Returns only sales that came through this link.'),
  coupon_id: keyFilter(sql`t.coupon_id`, 'Returns only sales that came with this coupon.'),
  product_id: keyFilter(sql`t.product_id`, 'Returns only sales of this product.'),
  country: keyFilter(
    ofReferral(sql`r.country`),
    "Returns only sales whose referral's first click came from this country.",
    countryValue,
  ),
  landing_page: keyFilter(
    ofReferral(sql`program.landing_page(r.landing_url)`),
    'Returns only sales whose referral arrived at this page: host and path, as reports have it.',
  ),
  group_id: groupFilter,
  ...timeFilters({
    at: sql`t.occurred_at`,
    name: 'occurred_at',
    counted: { where: sql`t.partner_id is not null`, doc: 'Like reports, only sales that a partner is credited with.' },
  }),
};
