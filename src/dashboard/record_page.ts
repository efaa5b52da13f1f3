/** The page of a record: its fields, what can be done to it, and the lists that it has. */
import type { Operation } from '../core/resource/operation.ts';
import { words } from '../pages/format.ts';
import { type Html, html } from '../pages/html.ts';
import { facts } from '../pages/table.ts';
import { isBelow } from './below.ts';
import { actionsOn, actionTitle, listsOf, listTitle, viewsOf } from './catalog.ts';
import { addressOf } from './list_page.ts';
import { mayDo, mayRun } from './roles.ts';
import { type Record_, shown } from './values.ts';
import type { DashboardVisit } from './visit.ts';

/** The fields of a record with their values. */
export const recordFacts = (visit: DashboardVisit, record: Record_): Html =>
  facts(
    Object.entries(record)
      .filter(([name]) => name !== 'object' && !(`${name}_id` in record))
      .map(([name, value]) => [words(name.replace(/_id$/, '')), shown(visit, name, value, record)]),
  );

/** The name of a record, as people know it. */
export const nameOf = (record: Record_): string =>
  ['name', 'email', 'handle', 'title', 'code', 'url', 'subject', 'id']
    .map((name) => record[name])
    .find((value) => typeof value === 'string' && value !== '') as string;

export const recordContent = (
  visit: DashboardVisit,
  tag: string,
  id: string,
  record: Record_,
  { said, below }: { said: Html | undefined; below: Html },
): Html => html`${said}${actionList(visit, tag, { id })}${recordFacts(visit, record)}${below}${links(visit, tag, id)}`;

/** Buttons for what the role may do. The operation itself refuses what a state does not allow. */
export function actionList(
  { catalog, role }: DashboardVisit,
  tag: string,
  params: Record<string, string>,
): Html | false {
  const actions = actionsOn(catalog, tag).filter((one) => mayRun(role, one));
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
