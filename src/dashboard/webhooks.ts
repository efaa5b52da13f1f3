/** Webhooks: endpoints with their state, the log of deliveries, the body of one, replays, tests, and the secret. */
import { number, time, words } from '../pages/format.ts';
import { type Html, html } from '../pages/html.ts';
import type { Use } from '../pages/run.ts';
import { type Column, facts, table } from '../pages/table.ts';
import { actionTitle, prefixOf, schemaOf } from './catalog.ts';
import { queryOf } from './list_page.ts';
import { withNames } from './named.ts';
import { postForm } from './post_form.ts';
import { actionList, recordFacts } from './record_page.ts';
import { mayDo } from './roles.ts';
import { type Record_, shown } from './values.ts';
import { type DashboardVisit, readPage } from './visit.ts';

/** A program has fifty of its own. */
const shown_endpoints = 50;
const shown_deliveries = 25;
const statuses = ['pending', 'delivered', 'failed', 'cancelled'];

interface Endpoints {
  /** The noun of its operations. */
  tag: string;
  title: string;
  has_more: boolean;
  data: Record_[];
}

export async function webhooksPage(visit: DashboardVisit) {
  const { status } = queryOf(visit.request.query);
  const wanted = statuses.find((one) => one === status);
  const { lists, deliveries, chosen } = await readPage(visit, async (use, { program_id }) => {
    const of = async (tag: string, title: string, query: object): Promise<Endpoints[]> =>
      visit.catalog.operations.has(`${tag}.list`)
        ? [{ tag, title, ...(await use(`${tag}.list`, { query: { limit: shown_endpoints, ...query } })) }]
        : [];
    if (program_id === undefined) return { lists: [], deliveries: [] };
    const [own, recruiting, log] = await Promise.all([
      of('webhook_endpoints', 'Endpoints of the program', { program_id, is_postback: 'false' }),
      of('recruitment_webhook_endpoints', 'Endpoints of recruitment', {}),
      use('webhook_deliveries.list', { query: { program_id, limit: shown_deliveries, status: wanted } }),
    ]);
    return {
      lists: [...own, ...recruiting],
      deliveries: await withNames(visit, use, log.data as Record_[], program_id),
    };
  });
  const content = html`${lists.map((list) => endpointTable(visit, list))}
<h2>Log of the program</h2>${statusLinks('/dashboard/webhooks', wanted)}
${deliveryTable(visit, deliveries, 'webhook_deliveries')}
<p class="pages"><a href="/dashboard/webhook_deliveries">All deliveries</a> <a href="/dashboard/webhook_endpoints?is_postback=true">Postbacks of partners</a> <a href="/docs/webhooks">How to receive webhooks</a></p>`;
  return { title: 'Webhooks', content, chosen };
}

const endpointTable = (visit: DashboardVisit, { tag, title, data, has_more }: Endpoints): Html => {
  const create = visit.catalog.operations.get(`${tag}.create`);
  const may_create = create && mayDo(visit.role, create.scope);
  return html`<h2>${title}</h2>${table(
    title,
    [
      { title: 'URL', cell: ({ id, url }) => html`<a class="long" href="/dashboard/${tag}/${id}">${url}</a>` },
      { title: 'State', cell: (row) => stateOf(visit, row) },
      { title: 'Receives', cell: (row) => typesOf(visit, row.event_types as string[]) },
      { title: 'Description', cell: (row) => shown(visit, 'description', row.description, row, true) },
    ],
    data,
    'There is no endpoint yet.',
  )}<ul class="actions">${may_create && html`<li><a class="button plain" href="/dashboard/do/${create.name}">${actionTitle(visit.catalog, create)}</a></li>`}${has_more && html`<li><a href="/dashboard/${tag}">All endpoints</a></li>`}</ul>`;
};

/** An endpoint without a list receives everything. */
const typesOf = ({ reader }: DashboardVisit, types: string[]): string =>
  types.length === 0
    ? 'All event types'
    : types.length === 1
      ? (types[0] as string)
      : `${number(types.length, reader)} event types`;

