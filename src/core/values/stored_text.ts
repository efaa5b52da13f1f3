/** A text of others as Postgres keeps it: no NUL, no half of a pair, and at most so many characters. */
export const storable = (text: string, longest: number = text.length): string =>
  text.slice(0, longest).replaceAll('\0', '').toWellFormed();
