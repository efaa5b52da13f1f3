/** Goes through HTML of strangers, in bounded time, and reports what a reader would see. */
import { Parser } from 'htmlparser2';

/** The context of a text in the document. */
export interface Place {
  element: string;
  /** Not shown to a reader. */
  is_hidden: boolean;
  /** Shown from right to left whatever its letters are: a way to hide addresses from machines. */
  is_reversed: boolean;
}

export interface Reader {
  open?(name: string, attributes: Record<string, string>, place: Place): void;
  text?(text: string, place: Place): void;
  close?(name: string): void;
}

/** Elements nested deeper are not read, nor anything after them: the parser scans all open elements at each end tag. */
export const most_depth = 256;
const most_characters = 1024 * 1024;
const chunk_characters = 16_384;

const unseen = new Set(['script', 'style', 'template', 'noframes', 'iframe', 'object', 'datalist', 'svg', 'math']);
const hiding_style =
  /display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![\d.]*[1-9])|opacity\s*:\s*0(?![\d.]*[1-9])/i;
/** Style sheets are read so far. */
const most_css_characters = 100_000;

/** Never throws, unless the reader does. Comments are left out. */
export function walkHtml(html: string, reader: Reader): void {
  const walk = new Walk(reader);
  const parser = new Parser(walk, { decodeEntities: true, recognizeCDATA: true });
  const end = Math.min(html.length, most_characters);
  for (let at = 0; at < end && !walk.isTooDeep; at += chunk_characters) {
    parser.write(html.slice(at, Math.min(at + chunk_characters, end)));
  }
  if (!walk.isTooDeep) parser.end();
}

class Walk {
  readonly #reader: Reader;
  readonly #places: Place[] = [{ element: '', is_hidden: false, is_reversed: false }];
  /** Classes that the page's own style sheets hide or reverse. */
  readonly #classes = { hidden: new Set<string>(), reversed: new Set<string>() };
  #css_characters = 0;
  isTooDeep = false;

  constructor(reader: Reader) {
    this.#reader = reader;
  }

  get #place(): Place {
    return this.#places.at(-1) as Place;
  }

  onopentag(name: string, attributes: Record<string, string>): void {
    if (this.isTooDeep) return;
    const place = this.#placeIn(name, attributes);
    this.#places.push(place);
    this.isTooDeep = this.#places.length > most_depth;
    this.#reader.open?.(name, attributes, place);
  }

  ontext(text: string): void {
    if (this.isTooDeep) return;
    if (this.#place.element === 'style') this.#readStyles(text);
    this.#reader.text?.(text, this.#place);
  }

  onclosetag(name: string): void {
    if (this.isTooDeep) return;
    if (this.#places.length > 1) this.#places.pop();
    this.#reader.close?.(name);
  }

  #placeIn(element: string, attributes: Record<string, string>): Place {
    const { is_hidden, is_reversed } = this.#place;
    const is_unseen = is_hidden || unseen.has(element);
    if (Object.keys(attributes).length === 0) return { element, is_hidden: is_unseen, is_reversed };
    const { style = '', class: classes = '' } = attributes;
    const names = classes.split(/\s+/, 50);
    return {
      element,
      is_hidden:
        is_unseen ||
        'hidden' in attributes ||
        hiding_style.test(style) ||
        names.some((name) => this.#classes.hidden.has(name)),
      is_reversed:
        is_reversed ||
        isReversing(style) ||
        (element === 'bdo' && attributes.dir?.toLowerCase() === 'rtl') ||
        names.some((name) => this.#classes.reversed.has(name)),
    };
  }

  #readStyles(css: string): void {
    this.#css_characters += css.length;
    if (this.#css_characters > most_css_characters) return;
    for (const rule of css.split('}')) {
      const [selectors = '', declarations = ''] = rule.split('{', 2);
      const hides = /display\s*:\s*none|visibility\s*:\s*hidden/i.test(declarations);
      if (!hides && !isReversing(declarations)) continue;
      // A class alone: what stands below another element, or in a state, is hidden at times.
      for (const selector of selectors.split(',')) {
        const name = /^\s*\w*\.([\w-]+)\s*$/.exec(selector)?.[1];
        if (name !== undefined) (hides ? this.#classes.hidden : this.#classes.reversed).add(name);
      }
    }
  }
}

function isReversing(style: string): boolean {
  return /direction\s*:\s*rtl/i.test(style) && /bidi-override/i.test(style);
}
