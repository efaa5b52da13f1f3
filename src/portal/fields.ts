/** Forms of the portal, in the partner's language: each comes back with what was typed, and the error beside its field. */
import { randomUUID } from 'node:crypto';
import { Problem } from '../core/values/problem.ts';
import { choiceOf, controlAttributes, errorOf, fieldId, fieldWith, hintOf, labelOf } from '../pages/field.ts';
import { type Html, html } from '../pages/html.ts';
import { notice } from '../pages/layout.ts';
import { problemsIn } from '../pages/run.ts';
import type { PortalTexts } from './texts/texts.ts';

export interface PortalField {
  name: string;
  label: unknown;
  hint?: string | undefined;
  kind?: 'text' | 'long' | 'email' | 'url' | 'date' | 'choice' | 'choices' | 'checkbox' | 'file';
  /** Values and their names. */
  options?: [value: string, name: string][];
  required?: boolean;
  autocomplete?: string;
}

/** The typed texts: a list where several are chosen. */
export type Typed = Record<string, string[]>;

/** Reads a form once from its first field to its last: anybody may send one with as many names as a body has room for. */
export function typedIn(sent: URLSearchParams): Typed {
  const typed = new Map<string, string[]>();
  for (const [name, value] of sent) {
    const values = typed.get(name);
    if (values) values.push(value);
    else typed.set(name, [value]);
  }
  return Object.fromEntries(typed);
}

/** The errors of the fields, by their names. One that is about none of them stands under ''. */
export type Errors = Record<string, string>;

/**
 * Says in the partner's language what is wrong with a form.
 * @param named the field that a parameter of the operation is typed in, where that has another name
 * @param said what is said of a parameter, where that is more than that it is not valid
 */
export function errorsOf(
  problem: unknown,
  { general }: PortalTexts,
  fields: readonly string[],
  named: Readonly<Record<string, string>> = {},
  said: Readonly<Record<string, string>> = {},
): Errors {
  if (!(problem instanceof Problem) || problem.status >= 500 || problem.status === 429) throw problem;
  const longest_first = [...fields].sort((a, b) => b.length - a.length);
  const errors = problemsIn(problem).map((one): [name: string, error: string] => {
    const { param = '' } = one.details;
    const name = named[param] ?? longest_first.find((field) => param === field || param.startsWith(`${field}.`));
    if (name === undefined) return ['', `${general.failed}. ${textOf(one, general)}`];
    if (one.code === 'missing_parameter') return [name, general.required];
    return [name, one.code === 'resource_already_exists' ? general.taken : (said[param] ?? general.invalid)];
  });
  return Object.fromEntries(errors);
}

/** Says in the partner's language why something was refused. What only English says, the request's log has. */
export function textOf({ status }: Problem, general: PortalTexts['general']): string {
  if (status === 404) return general.not_found_text;
  if (status === 403) return general.foreign_form;
  if (status === 413) return general.too_large;
  if (status === 429) return general.too_many;
  return status >= 500 ? general.try_again : general.changed;
}

/** The key of a form that is a button alone, by which a second click does nothing again. */
export const once = (form_key: string = randomUUID()): Html =>
  html`<input type="hidden" name="form_key" value="${form_key}">`;

interface FormOptions {
  action: string;
  button: string;
  fields: PortalField[];
  typed?: Typed;
  errors?: Errors;
  hidden?: Record<string, string>;
  form_key?: string | undefined;
  enctype?: string;
  before?: Html;
}

/** A form, with a key by which it is sent once. */
export function form(texts: PortalTexts, options: FormOptions): Html {
  const { action, button, fields, typed = {}, errors = {}, hidden = {}, form_key, enctype, before } = options;
  return html`${errors[''] && notice(errors[''], true)}<form class="stacked" method="post" action="${action}"${enctype && html` enctype="${enctype}"`}>
${before}${once(form_key)}
${Object.entries(hidden).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
${fields.map((field) => fieldHtml(texts, field, typed[field.name] ?? [], errorAt(texts, field, errors[field.name])))}
<div><button>${button}</button></div>
</form>`;
}

/** An address that is not valid is told how one is written. */
function errorAt(
  { general, sign_in }: PortalTexts,
  { kind }: PortalField,
  error: string | undefined,
): string | undefined {
  if (error !== general.invalid) return error;
  if (kind === 'email') return sign_in.invalid_email;
  return kind === 'url' ? general.invalid_url : error;
}

function fieldHtml({ general }: PortalTexts, field: PortalField, values: string[], error: string | undefined): Html {
  const { name, label, required = false, kind = 'text', options = [] } = field;
  const parts = { ...field, error, is_required: required };
  const id = fieldId(name);
  if (kind === 'checkbox') {
    return html`<div class="field"><label for="${id}"><input type="checkbox" ${controlAttributes(parts)} value="true"${values.includes('true') && html` checked`}> ${label}</label>
${hintOf(parts)}${errorOf(parts)}</div>`;
  }
  if (kind === 'choices') {
    return html`<fieldset class="field"><legend>${labelOf(parts, general.optional)}</legend>${hintOf(parts)}
${options.map(
  ([value, option], nth) =>
    html`<label for="${id}-${nth}"><input type="checkbox" id="${id}-${nth}" name="${name}" value="${value}"${values.includes(value) && html` checked`}> ${option}</label>`,
)}${errorOf(parts)}</fieldset>`;
  }
  return fieldWith(parts, control(field, values[0] ?? '', controlAttributes(parts)), general.optional);
}

function control(
  { kind = 'text', options = [], required = false }: PortalField,
  value: string,
  attributes: Html,
): Html {
  if (kind === 'long')
    return html`<textarea ${attributes}>
${value}</textarea>`;
  if (kind === 'file') return html`<input type="file" ${attributes} accept="application/pdf,image/png,image/jpeg">`;
  if (kind === 'choice') return choiceOf(attributes, options, value, required);
  // A pattern of the browser's would refuse an address without its scheme; what is wrong is said in the partner's language.
  const type = kind === 'email' || kind === 'date' ? kind : 'text';
  return html`<input type="${type}" ${attributes} value="${value}" maxlength="2048">`;
}

/** The first value of a field, trimmed; undefined where it is empty. */
export const one = (typed: Typed, name: string): string | undefined => typed[name]?.[0]?.trim() || undefined;

/** The address of a page as it is typed on a phone, `example.com/page`, with its scheme. */
export const withScheme = <Text extends string | undefined>(typed: Text): Text =>
  (typed !== undefined && /^[^\s/:@]+\.[^\s/@]/.test(typed) ? `https://${typed}` : typed) as Text;

/** A value of a form of one value each. */
export const typedFrom = (values: Record<string, string | null | undefined>): Typed =>
  Object.fromEntries(Object.entries(values).flatMap(([name, value]) => (value ? [[name, [value]]] : [])));
