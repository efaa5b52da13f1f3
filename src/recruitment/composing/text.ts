/** Plain text as lines of a mail and as HTML. */
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
export const escapeText = (text: string): string =>
  text.replace(/[&<>]/g, (character) => entities[character] as string);

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
