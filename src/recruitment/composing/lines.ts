const most_characters = 255;

/**
 * A text as one line of a header: no control characters, and nothing that reads as an encoded word (RFC 2047), so that what is shown is what
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

/** A text of many lines, each ended by \n: no control characters but the tab, and no run of empty lines that would push away what follows. */
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
