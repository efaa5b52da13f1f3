import { compile, type HtmlToTextOptions } from 'html-to-text';
import { boundedHtml } from './bounded_html.ts';

const separator = '-----Original Message-----';

/** Containers that mail programs put around what they quote, without marking each line. */
const containers = [
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

type Formatter = NonNullable<HtmlToTextOptions['formatters']>[string];

/** A line that the reading of text knows, then what the container holds. */
const quoted: Formatter = (element, walk, builder) => {
  builder.openBlock({ leadingLineBreaks: 2 });
  builder.addInline(separator);
  builder.closeBlock({ trailingLineBreaks: 2 });
  walk(element.children, builder);
};

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

const read = compile({
  wordwrap: false,
  // The whole document: what is quoted may be a document with a body of its own, and what answers it stand outside of any.
  baseElements: { selectors: [], returnDomByDefault: true },
  limits: { maxInputLength: 1 << 18, maxDepth: 100, maxChildNodes: 20_000, ellipsis: '' },
  formatters: { quoted, division },
  selectors: [
    { selector: 'a', options: { ignoreHref: true } },
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
    ...signatures.map((selector) => ({ selector, format: 'skip' })),
  ],
});

/** The text of an HTML mail, with quotes as `> ` lines or below a separator, so that they are cut as those of text are. */
export function readHtml(html: string): string {
  const bounded = boundedHtml(html);
  try {
    return read(bounded);
  } catch {
    return bounded.replace(/<[^<>]{0,2000}>/g, ' ');
  }
}
