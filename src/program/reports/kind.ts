import type { Dimension } from './dimension.ts';
import {
  all_metrics,
  fact_measures,
  type Measures,
  type Metric,
  metrics_without_clicks,
  payout_measures,
  payout_metrics,
  sale_metrics,
} from './metric.ts';

/** A kind of report: the key and the fields of its rows. */
export interface Kind {
  /** The dimension that its rows are summed by; groups are sums of their partners. */
  dimension: Dimension | '';
  /** The row's property that identifies it, and the filter that selects it. */
  key: Dimension | 'group_id' | 'period' | 'batch_id';
  /** In the order in which rows have them. */
  metrics: Metric[];
  measures: Measures;
  /** By which metric rows are ordered where the request does not say; the highest first. */
  default_sort: Metric;
  /** The list whose `total_count` is the row's count. */
  list: 'sales' | 'clicks' | 'payouts';
  doc: string;
  /** Further fields of a row, from the table that its key is the id of. */
  labels?: { table: string; fields: readonly string[] };
}

const of_facts = { measures: fact_measures, default_sort: 'revenue_minor' } as const;

export const kinds = {
  overview: {
    ...of_facts,
    dimension: '',
    key: 'period',
    metrics: all_metrics,
    list: 'sales',
    doc: 'one row for each day, week or month',
  },
  partners: {
    ...of_facts,
    dimension: 'partner_id',
    key: 'partner_id',
    metrics: all_metrics,
    list: 'sales',
    doc: 'by partner',
    labels: { table: 'program.partner', fields: ['handle', 'status', 'group_id'] },
  },
  groups: {
    ...of_facts,
    dimension: 'partner_id',
    key: 'group_id',
    metrics: all_metrics,
    list: 'sales',
    doc: 'by the group that the partner is in today',
    labels: { table: 'program.partner_group', fields: ['name'] },
  },
  links: {
    ...of_facts,
    dimension: 'link_id',
    key: 'link_id',
    metrics: all_metrics,
    list: 'clicks',
    doc: 'by link',
    labels: { table: 'program.link', fields: ['partner_id', 'url'] },
  },
  coupons: {
    ...of_facts,
    dimension: 'coupon_id',
    key: 'coupon_id',
    metrics: metrics_without_clicks,
    list: 'sales',
    doc: 'by coupon',
    labels: { table: 'program.coupon', fields: ['code'] },
  },
  countries: {
    ...of_facts,
    dimension: 'country',
    key: 'country',
    metrics: all_metrics,
    list: 'clicks',
    doc: 'by country of the visit',
  },
  landing_pages: {
    ...of_facts,
    dimension: 'landing_page',
    key: 'landing_page',
    metrics: all_metrics,
    list: 'clicks',
    doc: 'by host and path of the page where the visitor arrived',
  },
  products: {
    ...of_facts,
    dimension: 'product_id',
    key: 'product_id',
    metrics: sale_metrics,
    list: 'sales',
    doc: 'by product',
  },
  customers: {
    ...of_facts,
    dimension: 'customer_id',
    key: 'customer_id',
    metrics: sale_metrics,
    list: 'sales',
    doc: 'by customer',
    labels: { table: 'program.customer', fields: ['partner_id'] },
  },
  payouts: {
    measures: payout_measures,
    default_sort: 'paid_minor',
    dimension: '',
    key: 'batch_id',
    metrics: payout_metrics,
    list: 'payouts',
    doc: 'payouts by batch, by when they were created',
    labels: { table: 'program.payout_batch', fields: ['due_at'] },
  },
} as const satisfies Record<string, Kind>;

export type ReportName = keyof typeof kinds;
