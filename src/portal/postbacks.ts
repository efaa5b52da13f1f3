/** A partner's own postbacks: where events are sent, and what was sent. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Problem } from '../core/values/problem.ts';
import { time } from '../pages/format.ts';
import { type Html, html } from '../pages/html.ts';
import { notice } from '../pages/layout.ts';
import { perform, type Reply } from '../pages/run.ts';
import { formOf } from '../pages/sign_in.ts';
import { facts, table } from '../pages/table.ts';
import { type Errors, errorsOf, form, once, one, type Typed, typedIn, withScheme } from './fields.ts';
import { copyable, cursorOf, doneNotice, pager, sendPortal } from './frame.ts';
import { type Me, type PortalVisit, performBeyond, readPage, type Visiting } from './visit.ts';

const idOf = (request: FastifyRequest): string => (request.params as { id: string }).id;

const actions: Record<string, string> = {
  ping: 'webhook_endpoints.ping',
  enable: 'webhook_endpoints.enable',
  disable: 'webhook_endpoints.disable',
  rotate: 'webhook_endpoints.rotate_secret',
  delete: 'webhook_endpoints.delete',
};

interface Postback {
  id: string;
  url: string;
  description: string | null;
  status: 'enabled' | 'disabled';
  created_at: string;
}

interface Delivery {
  id: string;
  event_type: string;
  status: 'pending' | 'delivered' | 'failed' | 'cancelled';
  attempt: number;
  created_at: string;
  request_body: string | null;
  attempts: { status_code: number | null; error: string | null; response_body: string | null; at: string }[];
}

export function mountPostbacks(app: FastifyInstance, visiting: Visiting): void {
  app.get('/portal/postbacks', async (request, reply) => showAll(reply, visiting(request), request.query));

  app.post('/portal/postbacks', async (request, reply) => {
    const visit = visiting(request);
    const typed = typedIn(formOf(request));
    const { me } = await readPage(visit, async () => ({}));
    const description = one(typed, 'description');
    const body = {
      program_id: me.program.id,
      partner_id: visit.partner_id,
      url: withScheme(one(typed, 'url')) ?? '',
      ...(description === undefined ? {} : { description }),
    };
    try {
      const { id, secret } = await performBeyond(visit, 'webhook_endpoints.create', body, one(typed, 'form_key'));
      return showSecret(reply, me, id, secret);
    } catch (problem) {
      const has_all = problem instanceof Problem && problem.code === 'plan_limit_reached';
      const errors = has_all ? { '': me.texts.postbacks.most } : errorsOf(problem, me.texts, ['url', 'description']);
      return showAll(reply, visit, {}, { typed, errors }, (problem as Problem).status);
    }
  });

  app.get('/portal/postbacks/:id', async (request, reply) => {
    const id = idOf(request);
    const { me, postback, log } = await readPage(visiting(request), async (use) => ({
      postback: (await use('webhook_endpoints.get', { params: { id } })) as Postback,
      log: await use('webhook_endpoints.deliveries', { params: { id }, query: cursorOf(request.query) }),
    }));
    const { postbacks: said } = me.texts;
    const done = doneNotice(request.query, { ping: said.pinged, replay: said.replayed, saved: me.texts.general.saved });
    const content = html`${done}${facts([
      [said.url, postback.url],
      [said.description, postback.description],
      [me.texts.general.status, said.statuses[postback.status]],
    ])}
${actionButtons(me, postback)}
<h2>${said.log}</h2>
${deliveryTable(me, log.data)}${pager(me.texts, `/portal/postbacks/${id}`, request.query, log)}
<p><a href="/portal/postbacks">${me.texts.general.back}</a></p>`;
    return sendPortal(reply, me, { title: me.texts.menu.postbacks, at: 'postbacks', content });
  });

  app.post('/portal/postbacks/:id/:action', async (request, reply) => {
    const { id, action } = request.params as { id: string; action: string };
    const visit = visiting(request);
    // A postback that is not the partner's is not found here, and nothing is done.
    const { me } = await readPage(visit, async (use) => ({
      own: await use('webhook_endpoints.get', { params: { id } }),
    }));
    const name = Object.hasOwn(actions, action) ? (actions[action] as string) : undefined;
    if (name === undefined) return reply.redirect(`/portal/postbacks/${id}`, 303);
    const form_key = one(typedIn(formOf(request)), 'form_key');
    const answer = await perform({ ...visit, sees_organization: true }, name, { params: { id } }, form_key);
    if (action === 'rotate') return showSecret(reply, me, id, answer.secret);
    if (action === 'delete') return reply.redirect('/portal/postbacks?done=saved', 303);
    return reply.redirect(`/portal/postbacks/${id}?done=${action === 'ping' ? 'ping' : 'saved'}`, 303);
  });

  app.get('/portal/deliveries/:id', async (request, reply) => {
    const { me, delivery } = await readPage(visiting(request), async (use) => ({
      delivery: (await use('webhook_deliveries.get', { params: { id: idOf(request) } })) as Delivery & {
        endpoint_id: string;
      },
    }));
    return sendPortal(reply, me, {
      title: delivery.event_type,
      at: 'postbacks',
      content: deliveryContent(me, delivery),
    });
  });

  app.post('/portal/deliveries/:id/replay', async (request, reply) => {
    const visit = visiting(request);
    const params = { id: idOf(request) };
    const { delivery } = await readPage(visit, async (use) => ({
      delivery: await use('webhook_deliveries.get', { params }),
    }));
    const form_key = one(typedIn(formOf(request)), 'form_key');
    await perform({ ...visit, sees_organization: true }, 'webhook_deliveries.replay', { params }, form_key);
    return reply.redirect(`/portal/postbacks/${delivery.endpoint_id}?done=replay`, 303);
  });
}

const ownOf = async (
  use: (name: string, input: object) => Promise<Reply>,
  { program, partner }: Me,
): Promise<Postback[]> =>
  (await use('webhook_endpoints.list', { query: { program_id: program.id, partner_id: partner.id, limit: 50 } })).data;

async function showAll(
  reply: FastifyReply,
  visit: PortalVisit,
  query: unknown,
  { typed = {}, errors = {} }: { typed?: Typed; errors?: Errors } = {},
  status = 200,
): Promise<FastifyReply> {
  const { me, postbacks } = await readPage(visit, async (use, me) => ({ postbacks: await ownOf(use, me) }));
  const { postbacks: said, general, menu } = me.texts;
  const columns = [
    { title: said.url, cell: ({ id, url }: Postback) => html`<a href="/portal/postbacks/${id}">${url}</a>` },
    { title: said.description, cell: ({ description }: Postback) => description },
    { title: general.status, cell: (row: Postback) => html`<span class="status">${said.statuses[row.status]}</span>` },
  ];
  const content = html`${doneNotice(query, { saved: general.saved })}<p>${said.intro}</p>
${table(menu.postbacks, columns, postbacks, said.none)}
<h2>${said.new_postback}</h2>
${form(me.texts, {
  action: '/portal/postbacks',
  button: general.create,
  typed,
  errors,
  fields: [
    { name: 'url', label: said.url, hint: said.url_hint, kind: 'url', required: true },
    { name: 'description', label: said.description },
  ],
})}`;
  return sendPortal(reply, me, { title: menu.postbacks, at: 'postbacks', content }, status);
}

const showSecret = (reply: FastifyReply, me: Me, id: string, secret: string): FastifyReply => {
  const { postbacks: said, menu, general } = me.texts;
  const content = html`${notice(said.secret_hint, true)}<p class="card">${said.secret}: ${copyable(secret, me.texts)}</p>
<p><a href="/portal/postbacks/${id}">${general.back}</a></p>`;
  return sendPortal(reply, me, { title: menu.postbacks, at: 'postbacks', content }, 200);
};

function actionButtons({ texts: { postbacks: said } }: Me, { id, status }: Postback): Html {
  const names: [action: string, name: string][] = [
    ['ping', said.ping],
    status === 'enabled' ? ['disable', said.disable] : ['enable', said.enable],
    ['rotate', said.rotate],
    ['delete', said.delete],
  ];
  return html`<ul class="actions">${names.map(
    ([action, name]) =>
      html`<li><form method="post" action="/portal/postbacks/${id}/${action}">${once()}<button class="${action === 'delete' ? 'danger' : 'plain'}">${name}</button></form></li>`,
  )}</ul>`;
}

function deliveryTable(me: Me, rows: Delivery[]): Html {
  const { texts } = me;
  const { postbacks: said, general } = texts;
  const columns = [
    {
      title: general.date,
      cell: ({ id, created_at }: Delivery) =>
        html`<a href="/portal/deliveries/${id}">${time(created_at, me.reader)}</a>`,
    },
    { title: said.event, cell: ({ event_type }: Delivery) => html`<code>${event_type}</code>` },
    {
      title: general.status,
      cell: ({ status }: Delivery) => html`<span class="status">${said.delivery[status]}</span>`,
    },
    { title: said.attempts, is_number: true, cell: ({ attempt }: Delivery) => attempt },
    { title: said.response, cell: ({ attempts }: Delivery) => attempts.at(-1)?.status_code ?? attempts.at(-1)?.error },
  ];
  return table(said.log, columns, rows, said.no_deliveries);
}

function deliveryContent(me: Me, delivery: Delivery & { endpoint_id: string }): Html {
  const { texts } = me;
  const { postbacks: said, general } = texts;
  return html`${facts([
    [general.date, time(delivery.created_at, me.reader)],
    [general.status, said.delivery[delivery.status]],
  ])}
<form method="post" action="/portal/deliveries/${delivery.id}/replay">${once()}<p><button class="plain">${said.replay}</button></p></form>
<h2>${said.body}</h2><pre>${delivery.request_body}</pre>
<h2>${said.attempts}</h2>
${delivery.attempts.map(
  ({ at, status_code, error, response_body }) =>
    html`<p>${time(at, me.reader)} · ${status_code ?? error}</p>${response_body && html`<pre>${response_body}</pre>`}`,
)}
<p><a href="/portal/postbacks/${delivery.endpoint_id}">${general.back}</a></p>`;
}
