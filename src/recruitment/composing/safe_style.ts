/**
 * What an element's style may say: what it looks like itself. Left out is what moves, covers or hides what stands beside or behind it
 * (position, float, display, height, transforms, negative and large measures), and what loads anything (`url()`).
 */
export const safeStyle = (style: string): string =>
  style
    .slice(0, 2000)
    .split(';')
    .map((declaration) => declarationOf(declaration))
    .filter((declaration) => declaration !== null)
    .join(';');

const properties = new RegExp(
  `^(${[
    'background-color',
    'border(-(top|right|bottom|left))?(-(color|style|width))?',
    'border-(collapse|radius|spacing)',
    'color',
    'font-(family|size|style|weight)',
    'letter-spacing',
    'line-height',
    'list-style-type',
    '(margin|padding)(-(top|right|bottom|left))?',
    'max-width',
    'text-(align|decoration|transform)',
    'vertical-align',
    'white-space',
    'width',
    'word-break',
  ].join('|')})$`,
);
const colour = '#[0-9a-f]{3,8}|rgba?\\([0-9., %]{5,40}\\)';
const number = '\\d{1,3}(\\.\\d{1,4})?(px|pt|em|rem|%)?|\\.\\d{1,4}(em|rem)?';
const word = '[a-z][a-z0-9-]*|\'[\\w -]{1,60}\'|"[\\w -]{1,60}"';
const value = new RegExp(`^(?:(?:${colour}|${number}|${word})(?:\\s*,\\s*|\\s+|$)){1,12}$`, 'i');
/** A line of less than its letters would lay them over the next. */
const readable_line = /^(normal|[1-3](\.\d{1,2})?(em)?|1\d\d%|[1-4]\d(px|pt))$/i;

function declarationOf(declaration: string): string | null {
  const colon = declaration.indexOf(':');
  const name = declaration.slice(0, colon).trim().toLowerCase();
  const text = declaration.slice(colon + 1).trim();
  if (colon < 0 || text.length > 200 || !properties.test(name) || !value.test(text)) return null;
  return name === 'line-height' && !readable_line.test(text) ? null : `${name}:${text}`;
}
