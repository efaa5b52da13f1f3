/** Reading what providers answer: nothing is believed to have the form that it is documented to have. */

/** A field of an answer, where it is there. */
export function at(value: unknown, ...path: (string | number)[]): unknown {
  return path.reduce<unknown>(
    (inner, key) =>
      typeof inner === 'object' && inner !== null ? (inner as Record<string | number, unknown>)[key] : undefined,
    value,
  );
}

export const textAt = (value: unknown, ...path: (string | number)[]): string | undefined => {
  const found = at(value, ...path);
  return typeof found === 'string' && found !== '' ? found : undefined;
};

/** Makes a table that is read by the texts of others, which may be names that every object has, such as `constructor`. */
export const table = <Value>(values: Record<string, Value>): Readonly<Record<string, Value>> =>
  Object.assign(Object.create(null), values);

export const listAt = (value: unknown, ...path: (string | number)[]): unknown[] => {
  const found = at(value, ...path);
  return Array.isArray(found) ? found : [];
};

const longest_text = 500;

/** A provider's own words, for people: on one line, cut, and without the secrets, which some providers quote. */
export function quoted(text: unknown, secrets: readonly string[]): string {
  const redacted = secrets
    .filter((secret) => secret !== '')
    .reduce(
      (words, secret) => words.replaceAll(secret, '[secret]').replaceAll(encodeURIComponent(secret), '[secret]'),
      typeof text === 'string' ? text : '',
    );
  return redacted
    .replaceAll(/[\p{Cc}\s]+/gu, ' ')
    .trim()
    .slice(0, longest_text);
}
