/** The forms of all operations: `/dashboard/do/<operation>` shows one, and takes what it sends. */
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { Operation } from '../core/resource/operation.ts';
import { Problem } from '../core/values/problem.ts';
import { bodyOf, typedOf } from '../pages/form.ts';
import { withoutBlankRows } from '../pages/rows.ts';
import { perform, type Reply } from '../pages/run.ts';
import type { Field, Typed } from '../pages/schema_fields.ts';
import { formOf } from '../pages/sign_in.ts';
import { confirm } from './account.ts';
import { currencyOf, decimalsIn, hasAmounts, integersIn } from './amounts.ts';
import { actionTitle, paramsOf, schemaOf } from './catalog.ts';
import { choicesFor, hasEmails, withFound } from './choices.ts';
import { formContent, isConfirmed, partsOf, requireFewFields, resultContent } from './form_page.ts';
import { sendDashboard } from './frame.ts';
import { inputOf, operationOf } from './input.ts';
import { bodyFields, bulkBody, formFields, inRow } from './operation_fields.ts';
import { backOf, pageIn } from './post_form.ts';
import { mayRun, maySay, needsCode } from './roles.ts';
import { hrefOf } from './values.ts';
import { type Chosen, type DashboardVisit, readPage, type Visiting } from './visit.ts';

export function mountForms(app: FastifyInstance, visiting: Visiting): void {
  app.get('/dashboard/do/:name', async (request, reply) => {
    const visit = visiting(request);
    const operation = operationOf(visit, (request.params as { name: string }).name, false);
    requireRole(visit, operation);
    const { params, query } = inputOf(operation, request);
    const { only, back, ...given } = query;
    const fields = formFields(operation, params);
    const { record, currency, choices, chosen } = await readPage(visit, async (use, chosen) => ({
      choices: await choicesFor(visit, use, fields, { program_id: chosen.program_id }),
      record: {
        ...(operation.method === 'PATCH' || operation.method === 'PUT'
          ? await current(visit, use, operation, params)
          : {}),
        ...own(operation, chosen),
      },
      currency: await currencyFor(operation, () => currencyOf(visit, use, operation, { params, typed: given }, chosen)),
    }));
    const shown = (fields: Field[]) => decimalsIn(fields, typedOf(fields, record), currency);
    const before = operation.method === 'PATCH' ? shown(bodyFields(operation, params)) : undefined;
    const typed = { ...shown(fields), ...given };
    const content = formContent(visit, operation, {
      ...{ params, typed, before, currency },
      ...{ only: only?.split(','), back: pageIn(back), choices },
    });
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
    requireFewFields(sent);
    const parts = partsOf(operation, sent);
    const form_key = sent.get('form_key') ?? undefined;
    const currency = await currencyFor(operation, async () => {
      const read = await readPage(visit, async (use, chosen) => ({
        currency: await currencyOf(visit, use, operation, parts, chosen),
      }));
      return read.currency;
    });
    const fields = formFields(operation, parts.params);
    const again = async (problem: Problem | undefined, status: number) => {
      const { chosen, choices } = await readPage(visit, async (use, chosen) => ({
        choices: await choicesFor(visit, use, fields, { program_id: chosen.program_id }),
      }));
      const key = problem ? undefined : form_key;
      const back = pageIn(sent.get('back') ?? undefined);
      const state = { ...parts, currency, problem, form_key: key, back, choices };
      const content = formContent(visit, operation, state);
      return sendDashboard(
        reply,
        visit,
        { title: actionTitle(visit.catalog, operation), content, at: operation.tag, chosen },
        status,
      );
    };
    if (parts.more !== undefined) return again(undefined, 200);
    parts.typed = withoutBlankRows(fields, parts.typed);
    try {
      const typed = await found(visit, fields, parts.typed);
      const input = { params: parts.params, ...saidIn(operation, { ...parts, typed }, currency) };
      requireFields(visit, input.body);
      if (needsCode(operation, Object.keys(input.body)) && !isConfirmed(visit.session.confirmed_at))
        await requireCode(visit, sent.get('code') ?? '');
      const answer: Reply = await perform(visit, operation.name, input, form_key);
      const back = 'secret' in (answer ?? {}) ? undefined : backOf(sent, operation.name);
      if (back) return reply.redirect(back, 303);
      return await answered(reply, visit, operation, answer, parts.params);
    } catch (error) {
      if (!(error instanceof Problem) || isOfPath(error, parts.params)) throw error;
      return again(operation.bulk_of ? inRow(error) : error, error.status);
    }
  });
}

