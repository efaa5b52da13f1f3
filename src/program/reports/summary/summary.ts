import { formatMoney } from '../../payouts/money_text.ts';
import type { Program } from '../../programs/program.ts';
import type { Metric } from '../metric.ts';
import type { ReportReply } from '../report.ts';
import { changeText } from './chart.ts';

/** The data of a summary. */
export interface Summary {
  program: Program;
  /** `2026-W46`. */
  week: string;
  overview: ReportReply;
  partners: ReportReply;
}

/** A figure of the week. */
export interface Figure {
  name: string;
  value: string;
  /** From the week before. */
  change: string;
}

/** A line with a bar. */
export interface Bar {
  name: string;
  value: string;
  amount: number;
}

const shown: [Metric, string][] = [
  ['clicks', 'Clicks'],
  ['leads', 'Sign-ups'],
  ['customers', 'New customers'],
  ['sales', 'Sales'],
  ['revenue_minor', 'Revenue'],
  ['refunds_minor', 'Refunds'],
  ['commissions_minor', 'Commissions'],
];

export const figuresOf = ({ overview: { totals, delta, currency } }: Summary): Figure[] =>
  shown.map(([metric, name]) => {
    const value = totals[metric] ?? 0;
    return {
      name,
      value: metric.endsWith('_minor') ? formatMoney(value, currency) : value.toLocaleString('en'),
      change: changeText(delta?.[metric]?.change_bps ?? null),
    };
  });

const day = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' });

/** `2026-W48: November 23 – 29, 2026, UTC`. */
export const weekOf = ({ week, overview: { from, to } }: Summary): string =>
  `week ${week}: ${day.formatRange(new Date(from), new Date(Date.parse(to) - 1))}, UTC`;

const weekday = new Intl.DateTimeFormat('en', { weekday: 'short', timeZone: 'UTC' });

/** Revenue by day. */
export const daysOf = ({ overview: { rows, currency } }: Summary): Bar[] =>
  rows.map(({ from = '', revenue_minor = 0 }) => ({
    name: weekday.format(new Date(from)),
    value: formatMoney(revenue_minor, currency),
    amount: revenue_minor,
  }));

/** The partners with the most revenue. */
export const topPartnersOf = ({ partners: { rows, currency } }: Summary): Bar[] =>
  rows
    .filter(({ revenue_minor = 0 }) => revenue_minor > 0)
    .map(({ handle, partner_id, revenue_minor = 0 }) => ({
      name: handle ?? partner_id ?? '',
      value: formatMoney(revenue_minor, currency),
      amount: revenue_minor,
    }));

const list = new Intl.ListFormat('en');

/** Names the currencies that the figures do not include. */
export function leftOut({ overview: { totals } }: Summary): string | undefined {
  const codes = totals.other_currencies.map(({ currency }) => currency);
  return codes.length === 0 ? undefined : `Amounts in ${list.format(codes)} are not included.`;
}

export const about_changes = 'Changes are relative to the week before; — means that it was 0 then.';
export const top_partners = 'Partners with the most revenue';
export const howToStop = ({ program }: Summary): string =>
  `To stop these emails, set weekly_summary of the program to false (PATCH /v1/programs/${program.id}).`;
