import { createHash } from 'node:crypto';
import { type Language, wordsIn } from './words.ts';

const style = `
body { max-width: 34rem; margin: 4rem auto; padding: 0 1rem; font: 1.125rem/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff }
h1 { font-size: 1.5rem; line-height: 1.25 }
p { overflow-wrap: anywhere }
button { padding: 0.75rem 1.5rem; border: 0; border-radius: 0.25rem; font: inherit; color: #fff; background: #1f4fd8; cursor: pointer }
button:focus-visible { outline: 3px solid #1a1a1a; outline-offset: 3px }
`;

/** The page has no script and loads nothing. Its form posts to its own address. */
export const page_headers = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': `default-src 'none'; style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
  'Referrer-Policy': 'no-referrer',
  'X-Robots-Tag': 'noindex, nofollow',
};

/** Asks whether to unsubscribe. @param sender who sends the emails; null: not known any more */
export function askingPage(language: Language, sender: string | null): string {
  const { unsubscribe, ask } = wordsIn(language);
  const button = `<form method="post">
<input type="hidden" name="List-Unsubscribe" value="One-Click">
<button type="submit">${escaped(unsubscribe)}</button>
</form>`;
  return page(language, unsubscribe, withSender(language, ask, sender), button);
}

export function donePage(language: Language, sender: string | null): string {
  const { is_done, done } = wordsIn(language);
  return page(language, is_done, withSender(language, done, sender));
}

export function notFoundPage(language: Language): string {
  const { not_found, not_found_doc } = wordsIn(language);
  return page(language, not_found, not_found_doc);
}

/** The sentence ends with one full stop, also after "Acme Inc.". */
function withSender(language: Language, sentence: string, sender: string | null): string {
  const { from, from_unknown } = wordsIn(language);
  const named = sender === null ? from_unknown : from.replace('{sender}', () => sender);
  return sentence.replace('{from}', () => named).replace(/\.\.$/, '.');
}

const page = (language: Language, title: string, text: string, form = ''): string => `<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<title>${escaped(title)}</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>${escaped(title)}</h1>
<p>${escaped(text)}</p>
${form}
</main>
</body>
</html>
`;

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const escaped = (text: string): string => text.replace(/[&<>"']/g, (sign) => entities[sign] as string);
