/**
 * A text for a cell of a CSV file that a spreadsheet may open: where it would be read as a formula, an apostrophe is put before it, as OWASP
 * recommends. Only for texts that people write: an amount such as `-12.00` is left as it is.
 */
export const csvText = (text: string): string => (/^\s*[=+\-@\t\r＝＋－＠]/.test(text) ? `'${text}` : text);
