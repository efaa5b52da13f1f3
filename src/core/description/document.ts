/** The pages of the documentation that are plain HTML: no script, nothing loaded from elsewhere. */
import type { FastifyInstance } from 'fastify';
import { type Page, page, sendPage } from './description.ts';

const policy =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const style = `
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1b1b1f; background: #fff }
  h2 { margin-top: 2.5rem } h3 { margin-top: 2rem }
  pre { background: #f4f4f6; padding: .75rem 1rem; overflow-x: auto; border-radius: 4px }
  code { font: 14px/1.5 ui-monospace, monospace }
  table { border-collapse: collapse; width: 100% } th, td { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid #ddd }
  nav a { margin-right: .75rem; white-space: nowrap }
  @media (prefers-color-scheme: dark) { body { color: #e6e6ea; background: #18181b } pre { background: #27272b } th, td { border-color: #444 } a { color: #8ab4f8 } }`;

export interface HtmlDocument {
  title: string;
  /** One sentence below the title. */
  summary: string;
  /** HTML. */
  content: string;
}

/** Serves a page without a key. It is made by the first request for it, so that a process that nobody asks for it is spared the work. */
export function mountDocument(
  app: FastifyInstance,
  path: string,
  make: (request: Parameters<typeof sendPage>[0]) => Promise<HtmlDocument>,
): void {
  let made: Page | undefined;
  app.get(path, { schema: { hide: true } as object }, async (request, reply) => {
    made ??= page(htmlOf(await make(request)));
    reply.headers({ 'Content-Security-Policy': policy, 'Referrer-Policy': 'no-referrer' });
    return sendPage(request, reply, 'text/html; charset=utf-8', made);
  });
}

const htmlOf = ({ title, summary, content }: HtmlDocument): string => `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title><style>${style}</style></head>
<body>
<p><a href="../docs">API reference</a></p>
<h1>${title}</h1>
<p>${summary}</p>
${content}
</body>
</html>
`;

export const block = (code: string): string => `<pre><code>${escaped(code)}</code></pre>`;

/** A text with `code` in backquotes. */
export const prose = (text: string): string => escaped(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>');

export const escaped = (text: string): string =>
  text.replaceAll(
    /[&<>"]/g,
    (character) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[character] as string,
  );
