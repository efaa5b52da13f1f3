import { join } from 'node:path';

type Document = PDFKit.PDFDocument;
type Weight = 'regular' | 'bold';

/**
 * Noto Sans, of which a subset is embedded: Latin (Vietnamese too), Greek, Cyrillic and Devanagari. The two files stand here because the package
 * with them has 16 more, of 13 MB.
 */
export const embedded: Record<Weight, string> = {
  regular: join(import.meta.dirname, 'noto_sans_regular.ttf'),
  bold: join(import.meta.dirname, 'noto_sans_bold.ttf'),
};
/** Each reader of PDF has it, in the encoding WinAnsi. It takes a hundredth of the time of an embedded font. */
const standard: Record<Weight, string> = { regular: 'Helvetica', bold: 'Helvetica-Bold' };
const win_ansi = /^[\x20-\x7e\xa0-\xff€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]*$/;

/** Chooses the font that a text is measured and drawn in. */
export const fontFor = (doc: Document, text: string, weight: Weight = 'regular'): Document =>
  doc.font((win_ansi.test(text) ? standard : embedded)[weight]);
