/** Your account: the sessions that are open, and the app that makes codes. */
import type { FastifyInstance, FastifyReply } from 'fastify';
import { confirmSession, keepTotp } from '../core/access/confirm_session.ts';
import { endSessionsOf, openSessionsOf } from '../core/access/session.ts';
import { base32, newTotpSecret, totpUrl } from '../core/access/totp.ts';
import { roles } from '../core/access/user.ts';
import { withinDeadline } from '../core/http/deadline.ts';
import { type Tx, transaction } from '../core/postgres/transaction.ts';
import { type Draft, queueMail } from '../mail/outgoing.ts';
import { time } from '../pages/format.ts';
import { type Html, html } from '../pages/html.ts';
import { notice } from '../pages/layout.ts';
import { formOf } from '../pages/sign_in.ts';
import { facts, table } from '../pages/table.ts';
import { qrSvg } from '../program/tracking/link_qr.ts';
import { sendDashboard } from './frame.ts';
import { type DashboardVisit, readPage, type Visiting } from './visit.ts';

/** The name under which the secret of an app is encrypted in the form, while this person sets it up. */
const nameOfNew = ({ session }: DashboardVisit): string => `totp that ${session.user_id} sets up`;

/** Work of a visitor on their own session or account, in a transaction. */
const ofService = <T>({ request, store }: DashboardVisit, work: (tx: Tx) => Promise<T>): Promise<T> =>
  withinDeadline(request, 'pages', (asked) =>
    transaction(store, { organization_id: null, request_id: request.id, asked }, work),
  );

/** Checks a code that came with a form, where the session was not confirmed a short time ago. */
export const confirm = (visit: DashboardVisit, code: string): Promise<boolean> =>
  ofService(visit, (tx) => confirmSession(tx, visit.session, code, visit.services.vault));

interface Failed {
  said: Html;
  /** The app that is being set up, which stays the same while its code is typed wrong. */
  sealed?: string | undefined;
}

async function show(visit: DashboardVisit, reply: FastifyReply, said?: Html, failed?: Failed): Promise<FastifyReply> {
  const { sessions, chosen } = await readPage(visit, async (_, __, tx) => ({
    sessions: await openSessionsOf(tx, visit.session),
  }));
  const { session, role, reader } = visit;
  const app = await setUp(visit, session.has_totp ? 'Replace the app' : 'Set up the app', failed?.sealed);
  const content = html`${failed?.said ?? said}${facts([
    ['Email', session.email],
    ['Role', `${role}: ${roles[role]}`],
  ])}
<h2>Sessions</h2>
${table(
  'Sessions',
  [
    {
      title: 'Browser',
      cell: ({ id, user_agent }) =>
        html`<span title="${user_agent}">${browserOf(user_agent)}</span>${id === session.id && html` <span class="status">this one</span>`}`,
    },
    { title: 'Last used', cell: ({ last_seen_at }) => time(last_seen_at, reader) },
    { title: 'Signed in', cell: ({ created_at }) => time(created_at, reader) },
    {
      title: 'End',
      cell: ({ id }) =>
        id !== session.id &&
        html`<form method="post" action="/dashboard/account/end_session"><input type="hidden" name="id" value="${id}"><button class="plain">Sign out there</button></form>`,
    },
  ],
  sessions,
  'No session is open.',
)}
${sessions.length > 1 && html`<form method="post" action="/dashboard/account/end_session"><p><button class="plain">Sign out everywhere else</button></p></form>`}
<h2>Authenticator app</h2>
${
  session.has_totp
    ? html`<p>An app is set up. Its codes confirm what moves money or opens access.</p>
<form class="inline" method="post" action="/dashboard/account/confirm"><div class="field"><label for="now">Code of your app</label><input id="now" name="code" inputmode="numeric" autocomplete="one-time-code" required></div><button>Confirm that it is you</button></form>${app}`
    : app
}`;
  return sendDashboard(reply, visit, { title: 'Your account', content, at: 'account', chosen }, failed ? 400 : 200);
}

const browsers = ['Edg', 'OPR', 'Firefox', 'Chrome', 'Safari'];
const systems = ['Windows', 'Android', 'iPhone', 'iPad', 'Mac OS', 'Linux'];
const spelled: Record<string, string> = { Edg: 'Edge', OPR: 'Opera', 'Mac OS': 'macOS' };

