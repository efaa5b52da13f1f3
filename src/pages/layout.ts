/** The frame of every page: what it loads, its policy, and its head. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { page, sendPage } from '../core/description/description.ts';
import { type Html, html } from './html.ts';

/** Everything comes from the service itself, and no page can be framed. */
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

export interface Frame {
  /** ISO 639-1. */
  language?: string;
  title: string;
  /** The name beside the title in the window's name: that of the program, or of the service. */
  of: string;
  /** HTML of the bar above. */
  top?: Html;
  /** HTML of the menu. */
  menu?: Html;
  content: Html;
  /** `Skip to the content`, in the page's language. */
  skip?: string;
}

const asset = async (name: string, type: string) => {
  const made = page(await readFile(join(import.meta.dirname, name), 'utf8'));
  const [base, extension] = name.split('.') as [string, string];
  return { made, type, path: `/pages/${base}-${made.hash.slice(0, 16)}.${extension}` };
};
const [style, script] = await Promise.all([
  asset('style.css', 'text/css; charset=utf-8'),
  asset('enhance.js', 'text/javascript; charset=utf-8'),
]);

/** Serves what all pages load, at addresses that hold the hash of the file. */
export function mountAssets(app: FastifyInstance): void {
  for (const { made, type, path } of [style, script]) {
    app.get(path, async (request, reply) =>
      sendPage(request, reply.header('Cache-Control', 'public, max-age=31536000, immutable'), type, made),
    );
  }
}

/** Sends a page. It is for one person: nothing may keep it. */
export const sendHtml = (reply: FastifyReply, status: number, frame: Frame): FastifyReply =>
  reply
    .code(status)
    .headers({
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': policy,
      'Referrer-Policy': 'same-origin',
      'X-Robots-Tag': 'noindex, nofollow',
      'Cross-Origin-Opener-Policy': 'same-origin',
    })
    .serializer(String)
    .send(document(frame).text);

const document = ({ language = 'en', title, of, top, menu, content, skip = 'Skip to the content' }: Frame): Html =>
  html`<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · ${of}</title>
<link rel="stylesheet" href="${style.path}"><script src="${script.path}" defer></script>
</head>
<body>
<a class="skip" href="#content">${skip}</a>
${top}
<div class="frame${!menu && ' plain'}">
${menu}
<main id="content">
<h1>${title}</h1>
${content}
</main>
</div>
</body>
</html>
`;

/** A small note above the content: what was done, or what went wrong. */
export const notice = (text: unknown, is_bad = false): Html =>
  html`<p class="notice${is_bad && ' bad'}" role="${is_bad ? 'alert' : 'status'}">${text}</p>`;
