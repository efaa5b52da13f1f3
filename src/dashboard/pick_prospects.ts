/** Prospects that are ticked in their list are added to a list or to a campaign. */
import { randomUUID } from 'node:crypto';
import { type Html, html } from '../pages/html.ts';
import type { Use } from '../pages/run.ts';
import type { Column } from '../pages/table.ts';
import { mayDo } from './roles.ts';
import { nameIn, type Record_ } from './values.ts';
import type { DashboardVisit } from './visit.ts';

export interface Picking {
  column: Column<Record_>;
  /** Puts a table with the column into the form. */
  around(table: Html): Html;
}

/** A button for each: of more, people add prospects on the page of the list or the campaign. */
const most_targets = 8;

/** The lists and campaigns that prospects can be added to, newest first. */
const targets = [
  { plural: 'lists', noun: 'list', is_open: () => true },
  {
    plural: 'campaigns',
    noun: 'campaign',
    is_open: ({ state }: Record_) => state !== 'stopped' && state !== 'finished',
  },
];

/** @returns undefined where the role may add prospects to nothing, or there is nothing yet */
export async function pickingOf(
  { catalog, role }: DashboardVisit,
  use: Use,
  brand_id: string,
): Promise<Picking | undefined> {
  const buttons: Html[] = [];
  for (const { plural, noun, is_open } of targets) {
    const add = catalog.operations.get(`${plural}.add_prospects`);
    if (!add || !mayDo(role, add.scope)) continue;
    const { data }: { data: Record_[] } = await use(`${plural}.list`, { query: { brand_id, limit: most_targets } });
    for (const { id, name } of data.filter(is_open))
      buttons.push(
        html`<button class="plain" formaction="/dashboard/do/${add.name}" name="path:id" value="${id}">Add to the ${noun} “${name}”</button> `,
      );
  }
  if (buttons.length === 0) return undefined;
  return {
    column: {
      title: 'Choose',
      cell: (row) =>
        html`<input type="checkbox" name="prospect_ids" value="${row.id}" aria-label="Choose ${nameIn(row) ?? row.url}">`,
    },
    around: (table) =>
      html`<form method="post" action="/dashboard/do/lists.add_prospects"><input type="hidden" name="form_key" value="${randomUUID()}"><input type="hidden" name="back" value="/dashboard/prospects">
${table}<div class="buttons">${buttons}</div></form>`,
  };
}