const stateOf = (visit: DashboardVisit, row: Record_): Html =>
  html`${shown(visit, 'status', row.status, row)}${row.disabled_reason && html` <span class="hint">${String(row.disabled_reason).replaceAll('_', ' ')}</span>`}`;

/** Links that narrow a log to the deliveries of a status. */
const statusLinks = (path: string, wanted: string | undefined): Html =>
  html`<ul class="actions">${[undefined, ...statuses].map(
    (status) =>
      html`<li><a href="${path}${status && `?status=${status}`}"${status === wanted && html` aria-current="true"`}>${status ? words(status) : 'All'}</a></li>`,
  )}</ul>`;

/** @param tag the noun of deliveries, whose ids have one prefix in each product */
const deliveryTable = (visit: DashboardVisit, deliveries: Record_[], tag: string, is_of_one = false): Html => {
  const columns: Column<Record_>[] = [
    { title: 'Event', cell: ({ id, event_type }) => html`<a href="/dashboard/${tag}/${id}">${event_type}</a>` },
    { title: 'Status', cell: (row) => shown(visit, 'status', row.status, row) },
    { title: 'Attempts', is_number: true, cell: ({ attempt }) => number(Number(attempt), visit.reader) },
    { title: 'Last answer', cell: ({ attempts }) => answerOf((attempts as Attempt[] | undefined)?.at(-1)) },
    ...(is_of_one
      ? []
      : [{ title: 'Endpoint', cell: (row: Record_) => shown(visit, 'endpoint_id', row.endpoint_id, row, true) }]),
    { title: 'Created', cell: ({ created_at }) => time(String(created_at), visit.reader) },
  ];
  return table('Deliveries', columns, deliveries, 'There is no such delivery.');
};

interface Attempt {
  attempt: number;
  at: string;
  duration_ms: number;
  status_code: number | null;
  response_body: string | null;
  error: string | null;
  url: string | null;
  request_headers: Record<string, unknown>;
}

const answerOf = (attempt: Attempt | undefined): Html | string => {
  if (!attempt) return 'Not sent yet';
  const { status_code, error } = attempt;
  return status_code === null ? html`<span class="long">${error ?? 'No answer'}</span>` : String(status_code);
};

/** The noun of the product that a record is of. */
const tagOf = ({ catalog }: DashboardVisit, id: string): string => catalog.tagOf(prefixOf(id) ?? '') as string;

/** The page of an endpoint: its log, a test, replays and its secret. Of either product, as far as its operations go. */
export async function endpointContent(visit: DashboardVisit, endpoint: Record_, use: Use): Promise<Html> {
  const id = String(endpoint.id);
  const tag = tagOf(visit, id);
  const { status } = queryOf(visit.request.query);
  const wanted = statuses.find((one) => one === status);
  const { data }: { data: Record_[] } = await use(`${tag}.deliveries`, {
    params: { id },
    query: { limit: shown_deliveries, status: wanted },
  });
  const of_deliveries = tag.replace('endpoints', 'deliveries');
  const back = `/dashboard/${tag}/${id}`;
  const on = { params: { id }, back };
  return html`${actionList(visit, tag, { id }, endpoint, ['ping', 'replay', 'rotate_secret', endpoint.status === 'enabled' ? 'enable' : 'disable'])}
${recordFacts(visit, { ...endpoint, event_types: (endpoint.event_types as string[]).length === 0 ? 'All' : endpoint.event_types })}
<h2>Log</h2>${statusLinks(back, wanted)}
${deliveryTable(visit, data, of_deliveries, true)}
<p class="pages"><a href="/dashboard/see/${tag}.deliveries?id=${id}">All deliveries of this endpoint</a></p>
${testForm(visit, tag, on)}${replayForms(visit, tag, on)}${secretForm(visit, tag, on)}`;
}

