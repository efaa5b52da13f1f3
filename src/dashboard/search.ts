/** Finding a record by an email address; an id leads to its record by itself. */
import type { Html } from '../pages/html.ts';
import { html } from '../pages/html.ts';
import { listTitle } from './catalog.ts';
import { listTable } from './list_page.ts';
import { mayDo } from './roles.ts';
import type { Record_ } from './values.ts';
import { type DashboardVisit, readPage } from './visit.ts';

/** The lists that are searched, and the filter of each. */
const searched_lists: [operation: string, filter: string][] = [
  ['partners.list', 'email'],
  ['customers.list', 'email'],
  ['customers.list', 'external_customer_id'],
  ['applications.list', 'email'],
  ['sales.list', 'external_charge_id'],
];

export async function searched(visit: DashboardVisit, q: string) {
  const { catalog } = visit;
  const { found, chosen } = await readPage(visit, async (use, { program_id }) => {
    const found: { title: string; content: Html }[] = [];
    if (q === '' || program_id === undefined) return { found };
    for (const [name, filter] of searched_lists) {
      const operation = catalog.operations.get(name);
      if (!operation || !mayDo(visit.role, operation.scope)) continue;
      const { data }: { data: Record_[] } = await use(name, { query: { program_id, limit: 10, [filter]: q } });
      if (data.length > 0)
        found.push({ title: listTitle(operation.tag), content: listTable(visit, operation, data, '') });
    }
    return { found };
  });
  const none = html`<p class="none">Nothing has the ID, email address, customer ID or charge ID “${q}” in this program.</p>`;
  return {
    title: 'Search',
    chosen,
    content: found.length === 0 ? none : html`${found.map(({ title, content }) => html`<h2>${title}</h2>${content}`)}`,
  };
}
