/** `GET /docs/data`: the page for data teams, without a key: what is in schema data, example queries, and how to connect. */
import type { FastifyInstance } from 'fastify';
import { block, escaped, mountDocument, prose, table } from '../core/description/document.ts';
import { withinDeadline } from '../core/http/deadline.ts';
import { withLent } from '../core/pool/lending.ts';
import type { Database } from '../core/postgres/database.ts';
import { type Dictionary, readDictionary } from './dictionary.ts';
import { examples, limits, rules, tools } from './guide.ts';

export const mountDataPage = (app: FastifyInstance, database: Database): void =>
  mountDocument(app, '/docs/data', async (request) => ({
    title: 'Data',
    summary: 'For data teams, who query Postgres directly or by GraphQL.',
    content: contentOf(await withinDeadline(request, 'docs', (asked) => withLent(database, asked, readDictionary))),
  }));

const contentOf = ({
  views,
  functions,
}: Dictionary): string => `${rules.map((text) => `<p>${prose(text)}</p>`).join('\n')}
<h2>How to connect</h2>
${tools.map(({ name, text, code }) => `<h3>${escaped(name)}</h3>\n<p>${prose(text)}</p>\n${code ? block(code) : ''}`).join('\n')}
<h2>Limits</h2>
${limits.map((text) => `<p>${prose(text)}</p>`).join('\n')}
<h2>Example queries</h2>
${examples.map(({ title, sql }) => `<h3>${escaped(title)}</h3>\n${block(sql)}`).join('\n')}
<h2>Dictionary</h2>
<nav aria-label="Views">${views.map(({ name }) => `<a href="#${name}">${name}</a>`).join(' ')}</nav>
${views.map(viewHtml).join('\n')}
<h3>Functions</h3>
${table(
  'Functions',
  functions.map(({ name, doc }) => `<tr><td><code>${escaped(name)}</code></td><td>${prose(doc)}</td></tr>`),
)}`;

const viewHtml = ({ name, doc, columns }: Dictionary['views'][number]): string => `<h3 id="${name}">data.${name}</h3>
<p>${prose(doc)}</p>
${table(`Columns of data.${name}`, [
  '<tr><th>column</th><th>type</th><th>what it is</th></tr>',
  ...columns.map(
    (column) =>
      `<tr><td><code>${column.name}</code></td><td>${escaped(column.type)}</td><td>${prose(column.doc)}</td></tr>`,
  ),
])}`;