interface On {
  params: { id: string };
  back: string;
}

function testForm(visit: DashboardVisit, tag: string, on: On): Html | false {
  const ping = visit.catalog.operations.get(`${tag}.ping`);
  const types = (ping && schemaOf(ping, 'body').properties?.event_type?.enum) ?? [];
  const form = postForm(visit, `${tag}.ping`, {
    ...on,
    content: html`<div class="field"><label for="event_type">Event type</label><select id="event_type" name="event_type"><option value="">The first that it receives</option>${types.map((type) => html`<option>${type}</option>`)}</select></div><button>Send a test</button>`,
  });
  return (
    form &&
    html`<h2>Test</h2><p>An example of an event is sent at the end of the queue, signed with the secret.</p>${form}`
  );
}

function replayForms(visit: DashboardVisit, tag: string, on: On): Html | false {
  const moment = (name: string, label: string) =>
    html`<div class="field"><label for="${name}">${label} (UTC)</label><input id="${name}" name="${name}" type="datetime-local" step="any" required></div>`;
  const since = postForm(visit, `${tag}.replay`, {
    ...on,
    content: html`${moment('failed_since', 'Failed since')}<button>Replay what failed</button>`,
  });
  const window = postForm(visit, `${tag}.replay`, {
    ...on,
    content: html`${moment('from', 'From')}${moment('to', 'To, exclusive')}<button class="plain">Replay all, delivered ones too</button>`,
  });
  return (
    since &&
    html`<h2>Replay</h2><p>Each is a new delivery at the end of the queue. To replay one, open it in the log.</p>${since}${window}`
  );
}

function secretForm(visit: DashboardVisit, tag: string, { params }: On): Html | false {
  const form = postForm(visit, `${tag}.rotate_secret`, {
    params,
    content: html`<button class="plain">Rotate the secret</button>`,
  });
  return (
    form &&
    html`<h2>Secret</h2><p>The new secret is shown once. For 24 hours, deliveries are signed with the one before too.</p>${form}`
  );
}

/** The page of a delivery: its body, what the endpoint answered, and a button to send it again. */
export async function deliveryContent(visit: DashboardVisit, delivery: Record_): Promise<Html> {
  const {
    id,
    request_body,
    attempts = [],
  } = delivery as { id: string; request_body: string | null; attempts: Attempt[] };
  const tag = tagOf(visit, id);
  return html`${postForm(visit, `${tag}.replay`, { params: { id }, content: html`<button>Send it again</button>` })}
${recordFacts(visit, delivery, ['request_body', 'attempts'])}
<h2>Body</h2>${request_body === null ? html`<p class="none">It is made when the delivery is sent.</p>` : html`<pre tabindex="0" aria-label="Body" role="region">${indented(request_body)}</pre>`}
<h2>Attempts</h2>${attempts.length === 0 && html`<p class="none">Not sent yet.</p>`}
${attempts.map((attempt) => attemptCard(visit, attempt))}`;
}

const attemptCard = ({ reader }: DashboardVisit, attempt: Attempt): Html =>
  html`<section class="card" aria-labelledby="attempt-${attempt.attempt}"><h3 id="attempt-${attempt.attempt}">Attempt ${attempt.attempt}</h3>${facts(
    [
      ['Sent', time(attempt.at, reader)],
      ['Answer', answerOf(attempt)],
      ['Took', `${number(attempt.duration_ms, reader)} ms`],
      ...(attempt.error === null ? [] : [['Error', attempt.error] as [string, unknown]]),
      ...(attempt.url === null ? [] : [['URL', attempt.url] as [string, unknown]]),
    ],
  )}
${attempt.response_body && html`<details><summary>Body of the answer</summary><pre tabindex="0">${attempt.response_body}</pre></details>`}
<details><summary>Headers of the request</summary><pre tabindex="0">${Object.entries(attempt.request_headers ?? {})
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n')}</pre></details></section>`;

/** JSON over several lines; what is none stays as it is. */
function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
