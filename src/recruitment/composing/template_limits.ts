import { TemplateFault, type TemplateField } from './template_fault.ts';

/** Characters of a template. */
export const template_limits: Readonly<Record<TemplateField, number>> = {
  subject: 1000,
  body_text: 20_000,
  body_html: 40_000,
};
/** Of one template. Its check takes time for each tag and each line before it. */
const most_lines = 2000;
const most_tag_characters = 5000;

/** @throws TemplateFault */
export function requireWithinLimits(field: TemplateField, text: string): void {
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
