/** No pattern sees more of a value than so, but of those that are lists or encoded, which are read sign by sign. */
const longest_value = 2_000;
const longest_list = 20_000;
const lists = new Set(
  'from to cc subject references in-reply-to received authentication-results x-failed-recipients'.split(' '),
);

/** The fields of a header, or of a group of a report: names in lower case, values unfolded, in the order in which they stand. */
export class Fields {
  readonly #values = new Map<string, string[]>();

  constructor(entries: Iterable<readonly [name: string, value: string]> = []) {
    for (const [name, given] of entries) {
      const key = name.toLowerCase();
      // Characters that a database cannot store have no meaning in an id or a subject.
      const longest = lists.has(key) ? longest_list : longest_value;
      const value = given.slice(0, longest).replaceAll('\0', '').toWellFormed();
      const values = this.#values.get(key);
      if (values) values.push(value);
      else this.#values.set(key, [value]);
    }
  }

  /** The first one, as readers of mail take it; empty where there is none. */
  get(name: string): string {
    return this.#values.get(name)?.[0]?.trim() ?? '';
  }

  all(name: string): string[] {
    return this.#values.get(name) ?? [];
  }

  has(...names: string[]): boolean {
    return names.some((name) => this.#values.has(name));
  }

  get size(): number {
    return this.#values.size;
  }
}

const field = /^([A-Za-z][A-Za-z0-9-]{0,76})[ \t]*:[ \t]*(.*)/s;
const most_lines = 2_000;

/**
 * Reads the lines of a header up to the first empty one. A line that is neither a field nor folded belongs to the field before:
 * servers break long diagnostics without folding them.
 */
export function readFields(text: string): Fields {
  const entries: [string, string][] = [];
  for (const line of text.split(/\r?\n/, most_lines)) {
    if (line.trim() === '') {
      if (entries.length > 0) break;
      continue;
    }
    const found = /^[ \t]/.test(line) ? null : field.exec(line);
    const last = entries.at(-1);
    if (found) entries.push([found[1] as string, found[2] as string]);
    else if (last) last[1] += ` ${line.trim()}`;
  }
  return new Fields(entries);
}

/** Groups of fields, separated by empty lines, as message/delivery-status has them. */
export function readGroups(text: string): Fields[] {
  return text
    .split(/\r?\n[ \t]*\r?\n/, most_lines)
    .map(readFields)
    .filter(({ size }) => size > 0);
}
