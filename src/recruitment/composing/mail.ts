/** The message as it is sent: the same bytes for the same input, since what separates its parts follows from its content. */
import { createHash } from 'node:crypto';
import { type Footer, footerHtml, footerText, webAddress } from './footer.ts';
import { messageIds } from './message_ids.ts';
import { safeHtml } from './safe_html.ts';
import { htmlOfText, oneLine, plainText } from './text.ts';

export interface Mail {
  from: { name: string; email: string };
  /** One address. */
  to: string;
  reply_to: string | null;
  subject: string;
  text: string;
  /** Null: the mail is plain text alone. */
  html: string | null;
  /** The Message-ID, from `messageIdOf`. */
  message_id: string;
  /** As `stepKey` makes it; null for an email of no campaign. */
  step_key?: string | null;
  in_reply_to?: string | null;
  references?: string | null;
  date: Date;
  /** Null for a person's own answer: it has no unsubscribe headers either. */
  footer: Footer | null;
  /** Plain text. */
  signature?: string | null;
}

/**
 * The whole message (RFC 5322) as it is sent: lines end with CRLF and have at most 998 characters. The same input makes the same bytes.
 * @throws TypeError for an address or a Message-ID that could not stand in a header, RangeError for HTML whose end is not shown
 */
export async function composeMail(mail: Mail): Promise<Buffer> {
  const text = textPart(mail).replaceAll('\n', '\r\n');
  const html = mail.html === null ? undefined : htmlPart(mail, mail.html).replaceAll(/\r?\n/g, '\r\n');
  // Loaded by who sends: the API composes nothing until somebody asks for a preview.
  const { default: MailComposer } = await import('nodemailer/lib/mail-composer');
  const composer = new MailComposer({
    from: { name: oneLine(mail.from.name), address: requireAddress(mail.from.email) },
    to: { name: '', address: requireAddress(mail.to) },
    replyTo: mail.reply_to === null ? undefined : { name: '', address: requireAddress(mail.reply_to) },
    subject: oneLine(mail.subject),
    date: mail.date,
    messageId: requireMessageId(mail.message_id),
    inReplyTo: messageIds(mail.in_reply_to ?? '')[0],
    references: messageIds(mail.references ?? '').join(' ') || undefined,
    headers: {
      [id_header]: bareId(mail.message_id),
      ...(mail.step_key ? { [step_header]: mail.step_key } : {}),
      ...(mail.footer ? unsubscribeHeaders(mail.footer) : {}),
    },
    text,
    html,
    baseBoundary: boundaryOf(mail.message_id, text, html),
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return composer.compile().build();
}

function textPart({ text, signature, footer }: Mail): string {
  const signed = plainText(signature ?? '');
  const parts = [plainText(text), signed && `-- \n${signed}`, footer && `---\n${footerText(footer)}`];
  return `${parts.filter((part) => part).join('\n\n')}\n`;
}

/** Gmail hides what follows 102 KB, and the footer comes last. */
const most_html_bytes = 100_000;

function htmlPart({ signature, footer }: Mail, html: string): string {
  const signed = htmlOfText(plainText(signature ?? ''));
  const parts = [
    '<!DOCTYPE html>',
    '<html><head><meta http-equiv="Content-Type" content="text/html; charset=utf-8"></head><body>',
    `<div>${safeHtml(html)}</div>`,
    signed && `<div>${signed}</div>`,
    footer && footerHtml(footer),
    '</body></html>',
  ];
  const document = `${parts.filter((part) => part).join('\n')}\n`;
  if (footer && Buffer.byteLength(document) > most_html_bytes) throw new RangeError('the HTML is too long');
  return document;
}

/** Holds the Message-ID that an email was given: providers write another one, and keep this. */
export const id_header = 'X-Rail-Message';

/** Holds the key of the step that an email is: by it the email is known where the database has forgotten it. */
export const step_header = 'X-Rail-Step';
/** The line of that header, with the key of the step. */
export const step_line = /^X-Rail-Step: ([\w-]{27})$/im;

/** Returns the key of a step of a campaign for a prospect, whichever row it has. It reveals neither of them. */
export const stepKey = (step: { campaign_id: string; prospect_id: string; step_index: number }): string =>
  createHash('sha256')
    .update(JSON.stringify([step.campaign_id, step.prospect_id, step.step_index]))
    .digest('base64url')
    .slice(0, 27);

const bareId = (message_id: string): string => message_id.slice(1, -1);

interface PreparedField {
  prepared: true;
  value: string;
}

/** The headers by which one click unsubscribes (RFC 8058). */
function unsubscribeHeaders({ unsubscribe_url, unsubscribe_mailto }: Footer): Record<string, PreparedField> {
  const url = webAddress(unsubscribe_url);
  if (!url || !/^mailto:[\x21-\x7e]+$/.test(unsubscribe_mailto) || /[<>,]/.test(unsubscribe_mailto))
    throw new TypeError('the unsubscribe addresses are not an https and a mailto URL');
  return {
    'List-Unsubscribe': { prepared: true, value: `<${url}>,\r\n <${unsubscribe_mailto}>` },
    'List-Unsubscribe-Post': { prepared: true, value: 'List-Unsubscribe=One-Click' },
  };
}

/** Follows from the parts, so that no part can hold it. */
const boundaryOf = (message_id: string, ...parts: (string | undefined)[]): string =>
  createHash('sha256')
    .update(JSON.stringify([message_id, ...parts]))
    .digest('hex')
    .slice(0, 32);

const address = /^[^\s<>(),;:"\\[\]@\p{Cc}]{1,64}@[^\s<>(),;:"\\[\]@\p{Cc}]{1,253}$/u;

function requireAddress(text: string): string {
  if (!address.test(text)) throw new TypeError('not an email address');
  return text;
}

function requireMessageId(text: string): string {
  if (messageIds(text)[0] !== text) throw new TypeError('not a Message-ID');
  return text;
}
