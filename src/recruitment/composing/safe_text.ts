/**
 * Makes texts safe to stand in a mail: HTML of an author is rebuilt from a list of what is allowed, without style sheets and styles that move what follows it; plain
 * text becomes one line of a header, lines, or HTML.
 */
import { Parser } from 'htmlparser2';
import { inOneLine } from '../../core/values/texts/one_line.ts';

/** Elements that are kept. Others are left out, and what they hold is kept. */
const kept = new Set(
  'a abbr b blockquote br center code dd div dl dt em h1 h2 h3 h4 h5 h6 hr i img li ol p pre s small span strong sub sup table tbody td tfoot th thead tr u ul'.split(
    ' ',
  ),
);
/** Left out with what they hold. */
const dropped = new Set(
  'applet audio canvas embed frameset iframe math noembed noframes noscript object plaintext script select style svg template textarea title video xmp'.split(
    ' ',
  ),
);
const empty = new Set(['br', 'hr', 'img']);
/** Mail programs give up on deeper ones. */
const most_depth = 60;

interface Open {
  name: string;
  is: 'kept' | 'left out' | 'dropped';
}

/**
 * Rebuilds HTML of a mail from what is allowed: every element is closed, attributes and styles are on a list, and no script, style sheet,
 * form, comment or foreign document is left. What follows it is outside of it and looks as it would without it.
 */
export function safeHtml(html: string): string {
  const open: Open[] = [];
  let dropping = 0;
  let result = '';
  const decide = (name: string): Open['is'] => {
    if (dropping > 0 || dropped.has(name)) return 'dropped';
    return kept.has(name) && open.length < most_depth ? 'kept' : 'left out';
  };
  const close = ({ name, is }: Open): void => {
    if (is === 'dropped') dropping -= 1;
    if (is === 'kept' && !empty.has(name)) result += `</${name}>`;
  };
  const parser = new Parser({
    onopentag(name, attributes) {
      const element: Open = { name, is: decide(name) };
      open.push(element);
      if (element.is === 'dropped') dropping += 1;
      if (element.is === 'kept') result += `<${name}${attributesOf(name, attributes)}>`;
    },
    ontext(text) {
      if (dropping === 0) result += escapeText(text.replace(/(?![\n\t])\p{Cc}/gu, ''));
    },
    onclosetag(name) {
      const place = open.findLastIndex((element) => element.name === name);
      if (place >= 0) for (const element of open.splice(place).reverse()) close(element);
    },
  });
  parser.end(html.toWellFormed());
  for (const element of open.splice(0).reverse()) close(element);
  return result;
}

const length = /^\d{1,3}%?$/;
const aligned = /^(left|right|center|justify|top|middle|bottom)$/i;
const attributes_of_all: Readonly<Record<string, RegExp>> = {
  align: aligned,
  bgcolor: /^#[0-9a-f]{3,6}$/i,
  border: /^\d{1,2}$/,
  cellpadding: /^\d{1,2}$/,
  cellspacing: /^\d{1,2}$/,
  colspan: /^\d{1,2}$/,
  dir: /^(ltr|rtl)$/i,
  height: length,
  lang: /^[a-z-]{2,20}$/i,
  rowspan: /^\d{1,2}$/,
  title: /^/,
  valign: aligned,
  width: length,
};

function attributesOf(element: string, attributes: Record<string, string>): string {
  return Object.entries(attributes)
    .map(([name, value]) => [name, safeValue(element, name, value)] as const)
    .map(([name, value]) => (value === null ? '' : ` ${name}="${escapeHtml(value)}"`))
    .join('');
}

/** Keeps what is allowed of an attribute; null: nothing. */
function safeValue(element: string, name: string, value: string): string | null {
  if (name === 'style') return safeStyle(value) || null;
  if (name === 'href') return element === 'a' ? target(value, /^(https?|mailto):$/) : null;
  if (element === 'img' && name === 'src') return target(value, /^https?:$/);
  if (element === 'img' && name === 'alt') return inOneLine(value);
  if (name === 'height' && element !== 'img') return null;
  const allowed = Object.hasOwn(attributes_of_all, name) ? attributes_of_all[name] : undefined;
  return allowed?.test(value.trim()) ? inOneLine(value) : null;
}

function target(url: string, protocols: RegExp): string | null {
  const parsed = URL.parse(url.trim());
  return parsed && protocols.test(parsed.protocol) ? parsed.href : null;
}

/**
 * Keeps of an element's style what it looks like itself. Left out is what moves, covers or hides what stands beside or behind it
 * (position, float, display, height, transforms, negative and large measures), and what loads anything (`url()`).
 */
const safeStyle = (style: string): string =>
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

const most_characters = 255;

/**
 * Makes one line of a header of a text: no control characters, and nothing that reads as an encoded word (RFC 2047), so that what is shown is what
 * was written. Longer ones are cut.
 */
export function oneLine(text: string): string {
  const line = text
    .slice(0, 4 * most_characters)
    .toWellFormed()
    .replace(/[\s\p{Cc}\u2028\u2029]+/gu, ' ')
    .replaceAll('=?', '= ?')
    .trim();
  const characters = [...line];
  return characters.length > most_characters
    ? `${characters
        .slice(0, most_characters - 1)
        .join('')
        .trimEnd()}…`
    : line;
}

/** Cleans a text of many lines, each ended by \n: no control characters but the tab, and no run of empty lines that would push away what follows. */
export const plainText = (text: string): string =>
  text
    .toWellFormed()
    .replace(/\r\n?|[\u0085\u2028\u2029]/g, '\n')
    .replace(/(?![\n\t])\p{Cc}/gu, '')
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
    .replace(/\n{4,}/g, '\n\n\n')
    .replace(/^\n+/, '')
    .trimEnd();

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
/** Escapes what stands in an attribute, or anywhere. */
export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => entities[character] as string);

/** Escapes what stands between elements. */
const escapeText = (text: string): string => text.replace(/[&<>]/g, (character) => entities[character] as string);

/** Makes HTML that shows a plain text: paragraphs, line breaks, and links where the text has web addresses. */
export const htmlOfText = (text: string): string =>
  text
    .split(/\n{2,}/)
    .filter((paragraph) => paragraph !== '')
    .map((paragraph) => `<p>${paragraph.split('\n').map(linked).join('<br>')}</p>`)
    .join('\n');

const linked = (line: string): string =>
  line
    .split(/(https?:\/\/[^\s<>"']*[^\s<>"'.,;:!?)\]}])/i)
    .map((part, place) => (place % 2 === 1 ? linkTo(part) : escapeText(part)))
    .join('');

const linkTo = (url: string): string => `<a href="${escapeHtml(url)}">${escapeText(url)}</a>`;
