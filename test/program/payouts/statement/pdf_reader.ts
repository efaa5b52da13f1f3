import { inflateSync } from 'node:zlib';

/** A text on a page, where it starts: from the left and from the bottom, in points. */
export interface PdfText {
  text: string;
  x: number;
  y: number;
  size: number;
}

/** Reads the texts of the pages of a PDF as pdfkit writes it: compressed pages in order, hexadecimal WinAnsi strings with kerning. */
export function readPdf(pdf: Buffer): PdfText[][] {
  return contents(pdf).map((content) => {
    const texts: PdfText[] = [];
    for (const block of content.matchAll(/BT\n([\s\S]*?)\nET/g)) texts.push(textOf(block[1] as string));
    return texts;
  });
}

/** The content streams of the pages. */
function contents(pdf: Buffer): string[] {
  const raw = pdf.toString('latin1');
  const streams = [...raw.matchAll(/\/Length (\d+)[^>]*>>\nstream\n/g)];
  return streams
    .map(({ index, 0: head, 1: length }) =>
      inflateSync(pdf.subarray(index + head.length, index + head.length + Number(length))),
    )
    .map((content) => content.toString('latin1'))
    .filter((content) => content.includes('BT\n'));
}

function textOf(block: string): PdfText {
  const [, x, y] = /1 0 0 1 ([-\d.]+) ([-\d.]+) Tm/.exec(block) ?? [];
  const [, size] = / ([\d.]+) Tf/.exec(block) ?? [];
  const bytes = [...block.matchAll(/<([0-9a-f]*)>/g)].map(([, hex]) => hex).join('');
  const text = new TextDecoder('windows-1252').decode(Buffer.from(bytes, 'hex'));
  return { text, x: Number(x), y: Number(y), size: Number(size) };
}
