/** The routes of the dashboard. Every page needs a session; a list, a record, a view and a form are read off the operations. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { redeemSignInLink } from '../core/access/session.ts';
import { problemOf } from '../core/http/error_reply.ts';
import type { Store } from '../core/postgres/transaction.ts';
import type { Operation } from '../core/resource/operation.ts';
import type { Services } from '../core/resource/services.ts';
import { notFound, Problem } from '../core/values/problem.ts';
import { html } from '../pages/html.ts';
import { notice, sendHtml } from '../pages/layout.ts';
import { readSessions, SignInFirst, takeForms } from '../pages/person.ts';
import { type Reply, sendFile } from '../pages/run.ts';
import { formOf, mountSignIn, type SignInTexts } from '../pages/sign_in.ts';
import { mountAccount } from './account.ts';
import { mountBankReport } from './bank_report.ts';
import { boardPage } from './board.ts';
import { campaignContent } from './campaign.ts';
import { catalogOf, paramsOf, prefixOf } from './catalog.ts';
import { requireConfirmed } from './form_page.ts';
import { type DashboardPage, sendDashboard, service } from './frame.ts';
import { homePage } from './home.ts';
import { inputOf, operationOf } from './input.ts';
import { integrationsPage } from './integrations.ts';
import { expansionOf, queryOf } from './list_page.ts';
import { maturingPage } from './maturing.ts';
import { mountForms } from './mount_forms.ts';
import { titleOf, withNames } from './named.ts';
import { changeService, showService } from './operator.ts';
import { partnerContent } from './partner.ts';
import { batchContent, payoutContent } from './payout_batch.ts';
import { payoutRunPage } from './payout_run.ts';
import { doneNotice, type RecordPage, recordContent } from './record_page.ts';
import { relatedContent } from './related.ts';
import { reportsPage } from './reports.ts';
import { reviewPage } from './review.ts';
import { flagContent, riskPage } from './risk.ts';
import { isOperator, needsCode } from './roles.ts';
import { searched } from './search.ts';
import { see } from './see.ts';
import { settingsPage } from './settings.ts';
import { sendTaxForm } from './tax_form.ts';
import { inboxPage, threadContent } from './threads.ts';
import { hrefOf } from './values.ts';
import { type DashboardVisit, program_cookie, readPage, type Visiting, visitOf } from './visit.ts';
import { deliveryContent, endpointContent, webhooksPage } from './webhooks.ts';
import { commissionContent, saleContent } from './why.ts';

export function mountDashboard(app: FastifyInstance, store: Store, services: Services, operations: Operation[]): void {
  const catalog = catalogOf(operations);
  const serving = { store, services, catalog };
  const visiting: Visiting = (request) => {
    if (!request.session) throw new SignInFirst();
    return visitOf(request, request.session, serving);
  };
  void app.register(async (scope) => {
    takeForms(scope, services.base_url);
    readSessions(scope, 'dashboard', store);
    scope.setErrorHandler((error, request, reply) => failed(error, request, reply, serving));
    mountSignIn(scope, store, {
      area: 'dashboard',
      textsFor: () => sign_in_texts,
      async redeem(tx, token) {
        const found = await redeemSignInLink(tx, token);
        return found && { organization_id: found.organization_id, person: { user_id: found.user_id } };
      },
      sends_mail: services.mailer !== undefined,
      task: 'core/mail_sign_in_links',
    });
    mountAccount(scope, visiting);
    mountReads(scope, visiting);
    mountForms(scope, visiting);
    mountBankReport(scope, visiting);
    mountService(scope, visiting);
  });
}

const sign_in_texts: SignInTexts = {
  language: 'en',
  service: 'Rail',
  title: 'Sign in to the dashboard',
  press: 'Press the button to sign in. The link works once.',
  button: 'Sign in',
  ask: 'Type your email address. If it belongs to a person of an organization, we send a link to sign in, which is valid for 15 minutes.',
  email: 'Email',
  send: 'Send me a link',
  sent: 'If the address belongs to a person of an organization, a link is on its way. Look in your inbox, and in the folder for spam.',
  no_mail:
    'This service sends no email. Its operator makes a link to sign in with `npx --no rail user sign-in`, and sends email once SMTP_URL is set.',
  expired: 'This link was used, has expired, or is not complete. Ask for another one.',
  invalid_email: 'Type an email address, such as ada@example.com.',
  signed_out: 'You are signed out.',
};

function failed(error: unknown, request: FastifyRequest, reply: FastifyReply, serving: Parameters<typeof visitOf>[2]) {
  if (error instanceof SignInFirst) return reply.redirect('/dashboard/sign_in', 303);
  const problem = problemOf(error, request);
  const title = problem.status === 404 ? 'Not found' : problem.status === 403 ? 'Not allowed' : 'This did not work';
  const content = html`${notice(problem.message, true)}<p><a href="/dashboard">Home</a></p>`;
  if (problem.details.headers) reply.headers(problem.details.headers);
  if (request.session)
    return sendDashboard(reply, visitOf(request, request.session, serving), { title, content }, problem.status);
  return sendHtml(reply, problem.status, { title, of: service, content });
}

/** The pages that are no reading of one operation. */
const by_hand: Record<string, (visit: DashboardVisit) => Promise<DashboardPage>> = {
  review: reviewPage,
  reports: reportsPage,
  board: boardPage,
  integrations: integrationsPage,
  payout_run: payoutRunPage,
  risk: riskPage,
  maturing: maturingPage,
  inbox: inboxPage,
  webhooks: webhooksPage,
  settings: settingsPage,
};

