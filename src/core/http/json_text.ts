/** Looks at the text of a JSON body once, in time linear in its length, before anything is made of it. */
import { max_body_depth, max_body_values } from '../values/api.ts';
import { Problem } from '../values/problem.ts';

/** An object or a list that is open where the reader stands. */
interface Open {
  /** The names that an object has so far; undefined in a list. */
  names: Set<string> | undefined;
  /** The name or the number of the value that is read. */
  at: string | number;
}

/**
 * Bounds the work that a body makes for everything after it. Text that is not JSON passes, and is refused by the parser.
 * @throws Problem invalid_parameter where the body is too deep or holds too many values, invalid_json where a name stands twice in an object
 */
export function checkJsonText(text: string, most_values = max_body_values): void {
  const open: Open[] = [];
  let values = 0;
  let names_next = false;
  for (let index = 0; index < text.length; index++) {
    const sign = text[index] as string;
    if (isSpace(sign) || sign === ':') continue;
    const innermost = open.at(-1);
    if (sign === ',') {
      names_next = innermost?.names !== undefined;
      if (typeof innermost?.at === 'number') innermost.at++;
      continue;
    }
    if (sign === '}' || sign === ']') {
      open.pop();
      names_next = false;
      continue;
    }
    const end = endOfToken(text, index);
    if (names_next && sign === '"') {
      readName(open, nameOf(text.slice(index, end)));
      names_next = false;
    } else {
      if (++values > most_values) throw tooMany(most_values);
      if (sign === '{' || sign === '[') {
        if (open.length === max_body_depth) throw tooDeep();
        names_next = sign === '{';
        open.push(names_next ? { names: new Set(), at: '' } : { names: undefined, at: 0 });
      }
    }
    index = end - 1;
  }
}

/** @throws Problem invalid_json where the innermost object has the name already */
function readName(open: Open[], name: string): void {
  const object = open.at(-1) as Open;
  object.at = name;
  if (object.names?.has(name)) {
    const param = open.map(({ at }) => at).join('.');
    throw new Problem('invalid_json', `The body is not valid JSON: '${param}' occurs twice. Send it once.`, { param });
  }
  object.names?.add(name);
}

const isSpace = (sign: string): boolean => sign === ' ' || sign === '\n' || sign === '\r' || sign === '\t';

/** Returns the end of the text, the number, the word or the bracket that begins here. */
function endOfToken(text: string, start: number): number {
  const sign = text[start];
  if (sign === '{' || sign === '[') return start + 1;
  if (sign === '"') return endOfText(text, start);
  let end = start + 1;
  while (end < text.length && !delimiters.has(text[end] as string)) end++;
  return end;
}

const delimiters = new Set(' \n\r\t,:"{}[]');

/** Each backslash is looked at once: those of a run stand before one quotation mark alone. */
function endOfText(text: string, start: number): number {
  for (let quote = text.indexOf('"', start + 1); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let first = quote;
    while (text[first - 1] === '\\') first--;
    if ((quote - first) % 2 === 0) return quote + 1;
  }
  return text.length;
}

function nameOf(quoted: string): string {
  if (!quoted.includes('\\')) return quoted.slice(1, -1);
  try {
    return JSON.parse(quoted);
  } catch {
    return quoted;
  }
}

const tooMany = (most_values: number): Problem =>
  new Problem(
    'invalid_parameter',
    `The body holds more than ${most_values.toLocaleString('en')} values. Send fewer in one request.`,
  );

const tooDeep = (): Problem =>
  new Problem('invalid_parameter', `The body is nested more than ${max_body_depth} levels deep. Reduce the nesting.`);
