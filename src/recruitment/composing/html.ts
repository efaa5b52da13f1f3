const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
/** For what stands in an attribute, or anywhere. */
export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => entities[character] as string);

/** For what stands between elements. */
export const escapeText = (text: string): string =>
  text.replace(/[&<>]/g, (character) => entities[character] as string);

/** HTML that shows a plain text: paragraphs, line breaks, and links where the text has web addresses. */
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
