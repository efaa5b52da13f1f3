/** A plot of a series, drawn by the server: it needs no script, and the table below it has the same figures. */
import { type Html, html } from './html.ts';

export interface Point {
  label: string;
  value: number;
}

/** The size of the bars, which are stretched to the width of the page. Texts are beside them, so that they stay readable. */
const size = { width: 720, height: 160 };

/** @param title names it to who cannot see it  @param shown writes a value */
export function plot(title: string, points: Point[], shown: (value: number) => string): Html {
  const { width, height } = size;
  if (points.length === 0) return html``;
  const most = Math.max(...points.map(({ value }) => value), 0);
  const least = Math.min(...points.map(({ value }) => value), 0);
  const span = most - least || 1;
  const step = width / points.length;
  const y = (value: number) => ((most - value) / span) * height;
  const bars = points.map(({ label, value }, nth) => {
    const [from, to] = [Math.min(y(0), y(value)), Math.max(y(0), y(value))];
    return html`<rect x="${(nth * step + step * 0.1).toFixed(1)}" y="${from.toFixed(1)}" width="${(step * 0.8).toFixed(1)}" height="${Math.max(to - from, value === 0 ? 0 : 1).toFixed(1)}"><title>${label}: ${shown(value)}</title></rect>`;
  });
  const [first, last] = [points[0] as Point, points.at(-1) as Point];
  return html`<figure class="plot"><figcaption>${title}</figcaption>
<p class="scale"><span>${shown(most)}</span></p>
<svg viewBox="0 0 ${width} ${height}" preserveAspectRatio="none" role="img" aria-label="${title}: ${shown(least)} – ${shown(most)}">
${bars}
<line x1="0" x2="${width}" y1="${y(0).toFixed(1)}" y2="${y(0).toFixed(1)}"></line>
</svg>
<p class="scale"><span>${first.label}</span><span>${points.length > 1 && last.label}</span></p></figure>`;
}
