/** The page of a record: its fields, what can be done to it, and the lists that it has. */
import type { Tx } from '../core/postgres/transaction.ts';
import type { Operation } from '../core/resource/operation.ts';
import { words } from '../pages/format.ts';
import { type Html, html } from '../pages/html.ts';
import { notice } from '../pages/layout.ts';
import type { Use } from '../pages/run.ts';
import { facts } from '../pages/table.ts';
import { isBelow } from './below.ts';
import { actionsOn, actionTitle, addressOf, listsOf, listTitle, viewsOf } from './catalog.ts';
import { operationOrFields, queryOf } from './list_page.ts';
import { isPossible } from './possible.ts';
import { mayDo, mayRun } from './roles.ts';
import { hrefOf, type Record_, shown } from './values.ts';
import type { DashboardVisit } from './visit.ts';

/** Makes the page of a record by hand. */
export type RecordPage = (visit: DashboardVisit, record: Record_, use: Use, tx: Tx) => Promise<Html>;

/** The fields of a record with their values. Those without one are named below, and its id is at the end: that is for support. */
export const recordFacts = (visit: DashboardVisit, { id, ...fields }: Record_, left_out: string[] = []): Html => {
  const record = { ...fields, ...(id === undefined ? {} : { id }) };
  const told = Object.entries(record).filter(
    ([name]) => name !== 'object' && !left_out.includes(name) && !(`${name}_id` in record),
  );
  const titled = (name: string) => words(name.replace(/_id$/, ''));
  const filled = told.filter(([, value]) => value !== null);
  const empty = told.filter(([, value]) => value === null).map(([name]) => titled(name));
  return html`${filled.length > 0 && facts(filled.map(([name, value]) => [titled(name), operationOrFields(visit, name, value) ?? shown(visit, name, value, record)]))}${
    empty.length > 0 && html`<p class="hint">Not set: ${empty.join(', ')}.</p>`
  }`;
};

/** Says what a form did that led here, and to which record. */
export function doneNotice({ request, catalog }: DashboardVisit): Html | undefined {
  const { done = '', of = '' } = queryOf(request.query);
  const operation = catalog.operations.get(done);
  const href = hrefOf(catalog, of);
  return (
    operation && notice(html`Done: ${actionTitle(catalog, operation)}.${href && html` <a href="${href}">Show it</a>`}`)
  );
}

const under_way = new Set<unknown>(['queued', 'running', 'activating', 'generating']);

/** True while a worker is at it. */
const isUnderWay = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  Object.entries(value).some(([name, inner]) => {
    if (name === 'in_progress') return inner !== null;
    return name === 'state' || name === 'status' ? under_way.has(inner) : isUnderWay(inner);
  });

/** Where scripts run, the page reads this part again until the work is done. */
export const underWay = (content: Html): Html => html`<div data-under-way>
${notice(html`This is being worked on. <a href="">Load the page again</a> to see how far it is.`)}
${content}
</div>`;

export const recordContent = (visit: DashboardVisit, tag: string, id: string, record: Record_, below: Html): Html =>
  html`${actionList(visit, tag, { id }, record)}${isUnderWay(record) ? underWay(recordFacts(visit, record)) : recordFacts(visit, record)}${below}${links(visit, tag, id)}`;

/**
 * Buttons for what the role may do, and the state of the record allows.
 * @param by_hand those that the page has a form for, by their names without the noun
 */
export function actionList(
  { catalog, role }: DashboardVisit,
  tag: string,
  params: Record<string, string>,
  record: Record_,
  by_hand: string[] = [],
): Html | false {
  const actions = actionsOn(catalog, tag).filter(
    (one) => mayRun(role, one) && isPossible(one.name, record) && !by_hand.includes(one.name.slice(tag.length + 1)),
  );
  if (actions.length === 0) return false;
  return html`<ul class="actions">${actions.map(
    (one) =>
      html`<li><a class="button plain" href="/dashboard/do/${one.name}?${new URLSearchParams(params)}">${actionTitle(catalog, one)}</a></li>`,
  )}</ul>`;
}

function links({ catalog, role }: DashboardVisit, tag: string, id: string): Html | false {
  const views = viewsOf(catalog, tag).filter(({ name, scope }) => mayDo(role, scope) && !isBelow(tag, name));
  const lists = listsOf(catalog, tag).filter(
    ({ operation: { name, scope } }) => mayDo(role, scope) && !isBelow(tag, name),
  );
  if (views.length + lists.length === 0) return false;
  return html`<h2>More</h2><ul class="cards">${views.map((one) => html`<li><a class="card" href="${viewAddress(one, id)}">${actionTitle(catalog, one)}</a></li>`)}${lists.map(
    ({ operation, filter }) =>
      html`<li><a class="card" href="${addressOf(catalog, operation)}?${filter}=${id}">${listTitle(operation.tag)}</a></li>`,
  )}</ul>`;
}

const viewAddress = ({ name }: Operation, id: string): string => `/dashboard/see/${name}?id=${id}`;
