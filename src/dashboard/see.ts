/** The page of a GET: a list as a table, anything else as a record. */
import type { FastifyReply } from 'fastify';
import type { Operation } from '../core/resource/operation.ts';
import { Problem } from '../core/values/problem.ts';
import { capitalized, words } from '../pages/format.ts';
import { type Html, html } from '../pages/html.ts';
import { notice } from '../pages/layout.ts';
import { insteadOf, problemOfInput, type Reply, type Use } from '../pages/run.ts';
import { chooser } from './board.ts';
import { actionTitle, addressOf, paramsOf, schemaOf, scopeFor } from './catalog.ts';
import { choicesFor, withFound } from './choices.ts';
import { chosenIn, filtersOf } from './filters.ts';
import { sendDashboard, titleInMenu } from './frame.ts';
import { inputOf } from './input.ts';
import { columnNames, expansionOf, type ListReply, listContent } from './list_page.ts';
import { withNames } from './named.ts';
import { noBrand, noProgram } from './none_yet.ts';
import { pickingOf } from './pick_prospects.ts';
import { doneNotice, recordFacts } from './record_page.ts';
import type { Record_ } from './values.ts';
import { type DashboardVisit, readPage } from './visit.ts';

export async function see(reply: FastifyReply, visit: DashboardVisit, operation: Operation): Promise<FastifyReply> {
  const { params, query } = inputOf(operation, visit.request);
  if (operation.file?.only && paramsOf(operation).every((name) => name in params))
    return reply.redirect(`/dashboard/file/${operation.name}?${new URLSearchParams({ ...params, ...query })}`, 303);
  const is_list = schemaOf(operation, 'reply').properties?.data !== undefined;
  const given = Object.fromEntries(Object.entries(query).filter(([name]) => name !== 'done' && name !== 'of'));
  const { shown, chosen } = await readPage(visit, async (use, { program_id }) => ({
    shown: await (is_list ? seeList : seeRecord)(visit, use, operation, { params, given, program_id }),
  }));
  const { content, status = 200, file } = shown;
  if (file !== undefined) return sendJson(reply, operation, file);
  const title = is_list ? titleInMenu(operation.tag) : viewTitle(actionTitle(visit.catalog, operation));
  return sendDashboard(
    reply,
    visit,
    { title, content: html`${doneNotice(visit)}${content}`, at: operation.tag, chosen },
    status,
  );
}

/** `Plan` of `Retrieve the plan`: the name of what is shown. */
const viewTitle = (title: string): string => capitalized(title.replace(/^Retrieve (?:an?|the) /, ''));

interface Asked {
  params: Record<string, string>;
  given: Record<string, string>;
  program_id: string | undefined;
}

interface Seen {
  content: Html;
  status?: number;
  /** A file to keep, and not to read on a page: all that is stored of a person. */
  file?: object;
}

const sendJson = (reply: FastifyReply, { tag }: Operation, file: object): FastifyReply =>
  reply
    .headers({
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Disposition': `attachment; filename="${tag}.json"`,
    })
    .serializer(String)
    .send(JSON.stringify(file, null, 2));

async function seeRecord(visit: DashboardVisit, use: Use, operation: Operation, asked: Asked): Promise<Seen> {
  const { params, given, program_id } = asked;
  const query = { ...given, ...scopeFor(operation, { program_id }) };
  const answer: Reply = await use(operation.name, { params, query })
    .catch(insteadOf(404, undefined))
    .catch(problemOfInput);
  if (answer === undefined) {
    // The record is not there, or has no such part.
    await use(`${operation.tag}.get`, { params: { id: params.id } });
    return { content: html`<p class="none">There is none yet.</p>` };
  }
  if (answer instanceof Problem) return asking(operation, { ...params, ...given }, answer);
  if (operation.name.endsWith('.export')) return { content: html``, file: answer };
  const [named] = await withNames(visit, use, [answer], program_id);
  return { content: recordFacts(visit, named as Record_) };
}

async function seeList(visit: DashboardVisit, use: Use, operation: Operation, asked: Asked): Promise<Seen> {
  const { params, given, program_id } = asked;
  const { properties = {}, required } = schemaOf(operation, 'query');
  if (required?.includes('program_id') && program_id === undefined) return { content: noProgram(visit) };
  const scope = scopeFor(operation, { program_id });
  const brands = await brandsFor(operation, use);
  if (brands?.length === 0) return { content: noBrand(visit) };
  const brand_id = given.brand_id ?? brands?.[0]?.id;
  const query = { ...given, ...(typeof brand_id === 'string' ? { brand_id } : {}) };
  const choices = await choicesFor(visit, use, chosenIn(operation), { ...scope, brand_id: query.brand_id });
  const answer: ListReply | Problem = await withFound(visit, use, filtersOf(operation), query, program_id)
    .then((found) =>
      use(operation.name, {
        params,
        query: { ...found, ...scope, ...(properties.limit ? { limit: '25', ...expansionOf(operation) } : {}) },
      }),
    )
    .catch(problemOfInput);
  if (answer instanceof Problem) {
    const { param = '' } = answer.details;
    if (!(param in query) || !filtersOf(operation).some(({ name }) => name === param))
      return asking(operation, { ...params, ...given }, answer);
    const nothing = { data: [], has_more: false };
    return {
      content: listContent(visit, operation, nothing, { query, of: params, choices, problem: answer }),
      status: answer.status,
    };
  }
  const data = await withNames(visit, use, answer.data, program_id, columnNames(operation));
  const picking = operation.name === 'prospects.list' ? await pickingOf(visit, use, String(query.brand_id)) : undefined;
  return {
    content: html`${brands && brands.length > 1 && chooser(addressOf(visit.catalog, operation), brands, String(brand_id))}${listContent(visit, operation, { ...answer, data }, { query, of: params, choices, picking })}`,
  };
}

/** The brands to choose from, where a list is of one: it shows the first, unless another is asked for. */
async function brandsFor(operation: Operation, use: Use): Promise<Record_[] | undefined> {
  if (!schemaOf(operation, 'query').required?.includes('brand_id')) return undefined;
  const { data } = await use('brands.list', { query: { limit: 100 } });
  return data;
}

/** Asks for what a view needs to know. */
const asking = (operation: Operation, given: Record<string, string>, problem: Problem): Seen => {
  const asked = [
    ...Object.keys(schemaOf(operation, 'params').properties ?? {}),
    ...filtersOf(operation).map(({ name }) => name),
  ];
  return {
    status: problem.status,
    content: html`${notice(problem.message, true)}<form class="stacked" action="/dashboard/see/${operation.name}">${asked.map(
      (name) =>
        html`<div class="field"><label for="ask-${name}">${words(name)}</label><input id="ask-${name}" name="${name}" value="${given[name]}"></div>`,
    )}<div><button>Show</button></div></form>`,
  };
};
