/** The frame of the dashboard: the bar above, and the menu. */
import type { FastifyReply } from 'fastify';
import { type Html, html } from '../pages/html.ts';
import { sendHtml } from '../pages/layout.ts';
import { listTitle } from './catalog.ts';
import { isOperator } from './roles.ts';
import type { Chosen, DashboardVisit } from './visit.ts';

export const service = 'Rail';

/** The rooms of the menu: paths below `/dashboard`, or nouns of lists. */
const menu: { title: string; items: [path: string, title?: string][] }[] = [
  {
    title: 'Program',
    items: [
      ['', 'Home'],
      ['review', 'Applications to review'],
      ['risk', 'Risk queue'],
      ['partners'],
      ['groups'],
      ['tags'],
      ['links'],
      ['coupons'],
      ['rules'],
    ],
  },
  {
    title: 'Money',
    items: [
      ['sales'],
      ['refunds'],
      ['disputes'],
      ['sale_claims'],
      ['commissions'],
      ['maturing', 'Maturing commissions'],
      ['payout_run', 'Payout run'],
      ['payout_batches'],
      ['payouts'],
      ['risk_flags'],
    ],
  },
  { title: 'Visitors', items: [['clicks'], ['referrals'], ['customers'], ['reports', 'Reports']] },
  {
    title: 'Recruitment',
    items: [
      ['board', 'Board'],
      ['inbox', 'Inbox'],
      ['brands'],
      ['prospects'],
      ['lists'],
      ['campaigns'],
      ['sequences'],
      ['threads'],
      ['inboxes'],
      ['deals'],
      ['searches'],
      ['imports'],
      ['do_not_contact'],
      ['team'],
      ['plan', 'Plan'],
    ],
  },
  {
    title: 'Connections',
    items: [
      ['webhooks', 'Webhooks'],
      ['publishable_keys'],
      ['events'],
      ['processor_events'],
      ['integrations', 'Integrations'],
    ],
  },
  {
    title: 'Settings',
    items: [
      ['settings', 'Settings'],
      ['programs'],
      ['users', 'People'],
      ['api_keys'],
      ['audit_log', 'Audit log'],
      ['account', 'Your account'],
    ],
  },
];

/** The name that the menu has for a list. */
export const titleInMenu = (tag: string): string =>
  menu.flatMap(({ items }) => items).find(([path]) => path === tag)?.[1] ?? listTitle(tag);

/** For operators alone. */
const of_service: (typeof menu)[number] = { title: 'Service', items: [['service', 'Jobs and health']] };

export interface DashboardPage {
  title: string;
  content: Html;
  /** The path below `/dashboard` that the menu marks. */
  at?: string;
  chosen?: Chosen;
}

export const sendDashboard = (
  reply: FastifyReply,
  visit: DashboardVisit,
  { title, content, at = 'none of them', chosen }: DashboardPage,
  status = 200,
): FastifyReply =>
  sendHtml(reply, status, { title, of: service, top: top(visit, chosen), menu: side(visit, at), content });

const top = ({ session, role }: DashboardVisit, chosen: Chosen | undefined): Html => html`<header class="top">
<a class="brand" href="/dashboard">${service}</a><a class="to-menu" href="#menu">Menu</a>
${
  chosen &&
  chosen.programs.length > 1 &&
  html`<form method="post" action="/dashboard/program"><label for="program">Program</label>
<select id="program" name="program_id" data-sends>${chosen.programs.map(({ id, name }) => html`<option value="${id}"${id === chosen.program_id && html` selected`}>${name}</option>`)}</select><button class="plain">Show</button></form>`
}
<form role="search" action="/dashboard/search"><label for="q">Search</label><input id="q" name="q" type="search" placeholder="Email, handle, code, ID" maxlength="254"><button class="plain">Find</button></form>
<span>${session.name ?? session.email} (${role})</span>
<form method="post" action="/dashboard/sign_out"><button class="plain">Sign out</button></form>
</header>`;

/** Lists that the menu has no place for: the page that leads to them. */
const rooms: Record<string, string> = {
  webhook_endpoints: 'webhooks',
  webhook_deliveries: 'webhooks',
  recruitment_webhook_endpoints: 'webhooks',
  recruitment_webhook_deliveries: 'webhooks',
};

const side = (visit: DashboardVisit, at: string): Html =>
  html`<nav class="side" id="menu" aria-label="Dashboard"><div class="rooms">${[
    ...menu,
    ...(isOperator(visit) ? [of_service] : []),
  ].map(
    ({ title, items }) =>
      html`<div><h2>${title}</h2><ul>${items.map(
        ([path, name]) =>
          html`<li><a href="/dashboard${path && `/${path}`}"${path === (rooms[at] ?? at) && html` aria-current="page"`}>${name ?? listTitle(path)}</a></li>`,
      )}</ul></div>`,
  )}</div></nav>`;