/** `Chrome on Linux`, of what a browser says of itself. */
function browserOf(user_agent: string | null): string {
  const named = (names: string[]) => names.find((name) => user_agent?.includes(name)) ?? '';
  const parts = [named(browsers), named(systems)].filter((name) => name !== '').map((name) => spelled[name] ?? name);
  return parts.join(' on ') || user_agent || 'Unknown';
}

async function setUp(visit: DashboardVisit, button: string, given?: string): Promise<Html> {
  const { session, services } = visit;
  const secret = (given && unsealed(visit, given)) || newTotpSecret();
  const url = totpUrl(secret, 'Rail', session.email ?? '');
  const code = `data:image/svg+xml;base64,${Buffer.from(await qrSvg(url)).toString('base64')}`;
  return html`<form class="stacked" method="post" action="/dashboard/account/app">
<p class="hint">Add this account to an authenticator app on your phone: scan the picture, open <a href="${url}">this link</a> there, or type the key. Then type the code that the app shows.</p>
<p><img src="${code}" alt="QR code of the key" width="200" height="200"></p>
<p>Key: <code>${base32(secret).replaceAll(/(.{4})(?=.)/g, '$1 ')}</code></p>
<input type="hidden" name="sealed" value="${services.vault.encrypt(secret.toString('base64'), nameOfNew(visit)).toString('base64')}">
${session.has_totp && html`<div class="field"><label for="current">Code of the app that is set up now</label><input id="current" name="current" inputmode="numeric" autocomplete="one-time-code" required></div>`}
<div class="field"><label for="code">Code of the new app</label><input id="code" name="code" inputmode="numeric" autocomplete="one-time-code" required></div>
<div><button>${button}</button></div></form>`;
}

export function mountAccount(app: FastifyInstance, visiting: Visiting): void {
  app.get('/dashboard/account', async (request, reply) => show(visiting(request), reply));

  app.post('/dashboard/account/end_session', async (request, reply) => {
    const visit = visiting(request);
    const id = formOf(request).get('id');
    await withinDeadline(request, 'pages', (asked) =>
      transaction(
        visit.store,
        { organization_id: visit.session.organization_id, request_id: request.id, asked },
        (tx) => endSessionsOf(tx, visit.session, id === null ? 'others' : { id }),
      ),
    );
    return reply.redirect('/dashboard/account', 303);
  });

  app.post('/dashboard/account/confirm', async (request, reply) => {
    const visit = visiting(request);
    const is_right = await confirm(visit, formOf(request).get('code') ?? '');
    return is_right
      ? show(visit, reply, notice('Confirmed. It holds for 15 minutes.'))
      : show(visit, reply, undefined, {
          said: notice('The code is not right, or was used. Wait for the next one.', true),
        });
  });

  app.post('/dashboard/account/app', async (request, reply) => {
    const visit = visiting(request);
    const { session, services } = visit;
    const form = formOf(request);
    const sealed = form.get('sealed') ?? '';
    const refuse = (said: string) => show(visit, reply, undefined, { said: notice(said, true), sealed });
    if (session.has_totp && !(await confirm(visit, form.get('current') ?? '')))
      return refuse('The code of the app that is set up now is not right, or was used. Wait for the next one.');
    const secret = unsealed(visit, sealed);
    const code = form.get('code') ?? '';
    const is_kept =
      secret &&
      (await ofService(visit, async (tx) => {
        const kept = await keepTotp(tx, session, { secret, code }, services.vault);
        if (kept) await queueMail(tx, mailOfNewApp(session));
        return kept;
      }));
    if (!is_kept) return refuse('The code of the new app is not right. Type the one that the app shows now.');
    return reply.redirect('/dashboard/account', 303);
  });
}

/** Tells the person: whoever holds a session of theirs, or their mailbox, could have set it up. */
const mailOfNewApp = ({ organization_id, email }: DashboardVisit['session']): Draft => ({
  organization_id,
  recipient: email,
  subject: 'Your authenticator app for Rail was set up',
  text: [
    'An authenticator app was set up for your account, or replaced. Your other sessions were ended.',
    '',
    'If it was not you, tell an owner of the organization to remove you at once, and the operator to run `npx --no rail user forget-app`.',
    '',
  ].join('\n'),
});

function unsealed(visit: DashboardVisit, sealed: string): Buffer | undefined {
  try {
    return Buffer.from(visit.services.vault.decrypt(Buffer.from(sealed, 'base64'), nameOfNew(visit)), 'base64');
  } catch {
    return undefined;
  }
}
