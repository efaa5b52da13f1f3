/** The routes of the portal: a partner signs in by a link, and sees what is theirs. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { problemOf } from '../core/http/error_reply.ts';
import type { Store } from '../core/postgres/transaction.ts';
import type { Operation } from '../core/resource/operation.ts';
import type { Services } from '../core/resource/services.ts';
import { notFound } from '../core/values/problem.ts';
import { html } from '../pages/html.ts';
import { notice, sendHtml } from '../pages/layout.ts';
import { readSessions, SignInFirst, takeForms } from '../pages/person.ts';
import { takeFiles } from '../pages/sent_files.ts';
import { mountSignIn } from '../pages/sign_in.ts';
import { redeemMagicLink } from '../program/partners/magic_link.ts';
import { mountEarnings } from './earnings.ts';
import { textOf } from './fields.ts';
import { sendPortal } from './frame.ts';
import { homePage } from './home.ts';
import { mountJoin } from './join.ts';
import { mountLinks } from './links.ts';
import { mountMissingSale } from './missing_sale.ts';
import { portalOperations } from './operations.ts';
import { mountPayoutMethod } from './payout_method.ts';
import { mountPostbacks } from './postbacks.ts';
import { mountSettings } from './settings.ts';
import { textsIn } from './texts/languages.ts';
import { languageOf, readPage, type Serving, type Visiting, visitOf, WaitFirst } from './visit.ts';

export function mountPortal(app: FastifyInstance, store: Store, services: Services, operations: Operation[]): void {
  const serving = {
    ...{ store, services },
    operations: new Map([...operations, ...portalOperations].map((one) => [one.name, one])),
  };
  const visiting: Visiting = (request) => visitOf(request, serving);
  void app.register(async (scope) => {
    takeForms(scope, services.base_url);
    takeFiles(scope);
    readSessions(scope, 'portal', store);
    scope.setErrorHandler((error, request, reply) => failed(error, request, reply));
    mountSignIn(scope, store, {
      area: 'portal',
      textsFor: (request) => {
        const language = languageOf(request);
        const { sign_in, general } = textsIn(language);
        return { language, skip: general.skip, ...sign_in };
      },
      async redeem(tx, token) {
        const found = await redeemMagicLink(tx, token);
        return found && { organization_id: found.organization_id, person: { partner_id: found.partner_id } };
      },
      sends_mail: services.mailer !== undefined,
      task: 'program/mail_magic_links',
    });
    mountPages(scope, visiting, serving);
  });
}

function mountPages(scope: FastifyInstance, visiting: Visiting, serving: Serving): void {
  scope.get('/portal', async (request, reply) => {
    const { me, ...page } = await homePage(visiting(request));
    return sendPortal(reply, me, page);
  });
  mountLinks(scope, visiting);
  mountEarnings(scope, visiting);
  mountPayoutMethod(scope, visiting);
  mountPostbacks(scope, visiting);
  mountSettings(scope, visiting);
  mountMissingSale(scope, visiting);
  mountJoin(scope, serving);
  for (const path of ['/portal/*', '/join', '/join/*'])
    scope.get(path, async (request) => {
      if (request.session && path === '/portal/*') await readPage(visiting(request), async () => ({}));
      throw notFound('page', request.url);
    });
}

function failed(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  if (error instanceof WaitFirst) return reply.redirect('/portal', 303);
  if (error instanceof SignInFirst)
    return reply.redirect(request.session ? '/portal/sign_in?closed' : '/portal/sign_in', 303);
  const problem = problemOf(error, request);
  const language = languageOf(request);
  const { general } = textsIn(language);
  if (problem.details.headers) reply.headers(problem.details.headers);
  return sendHtml(reply, problem.status, {
    language,
    title: problem.status === 404 ? general.not_found : general.failed,
    of: general.portal,
    skip: general.skip,
    content: html`${notice(textOf(problem, general), true)}
<p><a href="/portal">${general.back}</a></p>`,
  });
}
