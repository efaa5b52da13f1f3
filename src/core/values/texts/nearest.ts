/** Finds the name that somebody meant who wrote another. */

/** The one that is meant: it has the other as a part, or differs by a letter in three. Undefined where none is near. */
export function nearest(given: string, names: string[]): string | undefined {
  const whole = names.find((name) => name.split('/').includes(given));
  if (whole !== undefined) return whole;
  const [first] = names.map((name) => ({ name, by: distance(given, name) })).toSorted((a, b) => a.by - b.by);
  return first && first.by <= first.name.length / 3 ? first.name : undefined;
}

/** Returns the number of letters to add, remove or replace (Levenshtein). */
export function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, nth) => nth);
  for (const [nth, letter] of [...a].entries()) {
    const next = [nth + 1];
    for (let at = 0; at < b.length; at++) {
      const replaced = (row[at] as number) + Number(letter !== b[at]);
      next.push(Math.min(replaced, (row[at + 1] as number) + 1, (next[at] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}
