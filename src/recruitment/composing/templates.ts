/**
 * Checks and renders templates: Liquid with the tags and filters of `engine.ts` alone. A value that is null or blank is missing: printing it is a fault that names
 * the variable, and `default` or `if` takes care of it. HTML that is not given is made from the text.
 */
import { LiquidError, type Template, Tokenizer, TypeGuards, type Variable } from 'liquidjs';
import {
  html_engine,
  LimitReached,
  renderWithin,
  template_filters,
  template_tags,
  text_engine,
  Unprintable,
} from './engine.ts';
import { htmlOfText, oneLine, plainText, safeHtml } from './safe_text.ts';
import {
  isTemplateField,
  knownFields,
  knownValues,
  TemplateFault,
  type TemplateField,
  type TemplateValues,
} from './template_fields.ts';

export interface Templates {
  subject: string;
  body_text: string;
  /** Null: HTML is made from the text. */
  body_html?: string | null;
}

/** Bytes of a part: Gmail hides what follows 102 KB of a mail, and a signature and the footer follow. */
export const most_part_bytes = 70_000;

/** Faults of one template that are reported at once. */
const most_faults = 20;

const engineOf = (field: TemplateField) => (field === 'body_html' ? html_engine : text_engine);
const given = ({ subject, body_text, body_html }: Templates): [TemplateField, string][] => [
  ['subject', subject],
  ['body_text', body_text],
  ...(typeof body_html === 'string' ? [['body_html', body_html] as [TemplateField, string]] : []),
];

/** Finds everything that is wrong with templates, whatever the prospect: syntax, unknown variables, filters and tags, endless loops. */
export const checkTemplates = (templates: Templates): TemplateFault[] =>
  given(templates).flatMap(([field, text]) => checkTemplate(field, text));

function checkTemplate(field: TemplateField, text: string): TemplateFault[] {
  try {
    const template = parse(field, text);
    const unknown = unknownVariables(field, text.toWellFormed());
    if (unknown.length === 0) tryOut(field, template);
    return unknown;
  } catch (error) {
    return [faultOf(field, error)];
  }
}

function parse(field: TemplateField, text: string): Template[] {
  requireWithinLimits(field, text);
  return engineOf(field).parse(text.toWellFormed());
}

/** The templates that were rendered last: a campaign renders few of them, for many prospects. */
const parsed = new Map<string, Template[]>();
const most_parsed = 100;

function parsedOnce(field: TemplateField, text: string): Template[] {
  const key = `${field} ${text}`;
  const template = parsed.get(key) ?? parse(field, text);
  parsed.delete(key);
  parsed.set(key, template);
  if (parsed.size > most_parsed) parsed.delete(parsed.keys().next().value as string);
  return template;
}

function unknownVariables(field: TemplateField, text: string): TemplateFault[] {
  const { globals } = engineOf(field).analyzeSync(parse(field, tagsOf(text)), { partials: false });
  return Object.values(globals)
    .flat()
    .filter((variable) => !isTemplateField(pathOf(variable)))
    .slice(0, most_faults)
    .map((variable) => unknownVariable(field, variable));
}

/** A template without the text between its tags, on the same lines: for every variable its text is read from the beginning. */
const tagsOf = (text: string): string =>
  new Tokenizer(text)
    .readTopLevelTokens()
    .map((token) => (TypeGuards.isHTMLToken(token) ? token.getText().replace(/[^\n]+/g, '') : token.getText()))
    .join('');

const pathOf = ({ segments }: Variable): string[] =>
  segments.map((segment) => (typeof segment === 'object' ? '[…]' : `${segment}`));

function unknownVariable(field: TemplateField, variable: Variable): TemplateFault {
  const path = pathOf(variable);
  const name = shortened(path.join('.'));
  const remedy = `Use one of these: ${knownFields(path[0])}.`;
  return new TemplateFault(`There is no variable ${name}.`, {
    field,
    line: variable.location.row,
    variable: name,
    remedy,
  });
}

/** Renders without values, so that limits alone can be reached. */
function tryOut(field: TemplateField, template: Template[]): void {
  try {
    renderWithin(engineOf(field), template, {}, false);
  } catch (error) {
    if (isLimit(error)) throw error;
  }
}

/** The texts of a mail that is composed from templates. */
export interface Rendered {
  /** One line. */
  subject: string;
  text: string;
  /** The author's HTML: composing rebuilds it from what is allowed. */
  html: string;
}

/** @throws TemplateFault, which names the variable where a prospect has no value for it */
export function renderTemplates(templates: Templates, values: TemplateValues): Rendered {
  const known = knownValues(values);
  const subject = oneLine(render('subject', templates.subject, known));
  const text = plainText(render('body_text', templates.body_text, known));
  if (subject === '') throw empty('subject');
  if (text === '') throw empty('body_text');
  const html = templates.body_html ? render('body_html', templates.body_html, known) : htmlOfText(text);
  requireFitting('body_text', text);
  requireFitting(templates.body_html ? 'body_html' : 'body_text', safeHtml(html));
  return { subject, text, html };
}

