/** Tables of rows, with a word where there are none. On a narrow window each row is a card, which names its values by `data-name` (`style.css`). */
import { type Html, html } from './html.ts';

export interface Column<Row> {
  title: string;
  cell: (row: Row) => unknown;
  /** True for figures, which stand at the right. */
  is_number?: boolean;
}

/** @param label names the table to who cannot see it  @param none what to say, and to do, where there is no row */
export function table<Row>(label: string, columns: Column<Row>[], rows: Row[], none: unknown): Html {
  if (rows.length === 0) return html`<p class="none">${none}</p>`;
  const right = ({ is_number }: Column<Row>) => is_number && html` class="number"`;
  return html`<div class="table" tabindex="0" role="region" aria-label="${label}"><table>
<thead><tr>${columns.map((column) => html`<th scope="col"${right(column)}>${column.title}</th>`)}</tr></thead>
<tbody>${rows.map(
    (
      row,
    ) => html`<tr>${columns.map((column) => html`<td data-name="${column.title}"${right(column)}>${column.cell(row)}</td>`)}</tr>
`,
  )}</tbody></table></div>`;
}

/** Names and their values, one below the other. */
export const facts = (all: [name: string, value: unknown][]): Html =>
  html`<dl>${all.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
