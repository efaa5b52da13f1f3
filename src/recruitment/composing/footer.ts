import { escapeHtml, oneLine } from './text.ts';

/** The end of every mail that nobody asked for. */
export interface Footer {
  unsubscribe_url: string;
  /** A mailto: URL, as `unsubscribeMailto` makes it. */
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

/** The mailto: URL of List-Unsubscribe, whose mail names the message in its subject. */
export const unsubscribeMailto = (address: string, message_id: string): string =>
  `mailto:${encodeURIComponent(address).replace('%40', '@')}?subject=unsubscribe%20${encodeURIComponent(message_id)}`;

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
export function webAddress(url: string): string | null {
  const parsed = URL.parse(url);
  if (!parsed || !/^https?:$/.test(parsed.protocol)) return null;
  return parsed.href;
}

export const footerText = (footer: Footer): string =>
  linesOf(footer)
    .map(([sentence, text]) => `${sentence} ${text}`)
    .join('\n');

/** Writes the footer in a table of its own, whose style names all that could make it unreadable. */
export function footerHtml(footer: Footer): string {
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