/** The query and the body that a form says. */
function saidIn(
  operation: Operation,
  { params, typed, before }: Pick<ReturnType<typeof partsOf>, 'params' | 'typed' | 'before'>,
  currency: string,
) {
  const names = Object.keys(schemaOf(operation, 'query').properties ?? {});
  const query = Object.fromEntries(
    Object.entries(typed).filter(([name, value]) => names.includes(name) && value !== ''),
  );
  const integers = (one: Typed) => integersIn(formFields(operation, params), one, currency);
  const body = bodyOf(bodyFields(operation, params), integers(typed), before && integers(before));
  return { query, body: operation.bulk_of ? bulkBody(body) : body };
}

/** Puts ids in place of the email addresses that were typed. */
async function found(visit: DashboardVisit, fields: Field[], typed: Typed): Promise<Typed> {
  if (!hasEmails(fields, typed)) return typed;
  const read = await readPage(visit, async (use, { program_id }) => ({
    found: await withFound(visit, use, fields, typed, typed.program_id || program_id),
  }));
  return read.found;
}

/** Returns whether what the form is about is not there. What is named in a field and is not there is said beside the field. */
const isOfPath = ({ status, message }: Problem, params: object): boolean =>
  status === 404 && Object.values(params).some((id) => message.includes(`'${id}'`));

/** The currency of a form's amounts. It is of no matter where there are none, and nothing is read for it. */
const currencyFor = async (operation: Operation, read: () => Promise<string>): Promise<string> =>
  hasAmounts(formFields(operation)) ? read() : 'USD';

/** The values that a form knows by itself: the program that was chosen, and its currency for what is made in it. */
function own(operation: Operation, { program_id, programs }: Chosen): object {
  const names = bodyFields(operation).map(({ name }) => name);
  const program = programs.find(({ id }) => id === program_id);
  if (!program || !names.includes('program_id')) return {};
  const is_made = operation.method === 'POST' && names.includes('currency');
  return { program_id, ...(is_made ? { currency: program.currency } : {}) };
}

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

/** A record has a page; what is shown once, or is no record, is shown here. */
async function answered(
  reply: FastifyReply,
  visit: DashboardVisit,
  operation: Operation,
  answer: Reply,
  params: Record<string, string>,
): Promise<FastifyReply> {
  const list = visit.catalog.operations.get(`${operation.tag}.list`);
  if (answer?.deleted && list && paramsOf(list).length === 0)
    return reply.redirect(`/dashboard/${operation.tag}?done=${operation.name}`, 303);
  const title = actionTitle(visit.catalog, operation);
  const href = typeof answer?.id === 'string' && !answer.deleted ? hrefOf(visit.catalog, answer.id) : undefined;
  const is_plain = href && !('secret' in answer) && !(answer.warnings?.length > 0);
  if (is_plain) return reply.redirect(`${href}?done=${operation.name}`, 303);
  const { chosen } = await readPage(visit, async () => ({}));
  return sendDashboard(reply, visit, {
    title,
    content: resultContent(visit, operation, answer ?? {}, params.id),
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

/** @throws Problem insufficient_scope that names the field */
function requireFields({ role }: DashboardVisit, body: object): void {
  const field = Object.keys(body).find((name) => !maySay(role, name));
  if (field === undefined) return;
  const message = `Your role, ${role}, does not allow changing '${field}'. Ask an owner or an admin.`;
  throw new Problem('insufficient_scope', message, { param: field });
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
