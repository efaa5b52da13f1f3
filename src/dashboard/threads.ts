/** The inbox of recruitment: threads by the kind of their reply, and one with its messages, the answer and the correction of a kind. */
import { counted, time, words } from '../pages/format.ts';
import { type Html, html } from '../pages/html.ts';
import { notice } from '../pages/layout.ts';
import type { Use } from '../pages/run.ts';
import { facts, table } from '../pages/table.ts';
import { chooser } from './board.ts';
import { schemaOf } from './catalog.ts';
import { queryOf } from './list_page.ts';
import { noBrand } from './none_yet.ts';
import { postForm } from './post_form.ts';
import { mayDo } from './roles.ts';
import { type Record_, shown, withNamed } from './values.ts';
import { type DashboardVisit, readPage } from './visit.ts';

const few = 25;
const most_messages = 50;

/** The kinds of replies, as the operation that corrects one has them. */
const kindsOf = ({ catalog }: DashboardVisit): string[] => {
  const operation = catalog.operations.get('messages.reclassify');
  return ((operation && schemaOf(operation, 'body').properties?.reply_kind?.enum) ?? []).map(String);
};

export async function inboxPage(visit: DashboardVisit) {
  const { brand_id: wanted, state, after } = queryOf(visit.request.query);
  const states = ['needs_review', ...kindsOf(visit), 'all'];
  const shown_state = states.find((one) => one === state) ?? 'needs_review';
  const { brands, brand_id, threads, chosen } = await readPage(visit, async (use) => {
    const { data: brands }: { data: Record_[] } = await use('brands.list', { query: { limit: 100 } });
    const brand_id = (brands.find(({ id }) => id === wanted) ?? brands[0])?.id as string | undefined;
    if (brand_id === undefined) return { brands, brand_id, threads: undefined };
    const narrowed =
      shown_state === 'needs_review'
        ? { needs_review: 'true' }
        : shown_state === 'all'
          ? {}
          : { reply_kind: shown_state };
    const query = { brand_id, limit: few, ...narrowed, starting_after: after };
    const threads: { data: Record_[]; has_more: boolean; total_count: number } = await use('threads.list', { query });
    return {
      brands,
      brand_id,
      threads: { ...threads, data: await withNamed(use, threads.data, 'prospect', 'prospects') },
    };
  });
  const title = 'Inbox';
  if (brand_id === undefined || !threads) return { title, chosen, content: noBrand(visit) };
  const address = (query: Record<string, string>) => `/dashboard/inbox?${new URLSearchParams({ brand_id, ...query })}`;
  const last = threads.data.at(-1);
  const content = html`${brands.length > 1 && chooser('/dashboard/inbox', brands, brand_id)}
<ul class="actions">${states.map((one) => html`<li><a href="${address({ state: one })}"${one === shown_state && html` aria-current="true"`}>${words(one)}</a></li>`)}</ul>
${threadTable(visit, threads.data, shown_state)}
<p class="pages">${threads.data.length > 0 && html`<span>${counted(threads.total_count, visit.reader)} in all</span>`}${threads.has_more && html` <a href="${address({ state: shown_state, after: String(last?.id) })}">Next page</a>`}</p>`;
  return { title, content, chosen };
}

const threadTable = (visit: DashboardVisit, threads: Record_[], state: string): Html =>
  table(
    'Threads',
    [
      {
        title: 'Subject',
        cell: ({ id, subject }) =>
          html`<a class="long" href="/dashboard/threads/${id}">${subject || 'Without a subject'}</a>`,
      },
      { title: 'Prospect', cell: (row) => shown(visit, 'prospect_id', row.prospect_id, row, true) },
      {
        title: 'Reply',
        cell: (row) =>
          html`${shown(visit, 'status', row.reply_kind, row)}${row.needs_review && html` <span class="status">to review</span>`}`,
      },
      { title: 'Messages', is_number: true, cell: ({ messages }) => messages },
      { title: 'Last message', cell: ({ last_message_at }) => time(String(last_message_at), visit.reader) },
    ],
    threads,
    state === 'needs_review' ? 'No reply waits for a person.' : 'There is no such thread.',
  );

