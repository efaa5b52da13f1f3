/** HTML as values: whatever stands in a template is escaped, unless it is HTML itself. */

/** A piece of HTML. */
export class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
  toString(): string {
    return this.text;
  }
}

/** Returns the HTML of a template. A list is its parts one after another; null, undefined and false are nothing. Attributes stand in double quotes. */
export const html = ({ raw: parts }: TemplateStringsArray, ...values: unknown[]): Html =>
  new Html(parts.map((part, nth) => (nth === 0 ? part : textOf(values[nth - 1]) + part)).join(''));

function textOf(value: unknown): string {
  if (value instanceof Html) return value.text;
  if (Array.isArray(value)) return value.map(textOf).join('');
  return value === null || value === undefined || value === false ? '' : escaped(String(value));
}

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const escaped = (text: string): string => text.replaceAll(/[&<>"']/g, (character) => entities[character] as string);
