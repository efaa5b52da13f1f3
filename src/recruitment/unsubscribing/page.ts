/** The page that asks before it unsubscribes, in six languages. */
import { createHash } from 'node:crypto';

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

/** The texts of the unsubscribe page in the languages of outreach. `{from}` is whom the emails come from. */
interface Words {
  /** Heading and button. */
  unsubscribe: string;
  ask: string;
  is_done: string;
  done: string;
  /** `{sender}` is the name of a company. */
  from: string;
  from_unknown: string;
  not_found: string;
  not_found_doc: string;
}

const words = {
  en: {
    unsubscribe: 'Unsubscribe',
    ask: 'Do you want to stop receiving emails {from}?',
    is_done: 'You are unsubscribed',
    done: 'You will receive no more emails {from}.',
    from: 'from {sender}',
    from_unknown: 'from this sender',
    not_found: 'Link not found',
    not_found_doc:
      'This link is not valid. Check that you copied it completely, or reply to the email and ask to be unsubscribed.',
  },
  de: {
    unsubscribe: 'Abmelden',
    ask: 'Möchten Sie keine E-Mails mehr {from} erhalten?',
    is_done: 'Sie sind abgemeldet',
    done: 'Sie erhalten keine E-Mails mehr {from}.',
    from: 'von {sender}',
    from_unknown: 'von diesem Absender',
    not_found: 'Link nicht gefunden',
    not_found_doc:
      'Dieser Link ist ungültig. Prüfen Sie, ob Sie ihn vollständig kopiert haben, oder antworten Sie auf die E-Mail und bitten Sie um Abmeldung.',
  },
  fr: {
    unsubscribe: 'Se désinscrire',
    ask: 'Souhaitez-vous ne plus recevoir d’e-mails {from} ?',
    is_done: 'Désinscription confirmée',
    done: 'Vous ne recevrez plus d’e-mails {from}.',
    from: 'de la part de {sender}',
    from_unknown: 'de la part de cet expéditeur',
    not_found: 'Lien introuvable',
    not_found_doc:
      'Ce lien n’est pas valide. Vérifiez que vous l’avez copié en entier, ou répondez à l’e-mail en demandant votre désinscription.',
  },
  es: {
    unsubscribe: 'Darse de baja',
    ask: '¿Desea dejar de recibir correos electrónicos {from}?',
    is_done: 'Baja confirmada',
    done: 'No recibirá más correos electrónicos {from}.',
    from: 'de {sender}',
    from_unknown: 'de este remitente',
    not_found: 'Enlace no encontrado',
    not_found_doc:
      'Este enlace no es válido. Compruebe que lo ha copiado completo o responda al correo y solicite la baja.',
  },
  it: {
    unsubscribe: 'Annulla l’iscrizione',
    ask: 'Desidera non ricevere più e-mail {from}?',
    is_done: 'Iscrizione annullata',
    done: 'Non riceverà più e-mail {from}.',
    from: 'da {sender}',
    from_unknown: 'da questo mittente',
    not_found: 'Link non trovato',
    not_found_doc:
      'Questo link non è valido. Verifichi di averlo copiato per intero oppure risponda all’e-mail chiedendo di annullare l’iscrizione.',
  },
  pt: {
    unsubscribe: 'Cancelar a subscrição',
    ask: 'Deseja deixar de receber e-mails {from}?',
    is_done: 'Subscrição cancelada',
    done: 'Não receberá mais e-mails {from}.',
    from: 'de {sender}',
    from_unknown: 'deste remetente',
    not_found: 'Link não encontrado',
    not_found_doc:
      'Este link não é válido. Verifique se o copiou por completo ou responda ao e-mail e peça o cancelamento da subscrição.',
  },
} satisfies Record<string, Words>;

export type Language = keyof typeof words;
const wordsIn = (language: Language): Words => words[language];

const isKnown = (code: string): code is Language => Object.hasOwn(words, code);

/** The prospect's language, where it is known; else the first that the browser asks for and that there is; else English. */
export function languageOf(language_code: string | null, accepted = ''): Language {
  const asked = accepted.split(',', 20).map((part) => part.trim().slice(0, 2).toLowerCase());
  return [language_code?.slice(0, 2).toLowerCase() ?? '', ...asked].find(isKnown) ?? 'en';
}