/** Records whose page brings more together than their fields and lists. */
const records_by_hand: Record<string, RecordPage> = {
  campaigns: campaignContent,
  commissions: commissionContent,
  partners: partnerContent,
  payout_batches: batchContent,
  payouts: payoutContent,
  risk_flags: flagContent,
  sales: saleContent,
  threads: threadContent,
  webhook_deliveries: deliveryContent,
  webhook_endpoints: endpointContent,
  recruitment_webhook_deliveries: deliveryContent,
  recruitment_webhook_endpoints: endpointContent,
};

function mountReads(app: FastifyInstance, visiting: Visiting): void {
  app.get('/dashboard', async (request, reply) => {
    const visit = visiting(request);
    return sendDashboard(reply, visit, { ...(await homePage(visit)), at: '' });
  });

  for (const [path, make] of Object.entries(by_hand)) {
    app.get(`/dashboard/${path}`, async (request, reply) => {
      const visit = visiting(request);
      const page = await make(visit);
      return sendDashboard(reply, visit, { ...page, content: html`${doneNotice(visit)}${page.content}`, at: path });
    });
  }

  app.get('/dashboard/tax_form', async (request, reply) => sendTaxForm(reply, visiting(request)));

  app.get('/dashboard/search', async (request, reply) => {
    const visit = visiting(request);
    const { q = '' } = queryOf(request.query);
    const href = hrefOf(visit.catalog, q.trim());
    return href ? reply.redirect(href, 303) : sendDashboard(reply, visit, await searched(visit, q.trim()));
  });

  app.post('/dashboard/program', async (request, reply) => {
    visiting(request);
    const program_id = (formOf(request).get('program_id') ?? '').replaceAll(/[^\w]/g, '');
    reply.header(
      'Set-Cookie',
      `${program_cookie}=${program_id}; Path=/dashboard; HttpOnly; Secure; SameSite=Lax; Max-Age=31536000`,
    );
    return reply.redirect('/dashboard', 303);
  });

  app.get('/dashboard/:tag', async (request, reply) => {
    const visit = visiting(request);
    const { tag } = request.params as { tag: string };
    const name = visit.catalog.operations.has(`${tag}.list`) ? `${tag}.list` : `${tag}.get`;
    return see(reply, visit, operationOf(visit, name, true));
  });

  app.get('/dashboard/see/:name', async (request, reply) => {
    const visit = visiting(request);
    return see(reply, visit, operationOf(visit, (request.params as { name: string }).name, true));
  });

  app.get('/dashboard/:tag/:id', async (request, reply) => {
    const visit = visiting(request);
    const { tag, id } = request.params as { tag: string; id: string };
    const operation = operationOf(visit, `${tag}.get`, true);
    const [param = 'id'] = paramsOf(operation);
    const next = visit.catalog.tagAfter(prefixOf(id) ?? '', tag);
    const page = await readPage(visit, async (use, _, tx) => {
      const read: Reply = await use(operation.name, { params: { [param]: id }, query: expansionOf(operation) });
      visit.known.set(id, read);
      const [record] = (await withNames(visit, use, [read], read.program_id)) as [Reply];
      const make = records_by_hand[tag];
      return {
        record,
        content: make
          ? await make(visit, record, use, tx)
          : recordContent(visit, tag, id, record, await relatedContent(visit, use, tag, record)),
      };
    }).catch((error) => {
      if (error instanceof Problem && error.status === 404 && next) return undefined;
      throw error;
    });
    if (!page) return reply.redirect(`/dashboard/${next}/${id}`, 303);
    const { record, content, chosen } = page;
    return sendDashboard(reply, visit, {
      title: titleOf(visit, tag, record),
      content: html`${doneNotice(visit)}${content}`,
      at: tag,
      chosen,
    });
  });

  app.get('/dashboard/*', async (request) => {
    visiting(request);
    throw notFound('page', request.url);
  });

  app.get('/dashboard/file/:name', async (request, reply) => {
    const visit = visiting(request);
    const operation = operationOf(visit, (request.params as { name: string }).name, true);
    if (needsCode(operation)) requireConfirmed(visit);
    return sendFile(visit, reply, operation.name, inputOf(operation, request));
  });
}

/** The page of those who run the service. @throws Problem resource_not_found: nobody else learns that there is such a page */
function mountService(app: FastifyInstance, visiting: Visiting): void {
  const operating = (request: FastifyRequest): DashboardVisit => {
    const visit = visiting(request);
    if (!isOperator(visit)) throw notFound('page', 'service');
    return visit;
  };
  app.get('/dashboard/service', async (request, reply) => showService(operating(request), reply));
  app.post('/dashboard/service/jobs', async (request, reply) => changeService(operating(request), reply));
}