/** The page of a thread. What others wrote is text alone: no HTML of theirs is part of a page. */
export async function threadContent(visit: DashboardVisit, thread: Record_, use: Use): Promise<Html> {
  const id = String(thread.id);
  const { data, has_more }: { data: Record_[]; has_more: boolean } = await use('threads.messages', {
    params: { id },
    query: { limit: most_messages },
  });
  const back = `/dashboard/threads/${id}`;
  return html`${facts([
    ['Prospect', shown(visit, 'prospect_id', thread.prospect_id, thread)],
    ['Campaign', shown(visit, 'campaign_id', thread.campaign_id, thread)],
    ['Sequence', shown(visit, 'sequence_id', thread.sequence_id, thread)],
    ['Inbox', shown(visit, 'inbox_id', thread.inbox_id, thread)],
    ['Reply', shown(visit, 'status', thread.reply_kind, thread)],
  ])}
${thread.needs_review && notice('Nobody is sure of what the last reply means. Read it, and say its kind below.', true)}
<p>${next(visit, thread)}</p>
${has_more && html`<p><a href="/dashboard/see/threads.messages?id=${id}">Earlier messages</a></p>`}
${data.toReversed().map((message) => messageCard(visit, message, back))}
${answerForm(visit, thread, back)}`;
}

/** The operations that end a thread, or go on with the prospect. */
const next = ({ role }: DashboardVisit, { prospect_id, sequence_id }: Record_): Html => {
  const links: [scope: string, address: string, text: string][] = [
    ['prospects:write', `prospects.move?id=${prospect_id}`, 'Move the prospect to another stage'],
    ['deals:write', `deals.create?prospect_id=${prospect_id}`, 'Make a deal'],
    ['do_not_contact:write', `prospects.do_not_contact?id=${prospect_id}`, 'Do not contact again'],
    ...(sequence_id
      ? ([['sequences:write', `sequences.stop?id=${sequence_id}`, 'Stop its sequence']] as typeof links)
      : []),
  ];
  const open = prospect_id ? links.filter(([scope]) => mayDo(role, scope)) : [];
  return html`${open.map(([, address, text], nth) => html`${nth > 0 && ' · '}<a href="/dashboard/do/${address}">${text}</a>`)}`;
};

function messageCard(visit: DashboardVisit, message: Record_, back: string): Html {
  const id = String(message.id);
  const { direction, purpose, state, subject, body_text, reply_kind } = message;
  const at = message.received_at ?? message.sent_at ?? message.created_at;
  const is_inbound = direction === 'inbound';
  return html`<section class="card${is_inbound && ' inbound'}" aria-labelledby="${id}"><h2 id="${id}">${is_inbound ? 'They wrote' : 'We wrote'} <span class="hint">${time(String(at), visit.reader)}</span></h2>
<p>${shown(visit, 'status', purpose, message)} ${shown(visit, 'state', state, message)} ${reply_kind && shown(visit, 'status', reply_kind, message)} <a class="hint" href="/dashboard/messages/${id}">Details</a></p>
${subject && html`<p><strong>${subject}</strong></p>`}
<pre>${body_text ?? 'It has no text.'}</pre>
${state === 'unknown' && html`<p><a href="/dashboard/do/messages.resend?id=${id}">Send it again</a>, after you have looked in the mailbox.</p>`}
${is_inbound && kindForm(visit, message, back)}</section>`;
}

function kindForm(visit: DashboardVisit, { id, reply_kind, purpose }: Record_, back: string): Html | false {
  if (!['reply', 'auto_reply', 'unsubscribe'].includes(String(purpose))) return false;
  return postForm(visit, 'messages.reclassify', {
    params: { id: String(id) },
    back,
    content: html`<div class="field"><label for="kind-${id}">What they say</label><select id="kind-${id}" name="reply_kind" required>${reply_kind === null && html`<option value=""></option>`}${kindsOf(visit).map((kind) => html`<option value="${kind}"${kind === reply_kind && html` selected`}>${words(kind)}</option>`)}</select></div><button class="plain">That is right</button>`,
  });
}

function answerForm(visit: DashboardVisit, { id, prospect_id }: Record_, back: string): Html | false {
  if (typeof prospect_id !== 'string')
    return html`<p class="none">The prospect was deleted, so nobody can be answered.</p>`;
  const form = postForm(visit, 'prospects.reply', {
    params: { id: prospect_id },
    values: { thread_id: String(id) },
    back,
    is_stacked: true,
    content: html`<div class="field"><label for="answer">Your answer</label><p class="hint" id="answer-hint">Sent from the inbox of the thread, with its signature. No footer is added.</p><textarea id="answer" name="text" required maxlength="100000" aria-describedby="answer-hint"></textarea></div><div><button>Send</button></div>`,
  });
  return form && html`<h2>Answer</h2>${form}`;
}
