/** The markup of a form's fields: the control of each with what was typed, and what is wrong with it. */
import type { Problem } from '../core/values/problem.ts';
import { choiceOf, controlAttributes, errorOf, type FieldParts, fieldId, fieldWith, hintOf, labelOf } from './field.ts';
import { figures } from './form.ts';
import { uncapitalized, words } from './format.ts';
import { type Html, html } from './html.ts';
import { leavesOf, rowsOf } from './rows.ts';
import { problemsIn } from './run.ts';
import type { Field, Typed } from './schema_fields.ts';

interface FormState {
  typed: Typed;
  problem?: Problem | undefined;
  /** The list that a person has asked for another row of. Only that one has a blank row then; else each has that is in no row itself. */
  more?: string | undefined;
  /** True of an update: all fields may stay as they are, and none says so. */
  is_update?: boolean;
}

/** The field that a problem is about: the one of its `param`, or the one that holds it. */
const isAbout = ({ name }: Field, { details: { param } }: Problem): boolean =>
  param !== undefined && (param === name || param.startsWith(`${name}.`));

const problemOf = (field: Field, problem: Problem | undefined): Problem | undefined =>
  problemsIn(problem).find((one) => isAbout(field, one));

/** Returns whether a form has the field that a problem is about: else it is said above the form. */
export const hasFieldOf = (fields: Field[], problem: Problem): boolean =>
  fields.some((field) => isAbout(field, problem));

/** The fields of a form with what was typed, each with what is wrong with it. */
export const inputs = (fields: Field[], state: FormState): Html => html`${fields.map((field) => input(field, state))}`;

/** @param row the number of the row that the field is in: hints stand in the first one alone */
function input(field: Field, state: FormState, row?: number): Html {
  const { typed } = state;
  const problem = problemOf(field, state.problem);
  const value = typed[field.name] ?? '';
  if (field.kind === 'kept') return html`<input type="hidden" name="${field.name}" value="${value}">`;
  const error = problem && inWords(problem.message.replace(`'${problem.details.param}'`, `“${field.label}”`));
  const parts = { ...field, hint: row ? '' : inWords(field.description), error };
  if (field.fields)
    return several(field, { ...parts, error: isAboutRow(field, state) ? undefined : error }, state, row);
  // A row may stay blank, or become so to go.
  const is_required = field.is_required && row === undefined;
  if (field.kind === 'choices') return boxes(field, parts, value);
  const markup = control(field, value, controlAttributes({ ...parts, is_required }), is_required);
  return fieldWith({ ...parts, is_required: isUnmarked(field, state) }, markup, 'optional');
}

const isUnmarked = ({ is_required }: Field, { is_update = false }: FormState): boolean => is_required || is_update;

/** Returns whether a problem is about a field of a row, where it is said then. */
const isAboutRow = (field: Field, { typed, problem }: FormState): boolean =>
  leavesOf([field], typed).some((leaf) => problemOf(leaf, problem));

function boxes({ name, options, names = {} }: Field, parts: FieldParts, value: string): Html {
  const chosen = new Set(value.split(/\s+/));
  return html`<fieldset class="field" id="${fieldId(name)}"><legend>${labelOf({ ...parts, is_required: true }, '')}</legend>
${hintOf(parts)}${errorOf(parts)}<div class="boxes">${options.map(
    (option) =>
      html`<label><input type="checkbox" name="${name}" value="${option}"${chosen.has(option) && html` checked`}> ${names[option] ?? option}</label>`,
  )}</div></fieldset>
`;
}

function several(field: Field, parts: FieldParts, state: FormState, row: number | undefined): Html {
  const { name, kind, label } = field;
  const is_one = kind === 'group';
  const adds_blank = state.more === undefined ? row === undefined : state.more === name;
  const rows = rowsOf(field, state.typed, !is_one && adds_blank);
  return html`<fieldset class="field rows" id="${fieldId(name)}"><legend>${labelOf({ ...parts, is_required: isUnmarked(field, state) }, 'optional')}</legend>
${hintOf(parts)}${errorOf(parts)}
${rows.map(({ fields }, nth) =>
  is_one
    ? html`<div class="row">${fields.map((one) => input(one, state, row ?? 0))}</div>`
    : html`<fieldset class="row"><legend>${label.replace(/s$/, '')} ${nth + 1}</legend>${fields.map((one) => input(one, state, Math.max(row ?? 0, nth)))}</fieldset>
`,
)}${!is_one && rows.length > Number(adds_blank) && html`<p class="hint">Empty the fields of one to remove it.</p>`}${!is_one && html`<div><button class="plain" name="more" value="${name}" formnovalidate>Add another</button></div>`}
</fieldset>
`;
}

/** A text of the API's documentation as a form says it: the names of fields and values as words, and `Null` that begins a sentence as empty. */
export const inWords = (text: string): string =>
  text
    .replaceAll(/`([^`]*)`/g, (_, code: string) => (isName.test(code) ? `“${uncapitalized(words(code))}”` : code))
    .replaceAll(/\bNull\b/g, 'Empty')
    .replaceAll('(true)', '(yes)')
    .replaceAll('(false)', '(no)');

const isName = /^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$/;

const yes_or_no: [string, string][] = [
  ['true', 'Yes'],
  ['false', 'No'],
];

function control(field: Field, value: string, attributes: Html, is_required: boolean): Html {
  const { kind, options } = field;
  if (kind === 'boolean') return choiceOf(attributes, yes_or_no, value, is_required);
  if (kind === 'choice')
    return choiceOf(
      attributes,
      options.map((option) => [option, field.names?.[option] ?? (isName.test(option) ? words(option) : option)]),
      value,
      is_required,
    );
  const is_list = kind === 'list' || kind === 'numbers';
  // An input of one line would lose the others.
  if (is_list || kind === 'long' || value.includes('\n'))
    return html`<textarea ${attributes}>
${value}</textarea>${is_list && html`<p class="hint">One a line.</p>`}`;
  if (kind === 'time')
    return html`<input ${attributes} type="datetime-local" step="any" value="${value}"><p class="hint">UTC</p>`;
  if (kind === 'date') return html`<input ${attributes} type="date" value="${value}">`;
  return html`<input ${attributes} value="${value}"${figures.has(kind) && html` inputmode="${kind === 'number' ? 'numeric' : 'decimal'}"`}>`;
}
