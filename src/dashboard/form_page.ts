/** The form of an operation, read off its body, and what it answered. */
import { randomUUID } from 'node:crypto';
import type { Operation } from '../core/resource/operation.ts';
import { Problem } from '../core/values/problem.ts';
import { type Field, fieldsOf, hasFieldOf, inputs, type Typed } from '../pages/form.ts';
import { type Html, html } from '../pages/html.ts';
import { notice } from '../pages/layout.ts';
import { withUnits } from './amounts.ts';
import { actionTitle, paramsOf, schemaOf } from './catalog.ts';
import { recordFacts } from './record_page.ts';
import { needsCode } from './roles.ts';
import { hrefOf, type Record_ } from './values.ts';
import type { DashboardVisit } from './visit.ts';

/** The fields of an operation's body, and of its query where it is no GET. A list of objects is typed as JSON. */
export function formFields(operation: Operation): Field[] {
  if (operation.bulk_of) return [];
  const query = fieldsOf(schemaOf(operation, 'query'));
  return [...query, ...bodyFields(operation)];
}

export const bodyFields = (operation: Operation): Field[] => fieldsOf(schemaOf(operation, 'body'));

/** Parameters of the path that the address of the form does not give. */
const missingParams = (operation: Operation, params: Record<string, string>): Field[] =>
  fieldsOf(schemaOf(operation, 'params')).filter(({ name }) => params[name] === undefined);

interface FormState {
  params: Record<string, string>;
  typed: Typed;
  /** Of the amounts that name none. */
  currency: string;
  /** What an update showed first. */
  before?: Typed | undefined;
  problem?: Problem | undefined;
  form_key?: string | undefined;
}

const isDangerous = ({ method, name }: Operation): boolean =>
  method === 'DELETE' || /\.(?:revoke|void|stop)$/.test(name);

export function formContent(visit: DashboardVisit, operation: Operation, state: FormState): Html {
  const { params, typed, currency, before, problem, form_key = randomUUID() } = state;
  const missing = missingParams(operation, params);
  const own = withUnits(formFields(operation), currency);
  const fields = [...missing, ...own];
  const title = actionTitle(visit.catalog, operation);
  const said = problem && !hasFieldOf(fields, problem) && notice(problem.message, true);
  const back = params.id === undefined ? undefined : hrefOf(visit.catalog, params.id);
  return html`${said}<form class="stacked" method="post" action="/dashboard/do/${operation.name}">
<p class="hint">${operation.summary} ${(operation.doc ?? '').replaceAll('`', '')}</p>
<input type="hidden" name="form_key" value="${form_key}">
${Object.entries(params).map(([name, value]) => html`<input type="hidden" name="path:${name}" value="${value}">`)}
${before && Object.entries(before).map(([name, value]) => html`<input type="hidden" name="before:${name}" value="${value}">`)}
${inputs(
  missing.map((field) => ({ ...field, name: `path:${field.name}` })),
  typed,
  problem,
)}
${inputs(own, typed, problem)}
${operation.bulk_of && bulkField(typed)}
${needsCode(operation) && codeField(visit)}
<div><button${isDangerous(operation) && html` class="danger"`}>${title}</button> ${back && html`<a href="${back}">Cancel</a>`}</div>
</form>`;
}

const bulkField = (typed: Typed): Html =>
  html`<div class="field"><label for="field-bulk">Records</label><p class="hint">A JSON array of objects.</p><textarea id="field-bulk" name="bulk" required>
${typed.bulk}</textarea></div>`;

/** A code that was given a short time ago holds for a while. */
const codeField = ({ session }: DashboardVisit): Html | false =>
  isConfirmed(session.confirmed_at)
    ? false
    : session.has_totp
      ? html`<div class="field"><label for="field-code">Code of your app</label><p class="hint">This moves money or opens access, so confirm that it is you.</p><input id="field-code" name="code" inputmode="numeric" autocomplete="one-time-code" required pattern="[0-9 ]{6,7}"></div>`
      : html`<p class="notice bad">This moves money or opens access, and needs a code of an authenticator app. <a href="/dashboard/account">Set one up</a> first.</p>`;

const confirmed_minutes = 15;
export const isConfirmed = (confirmed_at: string | null): boolean =>
  confirmed_at !== null && Date.now() - Date.parse(confirmed_at) < confirmed_minutes * 60_000;

/** @throws Problem code_required where the person has not given a code a short time ago */
export function requireConfirmed({ session }: DashboardVisit): void {
  if (isConfirmed(session.confirmed_at)) return;
  throw new Problem(
    'code_required',
    'Confirm that it is you, with a code of your authenticator app, in “Your account”. Then try again.',
    { param: 'code' },
  );
}

/** What an operation answered, where no page shows it again: a secret, a link, a number of records. */
export const resultContent = (visit: DashboardVisit, operation: Operation, reply: Record_): Html =>
  html`${notice(`Done: ${actionTitle(visit.catalog, operation)}.`)}${'secret' in reply && notice('The secret is shown once. Copy it now.', true)}
${recordFacts(visit, reply)}${typeof reply.id === 'string' && hrefOf(visit.catalog, reply.id) && html`<p><a href="${hrefOf(visit.catalog, reply.id)}">Show it</a></p>`}`;

/** Splits what was sent: the parameters of the path, what an update showed before, and what was typed. */
export function partsOf(
  operation: Operation,
  sent: URLSearchParams,
): Required<Pick<FormState, 'params' | 'typed'>> & { before: Typed | undefined } {
  const of = (prefix: string) =>
    Object.fromEntries(
      [...sent].filter(([name]) => name.startsWith(prefix)).map(([name, value]) => [name.slice(prefix.length), value]),
    );
  const before = of('before:');
  const names = paramsOf(operation);
  const params = Object.fromEntries(Object.entries(of('path:')).filter(([name]) => names.includes(name)));
  return { params, typed: Object.fromEntries(sent), before: operation.method === 'PATCH' ? before : undefined };
}
