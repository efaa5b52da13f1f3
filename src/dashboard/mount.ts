/** The routes of the dashboard. Every page needs a session; a list, a record, a view and a form are read off the operations. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { redeemSignInLink } from '../core/access/session.ts';
import { problemOf } from '../core/http/error_reply.ts';
import type { Store } from '../core/postgres/transaction.ts';
import type { Operation } from '../core/resource/operation.ts';
import type { Services } from '../core/resource/services.ts';
import { notFound, Problem } from '../core/values/problem.ts';
import { bodyOf, typedOf } from '../pages/form.ts';
import { html } from '../pages/html.ts';
import { notice, sendHtml } from '../pages/layout.ts';
import { readSessions, SignInFirst, takeForms } from '../pages/person.ts';
import { perform, type Reply, sendFile, type Use } from '../pages/run.ts';
import { formOf, mountSignIn, type SignInTexts } from '../pages/sign_in.ts';
import { confirm, mountAccount } from './account.ts';
import { boardPage } from './board.ts';
import { actionTitle, catalogOf, listTitle, paramsOf, schemaOf } from './catalog.ts';
import {
  bodyFields,
  formContent,
  formFields,
  isConfirmed,
  partsOf,
  requireConfirmed,
  resultContent,
} from './form_page.ts';
import { type DashboardPage, sendDashboard, service } from './frame.ts';
import { homePage } from './home.ts';
import { integrationsPage } from './integrations.ts';
import { expansionOf, listContent, queryOf } from './list_page.ts';
import { payoutRunPage } from './payout_run.ts';
import { nameOf, recordContent, recordFacts } from './record_page.ts';
import { relatedContent } from './related.ts';
import { reportsPage } from './reports.ts';
import { reviewPage } from './review.ts';
import { mayRun, needsCode } from './roles.ts';
import { searched } from './search.ts';
import { sendTaxForm } from './tax_form.ts';
import { hrefOf } from './values.ts';
import { type DashboardVisit, program_cookie, readPage, type Visiting, visitOf } from './visit.ts';

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
      task: 'core/mail_sign_in_links',
    });
    mountAccount(scope, visiting);
    mountReads(scope, visiting);
    mountForms(scope, visiting);
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
};

/** @throws Problem resource_not_found where no operation has the name */
function operationOf({ catalog }: DashboardVisit, name: string, is_read: boolean): Operation {
  const found = catalog.operations.get(name);
  if (!found || (found.method === 'GET') !== is_read) throw notFound('page', name);
  return found;
}

