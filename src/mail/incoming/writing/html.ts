import { compile, type HtmlToTextOptions } from 'html-to-text';
import { boundedHtml } from './bounded_html.ts';

const separator = '-----Original Message-----';

/** Containers that mail programs put around what they quote, without marking each line. */
const containers = [
  'div.gmail_quote',
  'div.gmail_quote_container',
  'div.yahoo_quoted',
  'div.gmail_extra_quote',
  'div.protonmail_quote',
  'blockquote.tutanota_quote',
  'div.zmail_extra',
  'div.moz-forward-container',
  'div.OutlookMessageHeader',
  'div.moz-email-headers-table',
  'div#divRplyFwdMsg',
  'div#appendonsend',
  'hr#stopSpelling',
  'div#OLK_SRC_BODY_SECTION',
  'span#OLK_SRC_BODY_SECTION',
  'div#mail-editor-reference-message-container',
  'div#reply-intro',
  'div.ms-outlook-mobile-reference-message',
  'div#ms-outlook-mobile-body-separator-line',
  'div.front-blockquote',
  'div[name=messageReplySection]',
  'div[name=quote]',
  'div.WebkitMailQuote',
];
/** Lines above a quote that say who wrote it when, in whatever language. */
const attributions = ['div.gmail_attr', 'div.moz-cite-prefix'];
const signatures = [
  'div.gmail_signature',
  'span.gmail_signature_prefix',
  'div.moz-signature',
  'pre.moz-signature',
  'div#Signature',
  'div#signature',
  'div#ms-outlook-mobile-signature',
  'div.protonmail_signature_block',
  'div[name=messageSignatureSection]',
];

/** Around the words of a link; later one at the end of a line that consists of links. No text has these signs: Unicode keeps them free. */
const [link_begins, link_ends] = ['\uFDD0', '\uFDD1'];

type Formatter = NonNullable<HtmlToTextOptions['formatters']>[string];

/** A line that the reading of text knows, then what the container holds. */
const quoted: Formatter = (element, walk, builder) => {
  builder.openBlock({ leadingLineBreaks: 2 });
  builder.addInline(separator);
  builder.closeBlock({ trailingLineBreaks: 2 });
  walk(element.children, builder);
};
const attribution: Formatter = (element, _walk, builder) => quoted(element, () => {}, builder, {});

/** Outlook on Windows draws a line above the header of what it quotes, and gives the container no name. */
const division: Formatter = (element, walk, builder) => {
  const style = String(element.attribs?.style ?? '');
  const is_quote =
    /border(?:-top)?\s*:\s*(?:none;\s*border-top\s*:\s*)?solid\s+#(?:E1E1E1|B5C4DF|CCCCCC)/i.test(style) ||
    /border-top\s*:\s*solid\s+#/i.test(style);
  if (is_quote) quoted(element, walk, builder, {});
  else {
    builder.openBlock({ leadingLineBreaks: 1 });
    walk(element.children, builder);
    builder.closeBlock({ trailingLineBreaks: 1 });
  }
};

/** An anchor that only names a place, as Word puts around typed text, leads nowhere. */
const link: Formatter = (element, walk, builder) => {
  const leads = /^(?:https?|mailto):/i.test(String(element.attribs?.href ?? '').trim());
  if (leads) builder.addInline(link_begins);
  walk(element.children, builder);
  if (leads) builder.addInline(link_ends);
};

const read = compile({
  wordwrap: false,
  // The whole document: what is quoted may be a document with a body of its own, and what answers it stand outside of any.
  baseElements: { selectors: [], returnDomByDefault: true },
  limits: { maxInputLength: 1 << 18, maxDepth: 100, maxChildNodes: 20_000, ellipsis: '' },
  formatters: { quoted, attribution, division, link },
  selectors: [
    { selector: 'a', format: 'link' },
    { selector: 'img', format: 'skip' },
    { selector: 'hr', options: { length: 20 } },
    { selector: 'style', format: 'skip' },
    { selector: 'script', format: 'skip' },
    { selector: 'title', format: 'skip' },
    { selector: 'head', format: 'skip' },
    { selector: 'p', options: { leadingLineBreaks: 2, trailingLineBreaks: 2 } },
    { selector: 'p.MsoNormal', format: 'paragraph', options: { leadingLineBreaks: 1, trailingLineBreaks: 1 } },
    { selector: 'div', format: 'division' },
    ...['h1', 'h2', 'h3', 'h4', 'h5', 'h6'].map((selector) => ({ selector, options: { uppercase: false } })),
    { selector: 'blockquote', options: { trimEmptyLines: false } },
    ...containers.map((selector) => ({ selector, format: 'quoted' })),
    ...attributions.map((selector) => ({ selector, format: 'attribution' })),
    ...signatures.map((selector) => ({ selector, format: 'skip' })),
  ],
});

/**
 * The text of an HTML mail, with quotes as `> ` lines or below a separator, so that they are cut as those of text are. A line of nothing but links ends
 * with a sign that `isLinked` knows.
 */
export function readHtml(html: string): string {
  const bounded = boundedHtml(html);
  try {
    return markLinks(read(bounded));
  } catch {
    return bounded.replace(/<[^<>]{0,2000}>/g, ' ');
  }
}

/** Returns whether a line that `readHtml` gave consists of links. */
export const isLinked = (line: string): boolean => line.endsWith(link_ends);
export const withoutMark = (line: string): string => (isLinked(line) ? line.slice(0, -1) : line);

/** Names of sites and addresses are read as text: a person who writes them says something. */
function markLinks(text: string): string {
  let within = false;
  const lines = text.split('\n').map((line) => {
    let beside = '';
    let in_links = '';
    for (const part of line.split(/([\uFDD0\uFDD1])/)) {
      if (part === link_begins || part === link_ends) within = part === link_begins;
      else if (within) in_links += part;
      else beside += part;
    }
    const is_linked = /\p{L}/u.test(in_links) && !/[@]|:\/\/|\w\.\w/.test(in_links) && !/[\p{L}\p{N}]/u.test(beside);
    return `${line.replace(/[\uFDD0\uFDD1]/g, '').trimEnd()}${is_linked ? link_ends : ''}`;
  });
  return lines.join('\n');
}

/** The lines of an HTML mail that are links wherever they stand. */
export function linksOf(html: string): Set<string> {
  const lines = readHtml(html).split('\n');
  const written = new Set(lines.filter((line) => !isLinked(line)));
  const linked = lines.filter(isLinked).map(withoutMark);
  return new Set(linked.filter((line) => !written.has(line)));
}
