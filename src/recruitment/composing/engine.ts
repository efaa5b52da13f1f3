/** Liquid within limits: steps, characters and processor time, so that no fault comes of load. Values are escaped in HTML. */
import { Context, defaultOperators, type Emitter, Liquid, type Template, toValueSync } from 'liquidjs';
import { escapeHtml } from './safe_text.ts';

/** The tags and filters that templates may use. Left out: files, what writes values unescaped, what repeats a text without a count, and the clock. */
export const template_tags = ['assign', 'break', 'case', 'comment', 'continue', 'for', 'if', 'raw', 'unless', '#'];
export const template_filters = [
  ...['abs', 'at_least', 'at_most', 'ceil', 'divided_by', 'floor', 'minus', 'modulo', 'plus', 'round', 'times'],
  ...['append', 'capitalize', 'default', 'downcase', 'lstrip', 'prepend', 'remove', 'remove_first', 'replace'],
  ...['replace_first', 'rstrip', 'size', 'slice', 'split', 'squish', 'strip', 'truncate', 'truncatewords', 'upcase'],
  ...['compact', 'first', 'join', 'last', 'reverse', 'uniq', 'url_encode'],
];

/** Parts that are rendered, characters that filters make, characters that come out. Far more than a mail needs. */
const most_steps = 10_000;
const most_memory = 200_000;
const most_output = 200_000;
/** Characters of what is searched for: the time of a search grows with both texts, and nothing stops it in between. */
const most_searched = 100;
const searching_filters = ['remove', 'remove_first', 'replace', 'replace_first', 'split'];
/** The limit of processor time, so that load ends no template: the last resort, as the other limits end nearly all within milliseconds. */
const most_ms = 300;

/** A template takes more than it may. */
export class LimitReached extends Error {}

/** A template prints what is missing, or an object. */
export class Unprintable extends Error {}

/** Prints a value, as text or as HTML. @throws Unprintable */
type Print = (value: unknown) => string;

/** Templates whose values are printed as they are, and escaped. */
export const text_engine = engine(asText);
export const html_engine = engine((value) => escapeHtml(asText(value)));

function engine(print: Print): Liquid {
  const liquid = new Liquid({
    strictFilters: true,
    strictVariables: true,
    lenientIf: true,
    ownPropertyOnly: true,
    templates: {},
    operators: { ...defaultOperators, contains: bounded(defaultOperators.contains) },
    outputEscape: print,
    parseLimit: 100_000,
    memoryLimit: most_memory,
  });
  for (const tag of Object.keys(liquid.tags)) if (!template_tags.includes(tag)) delete liquid.tags[tag];
  for (const filter of Object.keys(liquid.filters))
    if (!template_filters.includes(filter)) liquid.unregisterFilter(filter);
  for (const filter of searching_filters) liquid.registerFilter(filter, bounded(liquid.filters[filter]));
  return liquid;
}

/** A search, of which all that matters here is what it searches for. */
type Search = (this: unknown, text: unknown, searched: unknown, ...others: unknown[]) => never;

function bounded(search: unknown): Search {
  return function (text, searched, ...others) {
    if (`${searched}`.length > most_searched) throw new LimitReached('the searched text is too long');
    return (search as Search).call(this, text, searched, ...others);
  };
}

function asText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (Array.isArray(value) && value.every((inner) => inner === null || typeof inner !== 'object'))
    return value.join(', ');
  throw new Unprintable();
}

/**
 * Renders within the limits.
 * @param strict a variable without a value is an error
 * @throws LiquidError; its originalError is LimitReached, or liquidjs's own error of memory, where a limit is reached
 */
export function renderWithin(liquid: Liquid, template: Template[], values: object, strict = true): string {
  const limits = { renderLimit: new StepLimit() as never, liquid };
  const context = new Context(values, liquid.options, { sync: true, strictVariables: strict }, limits);
  const output = new BoundedOutput();
  toValueSync(liquid.renderer.renderTemplates(template, context, output));
  return output.buffer;
}

/** liquidjs asks its limit of time before every part: here parts are counted, and the time is that of the processor. */
class StepLimit {
  private steps = 0;
  private readonly begin = process.threadCpuUsage();
  check(): void {
    this.steps += 1;
    const { user, system } = process.threadCpuUsage(this.begin);
    if (this.steps > most_steps || user + system > most_ms * 1000) throw new LimitReached('it takes too long');
  }
}

class BoundedOutput implements Emitter {
  buffer = '';
  /** Strings alone: printed values were escaped before. */
  write(text: string): void {
    if (this.buffer.length + text.length > most_output) throw new LimitReached('the result is too long');
    this.buffer += text;
  }
}
