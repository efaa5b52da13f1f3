/** Settings: the program by what its settings are about, the team, and the keys of programs that call the API. */
import type { Operation } from '../core/resource/operation.ts';
import { words } from '../pages/format.ts';
import { type Html, html } from '../pages/html.ts';
import { facts } from '../pages/table.ts';
import { listTable } from './list_page.ts';
import { withNames } from './named.ts';
import { noProgram } from './none_yet.ts';
import { mayDo } from './roles.ts';
import { type Record_, shown } from './values.ts';
import { type DashboardVisit, readPage } from './visit.ts';

/** The settings of a program that are changed together. A test compares them with `programs.update`. */
export const sections: { title: string; hint: string; fields: string[] }[] = [
  {
    title: 'Brand',
    hint: 'What partners and applicants see of you.',
    fields: ['name', 'product_name', 'website_url', 'custom_domain', 'timezone', 'status'],
  },
  {
    title: 'Terms',
    hint: 'Partners accept them when they join, and again when the version changes.',
    fields: ['terms_url', 'terms_version'],
  },
  {
    title: 'Applications',
    hint: 'What applicants are asked, and who has to be approved.',
    fields: ['questions', 'application_required', 'auto_enrol_customers', 'default_rejection_reason'],
  },
  {
    title: 'Attribution',
    hint: 'Which partner a sale is credited to.',
    fields: [
      ...['cookie_days', 'attribution', 'url_params', 'commission_on_net_revenue', 'block_self_referrals'],
      ...['blocked_countries', 'processor'],
    ],
  },
  {
    title: 'Payouts',
    hint: 'When partners are paid, how, and from which balance on.',
    fields: [
      ...['holding_period_days', 'payout_term', 'payout_methods', 'min_payout_minor', 'min_payouts'],
      ...['payout_approval_required', 'payout_limit_minor', 'payout_limits', 'require_tax_forms'],
      'auto_payouts_enabled',
    ],
  },
  { title: 'Emails', hint: 'What the service sends by itself.', fields: ['partner_emails', 'weekly_summary'] },
];

const most_shown = 25;

export async function settingsPage(visit: DashboardVisit) {
  const { program, users, keys, chosen } = await readPage(visit, async (use, { program_id }) => ({
    program:
      program_id === undefined ? undefined : ((await use('programs.get', { params: { id: program_id } })) as Record_),
    users: (await use('users.list', { query: { limit: most_shown } })).data as Record_[],
    keys: await withNames(
      visit,
      use,
      (await use('api_keys.list', { query: { limit: most_shown, status: 'active' } })).data,
      program_id,
    ),
  }));
  const content = html`${program ? programContent(visit, program) : noProgram(visit)}
${people(visit, users)}${keysOf(visit, keys)}`;
  return { title: 'Settings', chosen, content };
}

const changeLink = (visit: DashboardVisit, id: string, fields: string[]): Html | false =>
  mayDo(visit.role, 'programs:write') &&
  html`<p><a class="button plain" href="/dashboard/do/programs.update?${new URLSearchParams({ id, only: fields.join(), back: '/dashboard/settings' })}">Change</a></p>`;

function programContent(visit: DashboardVisit, program: Record_): Html {
  const { id, subdomain } = program as { id: string; subdomain: string };
  const join = `${visit.services.base_url}/join/${subdomain}`;
  return html`${sections.map(
    ({ title, hint, fields }) => html`<section class="card"><h2>${title}</h2><p class="hint">${hint}</p>
${title === 'Applications' && html`<p>Partners join at <a href="${join}">${join}</a>. Each <a href="/dashboard/groups">group</a> has a page of its own.</p>`}
${facts(fields.map((name) => [words(name), shown(visit, name, program[name], program)]))}${changeLink(visit, id, fields)}</section>
`,
  )}`;
}

function people(visit: DashboardVisit, users: Record_[]): Html {
  return html`<h2>Team</h2>${tableOf(visit, 'users.list', users)}
<ul class="actions">${mayDo(visit.role, 'users:write') && html`<li><a class="button" href="/dashboard/do/users.create">Add a person</a></li>`}<li><a href="/dashboard/users">All people</a></li><li><a href="/dashboard/audit_log">Who did what</a></li></ul>`;
}

function keysOf(visit: DashboardVisit, keys: Record_[]): Html {
  return html`<h2>API keys</h2><p class="hint">Your programs call the API with them. The key of the script for your pages is among the <a href="/dashboard/integrations">integrations</a>.</p>
${tableOf(visit, 'api_keys.list', keys)}
<ul class="actions">${mayDo(visit.role, 'keys:write') && html`<li><a class="button" href="/dashboard/do/api_keys.create">Create a key</a></li>`}<li><a href="/dashboard/api_keys">All keys</a></li></ul>`;
}

const tableOf = (visit: DashboardVisit, list: string, rows: Record_[]): Html =>
  listTable(visit, visit.catalog.operations.get(list) as Operation, rows, 'None yet.');
