/** The page to join a program, or one of its groups: `/join/{subdomain}` and `/join/{subdomain}/{slug}`. Nobody is signed in. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import sql from 'sql-template-tag';
import { withinDeadline } from '../core/http/deadline.ts';
import { type Tx, transaction } from '../core/postgres/transaction.ts';
import { allows } from '../core/resource/states.ts';
import { databaseTime } from '../core/values/clock.ts';
import { notFound } from '../core/values/problem.ts';
import { HourlyLimit } from '../pages/hourly_limit.ts';
import { type Html, html } from '../pages/html.ts';
import { notice, sendHtml } from '../pages/layout.ts';
import { formOf } from '../pages/sign_in.ts';
import { invitationOf } from '../program/partners/group_invitation.ts';
import { language_codes, language_names } from '../program/partners/mails/languages.ts';
import { type Program, program_states, programs } from '../program/programs/program.ts';
import type { Question } from '../program/programs/questions.ts';
import { type Asked, apply, type Group, type Place } from './apply.ts';
import { countriesIn } from './countries.ts';
import { type Errors, form, type PortalField, type Typed, typedFrom, typedIn } from './fields.ts';
import { textsIn, wantedLanguage } from './texts/languages.ts';
import type { Serving } from './visit.ts';

/** Applications from one address in an hour. */
const most_an_hour = 20;

export function mountJoin(app: FastifyInstance, serving: Serving): void {
  const limit = new HourlyLimit(most_an_hour);
  for (const path of ['/join/:subdomain', '/join/:subdomain/:slug']) {
    app.get(path, async (request, reply) => {
      const asked = askedBy(request, request.query);
      const place = await placeOf(serving, request);
      const refusal = refusalOf(serving, place, asked);
      if (refusal) return sendJoin(reply, place, asked, refusal);
      return sendJoin(reply, place, asked, formPage(place, asked));
    });

    app.post(path, async (request, reply) => {
      const typed = typedIn(formOf(request));
      const asked = askedBy(request, Object.fromEntries(formOf(request)));
      const place = await placeOf(serving, request);
      const refusal = refusalOf(serving, place, asked);
      if (refusal) return sendJoin(reply, place, asked, refusal);
      limit.count(request);
      const errors = await apply(serving, request, place, asked, typed);
      if (errors) return sendJoin(reply, place, asked, { ...formPage(place, asked, typed, errors), status: 400 });
      return sendJoin(reply, place, asked, thanksPage(serving, place, asked));
    });
  }
}

function askedBy(request: FastifyRequest, given: unknown): Asked {
  const { invitation, rail_invitation, language_code } = given as Record<string, unknown>;
  const own = typeof language_code === 'string' ? language_code : null;
  const language = wantedLanguage(own, request.headers['accept-language']);
  const hidden = Object.entries({ invitation, rail_invitation }).filter(
    ([, value]) => typeof value === 'string' && value !== '',
  );
  const { subdomain, slug } = request.params as { subdomain: string; slug?: string };
  const address = `/join/${encodeURIComponent(subdomain)}${slug === undefined ? '' : `/${encodeURIComponent(slug)}`}`;
  return { address, hidden: Object.fromEntries(hidden) as Record<string, string>, language, texts: textsIn(language) };
}

/** "`subdomain`: unique over all organizations." @throws Problem resource_not_found */
function placeOf({ store }: Serving, request: FastifyRequest): Promise<Place> {
  const { subdomain, slug } = request.params as { subdomain: string; slug?: string };
  return withinDeadline(request, 'pages', (asked) =>
    transaction(store, { organization_id: null, request_id: request.id, asked }, async (tx) => {
      const program = await tx.maybe<Program & { organization_id: string }>(sql`
        select t.organization_id, ${programs.columns} from ${programs.from} where t.subdomain = ${subdomain}`);
      if (!program) throw notFound('program', subdomain, 'subdomain');
      const group = slug === undefined ? undefined : await groupOf(tx, program, slug);
      if (slug !== undefined && !group) throw notFound('group', slug, 'slug');
      return { organization_id: program.organization_id, program, group: group ?? null };
    }),
  );
}

const groupOf = (
  tx: Tx,
  { organization_id, id }: { organization_id: string; id: string },
  slug: string,
): Promise<Group | undefined> =>
  tx.maybe<Group>(sql`
    select t.id, t.name, t.description, t.landing_url, t.is_private
    from program.partner_group t
    where t.organization_id = ${organization_id} and t.program_id = ${id} and t.slug = ${slug} and t.deleted_at is null`);

