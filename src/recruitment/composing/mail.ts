/** The message as it is sent, with its footer: the same bytes for the same input, since what separates its parts follows from its content. */
import { createHash } from 'node:crypto';
import { messageIds } from './message_ids.ts';
import { escapeHtml, htmlOfText, oneLine, plainText, safeHtml } from './safe_text.ts';

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

/** The end of every mail that nobody asked for. */
export interface Footer {
  unsubscribe_url: string;
  /** A mailto: URL, as `unsubscribing/link.ts` makes it. */
  unsubscribe_mailto: string;
  sender_company: string;
  /** One line or more. */
  postal_address: string;
  privacy_url: string;
  /** The page that the address was found on; null where it came another way. */
  found_at_url: string | null;
  /** ISO 639-1. */
  language: string;
}

interface Sentences {
  sent_by: string;
  found_at: string;
  unsubscribe: string;
  privacy: string;
}

const sentences: Readonly<Record<string, Sentences>> = {
  en: {
    sent_by: 'Sent by:',
    found_at: 'We found your email address here:',
    unsubscribe: 'Unsubscribe to stop receiving emails from us:',
    privacy: 'Privacy policy:',
  },
  de: {
    sent_by: 'Absender:',
    found_at: 'Ihre E-Mail-Adresse haben wir hier gefunden:',
    unsubscribe: 'Abmelden, um keine E-Mails mehr von uns zu erhalten:',
    privacy: 'Datenschutzerklärung:',
  },
  fr: {
    sent_by: 'Expéditeur :',
    found_at: 'Nous avons trouvé votre adresse e-mail ici :',
    unsubscribe: 'Se désinscrire pour ne plus recevoir d’e-mails de notre part :',
    privacy: 'Politique de confidentialité :',
  },
  es: {
    sent_by: 'Remitente:',
    found_at: 'Hemos encontrado su dirección de correo electrónico aquí:',
    unsubscribe: 'Darse de baja para no recibir más correos nuestros:',
    privacy: 'Política de privacidad:',
  },
  it: {
    sent_by: 'Mittente:',
    found_at: 'Abbiamo trovato il Suo indirizzo e-mail qui:',
    unsubscribe: 'Annulla l’iscrizione per non ricevere più e-mail da noi:',
    privacy: 'Informativa sulla privacy:',
  },
  pt: {
    sent_by: 'Remetente:',
    found_at: 'O seu endereço de e-mail foi encontrado aqui:',
    unsubscribe: 'Cancelar a subscrição para deixar de receber os nossos e-mails:',
    privacy: 'Política de privacidade:',
  },
};

/** A sentence and what it leads to: a text, or the address of a page. */
type Line = [sentence: string, text: string, url: string | null];

function linesOf(footer: Footer): Line[] {
  const said = sentences[footer.language.slice(0, 2).toLowerCase()] ?? (sentences.en as Sentences);
  const address = footer.postal_address
    .split(/[\r\n]+/)
    .map((line) => line.trim())
    .filter(Boolean)
    .join(', ');
  return [
    [said.sent_by, oneLine(`${footer.sender_company}, ${address}`), null],
    ...(footer.found_at_url === null ? [] : [pageLine(said.found_at, footer.found_at_url)]),
    pageLine(said.privacy, footer.privacy_url),
    pageLine(said.unsubscribe, footer.unsubscribe_url),
  ];
}

function pageLine(sentence: string, url: string): Line {
  const page = webAddress(url);
  return [sentence, page ?? oneLine(url), page];
}

/** A web address without anything that would end it in a header or in HTML; null for what is none. */
function webAddress(url: string): string | null {
  const parsed = URL.parse(url);
  if (!parsed || !/^https?:$/.test(parsed.protocol)) return null;
  return parsed.href;
}

const footerText = (footer: Footer): string =>
  linesOf(footer)
    .map(([sentence, text]) => `${sentence} ${text}`)
    .join('\n');

/** Writes the footer in a table of its own, whose style names all that could make it unreadable. */
function footerHtml(footer: Footer): string {
  const lines = linesOf(footer).map(
    ([sentence, text, url]) => `${escapeHtml(sentence)} ${url ? linkTo(url) : escapeHtml(text)}`,
  );
  return `<table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0" style="${table_style}"><tr><td style="${cell_style}">${lines.join('<br>')}</td></tr></table>`;
}

const table_style = 'clear:both;width:100%;margin:24px 0 0 0;border-collapse:collapse';
const cell_style =
  'padding:12px 0 0 0;border-top:1px solid #cccccc;font-family:Arial,sans-serif;font-size:12px;font-weight:normal;font-style:normal;line-height:1.5;text-align:left;color:#555555;background-color:#ffffff';
const linkTo = (url: string): string =>
  `<a href="${escapeHtml(url)}" style="color:#555555;text-decoration:underline">${escapeHtml(url)}</a>`;
