/** `GET /v1/links/{id}/qr`: the QR code of a link, to print. */
import { crc32, deflateSync } from 'node:zlib';
import { z } from 'zod';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { id, objectName, text } from '../../core/values/fields.ts';
import { type Link, links } from '../partners/link.ts';

const LinkQr = z
  .object({
    object: objectName('link_qr'),
    link_id: id('lnk'),
    url: text.describe("The address in the code: the link's short URL, or its URL if it has none."),
    svg: text.describe('The code as SVG.'),
  })
  .meta({ id: 'LinkQr', description: 'The QR code of a link.' });

/** Modules around the code: scanners need four. */
const quiet_modules = 4;
const pixels_of_module = 8;
const media_types: Record<string, string> = { svg: 'image/svg+xml', png: 'image/png' };

export const linkQrOperations: Operation[] = [
  operation({
    name: 'links.get_qr',
    method: 'GET',
    path: '/v1/links/{id}/qr',
    scope: 'links:read',
    title: 'Draw the code of a link',
    summary: 'Returns the QR code of a link.',
    doc: 'As SVG in JSON, or as a file in SVG or PNG, by `format` or by the header `Accept`. It stays readable with 15 % of it covered.',
    params: idParams,
    query: z.strictObject({
      format: z
        .enum(['json', 'svg', 'png'])
        .optional()
        .describe('The format of the response. The default is what the header `Accept` asks for, otherwise `json`.'),
    }),
    reply: LinkQr,
    async run({ tx, params }) {
      const link = await links.get(tx, params.id);
      const url = addressOf(link);
      return { object: 'link_qr' as const, link_id: link.id, url, svg: await qrSvg(url) };
    },
    file: {
      media_types,
      async open({ tx, params, format }) {
        const link = await links.get(tx, params.id);
        const modules = await modulesOf(addressOf(link));
        const content = format === 'png' ? pngOf(modules) : svgOf(modules);
        return { name: `${link.id}.${format}`, media_type: media_types[format] as string, chunks: once(content) };
      },
    },
  }),
];

const addressOf = ({ short_url, url }: Link): string => short_url ?? url;

async function* once(content: string | Buffer): AsyncGenerator<string | Buffer> {
  yield content;
}

/** The dark modules, row by row, with the quiet zone. The package is loaded by the first code. */
async function modulesOf(url: string): Promise<boolean[][]> {
  const { encode } = await import('uqr');
  return encode(url, { ecc: 'M', border: quiet_modules }).data;
}

function svgOf(modules: boolean[][]): string {
  const size = modules.length;
  const path = modules.flatMap((row, y) => row.flatMap((dark, x) => (dark ? [`M${x} ${y}h1v1h-1z`] : []))).join('');
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size} ${size}" shape-rendering="crispEdges"><path fill="#fff" d="M0 0h${size}v${size}H0z"/><path d="${path}"/></svg>\n`;
}

/** The QR code of a text, as SVG. */
export const qrSvg = async (content: string): Promise<string> => svgOf(await modulesOf(content));

/** PNG (RFC 2083), one bit a pixel, in shades of grey: 0 is black. */
function pngOf(modules: boolean[][]): Buffer {
  const size = modules.length * pixels_of_module;
  const rows = modules.flatMap((row) => {
    const line = Buffer.alloc(1 + size / 8); // the filter of the line, then a byte for each module
    for (const [x, dark] of row.entries()) line[1 + x] = dark ? 0 : 0xff;
    return Array.from({ length: pixels_of_module }, () => line);
  });
  const header = Buffer.alloc(13);
  header.writeUInt32BE(size, 0);
  header.writeUInt32BE(size, 4);
  header[8] = 1;
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(Buffer.concat(rows))),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function chunk(type: string, content: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type, 'latin1'), content]);
  const ends = Buffer.alloc(4);
  const begins = Buffer.alloc(4);
  begins.writeUInt32BE(content.length);
  ends.writeUInt32BE(crc32(named));
  return Buffer.concat([begins, named, ends]);
}
