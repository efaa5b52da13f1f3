/** A form of an operation on a page made by hand: a few fields and a button, for roles that may run it. */
import { randomUUID } from 'node:crypto';
import { type Html, html } from '../pages/html.ts';
import { mayRun } from './roles.ts';
import type { DashboardVisit } from './visit.ts';

interface PostForm {
  /** The parameters of the operation's path. */
  params: Record<string, string>;
  /** Values that nobody types. */
  values?: Record<string, string>;
  /** The page to show afterwards: a list, or a record. The record that was made, where left out. */
  back?: string;
  /** The fields and the button. */
  content: Html;
  is_stacked?: boolean;
}

export function postForm(
  { role, catalog }: DashboardVisit,
  operation: string,
  { params, values = {}, back, content, is_stacked }: PostForm,
): Html | false {
  const found = catalog.operations.get(operation);
  if (!found || !mayRun(role, found)) return false;
  return html`<form class="${is_stacked ? 'stacked' : 'inline'}" method="post" action="/dashboard/do/${operation}">
${Object.entries(params).map(([name, value]) => html`<input type="hidden" name="path:${name}" value="${value}">`)}
${Object.entries(values).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
<input type="hidden" name="form_key" value="${randomUUID()}">${back && html`<input type="hidden" name="back" value="${back}">`}
${content}</form>`;
}

/** Pages that a form may lead back to: lists, and records. */
const pages = /^\/dashboard\/[a-z_]+(?:\/[a-z_]+_[0-9a-z]{26})?$/;

export const pageIn = (path: string | undefined): string | undefined =>
  path !== undefined && pages.test(path) ? path : undefined;

/** The page that a form says to show afterwards, with what was done, and to which record; undefined where it says none. */
export const backOf = (sent: URLSearchParams, done: string): string | undefined => {
  const back = pageIn(sent.get('back') ?? undefined);
  const of = sent.get('path:id');
  return back && `${back}?${new URLSearchParams({ done, ...(of === null || back.endsWith(of) ? {} : { of }) })}`;
};
