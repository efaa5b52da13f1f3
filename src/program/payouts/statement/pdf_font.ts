import { createRequire } from 'node:module';

type Document = PDFKit.PDFDocument;
type Weight = 'regular' | 'bold';

const { resolve } = createRequire(import.meta.url);
const noto = '@expo-google-fonts/noto-sans';
/** Its subset is embedded: Latin (Vietnamese too), Greek, Cyrillic and Devanagari. */
export const embedded: Record<Weight, string> = {
  regular: resolve(`${noto}/400Regular/NotoSans_400Regular.ttf`),
  bold: resolve(`${noto}/700Bold/NotoSans_700Bold.ttf`),
};
/** Each reader of PDF has it, in the encoding WinAnsi. It takes a hundredth of the time of an embedded font. */
const standard: Record<Weight, string> = { regular: 'Helvetica', bold: 'Helvetica-Bold' };
const win_ansi = /^[\x20-\x7e\xa0-\xff€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]*$/;

/** Chooses the font that a text is measured and drawn in. */
export const fontFor = (doc: Document, text: string, weight: Weight = 'regular'): Document =>
  doc.font((win_ansi.test(text) ? standard : embedded)[weight]);