function render(field: TemplateField, text: string, values: object): string {
  try {
    return renderWithin(engineOf(field), parsedOnce(field, text), values).toWellFormed();
  } catch (error) {
    throw faultOf(field, error);
  }
}

const empty = (field: TemplateField) =>
  new TemplateFault('The result is empty.', {
    field,
    line: 1,
    remedy: 'Add text that does not depend on the prospect.',
  });

function requireFitting(field: TemplateField, result: string): void {
  if (Buffer.byteLength(result) <= most_part_bytes) return;
  const message = `The result has more than ${most_part_bytes} bytes.`;
  throw new TemplateFault(message, { field, line: 1, remedy: 'Shorten it.' });
}

function faultOf(field: TemplateField, error: unknown): TemplateFault {
  if (error instanceof TemplateFault) return error;
  const line = LiquidError.is(error) ? (error.token.getPosition()[0] ?? 1) : 1;
  const reason = reasonOf(error);
  const variable = /^undefined variable: (.*)$/s.exec(reason)?.[1];
  if (variable !== undefined) return missingValue(shortened(variable), { field, line });
  if (isUnprintable(error)) return unprintable(shortened((error as LiquidError).token.getText()), { field, line });
  const [message, remedy] = isLimit(error)
    ? ['The template takes too long to render, or its result is too long.', 'Shorten its loops and texts.']
    : explained(reason);
  return new TemplateFault(message, { field, line, remedy });
}

const missingValue = (variable: string, place: { field: TemplateField; line: number }) =>
  new TemplateFault(`There is no value for ${variable}.`, {
    ...place,
    variable,
    remedy: `Give a default, as in {{ ${variable} | default: "there" }}, or test it with {% if ${variable} %}.`,
  });

const isUnprintable = (error: unknown): boolean =>
  (error as { originalError?: Error }).originalError instanceof Unprintable;

const unprintable = (output: string, place: { field: TemplateField; line: number }) =>
  new TemplateFault(`${output} has no value, or one that is not a text.`, {
    ...place,
    remedy: 'Print a text or a number, and name what to write instead with the filter default.',
  });

function explained(reason: string): [message: string, remedy: string] {
  const filter = /^undefined filter: (.*)$/s.exec(reason)?.[1];
  if (filter !== undefined)
    return [`There is no filter ${shortened(filter)}.`, `Use one of these: ${template_filters.join(', ')}.`];
  const tag = /^tag "(.*)" not found$/s.exec(reason)?.[1];
  if (tag !== undefined)
    return [`There is no tag ${shortened(tag)}.`, `Use one of these: ${template_tags.join(', ')}.`];
  if (/call stack/.test(reason)) return ['The tags are nested too deeply.', 'Nest fewer of them.'];
  return [`The template cannot be read: ${shortened(reason)}.`, 'Correct the syntax.'];
}

/** The message of liquidjs, without the place that it appends. */
function reasonOf(error: unknown): string {
  const { message, originalError } = error as { message: string; originalError?: Error };
  return (originalError?.message ?? message).replace(/, line:\d+, col:\d+$/, '');
}

function isLimit(error: unknown): boolean {
  const { message, originalError } = error as { message: string; originalError?: Error };
  return (
    originalError instanceof LimitReached ||
    error instanceof LimitReached ||
    /limit exceeded|Invalid string length/.test(message)
  );
}

const shortened = (text: string): string => (text.length > 100 ? `${text.slice(0, 100).toWellFormed()}…` : text);

/** Characters of a template. */
const template_limits: Readonly<Record<TemplateField, number>> = {
  subject: 1000,
  body_text: 20_000,
  body_html: 40_000,
};
/** Lines and characters in tags of a template: its check takes time for each tag and each line before it. */
const most_lines = 2000;
const most_tag_characters = 5000;

/** @throws TemplateFault */
function requireWithinLimits(field: TemplateField, text: string): void {
  const most = template_limits[field];
  if (text.length > most) throw tooLong(field, `${most} characters`);
  if (text.split('\n').length > most_lines) throw tooLong(field, `${most_lines} lines`);
  if (tagCharacters(text) > most_tag_characters) throw tooLong(field, `${most_tag_characters} characters in tags`);
}

const tooLong = (field: TemplateField, most: string) =>
  new TemplateFault(`The template has more than ${most}.`, { field, line: 1, remedy: 'Shorten it.' });

function tagCharacters(text: string): number {
  const from_tags = text.split(/\{[{%]/).slice(1);
  return from_tags.reduce((sum, part) => sum + (/[%}]\}/.exec(part)?.index ?? part.length) + 4, 0);
}
