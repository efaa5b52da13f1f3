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

const cell = 'padding:4px 12px 4px 0;font:14px/20px sans-serif;color:#1f2933';

/** The summary as HTML: tables and coloured cells, which mail programs show without loading anything. */
export function htmlOf(summary: Summary): string {
  const { program } = summary;
  const partners = topPartnersOf(summary);
  const left_out = leftOut(summary);
  return [
    '<!doctype html><html lang="en"><head><meta charset="utf-8"></head><body style="margin:24px;background:#ffffff">',
    heading(`${program.name}, ${weekOf(summary)}`),
    table(figuresOf(summary).map(({ name, value, change }) => [text(name), right(text(value)), text(change)])),
    heading('Revenue by day'),
    table(bars(daysOf(summary))),
    ...(partners.length > 0 ? [heading(top_partners), table(bars(partners))] : []),
    ...[left_out, about_changes, howToStop(summary)].flatMap((line) => (line ? [paragraph(line)] : [])),
    '</body></html>',
  ].join('\n');
}

const bar_width_px = 240;

function bars(lines: Bar[]): string[][] {
  const most = Math.max(0, ...lines.map(({ amount }) => amount));
  return lines.map(({ name, value, amount }) => {
    const width = amount <= 0 || most === 0 ? 0 : Math.max(1, Math.round((amount / most) * bar_width_px));
    const drawn = width === 0 ? '' : `<div style="width:${width}px;height:12px;background:#1f6feb"></div>`;
    return [text(name), right(text(value)), `<td style="${cell}">${drawn}</td>`];
  });
}

const table = (rows: string[][]): string =>
  `<table role="presentation" style="border-collapse:collapse">${rows.map((cells) => `<tr>${cells.join('')}</tr>`).join('')}</table>`;

const text = (value: string): string => `<td style="${cell}">${escaped(value)}</td>`;
const right = (value: string): string => value.replace('style="', 'align="right" style="');
const heading = (value: string): string =>
  `<h2 style="font:600 16px/24px sans-serif;color:#1f2933">${escaped(value)}</h2>`;
const paragraph = (value: string): string => `<p style="font:12px/18px sans-serif;color:#616e7c">${escaped(value)}</p>`;

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const escaped = (value: string): string => value.replaceAll(/[&<>"']/g, (sign) => entities[sign] as string);
