/** The form of an operation, read off its body, and what it answered. */
import { randomUUID } from 'node:crypto';
import type { Operation } from '../core/resource/operation.ts';
import { Problem } from '../core/values/problem.ts';
import { typedIn } from '../pages/form.ts';
import { type Html, html } from '../pages/html.ts';
import { hasFieldOf, inputs, inWords } from '../pages/inputs.ts';
import { notice } from '../pages/layout.ts';
import { leavesOf } from '../pages/rows.ts';
import { problemsIn } from '../pages/run.ts';
import { type Field, fieldsOf, type Typed } from '../pages/schema_fields.ts';
import { table } from '../pages/table.ts';
import { withUnits } from './amounts.ts';
import { actionTitle, paramsOf, schemaOf } from './catalog.ts';
import { type Choices, withChoices } from './choices.ts';
import { formFields } from './operation_fields.ts';
import { recordFacts } from './record_page.ts';
import { maySay, needsCode } from './roles.ts';
import { hrefOf, type Record_, shortId } from './values.ts';
import type { DashboardVisit } from './visit.ts';

/** Parameters of the path that the address of the form does not give. */
const missingParams = (operation: Operation, params: Record<string, string>): Field[] =>
  fieldsOf(schemaOf(operation, 'params')).filter(({ name }) => params[name] === undefined);

interface FormState {
  params: Record<string, string>;
  typed: Typed;
  /** The currency of the amounts that name none. */
  currency: string;
  /** The texts that an update showed first. */
  before?: Typed | undefined;
  problem?: Problem | undefined;
  form_key?: string | undefined;
  /** The list that a person has asked for another row of. */
  more?: string | undefined;
  /** The fields that the form shows, by the name that each begins with; the others stay as they are. All, where left out. */
  only?: string[] | undefined;
  /** The page to show afterwards, in place of the record. */
  back?: string | undefined;
  choices?: Choices | undefined;
}

const isDangerous = ({ method, name }: Operation): boolean =>
  method === 'DELETE' || /\.(?:revoke|void|stop)$/.test(name);

export function formContent(visit: DashboardVisit, operation: Operation, state: FormState): Html {
  const { params, typed, currency, before, problem, form_key = randomUUID(), more, only } = state;
  const missing = missingParams(operation, params);
  const all = withChoices(withUnits(formFields(operation, params), currency), state.choices ?? new Map(), typed);
  const own = all.filter(({ name }) => maySay(visit.role, name) && (!only || only.includes(name)));
  const others = all.filter((field) => !own.includes(field));
  const fields = [...missing, ...own];
  const names = own.map(({ name }) => name);
  const title = actionTitle(visit.catalog, operation);
  const said = problemsIn(problem)
    .filter((one) => !hasFieldOf(fields, one))
    .map(({ message }) => notice(message, true));
  const back = state.back ?? (params.id === undefined ? undefined : hrefOf(visit.catalog, params.id));
  return html`${said}<form class="stacked" method="post" action="/dashboard/do/${operation.name}">
${own.some((field) => field.fields) && enterSends}<p class="hint">${operation.summary}</p>
${operation.doc && !only && html`<details><summary>More about it</summary><p class="hint">${inWords(operation.doc)}</p></details>`}
<input type="hidden" name="form_key" value="${form_key}">
${Object.entries(params).map(([name, value]) => html`<input type="hidden" name="path:${name}" value="${value}">`)}
${before && Object.entries(before).map(([name, value]) => html`<input type="hidden" name="before:${name}" value="${value}">`)}
${only && html`<input type="hidden" name="only" value="${only.join()}">`}${state.back && html`<input type="hidden" name="back" value="${state.back}">`}
${leavesOf(others, typed).map(({ name }) => typed[name] && html`<input type="hidden" name="${name}" value="${typed[name]}">`)}
${inputs(
  missing.map((field) => ({ ...field, name: `path:${field.name}` })),
  { typed, problem },
)}
${inputs(own, { typed, problem, more, is_update: operation.method === 'PATCH' })}
${needsCode(operation, names) && codeField(visit, needsCode(operation))}
<div><button${isDangerous(operation) && html` class="danger"`}>${title}</button> ${back && html`<a href="${back}">Cancel</a>`}</div>
</form>`;
}

