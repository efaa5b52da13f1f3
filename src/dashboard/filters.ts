/** The filters of a list, as a form above it. */
import type { Operation } from '../core/resource/operation.ts';
import type { Problem } from '../core/values/problem.ts';
import { typedOf, withZone } from '../pages/form.ts';
import { words } from '../pages/format.ts';
import { type Html, html } from '../pages/html.ts';
import { type Field, fieldsOf } from '../pages/schema_fields.ts';
import { addressOf, schemaOf } from './catalog.ts';
import { type Choices, isFound } from './choices.ts';
import type { DashboardVisit } from './visit.ts';

/** Parameters that the page itself sets. */
const own_parameters = new Set(
  'limit starting_after ending_before format bom expand include program_id timezone'.split(' '),
);

/** The filters whose records people choose by name. Other lists are long, and every page would read them. */
const chosen = new Set(['group_id', 'tag_id', 'list_id', 'inbox_id', 'campaign_id']);

/** The filters of a list, as fields of a form. */
export const filtersOf = (operation: Operation): Field[] => {
  const { properties = {}, required = [] } = schemaOf(operation, 'query');
  const others = Object.fromEntries(Object.entries(properties).filter(([name]) => !own_parameters.has(name)));
  return fieldsOf({ type: 'object', properties: others, required });
};

/** A query with the times of its filters as the API takes them. */
export function withZones(operation: Operation, query: Record<string, string>): Record<string, string> {
  const times = filtersOf(operation).filter(({ kind }) => kind === 'time');
  const zoned = times.flatMap(({ name }) => (query[name] === undefined ? [] : [[name, withZone(query[name])]]));
  return { ...query, ...Object.fromEntries(zoned) };
}

/** The filters that offer records by name. */
export const chosenIn = (operation: Operation): Field[] => filtersOf(operation).filter(({ name }) => chosen.has(name));

/** An id that nobody types: it narrows a list that a link leads to. */
const isOfLinks = (field: Field, choices: Choices): boolean =>
  field.name.endsWith('_id') && !field.name.startsWith('external_') && !isFound(field) && !choices.has(field.name);

interface FilterForm {
  query: Record<string, string>;
  /** Parameters of the path. */
  of: Record<string, string>;
  choices: Choices;
  problem?: Problem | undefined;
}

/** The filters, folded unless one is set. */
export function filterForm(
  visit: DashboardVisit,
  operation: Operation,
  { query, of, choices, problem }: FilterForm,
): Html | false {
  const all = filtersOf(operation);
  const fields = all.filter((field) => !isOfLinks(field, choices) && field.name !== 'brand_id');
  const kept = all.filter((field) => !fields.includes(field) && query[field.name]);
  if (fields.length === 0 && kept.length === 0) return false;
  const path = addressOf(visit.catalog, operation);
  const is_set = [...fields, ...kept].some(({ name }) => name !== 'brand_id' && query[name]);
  const typed = typedOf(fields, query);
  const hidden = { ...of, ...Object.fromEntries(kept.map(({ name }) => [name, query[name] as string])) };
  const cleared = { ...of, ...(query.brand_id ? { brand_id: query.brand_id } : {}) };
  return html`<details class="filters"${is_set && html` open`}><summary>Filters</summary>
<form class="inline" action="${path}">
${Object.entries(hidden).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
${fields.map((field) => filter(field, query, typed[field.name] ?? '', choices, problem))}
<button>Filter</button><a href="${path}?${new URLSearchParams(cleared)}">Clear</a>
</form></details>`;
}

const yes_or_no: Record<string, string> = { true: 'Yes', false: 'No' };

function filter(
  field: Field,
  query: Record<string, string>,
  typed: string,
  choices: Choices,
  problem: Problem | undefined,
): Html {
  const { name, label, options, kind } = field;
  const id = `filter-${name}`;
  const error = problem?.details.param === name && problem.message;
  const said = error && html` aria-invalid="true" aria-describedby="${id}-error"`;
  const names = choices.get(name);
  const offered: [value: string, text: string][] = names
    ? Object.entries(names)
    : (kind === 'boolean' ? ['true', 'false'] : options).map((option) => [option, yes_or_no[option] ?? words(option)]);
  const suffix = kind === 'time' ? ' (UTC)' : isFound(field) ? ' (email)' : '';
  return html`<div class="field"><label for="${id}">${name === 'q' ? 'Search' : label.replace(/ ID$/, '')}${suffix}</label>${
    offered.length > 0
      ? html`<select id="${id}" name="${name}"${said}><option value="">Any</option>${offered.map(([value, text]) => html`<option value="${value}"${value === query[name] && html` selected`}>${text}</option>`)}</select>`
      : html`<input id="${id}" name="${name}" value="${typed}"${kind === 'time' && html` type="datetime-local" step="any"`}${said}>`
  }${error && html`<p class="error" id="${id}-error">${error}</p>`}</div>`;
}
