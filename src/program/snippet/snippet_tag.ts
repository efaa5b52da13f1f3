import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Program } from '../programs/program.ts';

/** The parameters that the script looks for unless its element names others. */
const usual_params = ['ref', 'via'];

export interface Script {
  text: string;
  /** `sha384-…`, for `integrity`. */
  integrity: string;
  /** The copy that never changes: `/rail-1a2b3c4d5e6f.js`. */
  path: string;
}

let read: Script | undefined;

/** The script as it is served: without comments, indentation and what only a reader needs. No text in it looks like one of these. */
export function script(): Script {
  if (read) return read;
  const written = readFileSync(join(import.meta.dirname, 'rail.js'), 'utf8');
  const text = written
    .replaceAll(/\/\*[\s\S]*?\*\/ ?/g, '')
    .replaceAll(/^\s+/gm, '')
    .replaceAll(/\s(=>|&&|\|\||===|!==|[?:=<>])\s/g, '$1')
    .replaceAll(/,?\n(?=[)}\]])|(?<=[{(;,])\n|\n(?=\.)/g, '')
    .replaceAll(/(?<=[{),]) | (?=[{}])/g, '');
  const hash = createHash('sha384').update(text).digest();
  read = {
    text,
    integrity: `sha384-${hash.toString('base64')}`,
    path: `/rail-${hash.toString('hex').slice(0, 12)}.js`,
  };
  return read;
}

/** The script element of a key: from the service itself, until a reverse proxy of the website serves it. */
export function snippetOf(base_url: string, key: string, { url_params }: Pick<Program, 'url_params'>): string {
  const params =
    url_params.join() === usual_params.join() ? '' : ` data-params="${url_params.map(encodeURIComponent).join(' ')}"`;
  return `<script async src="${base_url}/rail.js" data-key="${key}"${params}></script>`;
}