/** The Enter key presses the first button of a form, which is not to be the one for another row. */
const enterSends = html`<button hidden></button>`;

/**
 * A code that was given a short time ago holds for a while.
 * @param is_required false where only some of the fields need it
 */
export function codeField({ session }: DashboardVisit, is_required = true): Html | false {
  if (isConfirmed(session.confirmed_at)) return false;
  const why = is_required
    ? 'This moves money or opens access, so confirm that it is you.'
    : 'Type it to change whether, and how much, is paid out without a person.';
  return session.has_totp
    ? html`<div class="field"><label for="field-code">Code of your app</label><p class="hint">${why}</p><input id="field-code" name="code" inputmode="numeric" autocomplete="one-time-code"${is_required && html` required`} pattern="[0-9 ]{6,7}"></div>`
    : is_required &&
        html`<p class="notice bad">This moves money or opens access, and needs a code of an authenticator app. <a href="/dashboard/account">Set one up</a> first.</p>`;
}

export const isConfirmed = (confirmed_at: string | null): boolean => confirmed_at !== null;

/** @throws Problem code_required where the person has not given a code a short time ago */
export function requireConfirmed({ session }: DashboardVisit): void {
  if (isConfirmed(session.confirmed_at)) return;
  throw new Problem(
    'code_required',
    'Confirm that it is you, with a code of your authenticator app, in “Your account”. Then try again.',
    { param: 'code' },
  );
}

/** Shows what an operation answered, where no page shows it again: a secret, a link, a number of records. @param of the id in its path */
export function resultContent(
  visit: DashboardVisit,
  operation: Operation,
  reply: Record_,
  of: string | undefined,
): Html {
  const href = [reply.id, of].map((id) => typeof id === 'string' && hrefOf(visit.catalog, id)).find(Boolean);
  return html`${notice(`Done: ${actionTitle(visit.catalog, operation)}.`)}${'secret' in reply && notice('The secret is shown once. Copy it now.', true)}
${operation.bulk_of && Array.isArray(reply.data) ? outcomes(visit, reply.data) : recordFacts(visit, reply)}${href && html`<p><a href="${href}">Show it</a></p>`}`;
}

/** Says what became of each record that was sent in bulk, in their order. */
const outcomes = ({ catalog }: DashboardVisit, data: Record_[]): Html =>
  table(
    'Outcomes',
    [
      {
        title: 'Outcome',
        cell: ({ status, error }) =>
          error === undefined ? (status === 201 ? 'Recorded' : 'Was there') : (error as { message: string }).message,
      },
      {
        title: 'Record',
        cell: (outcome) => {
          const { id } = (Object.values(outcome).find((value) => (value as Record_ | null)?.id) ?? {}) as {
            id?: string;
          };
          return id === undefined ? '' : html`<a href="${hrefOf(catalog, id)}">${shortId(id)}</a>`;
        },
      },
    ],
    data,
    'No record was sent.',
  );

/** Far more than a form has. What is typed in rows is looked through once for each. */
const most_fields = 5_000;

/** @throws Problem payload_too_large */
export function requireFewFields(sent: URLSearchParams): void {
  if (sent.size > most_fields) throw new Problem('payload_too_large', `A form may have at most ${most_fields} fields.`);
}

/** Splits what was sent: the parameters of the path, what an update showed before, and what was typed. */
export function partsOf(
  operation: Operation,
  sent: URLSearchParams,
): Required<Pick<FormState, 'params' | 'typed'>> & Pick<FormState, 'before' | 'more' | 'only'> {
  const of = (prefix: string) =>
    Object.fromEntries(
      [...sent].filter(([name]) => name.startsWith(prefix)).map(([name, value]) => [name.slice(prefix.length), value]),
    );
  const before = of('before:');
  const names = paramsOf(operation);
  const params = Object.fromEntries(Object.entries(of('path:')).filter(([name]) => names.includes(name)));
  return {
    params,
    typed: typedIn(sent),
    before: operation.method === 'PATCH' ? before : undefined,
    more: sent.get('more') ?? undefined,
    only: sent.get('only')?.split(','),
  };
}
