/** Signing in by a link: a page with a button, because programs that read mail open links, and one redemption. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { endSession, openSession, type Person } from '../core/access/session.ts';
import { sha256 } from '../core/encryption/vault.ts';
import { withinDeadline } from '../core/http/deadline.ts';
import type { Store, Tx } from '../core/postgres/transaction.ts';
import { transaction } from '../core/postgres/transaction.ts';
import { HourlyLimit } from './hourly_limit.ts';
import { type Html, html } from './html.ts';
import { notice, sendHtml } from './layout.ts';
import { type Area, clearCookie, setCookie } from './person.ts';

/** The texts of the pages, in a language. */
export interface SignInTexts {
  language: string;
  service: string;
  title: string;
  press: string;
  button: string;
  ask: string;
  email: string;
  send: string;
  sent: string;
  /** The service has no SMTP server. */
  no_mail: string;
  expired: string;
  invalid_email: string;
  signed_out: string;
  /** The browser has kept no cookie. */
  no_cookie?: string;
  /** Who had signed in no longer may. */
  closed?: string;
  /** `Skip to the content`, where the language is not English. */
  skip?: string;
}

export interface SignIn {
  area: Area;
  /** The texts for who asks. */
  textsFor(request: FastifyRequest): SignInTexts;
  /** Redeems a token, once. */
  redeem(tx: Tx, token: string): Promise<{ organization_id: string; person: Person } | undefined>;
  /** False: nothing can be mailed, and the page says who can make a link. */
  sends_mail: boolean;
  /** The job that mails links to whom an email address belongs: whether it belongs to anybody, nobody who asks can tell. */
  task: string;
}

/** Links that are asked for from one address in an hour; how many a person is mailed is limited besides. */
const most_asked_an_hour = 30;
/** The most characters of an email address. */
const most_email = 254;
const in_english =
  'Your browser has not kept you signed in. Allow cookies, and open the service at an address that begins with https. Then ask for another link.';
const service = (request: FastifyRequest) => ({ organization_id: null, request_id: request.id });

/** Adds `/dashboard/sign_in` and the like. */
export function mountSignIn(
  app: FastifyInstance,
  store: Store,
  { area, textsFor, redeem, sends_mail, task }: SignIn,
): void {
  const home = `/${area}`;
  const limit = new HourlyLimit(most_asked_an_hour);
  const show = (
    request: FastifyRequest,
    reply: FastifyReply,
    status: number,
    content: (texts: SignInTexts) => Html,
  ) => {
    const texts = textsFor(request);
    return sendHtml(reply, status, {
      language: texts.language,
      title: texts.title,
      of: texts.service,
      ...(texts.skip === undefined ? {} : { skip: texts.skip }),
      content: content(texts),
    });
  };
  const asking = (texts: SignInTexts, error?: string, email = ''): Html =>
    !sends_mail
      ? notice(texts.no_mail, true)
      : html`<form class="stacked" method="post" action="${home}/sign_in_link">
<p class="hint">${texts.ask}</p>
<div class="field"><label for="email">${texts.email}</label>
<input id="email" name="email" type="email" autocomplete="email" required maxlength="${most_email}" value="${email}"${error && html` aria-invalid="true" aria-describedby="email-error"`}>
${error && html`<p class="error" id="email-error">${error}</p>`}</div>
<div><button>${texts.send}</button></div>
</form>`;

  app.get(`${home}/sign_in`, async (request, reply) => {
    const { token, out, closed } = request.query as { token?: unknown; out?: unknown; closed?: unknown };
    if (typeof token !== 'string')
      return show(
        request,
        reply,
        200,
        (texts) =>
          html`${out !== undefined && notice(texts.signed_out)}${closed !== undefined && texts.closed !== undefined && notice(texts.closed, true)}${asking(texts)}`,
      );
    return show(
      request,
      reply,
      200,
      (texts) => html`<form class="stacked" method="post" action="${home}/sign_in">
<p>${texts.press}</p><input type="hidden" name="token" value="${token}"><div><button>${texts.button}</button></div>
</form>`,
    );
  });

  app.post(`${home}/sign_in`, async (request, reply) => {
    const token = formOf(request).get('token') ?? '';
    const agent = request.headers['user-agent'] ?? '';
    const opened = await withinDeadline(request, 'pages', (asked) =>
      transaction(store, { ...service(request), asked }, async (tx) => {
        const found = await redeem(tx, token);
        return found && openSession(tx, found.organization_id, found.person, agent);
      }),
    );
    if (!opened) return show(request, reply, 410, (texts) => html`${notice(texts.expired, true)}${asking(texts)}`);
    return setCookie(reply, area, opened).redirect(`${home}/signed_in`, 303);
  });

  app.get(`${home}/signed_in`, async (request, reply) =>
    request.session
      ? reply.redirect(home, 303)
      : show(request, reply, 400, ({ no_cookie = in_english }) => notice(no_cookie, true)),
  );

  app.post(`${home}/sign_in_link`, async (request, reply) => {
    if (!sends_mail) return show(request, reply, 503, (texts) => asking(texts));
    const email = (formOf(request).get('email') ?? '').trim();
    if (!isAddress(email)) return show(request, reply, 400, (texts) => asking(texts, texts.invalid_email, email));
    limit.count(request);
    await withinDeadline(request, 'pages', (asked) =>
      transaction(store, { ...service(request), asked }, async (tx) => {
        mailLinks(tx, task, email, textsFor(request).language);
      }),
    );
    return show(request, reply, 200, (texts) => notice(texts.sent));
  });

  app.post(`${home}/sign_out`, async (request, reply) => {
    if (request.session) await endSession(store.database, request.session);
    return clearCookie(reply, area).redirect(`${home}/sign_in?out`, 303);
  });
}

/** A text that can be the address of a person: a control character is in none, and cannot be stored. */
const isAddress = (email: string): boolean =>
  /^[^\s@\p{Cc}]+@[^\s@\p{Cc}]+$/u.test(email) && email.length <= most_email;

/** Mails links to sign in to whom an address belongs, by a job of which each address has one at a time. */
export const mailLinks = (tx: Tx, task: string, email: string, language: string): void =>
  tx.enqueue(task, { email, language }, { job_key: `${task}:${sha256(email.toLowerCase()).toString('hex')}` });

/** The fields of a form that was sent; none where another type of body came. */
export const formOf = ({ body }: FastifyRequest): URLSearchParams =>
  body instanceof URLSearchParams ? body : new URLSearchParams();
