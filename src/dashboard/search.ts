/** Finding a record by what people know it by; an id leads to its record by itself. */
import sql, { type Sql } from 'sql-template-tag';
import type { Tx } from '../core/postgres/transaction.ts';
import type { Html } from '../pages/html.ts';
import { html } from '../pages/html.ts';
import { insteadOf } from '../pages/run.ts';
import { listTitle } from './catalog.ts';
import { listTable } from './list_page.ts';
import { withNames } from './named.ts';
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

/** Names that lists cannot be narrowed by, each unique in a program and with an index. */
const searched_names: [plural: string, ids: (key: string) => Sql][] = [
  ['partners', (key) => sql`select t.id from program.partner t where t.handle = ${key} and t.deleted_at is null`],
  ['links', (key) => sql`select t.id from program.link t where t.value_key = ${key} and t.deleted_at is null`],
  ['coupons', (key) => sql`select t.id from program.coupon t where t.code_key = ${key} and t.deleted_at is null`],
];

interface Found {
  operation: string;
  data: Record_[];
}

export async function searched(visit: DashboardVisit, q: string) {
  const { catalog } = visit;
  const { found, chosen } = await readPage(visit, async (use, { program_id }, tx) => {
    const found: Found[] = [];
    if (q === '' || program_id === undefined) return { found };
    for (const [name, filter] of searched_lists) {
      // A text that is no email address is looked for elsewhere.
      const query = { program_id, limit: 10, [filter]: q };
      const { data } = await use(name, { query }).catch(insteadOf(400, { data: [] }));
      found.push({ operation: name, data: await withNames(visit, use, data, program_id) });
    }
    for (const [plural, ids] of searched_names) {
      const data: Record_[] = [];
      for (const id of await named(tx, ids(q.toLowerCase()), program_id))
        data.push(await use(`${plural}.get`, { params: { id } }));
      found.push({ operation: `${plural}.list`, data: await withNames(visit, use, data, program_id) });
    }
    return { found };
  });
  const parts = found.flatMap(({ operation: name, data }): Html[] => {
    const operation = catalog.operations.get(name);
    if (!operation || data.length === 0 || !mayDo(visit.role, operation.scope)) return [];
    return [html`<h2>${listTitle(operation.tag)}</h2>${listTable(visit, operation, data, '')}`];
  });
  return { title: 'Search', chosen, content: parts.length > 0 ? html`${parts}` : nothing(q) };
}

const named = async (tx: Tx, ids: Sql, program_id: string): Promise<string[]> =>
  (
    await tx.all<{ id: string }>(
      sql`${ids} and t.organization_id = ${tx.organization_id} and t.program_id = ${program_id} limit 10`,
    )
  ).map(({ id }) => id);

/** The texts that can be looked for, and where others are. */
const nothing = (q: string): Html =>
  html`<p class="none">${
    q === ''
      ? 'Type what you look for in the field above'
      : html`Nothing in this program is “${q}”. Look for it by its whole name`
  }: the email address of a partner or customer, the handle of a partner, the value of a link, a coupon code, the number of a charge, or an ID. <a href="/dashboard/partners">All partners</a></p>`;
