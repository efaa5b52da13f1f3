/** The page behind the link of an email: its routes, and what it shows in six languages. `GET` and `HEAD` show it and change nothing; any `POST` unsubscribes. */

import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { withinDeadline } from '../../core/http/deadline.ts';
import { type Store, type Tx, transaction } from '../../core/postgres/transaction.ts';
import type { Services } from '../../core/resource/services.ts';
import { type Linked, readLink, readUnsubscribeToken, unsubscribe_path } from './link.ts';
import { unsubscribe } from './unsubscribe.ts';

/** A body says nothing: one-click has one field, always the same. */
const most_bytes = 65_536;
type Request = FastifyRequest<{ Params: { token: string } }>;

/**
 * `POST /recruitment/u/{token}` unsubscribes, by one click of a mail program (RFC 8058) or by the button of the page; it needs no key. `GET` and
 * `HEAD` answer with the page, and change nothing: programs that look at links before people do unsubscribe nobody.
 */
export function mountUnsubscribing(app: FastifyInstance, store: Store, services: Services): void {
  app.register(async (scope) => {
    ignoreBodies(scope);
    const route = { url: `${unsubscribe_path}/:token`, config: { logs_route: true } };
    scope.route<{ Params: { token: string } }>({
      ...{ ...route, method: ['GET', 'HEAD'] },
      handler: async (request, reply) => {
        const found = await linked(store, services, request);
        return show(request, reply, found?.is_unsubscribed ? donePage : askingPage, found);
      },
    });
    scope.route<{ Params: { token: string } }>({
      ...{ ...route, method: 'POST', bodyLimit: most_bytes },
      handler: async (request, reply) =>
        show(
          request,
          reply,
          donePage,
          await linked(store, services, request, (tx, { message_id }) =>
            unsubscribe(tx, services.vault, { id: message_id }),
          ),
        ),
    });
  });
}

/** Multipart, urlencoded, none: whatever came is read and dropped. */
function ignoreBodies(scope: FastifyInstance): void {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, _body, done) => done(null, undefined));
}

/** Reads what the token of a request names, and acts on it in the same transaction. */
async function linked(
  store: Store,
  { vault }: Services,
  request: Request,
  act: (tx: Tx, found: Linked) => Promise<void> = async () => undefined,
): Promise<Linked | undefined> {
  const token = readUnsubscribeToken(request.params.token);
  if (!token) return undefined;
  const { organization_id } = token;
  return withinDeadline(request, 'unsubscribing', (asked) =>
    transaction(store, { organization_id, request_id: request.id, asked }, async (tx) => {
      const found = await readLink(tx, vault, token);
      if (found) await act(tx, found);
      return found;
    }),
  );
}

function show(
  { headers }: Request,
  reply: FastifyReply,
  pageOf: typeof askingPage,
  found: Linked | undefined,
): FastifyReply {
  const language = languageOf(found?.language_code ?? null, headers['accept-language']);
  reply.headers(page_headers);
  return found ? reply.code(200).send(pageOf(language, found.sender)) : reply.code(404).send(notFoundPage(language));
}

const style = `
body { max-width: 34rem; margin: 4rem auto; padding: 0 1rem; font: 1.125rem/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff }
h1 { font-size: 1.5rem; line-height: 1.25 }
p { overflow-wrap: anywhere }
button { padding: 0.75rem 1.5rem; border: 0; border-radius: 0.25rem; font: inherit; color: #fff; background: #1f4fd8; cursor: pointer }
button:focus-visible { outline: 3px solid #1a1a1a; outline-offset: 3px }
`;

/** The page has no script and loads nothing. Its form posts to its own address. */
const page_headers = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': `default-src 'none'; style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
  'Referrer-Policy': 'no-referrer',
  'X-Robots-Tag': 'noindex, nofollow',
};

/** Asks whether to unsubscribe. @param sender who sends the emails; null: not known any more */
function askingPage(language: Language, sender: string | null): string {
  const { unsubscribe, ask } = wordsIn(language);
  const button = `<form method="post">
<input type="hidden" name="List-Unsubscribe" value="One-Click">
<button type="submit">${escaped(unsubscribe)}</button>
</form>`;
  return page(language, unsubscribe, withSender(language, ask, sender), button);
}

function donePage(language: Language, sender: string | null): string {
  const { is_done, done } = wordsIn(language);
  return page(language, is_done, withSender(language, done, sender));
}

function notFoundPage(language: Language): string {
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

type Language = keyof typeof words;
const wordsIn = (language: Language): Words => words[language];

const isKnown = (code: string): code is Language => Object.hasOwn(words, code);

/** The prospect's language, where it is known; else the first that the browser asks for and that there is; else English. */
function languageOf(language_code: string | null, accepted = ''): Language {
  const asked = accepted.split(',', 20).map((part) => part.trim().slice(0, 2).toLowerCase());
  return [language_code?.slice(0, 2).toLowerCase() ?? '', ...asked].find(isKnown) ?? 'en';
}
