import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { withinDeadline } from '../../core/http/deadline.ts';
import { type Store, type Tx, transaction } from '../../core/postgres/transaction.ts';
import type { Services } from '../../core/resource/services.ts';
import { type Linked, readLink, readUnsubscribeToken, unsubscribe_path } from './link.ts';
import { askingPage, donePage, languageOf, notFoundPage, page_headers } from './page.ts';
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
