import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { once } from '../values/once.ts';
import { rootOf } from './described.ts';
import type { Texts } from './texts.ts';

/** A text or a file that is the same for everybody. */
export interface Page {
  text: string | Buffer;
  /** The hash of the text, in letters that an address takes. */
  hash: string;
  /** Compressed by the first who asks for it so, in a thread of its own. */
  gzipped?: Promise<Buffer>;
}

/**
 * `GET /v1/openapi.json`, `/llms.txt` and `/llms-full.txt` of the product at `path`, without a key.
 * @param make is called once, by the first request for one of them: a process that nobody asks for them is spared the work
 */
export function mountDescription(app: FastifyInstance, path: string, make: () => Promise<Texts>): void {
  const texts = once(make);
  const root = rootOf(path);
  const text = 'text/plain; charset=utf-8';
  serve(app, `${path}/openapi.json`, 'application/json; charset=utf-8', async () => (await texts()).openapi);
  serve(app, `${root}/llms.txt`, text, async () => (await texts()).index);
  serve(app, `${root}/llms-full.txt`, text, async () => (await texts()).whole);
}

function serve(app: FastifyInstance, path: string, type: string, make: () => Promise<string>): void {
  const made = once(async () => page(await make()));
  app.get(path, async (request, reply) => sendPage(request, reply, type, await made()));
}

/** Sends a page, compressed for who takes that, unless who asks has it already. */
export async function sendPage(request: FastifyRequest, reply: FastifyReply, type: string, page: Page) {
  const { 'if-none-match': known, 'accept-encoding': encodings = '' } = request.headers;
  const is_gzipped = page.text.length > least_gzipped && takes_gzip.test(String(encodings));
  const etag = `"${page.hash}${is_gzipped ? '-gzip' : ''}"`;
  reply.headers({ ETag: etag, Vary: 'Accept-Encoding' });
  if (!reply.hasHeader('Cache-Control')) reply.header('Cache-Control', 'no-cache');
  if (known === etag) return reply.code(304).send();
  reply.header('Content-Type', type);
  if (!is_gzipped) return reply.serializer(String).send(page.text);
  page.gzipped ??= gzipping(page.text, { level: 9 });
  return reply.header('Content-Encoding', 'gzip').send(await page.gzipped);
}

const gzipping = promisify<string | Buffer, { level: number }, Buffer>(gzip);
const least_gzipped = 1_024;
/** `gzip`, but not `gzip;q=0`. */
const takes_gzip = /(?:^|[\s,])gzip(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/i;

export const page = (text: string | Buffer): Page => ({
  text,
  hash: createHash('sha256').update(text).digest('base64url'),
});
