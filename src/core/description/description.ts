import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type Described, rootOf } from './described.ts';
import { indexText, wholeText } from './llms.ts';
import { describeRoutes } from './openapi.ts';
import type { Document } from './openapi_parts.ts';

/** A text that is the same for everybody. */
export interface Page {
  text: string;
  etag: string;
}

/**
 * `GET /v1/openapi.json`, `/llms.txt` and `/llms-full.txt` of a product, without a key. To be awaited before the operations are mounted, because the
 * description is read off their routes. The texts are made once, by the first request for any of them: that takes half a second of CPU, which a
 * process that nobody asks for them is spared.
 */
export async function mountDescription(app: FastifyInstance, described: Described): Promise<void> {
  await describeRoutes(app, described);
  let made: Texts | undefined;
  const texts = () => {
    made ??= textsOf(app.swagger() as unknown as Document, described);
    return made;
  };
  const root = rootOf(described.path);
  serve(app, `${described.path}/openapi.json`, 'application/json; charset=utf-8', () => texts().openapi);
  serve(app, `${root}/llms.txt`, 'text/plain; charset=utf-8', () => texts().index);
  serve(app, `${root}/llms-full.txt`, 'text/plain; charset=utf-8', () => texts().whole);
}

type Texts = ReturnType<typeof textsOf>;

const textsOf = (document: Document, described: Described) => ({
  openapi: page(JSON.stringify(document)),
  index: page(indexText(document, described.path)),
  whole: page(wholeText(document, described)),
});

function serve(app: FastifyInstance, path: string, type: string, text: () => Page): void {
  app.get(path, { schema: { hide: true } as object }, async (request, reply) => sendPage(request, reply, type, text()));
}

/** Sends a page, unless who asks has it already. */
export function sendPage(request: FastifyRequest, reply: FastifyReply, type: string, { text, etag }: Page) {
  reply.headers({ ETag: etag, 'Cache-Control': 'no-cache' });
  if (request.headers['if-none-match'] === etag) return reply.code(304).send();
  return reply.header('Content-Type', type).serializer(String).send(text);
}

export const page = (text: string): Page => ({
  text,
  etag: `"${createHash('sha256').update(text).digest('base64url')}"`,
});
