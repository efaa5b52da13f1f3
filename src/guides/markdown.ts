import { block, prose } from '../core/description/document.ts';

/** The Markdown that the guides are written in, as HTML: chapters, paragraphs, lists, code, and what stands between two braces. */
export const htmlOf = (markdown: string, inserted: Record<string, string> = {}): string =>
  [...markdown.matchAll(/^```[^\n]*\n([\s\S]*?)^```$|(?:(?!```).+\n?)+/gm)]
    .map(([text, code]) => (code === undefined ? passage(text.trimEnd(), inserted) : block(code.trimEnd())))
    .join('\n');

function passage(text: string, inserted: Record<string, string>): string {
  const [, name] = /^\{\{(\w+)\}\}$/.exec(text) ?? [];
  if (name !== undefined) return inserted[name] ?? '';
  if (text.startsWith('## ')) return `<h2>${inline(text.slice(3))}</h2>`;
  const [, marker] = /^(-|1\.) /.exec(text) ?? [];
  if (marker === undefined) return `<p>${inline(text.replaceAll('\n', ' '))}</p>`;
  const tag = marker === '-' ? 'ul' : 'ol';
  const points = text.split('\n').map((point) => `<li>${inline(point.replace(/^(?:-|\d+\.) /, ''))}</li>`);
  return `<${tag}>\n${points.join('\n')}\n</${tag}>`;
}

const inline = (text: string): string =>
  prose(text)
    .replaceAll(/\*\*([^*]+)\*\*/g, '<strong>$1</strong>')
    .replaceAll(/\[([^\]]+)\]\(([\w./#-]+)\)/g, '<a href="$2">$1</a>');
