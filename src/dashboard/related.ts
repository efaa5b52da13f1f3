/** The lists and the views that stand below a record, because people look at them together with it. */
import type { Operation } from '../core/resource/operation.ts';
import type { Problem } from '../core/values/problem.ts';
import { counted, words } from '../pages/format.ts';
import { type Html, html } from '../pages/html.ts';
import type { Use } from '../pages/run.ts';
import { below } from './below.ts';
import { actionTitle, addressOf, createsOf, listTitle, paramsOf, schemaOf, scopeFor } from './catalog.ts';
import { columnNames, expansionOf, formAddress, listTable } from './list_page.ts';
import { withNames } from './named.ts';
import { recordFacts } from './record_page.ts';
import { mayDo } from './roles.ts';
import type { Record_ } from './values.ts';
import type { DashboardVisit } from './visit.ts';

/** A partner has a dozen such lists. */
const few = 5;

/** Reads and draws what stands below a record, as far as the role may see it. A view that the record does not have is left out. */
export async function relatedContent(visit: DashboardVisit, use: Use, tag: string, record: Record_): Promise<Html> {
  return html`${await Promise.all((below[tag] ?? []).map((line) => relatedPart(visit, use, line, record)))}`;
}

async function relatedPart(visit: DashboardVisit, use: Use, line: string, record: Record_): Promise<Html | undefined> {
  const [name = '', filter] = line.split(' ');
  const operation = visit.catalog.operations.get(name);
  if (!operation || !mayDo(visit.role, operation.scope)) return undefined;
  const { properties = {} } = schemaOf(operation, 'query');
  const id = String(record.id);
  const same = [...(filter ? [filter] : []), `${record.object}_id`];
  const query = {
    ...(filter ? { [filter]: id } : {}),
    ...scopeFor(operation, { program_id: record.program_id, brand_id: record.brand_id }),
    ...(properties.limit ? { limit: few, ...expansionOf(operation, same) } : {}),
  };
  const params = Object.fromEntries(paramsOf(operation).map((param) => [param, id]));
  const answer = await use(name, { params, query }).catch((problem: Problem) => {
    if (problem.status === 404 || problem.status === 400 || problem.status === 409) return undefined;
    throw problem;
  });
  if (answer === undefined || answer === null) return undefined;
  const all = `${addressOf(visit.catalog, operation)}?${new URLSearchParams({ ...params, ...(filter ? { [filter]: id } : {}) })}`;
  const title = filter || name.endsWith('.list') ? listTitle(operation.tag) : viewTitle(name);
  const form =
    name === 'partners.get_tax_form' &&
    answer.status !== 'none' &&
    html`<p><a href="/dashboard/tax_form?partner_id=${id}">Download the form</a></p>`;
  const is_list = Array.isArray(answer.data);
  const program_id = typeof record.program_id === 'string' ? record.program_id : undefined;
  const narrowed = filter ? { [filter]: id } : {};
  const create =
    filter && createsOf(visit.catalog, operation.tag).find((one) => isOf(one, filter) && mayDo(visit.role, one.scope));
  const content = is_list
    ? listTable(
        visit,
        operation,
        await withNames(visit, use, answer.data, program_id, columnNames(operation, same)),
        'None yet.',
        same,
      )
    : recordFacts(
        visit,
        answer,
        Object.keys(answer).filter((name) => answer[name] === id),
      );
  return html`<h2>${title}</h2>${content}${form}${create && html`<p><a href="${formAddress(create, narrowed)}">${actionTitle(visit.catalog, create)}</a></p>`}${is_list && answer.has_more && html`<p><a href="${all}">All ${counted(answer.total_count, visit.reader)}</a></p>`}`;
}

/** Returns whether what an operation makes can belong to the record, by the field that a list is narrowed by. */
const isOf = (create: Operation, filter: string): boolean =>
  schemaOf(create, 'body').properties?.[filter] !== undefined;

/** `Payout method` of `partners.get_payout_method`. */
const viewTitle = (name: string): string => words((name.split('.')[1] as string).replace(/^(?:get|list)_/, ''));
