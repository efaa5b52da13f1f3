/** Small pages for people who open an address in a browser: no script, nothing loaded. */
import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';

const style =
  'body { max-width: 34rem; margin: 4rem auto; padding: 0 1rem; font: 1.125rem/1.5 system-ui, sans-serif; color-scheme: light dark } h1 { font-size: 1.5rem; line-height: 1.25 }';
const headers = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': `default-src 'none'; style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'`,
  'Referrer-Policy': 'no-referrer',
  'X-Robots-Tag': 'noindex, nofollow',
};

/** A browser that opens an address, and no client of the API. */
export const isBrowsing = ({ method, headers: { accept = '' } }: FastifyRequest): boolean =>
  (method === 'GET' || method === 'HEAD') && accept.includes('text/html');

/** @param text HTML may not be in it */
export const sendPlainPage = (
  reply: FastifyReply,
  status: number,
  { title, text }: { title: string; text: string },
): FastifyReply =>
  reply
    .code(status)
    .headers(headers)
    .serializer(String)
    .send(`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title><style>${style}</style></head>
<body><main><h1>${title}</h1><p>${text}</p></main></body>
</html>
`);