function mountReads(app: FastifyInstance, visiting: Visiting): void {
  app.get('/dashboard', async (request, reply) => {
    const visit = visiting(request);
    return sendDashboard(reply, visit, { ...(await homePage(visit)), at: '' });
  });

  for (const [path, make] of Object.entries(by_hand)) {
    app.get(`/dashboard/${path}`, async (request, reply) => {
      const visit = visiting(request);
      return sendDashboard(reply, visit, { ...(await make(visit)), at: path });
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
    const { record, below, chosen } = await readPage(visit, async (use) => {
      const record: Reply = await use(operation.name, { params: { [param]: id }, query: expansionOf(operation) });
      return { record, below: await relatedContent(visit, use, tag, record) };
    });
    const { done } = queryOf(request.query);
    const said = done === undefined ? undefined : notice(`Done: ${done}.`);
    return sendDashboard(reply, visit, {
      title: nameOf(record),
      content: recordContent(visit, tag, id, record, { said, below }),
      at: tag,
      chosen,
    });
  });

  app.get('/dashboard/file/:name', async (request, reply) => {
    const visit = visiting(request);
    const operation = operationOf(visit, (request.params as { name: string }).name, true);
    if (needsCode(operation)) requireConfirmed(visit);
    return sendFile(visit, reply, operation.name, inputOf(operation, request));
  });
}

/** The query of a page's address: the parameters of the operation's path, and the others. */
function inputOf(
  operation: Operation,
  request: FastifyRequest,
): { params: Record<string, string>; query: Record<string, string> } {
  const names = paramsOf(operation);
  const all = Object.entries(queryOf(request.query));
  return {
    params: Object.fromEntries(all.filter(([name]) => names.includes(name))),
    query: Object.fromEntries(all.filter(([name]) => !names.includes(name))),
  };
}

/** Shows what a GET answers: a list as a table, anything else as a record. */
async function see(reply: FastifyReply, visit: DashboardVisit, operation: Operation): Promise<FastifyReply> {
  const { catalog, request } = visit;
  const { params, query: given } = inputOf(operation, request);
  if (operation.file?.only && paramsOf(operation).every((name) => name in params))
    return reply.redirect(`/dashboard/file/${operation.name}?${new URLSearchParams({ ...params, ...given })}`, 303);
  const properties = schemaOf(operation, 'query').properties ?? {};
  const title = actionTitle(catalog, operation);
  const is_list = schemaOf(operation, 'reply').properties?.data !== undefined;
  const { answer, query, chosen } = await readPage(visit, async (use, { program_id }) => {
    const query: Record<string, string> = { ...given };
    if (properties.program_id && program_id !== undefined) query.program_id = program_id;
    if (properties.limit && is_list) Object.assign(query, { limit: '25' }, expansionOf(operation));
    const brand_id = await brandFor(operation, query, use);
    if (brand_id !== undefined) query.brand_id = brand_id;
    const reply_or_problem: Reply = await use(operation.name, { params, query }).catch(problemOfInput);
    return { answer: reply_or_problem, query };
  });
  if (answer instanceof Problem)
    return sendDashboard(
      reply,
      visit,
      {
        title,
        content: html`${notice(answer.message, true)}${askForm(operation, { ...params, ...given })}`,
        at: operation.tag,
        chosen,
      },
      answer.status,
    );
  const content = is_list
    ? listContent(
        visit,
        operation,
        { ...given, ...(query.brand_id ? { brand_id: query.brand_id } : {}) },
        answer,
        params,
      )
    : html`${recordFacts(visit, answer)}`;
  return sendDashboard(reply, visit, {
    title: is_list ? listTitle(operation.tag) : title,
    content,
    at: operation.tag,
    chosen,
  });
}

/** A list of one brand shows the first one, unless another is asked for. */
async function brandFor(operation: Operation, query: Record<string, string>, use: Use): Promise<string | undefined> {
  const is_needed = schemaOf(operation, 'query').required?.includes('brand_id') && query.brand_id === undefined;
  if (!is_needed) return undefined;
  const { data } = await use('brands.list', { query: { limit: 1 } });
  return data[0]?.id;
}

const problemOfInput = (error: unknown): Problem => {
  if (error instanceof Problem && error.status === 400) return error;
  throw error;
};

/** Asks for what a view needs to know. */
const askForm = (operation: Operation, given: Record<string, string>) => {
  const asked = [
    ...Object.keys(schemaOf(operation, 'params').properties ?? {}),
    ...Object.keys(schemaOf(operation, 'query').properties ?? {}),
  ];
  return html`<form class="stacked" action="/dashboard/see/${operation.name}">${asked.map(
    (name) =>
      html`<div class="field"><label for="ask-${name}">${name}</label><input id="ask-${name}" name="${name}" value="${given[name]}"></div>`,
  )}<div><button>Show</button></div></form>`;
};

function mountForms(app: FastifyInstance, visiting: Visiting): void {
  app.get('/dashboard/do/:name', async (request, reply) => {
    const visit = visiting(request);
    const operation = operationOf(visit, (request.params as { name: string }).name, false);
    requireRole(visit, operation);
    const { params, query: given } = inputOf(operation, request);
    const { record, chosen } = await readPage(visit, async (use, { program_id }) => ({
      record: {
        ...(operation.method === 'PATCH' || operation.method === 'PUT'
          ? await current(visit, use, operation, params)
          : {}),
        ...own(operation, program_id),
      },
    }));
    const before = operation.method === 'PATCH' ? typedOf(bodyFields(operation), record) : undefined;
    const typed = { ...typedOf(formFields(operation), record), ...given };
    const content = formContent(visit, operation, { params, typed, before });
    return sendDashboard(reply, visit, {
      title: actionTitle(visit.catalog, operation),
      content,
      at: operation.tag,
      chosen,
    });
  });

  app.post('/dashboard/do/:name', async (request, reply) => {
    const visit = visiting(request);
    const operation = operationOf(visit, (request.params as { name: string }).name, false);
    requireRole(visit, operation);
    const sent = formOf(request);
    const parts = partsOf(operation, sent);
    const form_key = sent.get('form_key') ?? undefined;
    try {
      if (needsCode(operation) && !isConfirmed(visit.session.confirmed_at))
        await requireCode(visit, sent.get('code') ?? '');
      const query_names = Object.keys(schemaOf(operation, 'query').properties ?? {});
      const query = Object.fromEntries(
        Object.entries(parts.typed).filter(([name, value]) => query_names.includes(name) && value !== ''),
      );
      const body = operation.bulk_of
        ? (parsedBulk(parts.typed.bulk ?? '') as object)
        : bodyOf(bodyFields(operation), parts.typed, parts.before);
      const answer: Reply = await perform(visit, operation.name, { params: parts.params, query, body }, form_key);
      const back = sent.get('back') ?? '';
      if (/^\/dashboard\/[a-z_]+$/.test(back)) return reply.redirect(back, 303);
      return await answered(reply, visit, operation, answer);
    } catch (error) {
      if (!(error instanceof Problem) || error.status === 404) throw error;
      const { chosen } = await readPage(visit, async () => ({}));
      const content = formContent(visit, operation, { ...parts, problem: error, form_key: undefined });
      return sendDashboard(
        reply,
        visit,
        { title: actionTitle(visit.catalog, operation), content, at: operation.tag, chosen },
        error.status,
      );
    }
  });
}

/** What a form knows by itself: the program that was chosen. */
const own = (operation: Operation, program_id: string | undefined): object =>
  program_id !== undefined && schemaOf(operation, 'body').properties?.program_id ? { program_id } : {};

/** The record that an update changes, as it is. */
async function current(
  { catalog }: DashboardVisit,
  use: (name: string, input: { params: object }) => Promise<Reply>,
  operation: Operation,
  params: object,
): Promise<object> {
  const get = [...catalog.operations.values()].find((one) => one.method === 'GET' && one.path === operation.path);
  if (!get || paramsOf(get).some((name) => !(name in params))) return {};
  return use(get.name, { params }).catch((error) => {
    if (error instanceof Problem && operation.method === 'PUT') return {};
    throw error;
  });
}

const parsedBulk = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    throw new Problem('invalid_json', 'The records are not valid JSON. Send an array of objects.');
  }
};

