/** `GET /docs/data`: the page for data teams, without a key: what is in schema data, example queries, and how to connect. */
import type { FastifyInstance } from 'fastify';
import { type Page, page, sendPage } from '../core/description/description.ts';
import { withinDeadline } from '../core/http/deadline.ts';
import type { Database } from '../core/postgres/database.ts';
import { type Dictionary, readDictionary } from './dictionary.ts';
import { examples, limits, rules, tools } from './guide.ts';

/** It is made by the first request for it, so that a process that nobody asks for it is spared the work. */
export function mountDataPage(app: FastifyInstance, database: Database): void {
  let made: Page | undefined;
  app.get('/docs/data', { schema: { hide: true } as object }, async (request, reply) => {
    made ??= page(htmlOf(await withinDeadline(request, readDictionary(database))));
    reply.headers({ 'Content-Security-Policy': policy, 'Referrer-Policy': 'no-referrer' });
    return sendPage(request, reply, 'text/html; charset=utf-8', made);
  });
}

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

const htmlOf = ({ views, functions }: Dictionary): string => `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Data</title><style>${style}</style></head>
<body>
<p><a href="../docs">API reference</a></p>
<h1>Data</h1>
<p>For those who query Postgres directly.</p>
${rules.map((text) => `<p>${prose(text)}</p>`).join('\n')}
<h2>How to connect</h2>
${tools.map(({ name, text, code }) => `<h3>${escaped(name)}</h3>\n<p>${prose(text)}</p>\n${code ? block(code) : ''}`).join('\n')}
${limits.map((text) => `<p>${prose(text)}</p>`).join('\n')}
<h2>Example queries</h2>
${examples.map(({ title, sql }) => `<h3>${escaped(title)}</h3>\n${block(sql)}`).join('\n')}
<h2>Dictionary</h2>
<nav>${views.map(({ name }) => `<a href="#${name}">${name}</a>`).join(' ')}</nav>
${views.map(viewHtml).join('\n')}
<h3>Functions</h3>
<table>${functions.map(({ name, doc }) => `<tr><td><code>${escaped(name)}</code></td><td>${prose(doc)}</td></tr>`).join('\n')}</table>
</body>
</html>
`;

const viewHtml = ({ name, doc, columns }: Dictionary['views'][number]): string => `<h3 id="${name}">data.${name}</h3>
<p>${prose(doc)}</p>
<table>
<tr><th>column</th><th>type</th><th>what it is</th></tr>
${columns.map((column) => `<tr><td><code>${column.name}</code></td><td>${escaped(column.type)}</td><td>${prose(column.doc)}</td></tr>`).join('\n')}
</table>`;

const block = (code: string): string => `<pre><code>${escaped(code)}</code></pre>`;

const prose = (text: string): string => escaped(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>');

const escaped = (text: string): string =>
  text.replaceAll(
    /[&<>"]/g,
    (character) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[character] as string,
  );
