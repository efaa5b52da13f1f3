/** A text of others as Postgres keeps it: no NUL, no half of a pair, and at most so many characters. */
export const storable = (text: string, longest: number = text.length): string =>
  text.slice(0, longest).replaceAll('\0', '').toWellFormed();

/**
 * The path of the first text in a value that Postgres cannot store as it was sent, because it holds NUL or half of a surrogate pair. Where that is
 * a name, the path is that of its object: the name itself can hardly be shown.
 */
export function pathOfUnstorable(value: unknown): string[] | undefined {
  if (typeof value === 'string') return isStorable(value) ? undefined : [];
  if (value === null || typeof value !== 'object') return undefined;
  for (const [name, inner] of Object.entries(value)) {
    if (!isStorable(name)) return [];
    const path = pathOfUnstorable(inner);
    if (path) return [name, ...path];
  }
  return undefined;
}

/** Returns whether Postgres keeps a text as it is. */
export const isStorable = (text: string): boolean => text.isWellFormed() && !text.includes('\0');

/** A value of JSON with each text in it, names too, as Postgres keeps it. */
export function storableValue(value: unknown): unknown {
  if (typeof value === 'string') return storable(value);
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map(storableValue);
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [storable(name), storableValue(inner)]));
}
