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
 * description is read off their routes; the texts are made once, when the server is ready.
 */
export async function mountDescription(app: FastifyInstance, described: Described): Promise<void> {
  const root = rootOf(described.path);
  const [openapi, index, whole] = [`${described.path}/openapi.json`, `${root}/llms.txt`, `${root}/llms-full.txt`];
  await describeRoutes(app, described);
  const pages = new Map<string, Page>();
  app.addHook('onReady', async () => {
    const document = app.swagger() as unknown as Document;
    pages.set(openapi, page(JSON.stringify(document)));
    pages.set(index, page(indexText(document, described.path)));
    pages.set(whole, page(wholeText(document, described)));
  });
  serve(app, openapi, 'application/json; charset=utf-8', pages);
  serve(app, index, 'text/plain; charset=utf-8', pages);
  serve(app, whole, 'text/plain; charset=utf-8', pages);
}

function serve(app: FastifyInstance, path: string, type: string, pages: Map<string, Page>): void {
  app.get(path, { schema: { hide: true } as object }, async (request, reply) =>
    sendPage(request, reply, type, pages.get(path) as Page),
  );
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
