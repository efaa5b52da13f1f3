/** The pages of the documentation that are plain HTML: they can be read without their script, and load nothing from elsewhere. */
import { createHash } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { type Page, page, sendPage } from './description.ts';

/** A button at each code sample, where the browser lets a page copy. */
const script = `
  if (navigator.clipboard) for (const code of document.querySelectorAll('pre > code')) {
    const button = Object.assign(document.createElement('button'), { type: 'button', className: 'copy', textContent: 'Copy' })
    button.onclick = async () => {
      await navigator.clipboard.writeText(code.textContent)
      button.textContent = 'Copied'
      setTimeout(() => { button.textContent = 'Copy' }, 2000)
    }
    code.parentElement.before(button)
  }`;

const policy = `default-src 'none'; script-src 'sha256-${createHash('sha256').update(script).digest('base64')}'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

const style = `
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1b1b1f; background: #fff }
  h2 { margin-top: 2.5rem } h3 { margin-top: 2rem }
  pre { background: #f4f4f6; padding: .75rem 1rem; overflow-x: auto; border-radius: 4px }
  code { font: 14px/1.5 ui-monospace, monospace }
  table { border-collapse: collapse; width: 100% } th, td { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid #ddd }
  .copy { float: right; margin: .5rem; font: 14px/1.5 system-ui, sans-serif; color: inherit; background: transparent; border: 1px solid; border-radius: 4px; cursor: pointer }
  nav a { margin-right: .75rem; display: inline-block }
  .table { overflow-x: auto } a:focus-visible, [tabindex]:focus-visible { outline: 2px solid #1a56c4; outline-offset: 2px }
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
  app.get(path, async (request, reply) => {
    made ??= page(htmlOf(await make(request)));
    reply.headers({ 'Content-Security-Policy': policy, 'Referrer-Policy': 'no-referrer' });
    return sendPage(request, reply, 'text/html; charset=utf-8', made);
  });
}

/** Links to the pages of guides. @param below where they are, as seen from the page */
export const guideLinks = (below: string): string =>
  ['Tour', 'Snippet', 'Webhooks', 'Data', 'Operations']
    .map((title) => `<a href="${below}${title.toLowerCase()}">${title}</a>`)
    .join(' ');

const htmlOf = ({ title, summary, content }: HtmlDocument): string => `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title><style>${style}</style></head>
<body>
<nav aria-label="Documentation"><a href="../docs">API reference</a> ${guideLinks('')} <a href="../llms-full.txt">As text</a></nav>
<main>
<h1>${title}</h1>
<p>${summary}</p>
${withContents(content)}
</main>
<script>${script}</script>
</body>
</html>
`;

/** Adds a list of chapters in front, each of which has an address. */
function withContents(content: string): string {
  const chapters: string[] = [];
  const addressed = content.replaceAll(
    /<h2(?: id="([^"]*)")?>(.*?)<\/h2>/g,
    (_, id: string | undefined, title: string) => {
      const name = id ?? title.toLowerCase().replaceAll(/[^a-z]+/g, '-');
      chapters.push(`<a href="#${name}">${title}</a>`);
      return `<h2 id="${name}">${title}</h2>`;
    },
  );
  return `<nav aria-label="Contents">${chapters.join(' ')}</nav>\n${addressed}`;
}

/** Returns a block of code. A block wider than the page scrolls in a box of its own, which the keyboard reaches. */
export const block = (code: string): string =>
  `<pre tabindex="0" role="region" aria-label="Code"><code>${escaped(code)}</code></pre>`;

export const table = (label: string, rows: string[]): string =>
  `<div class="table" tabindex="0" role="region" aria-label="${escaped(label)}"><table>\n${rows.join('\n')}\n</table></div>`;

/** A text with `code` in backquotes. */
export const prose = (text: string): string => escaped(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>');

export const escaped = (text: string): string =>
  text.replaceAll(
    /[&<>"]/g,
    (character) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[character] as string,
  );