interface JoinPage {
  title: string;
  content: Html;
  status: number;
}

/** A private group is not found, unless somebody comes with an invitation: then the page says what is wrong with it. */
function refusalOf(
  { services: { vault } }: Serving,
  { program, group }: Place,
  { hidden, texts }: Asked,
): JoinPage | undefined {
  const { join } = texts;
  if (group?.is_private) {
    if (hidden.invitation === undefined) throw notFound('group', group.name, 'slug');
    const invitation = invitationOf(vault, hidden.invitation);
    if (invitation?.group_id !== group.id || Date.parse(invitation.expires_at) <= databaseTime())
      return { title: join.invitation_title, content: notice(join.invitation, true), status: 410 };
  }
  if (allows(program_states, program.status, 'join')) return undefined;
  return { title: join.paused_title, content: notice(join.paused, true), status: 409 };
}

const sendJoin = (
  reply: FastifyReply,
  { program }: Place,
  { language, texts }: Asked,
  { title, content, status }: JoinPage,
): FastifyReply =>
  sendHtml(reply, status, {
    language,
    title,
    of: program.name,
    skip: texts.general.skip,
    top: html`<header class="top"><span class="brand">${program.name}</span></header>`,
    content,
  });

/** Says the same to everybody: who is a partner already gets a link in place of the mail about an application. */
function thanksPage({ services }: Serving, { program }: Place, { texts: { join } }: Asked): JoinPage {
  const is_mailed = program.partner_emails && services.mailer !== undefined;
  const [title, text] = is_mailed ? [join.sent_title, join.sent] : [join.received_title, join.received];
  return { title, content: notice(text), status: 200 };
}

function formPage({ program, group }: Place, asked: Asked, typed: Typed = {}, errors: Errors = {}): JoinPage {
  const { join } = asked.texts;
  const about =
    group &&
    html`<p>${join.group(group.name)} ${group.description} ${group.landing_url !== null && html`<a href="${group.landing_url}" rel="noopener">${join.more}</a>`}</p>`;
  const content = html`<p>${join.intro(program.product_name)}</p>${about}
${form(asked.texts, {
  action: asked.address,
  button: join.apply,
  hidden: { ...asked.hidden, terms_version: program.terms_version ?? '' },
  typed: Object.keys(typed).length > 0 ? typed : typedFrom({ language_code: asked.language }),
  errors,
  fields: fieldsOf(program, asked),
})}
<p>${join.member} <a href="/portal/sign_in">${asked.texts.sign_in.button}</a></p>`;
  return { title: join.title(program.name), content, status: 200 };
}

function fieldsOf({ questions, terms_url }: Program, { language, texts: { join } }: Asked): PortalField[] {
  const terms: PortalField[] =
    terms_url === null
      ? []
      : [
          {
            name: 'terms',
            kind: 'checkbox',
            required: true,
            label: html`${join.terms_before}<a href="${terms_url}" rel="noopener">${join.terms_link}</a>${join.terms_after}`,
          },
        ];
  return [
    { name: 'email', label: join.email, hint: join.email_hint, kind: 'email', required: true, autocomplete: 'email' },
    { name: 'first_name', label: join.first_name, autocomplete: 'given-name' },
    { name: 'last_name', label: join.last_name, autocomplete: 'family-name' },
    { name: 'company_name', label: join.company, autocomplete: 'organization' },
    { name: 'website_url', label: join.website, kind: 'url', autocomplete: 'url' },
    {
      name: 'country_code',
      label: join.country,
      kind: 'choice',
      options: countriesIn(language),
      autocomplete: 'country',
    },
    {
      name: 'language_code',
      label: join.language,
      kind: 'choice',
      options: language_codes.map((code) => [code, language_names[code]]),
    },
    ...questions.map(questionField),
    ...terms,
  ];
}

function questionField({ key, label, kind, required, options }: Question): PortalField {
  const kinds = {
    text: 'text',
    long_text: 'long',
    url: 'url',
    choice: 'choice',
    choices: 'choices',
    checkbox: 'checkbox',
  } as const;
  return {
    name: `answers.${key}`,
    label,
    kind: kinds[kind],
    required,
    options: options.map((option) => [option, option]),
  };
}
