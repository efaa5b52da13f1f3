/** The markup of a field of a form: its label, a hint, what is wrong with it, and the control between them. */
import { type Html, html } from './html.ts';

export interface FieldParts {
  name: string;
  label: unknown;
  hint?: string | undefined;
  error?: string | undefined;
  is_required: boolean;
  autocomplete?: string | undefined;
}

export const fieldId = (name: string): string => `field-${name.replaceAll(/[^a-z0-9_]/gi, '-')}`;

/** The attributes of a control: its name, and where its hint and its error stand. The first that is wrong has the focus, so that it is in view. */
export function controlAttributes({ name, hint, error, is_required, autocomplete }: FieldParts): Html {
  const id = fieldId(name);
  const described = [...(hint ? [`${id}-hint`] : []), ...(error ? [`${id}-error`] : [])].join(' ');
  return html`id="${id}" name="${name}"${is_required && html` required`}${autocomplete && html` autocomplete="${autocomplete}"`}${described && html` aria-describedby="${described}"`}${error && html` aria-invalid="true" autofocus`}`;
}

/** The label, with the word that says that the field may stay empty. */
export const labelOf = ({ label, is_required }: FieldParts, optional: string): Html =>
  html`${label}${!is_required && html` <span class="hint">(${optional})</span>`}`;

export const hintOf = ({ name, hint }: FieldParts): Html | false =>
  hint ? html`<p class="hint" id="${fieldId(name)}-hint">${hint}</p>` : false;

export const errorOf = ({ name, error }: FieldParts): Html | false =>
  error ? html`<p class="error" id="${fieldId(name)}-error">${error}</p>` : false;

/** A field with one control. @param optional the word of the page's language */
export const fieldWith = (field: FieldParts, control: Html, optional: string): Html =>
  html`<div class="field"><label for="${fieldId(field.name)}">${labelOf(field, optional)}</label>
${hintOf(field)}${control}${errorOf(field)}</div>
`;

/** A choice of one of several. One that may stay empty, or is not made yet, has an empty one. */
export const choiceOf = (
  attributes: Html,
  options: [value: string, name: string][],
  value: string,
  is_required: boolean,
): Html =>
  html`<select ${attributes}>${(!is_required || value === '') && html`<option value=""></option>`}${options.map(
    ([option, name]) => html`<option value="${option}"${option === value && html` selected`}>${name}</option>`,
  )}</select>`;
