/** The recruitment board: prospects by the stage that they are in, for one brand. */
import { counted, words } from '../pages/format.ts';
import { type Html, html } from '../pages/html.ts';
import { schemaOf } from './catalog.ts';
import { queryOf } from './list_page.ts';
import { noBrand } from './none_yet.ts';
import { mayDo } from './roles.ts';
import type { Record_ } from './values.ts';
import { type DashboardVisit, readPage } from './visit.ts';

const few = 12;

interface Stage {
  stage: string;
  prospects: Record_[];
  total_count: number;
}

export async function boardPage(visit: DashboardVisit) {
  const { brand_id: wanted } = queryOf(visit.request.query);
  const operation = visit.catalog.operations.get('prospects.list');
  const stages = ((operation && schemaOf(operation, 'query').properties?.stage?.enum) ?? []).map(String);
  const { brands, brand_id, columns, chosen } = await readPage(visit, async (use) => {
    const { data: brands }: { data: Record_[] } = await use('brands.list', { query: { limit: 100 } });
    const brand_id = (brands.find(({ id }) => id === wanted) ?? brands[0])?.id as string | undefined;
    const columns: Stage[] = [];
    if (brand_id !== undefined)
      for (const stage of stages) {
        const { data, total_count } = await use('prospects.list', { query: { brand_id, stage, limit: few } });
        columns.push({ stage, prospects: data, total_count });
      }
    return { brands, brand_id, columns };
  });
  const content =
    brand_id === undefined
      ? noBrand(visit)
      : html`${brands.length > 1 && chooser('/dashboard/board', brands, brand_id)}<div class="board" tabindex="0" role="region" aria-label="Prospects by stage">${columns.map((column) => lane(visit, column, brand_id))}</div>`;
  return { title: 'Recruitment board', content, chosen };
}

/** A choice of the brand that a page is about. */
export const chooser = (path: string, brands: Record_[], brand_id: string): Html =>
  html`<form class="inline" action="${path}"><div class="field"><label for="brand">Brand</label><select id="brand" name="brand_id" data-sends>${brands.map(
    ({ id, name }) => html`<option value="${id}"${id === brand_id && html` selected`}>${name}</option>`,
  )}</select></div><button>Show</button></form>`;

const lane = ({ reader, role }: DashboardVisit, { stage, prospects, total_count }: Stage, brand_id: string): Html =>
  html`<section aria-labelledby="stage-${stage}"><h2 id="stage-${stage}">${words(stage)} <span class="hint">${counted(total_count, reader)}</span></h2>
${prospects.map(
  ({ id, name, key, url }) =>
    html`<div class="card"><a href="/dashboard/prospects/${id}">${name ?? key ?? url ?? id}</a>${
      mayDo(role, 'prospects:write') &&
      html`<p><a class="hint" href="/dashboard/do/prospects.move?id=${id}">Move</a></p>`
    }</div>`,
)}
${total_count > prospects.length && html`<p><a href="/dashboard/prospects?${new URLSearchParams({ brand_id, stage })}">All ${counted(total_count, reader)}</a></p>`}
${total_count === 0 && html`<p class="hint">Nobody is in this stage.</p>`}</section>`;