/** A record has a page; what is shown once, or is no record, is shown here. */
async function answered(
  reply: FastifyReply,
  visit: DashboardVisit,
  operation: Operation,
  answer: Reply,
): Promise<FastifyReply> {
  const title = actionTitle(visit.catalog, operation);
  const href = typeof answer?.id === 'string' && !answer.deleted ? hrefOf(visit.catalog, answer.id) : undefined;
  const is_plain = href && !('secret' in answer) && !(answer.warnings?.length > 0);
  if (is_plain) return reply.redirect(`${href}?done=${encodeURIComponent(title)}`, 303);
  const { chosen } = await readPage(visit, async () => ({}));
  return sendDashboard(reply, visit, {
    title,
    content: resultContent(visit, operation, answer ?? {}),
    at: operation.tag,
    chosen,
  });
}

/** @throws Problem insufficient_scope */
function requireRole({ role }: DashboardVisit, operation: Operation): void {
  const { scope, summary } = operation;
  if (mayRun(role, operation)) return;
  throw new Problem(
    'insufficient_scope',
    `Your role, ${role}, does not allow this: ${summary} Ask an owner or an admin.`,
    { param: scope },
  );
}

/** @throws Problem code_required */
async function requireCode(visit: DashboardVisit, code: string): Promise<void> {
  if (!visit.session.has_totp)
    throw new Problem('code_required', 'Set up an authenticator app in your account first.', { param: 'code' });
  if (!(await confirm(visit, code)))
    throw new Problem(
      'code_required',
      'The code is not right, or was used. Wait for the next one. The fifth wrong code signs you out.',
      { param: 'code' },
    );
}
