/** Prospects for whom a text renders alike: pure values. One of each kind is rendered, so that every prospect of a large campaign is checked. */
import { Tokenizer, TypeGuards } from 'liquidjs';
import { most_part_bytes } from '../composing/templates.ts';

/** What a prospect has for the variables of a text: the same key, the same outcome. Undefined: it has to be rendered. */
export type Shape = (known_values: object) => string | undefined;

interface Text {
  subject: string;
  body_text: string;
  body_html: string | null;
}

/** Longer values are rendered: the size of the email may depend on them. */
const most_length = 200;
/** What a value of that length can add to a part at most, escaped and as a link. */
const most_growth_bytes = 3_200;
/** Nothing but a variable, with a default or without. */
const plain = /^\s*([\w.]+)\s*(?:\|\s*default:\s*(?:"[^"{}]*"|'[^'{}]*'|([\w.]+))\s*)?$/;
/** What Liquid makes of values by itself. */
const computed = /\.(size|first|last)\b/;

/**
 * The shape of a text that has nothing but plain variables: no tags, and no filter but `default`. Whether it can be rendered depends on which
 * variables have a value, as long as its values are short.
 */
export function shapeOf({ subject, body_text, body_html }: Text): Shape | undefined {
  const outputs = [subject, body_text, body_html ?? ''].map(outputsOf);
  if (outputs.includes(undefined)) return undefined;
  const paths = (outputs as string[][]).flat().flatMap((output) => pathsOf(output) ?? [undefined]);
  if (paths.includes(undefined)) return undefined;
  const used = [...new Set(paths as string[])].map((path) => path.split('.'));
  return (known_values) => {
    const kinds = used.map((path) => kindOf(known_values, path));
    return kinds.includes(undefined) ? undefined : kinds.join(' ');
  };
}

/** Whether an email leaves room for whatever values of its shape. @param bytes of its largest part, as it was rendered for one prospect */
export const leavesRoom = ({ subject, body_text, body_html }: Text, bytes: number): boolean =>
  bytes + (`${subject}${body_text}${body_html}`.split('{{').length - 1) * most_growth_bytes <= most_part_bytes;

/** Undefined: it has tags. */
function outputsOf(template: string): string[] | undefined {
  const tokens = new Tokenizer(template).readTopLevelTokens();
  if (tokens.some((token) => !TypeGuards.isHTMLToken(token) && !TypeGuards.isOutputToken(token))) return undefined;
  return tokens.filter(TypeGuards.isOutputToken).map((token) => token.content);
}

/** Undefined: it is more than variables. */
function pathsOf(output: string): string[] | undefined {
  const [whole, path, other] = plain.exec(output) ?? [];
  if (whole === undefined || path === undefined || computed.test(whole)) return undefined;
  return other === undefined ? [path] : [path, other];
}

function kindOf(values: object, path: string[]): string | undefined {
  let value: unknown = values;
  for (const name of path) {
    if (value === undefined) break;
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    value = Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
  }
  if (value === undefined || typeof value === 'number') return typeof value;
  return typeof value === 'string' && value.length <= most_length && /[\p{L}\p{N}]/u.test(value) ? 'text' : undefined;
}
