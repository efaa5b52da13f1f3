/** The settings of a partner: emails, language, sessions, and the terms. */
import type { FastifyInstance, FastifyReply } from 'fastify';
import { openSessionsOf } from '../core/access/session.ts';
import type { Problem } from '../core/values/problem.ts';
import { time } from '../pages/format.ts';
import { html } from '../pages/html.ts';
import { notice } from '../pages/layout.ts';
import { perform } from '../pages/run.ts';
import { formOf } from '../pages/sign_in.ts';
import { table } from '../pages/table.ts';
import { language_codes, language_names } from '../program/partners/mails/languages.ts';
import { browserOf } from './browser.ts';
import { type Errors, errorsOf, form, one, typedFrom, typedIn } from './fields.ts';
import { doneNotice, sendPortal } from './frame.ts';
import { type PortalVisit, readPage, type Visiting } from './visit.ts';

const mails = ['email_first_referral', 'email_new_referral', 'email_payout_paid'] as const;

export function mountSettings(app: FastifyInstance, visiting: Visiting): void {
  app.get('/portal/notifications', async (request, reply) =>
    showNotifications(reply, visiting(request), request.query),
  );

  app.post('/portal/notifications', async (request, reply) => {
    const visit = visiting(request);
    const typed = typedIn(formOf(request));
    const { me } = await readPage(visit, async () => ({}));
    const body = {
      ...Object.fromEntries(mails.map((name) => [name, one(typed, name) === 'true'])),
      language_code: one(typed, 'language_code') ?? null,
    };
    try {
      await perform(visit, 'partners.update', { params: { id: visit.partner_id }, body }, one(typed, 'form_key'));
    } catch (problem) {
      const errors = errorsOf(problem, me.texts, ['language_code', ...mails]);
      return showNotifications(reply, visit, {}, errors, (problem as Problem).status);
    }
    return reply.redirect('/portal/notifications?done=saved', 303);
  });

  app.post('/portal/sessions', async (request, reply) => {
    const visit = visiting(request);
    await readPage(visit, async () => ({}));
    await perform(visit, 'sessions.end_others', {});
    return reply.redirect('/portal/notifications?done=ended', 303);
  });

  app.get('/portal/terms', async (request, reply) => showTerms(reply, visiting(request)));

  app.post('/portal/terms', async (request, reply) => {
    const visit = visiting(request);
    const typed = typedIn(formOf(request));
    const { me } = await readPage(visit, async () => ({}));
    if (one(typed, 'accept') !== 'true') return showTerms(reply, visit, { accept: me.texts.general.required }, 400);
    const body = { terms_version: one(typed, 'terms_version') ?? '' };
    try {
      await perform(visit, 'partners.accept_terms', { params: { id: visit.partner_id }, body }, one(typed, 'form_key'));
    } catch (problem) {
      // Another version came meanwhile: the page shows that one.
      const { changed: terms_version } = me.texts.terms;
      const errors = errorsOf(problem, me.texts, ['accept'], { terms_version: 'accept' }, { terms_version });
      return showTerms(reply, visit, errors, (problem as Problem).status);
    }
    return reply.redirect('/portal', 303);
  });
}

async function showNotifications(
  reply: FastifyReply,
  visit: PortalVisit,
  query: unknown,
  errors: Errors = {},
  status = 200,
): Promise<FastifyReply> {
  const { me, sessions } = await readPage(visit, async (_, __, tx) => ({
    sessions: await openSessionsOf(tx, visit.session),
  }));
  const { texts, partner } = me;
  const { notifications: said, general } = texts;
  const typed = typedFrom({
    ...Object.fromEntries(mails.map((name) => [name, partner[name] ? 'true' : ''])),
    language_code: partner.language_code,
  });
  const columns = [
    {
      title: said.browser,
      cell: ({ user_agent, id }: Sessions) =>
        `${browserOf(user_agent)}${id === visit.session.id ? ` (${said.this_one})` : ''}`,
    },
    { title: said.last_seen, cell: ({ last_seen_at }: Sessions) => time(last_seen_at, me.reader) },
  ];
  const content = html`${doneNotice(query, { saved: general.saved, ended: said.ended })}
${form(texts, {
  action: '/portal/notifications',
  button: general.save,
  typed,
  errors,
  fields: [
    { name: 'email_first_referral', label: said.first_referral, kind: 'checkbox' },
    { name: 'email_new_referral', label: said.new_referral, kind: 'checkbox' },
    { name: 'email_payout_paid', label: said.payout_paid, kind: 'checkbox' },
    {
      name: 'language_code',
      label: said.language,
      kind: 'choice',
      options: language_codes.map((code) => [code, language_names[code]]),
    },
  ],
})}
<h2>${said.sessions}</h2>
${table(said.sessions, columns, sessions, general.none_yet)}
${sessions.length > 1 && html`<form method="post" action="/portal/sessions"><p><button class="plain">${said.end_others}</button></p></form>`}`;
  return sendPortal(reply, me, { title: texts.menu.notifications, at: 'notifications', content }, status);
}

type Sessions = Awaited<ReturnType<typeof openSessionsOf>>[number];

async function showTerms(
  reply: FastifyReply,
  visit: PortalVisit,
  errors: Errors = {},
  status = 200,
): Promise<FastifyReply> {
  const { me } = await readPage(visit, async () => ({}));
  const { texts, program, partner, must_accept } = me;
  const { terms: said } = texts;
  const link =
    program.terms_url !== null &&
    html`<p><a href="${program.terms_url}" rel="noopener">${said.read}</a> (${said.version} ${program.terms_version})</p>`;
  const content = must_accept
    ? html`<p>${said.text}</p>${link}${form(texts, {
        action: '/portal/terms',
        button: texts.general.save,
        hidden: { terms_version: program.terms_version ?? '' },
        fields: [{ name: 'accept', label: said.accept, kind: 'checkbox', required: true }],
        errors,
      })}`
    : html`${link}${partner.terms_version !== null && notice(said.accepted(partner.terms_version))}`;
  return sendPortal(reply, me, { title: said.title, at: 'terms', content }, status);
}
