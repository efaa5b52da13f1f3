import { inflateSync } from 'node:zlib';

/** A text on a page, where it starts: from the left and from the bottom, in points. */
export interface PdfText {
  text: string;
  x: number;
  y: number;
  size: number;
}

type Decoder = (hex: string) => string;

/**
 * Reads the texts of the pages of a PDF as pdfkit writes it: compressed pages in order, hexadecimal strings with kerning, in WinAnsi or in the
 * numbers of an embedded font, whose `ToUnicode` says what they are.
 */
export function readPdf(pdf: Buffer): PdfText[][] {
  const streams = streamsOf(pdf);
  const fonts = fontsOf(pdf.toString('latin1'), streams);
  return [...streams.values()]
    .filter((content) => content.includes('BT\n'))
    .map((content) => [...content.matchAll(/BT\n([\s\S]*?)\nET/g)].map(([, block]) => textOf(block as string, fonts)));
}

/** Number of the object → its stream, as far as it is text. */
function streamsOf(pdf: Buffer): Map<number, string> {
  const raw = pdf.toString('latin1');
  const streams = [...raw.matchAll(/(\d+) 0 obj\n<<[^>]*\/Length (\d+)[^>]*>>\nstream\n/g)];
  return new Map(
    streams.map(({ index, 0: head, 1: number, 2: length }) => {
      const bytes = pdf.subarray(index + head.length, index + head.length + Number(length));
      return [Number(number), inflateSync(bytes).toString('latin1')];
    }),
  );
}

/** Name of a font → what its strings are. */
function fontsOf(raw: string, streams: Map<number, string>): Map<string, Decoder> {
  const named = [...raw.matchAll(/\/(F\d+) (\d+) 0 R/g)];
  return new Map(
    named.map(([, name, number]) => {
      const [, map] =
        new RegExp(`\\n${number} 0 obj\\n<<[^\\0]*?/ToUnicode (\\d+) 0 R[^\\0]*?endobj`).exec(objectOf(raw, number)) ??
        [];
      return [name as string, map === undefined ? winAnsi : mapped(streams.get(Number(map)) as string)];
    }),
  );
}

function objectOf(raw: string, number: string | undefined): string {
  const start = raw.indexOf(`\n${number} 0 obj\n`);
  return raw.slice(start, raw.indexOf('endobj', start) + 'endobj'.length);
}

const winAnsi: Decoder = (hex) => new TextDecoder('windows-1252').decode(Buffer.from(hex, 'hex'));

function mapped(to_unicode: string): Decoder {
  const characters = new Map<number, string>();
  for (const [, first, list] of to_unicode.matchAll(/<([0-9a-f]{4})> <[0-9a-f]{4}> \[([^\]]*)\]/g))
    for (const [at, [, hex]] of [...(list as string).matchAll(/<([0-9a-f ]*)>/g)].entries())
      characters.set(
        Number.parseInt(first as string, 16) + at,
        Buffer.from((hex as string).replaceAll(' ', ''), 'hex')
          .swap16()
          .toString('utf16le'),
      );
  return (hex) =>
    (hex.match(/.{4}/g) ?? []).map((glyph) => characters.get(Number.parseInt(glyph, 16)) ?? '\ufffd').join('');
}

function textOf(block: string, fonts: Map<string, Decoder>): PdfText {
  const [, x, y] = /1 0 0 1 ([-\d.]+) ([-\d.]+) Tm/.exec(block) ?? [];
  const [, font = '', size] = /\/(F\d+) ([\d.]+) Tf/.exec(block) ?? [];
  const bytes = [...block.matchAll(/<([0-9a-f]*)>/g)].map(([, hex]) => hex).join('');
  return { text: (fonts.get(font) as Decoder)(bytes), x: Number(x), y: Number(y), size: Number(size) };
}
