/** Why a sale is credited and paid as it is, in sentences and sums: on the pages of a sale and of a commission. */
import { dayText, money, percentage, words } from '../pages/format.ts';
import { type Html, html } from '../pages/html.ts';
import type { Reply, Use } from '../pages/run.ts';
import { facts, table } from '../pages/table.ts';
import { recordContent } from './record_page.ts';
import { relatedContent } from './related.ts';
import { type Record_, shown } from './values.ts';
import type { DashboardVisit } from './visit.ts';

export async function saleContent(visit: DashboardVisit, sale: Record_, use: Use): Promise<Html> {
  const id = String(sale.id);
  const explanation: Reply = await use('sales.explain', { params: { id } });
  const below = html`<h2>Why it is credited and paid so</h2>${whyContent(visit, explanation, sale)}
${await relatedContent(visit, use, 'sales', sale)}`;
  return recordContent(visit, 'sales', id, sale, below);
}

export async function commissionContent(visit: DashboardVisit, commission: Record_, use: Use): Promise<Html> {
  const { sale_id } = commission;
  const explanation: Reply =
    typeof sale_id === 'string' ? await use('sales.explain', { params: { id: sale_id } }) : undefined;
  const below =
    explanation && html`<h2>Why this amount</h2>${sum(visit, commission)}${whyContent(visit, explanation, commission)}`;
  return recordContent(visit, 'commissions', String(commission.id), commission, html`${below}`);
}

/** `20% of $100.00 is $20.00.` */
function sum({ reader }: DashboardVisit, commission: Record_): Html | false {
  const { amount_minor, base_amount_minor, currency, rate_type, rate_value, kind } = commission;
  if (typeof base_amount_minor !== 'number' || typeof rate_value !== 'number' || kind !== 'sale') return false;
  const amount = (minor: unknown) => money(Number(minor), String(currency), reader);
  const rate =
    rate_type === 'percent'
      ? `${percentage(rate_value, reader)} of ${amount(base_amount_minor)}`
      : `${amount(rate_value)} for a sale`;
  return html`<p>The rate is ${rate}. The commission is ${amount(amount_minor)}.</p>`;
}

/** @param of the sale or the commission, with its partner */
function whyContent(visit: DashboardVisit, explanation: Reply, of: Record_): Html {
  const { candidates, rules, no_commission_message, is_first_sale, first_sale_at, month_before, link_rate } =
    explanation;
  return html`${no_commission_message && html`<p class="notice">${no_commission_message}</p>`}
${table(
  'Who could be credited',
  [
    { title: 'Considered', cell: ({ by }: Record_) => words(String(by)) },
    {
      title: 'Partner',
      cell: (row: Record_) =>
        shown(
          visit,
          'partner_id',
          row.partner_id,
          row.partner_id === of.partner_id ? { ...row, partner: of.partner } : row,
          true,
        ),
    },
    { title: 'Credited', cell: ({ credited }: Record_) => (credited ? 'Yes' : 'No') },
    { title: 'Why', cell: ({ message }: Record_) => message },
  ],
  candidates,
  'The sale names nobody who could be credited.',
)}
${facts([
  [
    'Sale of the customer',
    is_first_sale
      ? 'Their first'
      : html`A later one${first_sale_at && `; the first was on ${dayText(first_sale_at, visit.reader)}`}`,
  ],
  ...baseOf(visit, explanation.base),
  ...(month_before === null ? [] : [tierOf(visit, explanation)]),
])}
${link_rate && html`<p>The link that the customer came by sets the rate, which comes before all rules.</p>`}
${table(
  'Rules that were considered',
  [
    { title: 'Rule', cell: ({ rule_id, name }: Record_) => html`<a href="/dashboard/rules/${rule_id}">${name}</a>` },
    { title: 'Outcome', cell: (row: Record_) => shown(visit, 'outcome', row.outcome, row) },
    { title: 'Why', cell: ({ message }: Record_) => message },
  ],
  rules,
  'No rule was considered.',
)}`;
}

/** Writes what the rate applies to as a sum, without amounts that are zero. */
function baseOf({ reader }: DashboardVisit, base: Reply): [string, unknown][] {
  const amount = (minor: number) => money(minor, base.currency, reader);
  const less = ['tax_minor', 'shipping_minor', 'fee_minor', 'discount_minor', 'refunded_minor'].filter(
    (name) => base[name] > 0 && (name === 'refunded_minor' || base.of === 'net_amount'),
  );
  return [
    ['Amount of the sale', amount(base.amount_minor)],
    ...less.map((name): [string, unknown] => [words(name), amount(-base[name])]),
    ['The rate applies to', amount(base.base_minor)],
  ];
}

const tierOf = ({ reader }: DashboardVisit, { month_before, base }: Reply): [string, unknown] => [
  'Month before',
  `${month_before.sales_count} sales, ${money(month_before.revenue_minor, base.currency, reader)}, which decide the tier`,
];
