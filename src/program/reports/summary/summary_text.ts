import { inOneLine } from '../../../core/values/texts/one_line.ts';
import { bar } from './chart.ts';
import {
  about_changes,
  type Bar,
  daysOf,
  figuresOf,
  howToStop,
  leftOut,
  type Summary,
  top_partners,
  topPartnersOf,
  weekOf,
} from './summary.ts';

export function subjectOf({ program, week, overview }: Summary): string {
  const { sales = 0 } = overview.totals;
  const count = sales === 1 ? '1 sale' : `${sales.toLocaleString('en')} sales`;
  return `${inOneLine(program.name)}: ${count} in week ${week}`;
}

/** The summary as plain text. */
export function textOf(summary: Summary): string {
  const partners = topPartnersOf(summary);
  const left_out = leftOut(summary);
  return [
    `${inOneLine(summary.program.name)}, ${weekOf(summary)}`,
    '',
    ...aligned(figuresOf(summary).map(({ name, value, change }) => [name, value, change])),
    '',
    'Revenue by day',
    ...bars(daysOf(summary)),
    '',
    ...(partners.length > 0 ? [top_partners, ...bars(partners), ''] : []),
    ...(left_out ? [left_out, ''] : []),
    about_changes,
    howToStop(summary),
    '',
  ].join('\n');
}

const bar_width = 20;

function bars(lines: Bar[]): string[] {
  const most = Math.max(0, ...lines.map(({ amount }) => amount));
  return aligned(lines.map(({ name, value, amount }) => [name, value, bar(amount, most, bar_width)]));
}

/** The second column to the right. */
function aligned(rows: [string, string, string][]): string[] {
  const width = (column: 0 | 1) => Math.max(0, ...rows.map((row) => row[column].length));
  const [first, second] = [width(0), width(1)];
  return rows.map(([name, value, last]) => `${name.padEnd(first)}  ${value.padStart(second)}  ${last}`.trimEnd());
}
