import type { Dimension } from './dimension.ts';
import { all_metrics, type Metric, metrics_without_clicks, sale_metrics } from './metric.ts';

/** What a report has a row for, and what it says of each. */
export interface Kind {
  /** What its rows are summed by; groups are sums of their partners. */
  dimension: Dimension | '';
  /** The row's property that identifies it, and the filter that selects it. */
  key: Dimension | 'group_id' | 'period';
  metrics: Metric[];
  /** The list whose `total_count` is the row's count. */
  list: 'sales' | 'clicks';
  doc: string;
  /** What else a row says: fields of what its key is the id of. */
  labels?: { table: string; fields: readonly string[] };
}

export const kinds = {
  overview: {
    dimension: '',
    key: 'period',
    metrics: all_metrics,
    list: 'sales',
    doc: 'one row for each day, week or month',
  },
  partners: {
    dimension: 'partner_id',
    key: 'partner_id',
    metrics: all_metrics,
    list: 'sales',
    doc: 'by partner',
    labels: { table: 'program.partner', fields: ['handle', 'status', 'group_id'] },
  },
  groups: {
    dimension: 'partner_id',
    key: 'group_id',
    metrics: all_metrics,
    list: 'sales',
    doc: 'by the group that the partner is in today',
    labels: { table: 'program.partner_group', fields: ['name'] },
  },
  links: {
    dimension: 'link_id',
    key: 'link_id',
    metrics: all_metrics,
    list: 'clicks',
    doc: 'by link',
    labels: { table: 'program.link', fields: ['partner_id', 'url'] },
  },
  coupons: {
    dimension: 'coupon_id',
    key: 'coupon_id',
    metrics: metrics_without_clicks,
    list: 'sales',
    doc: 'by coupon',
    labels: { table: 'program.coupon', fields: ['code'] },
  },
  countries: {
    dimension: 'country',
    key: 'country',
    metrics: all_metrics,
    list: 'clicks',
    doc: 'by country of the visit',
  },
  landing_pages: {
    dimension: 'landing_page',
    key: 'landing_page',
    metrics: all_metrics,
    list: 'clicks',
    doc: 'by host and path of the page where the visitor arrived',
  },
  products: { dimension: 'product_id', key: 'product_id', metrics: sale_metrics, list: 'sales', doc: 'by product' },
  customers: {
    dimension: 'customer_id',
    key: 'customer_id',
    metrics: sale_metrics,
    list: 'sales',
    doc: 'by customer',
    labels: { table: 'program.customer', fields: ['partner_id'] },
  },
} as const satisfies Record<string, Kind>;

export type FactReport = keyof typeof kinds;
