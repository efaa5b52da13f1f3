/** A partner: what they have earned, how they stand, and all that belongs to them, each with the way to its list. */
import type { Tx } from '../core/postgres/transaction.ts';
import { money, words } from '../pages/format.ts';
import { type Html, html } from '../pages/html.ts';
import type { Use } from '../pages/run.ts';
import { facts } from '../pages/table.ts';
import { type Balance, balancesOf } from '../program/commissions/balances.ts';
import { actionList, recordFacts } from './record_page.ts';
import { relatedContent } from './related.ts';
import { mayDo } from './roles.ts';
import { type Record_, shown } from './values.ts';
import type { DashboardVisit } from './visit.ts';

/** The fields that tell partners apart; the rest is folded. */
const first = [
  'first_name',
  'last_name',
  'email',
  'handle',
  'status',
  'company_name',
  'website_url',
  'country_code',
  'group_id',
];
const reasons = ['decline_reason', 'suspension_reason'];

export async function partnerContent(visit: DashboardVisit, partner: Record_, use: Use, tx: Tx): Promise<Html> {
  const { id, program_id } = partner as { id: string; program_id: string };
  const [balances, below] = await Promise.all([
    mayDo(visit.role, 'commissions:read') ? balancesOf(tx, { id, program_id }) : [],
    relatedContent(visit, use, 'partners', partner),
  ]);
  const told = [...first, ...reasons].filter((name) => partner[name] !== null);
  return html`${balanceCards(visit, balances)}
${actionList(visit, 'partners', { id }, partner)}
${facts(told.map((name) => [words(name.replace(/_id$/, '')), shown(visit, name, partner[name], partner)]))}
<details><summary>All fields</summary>${recordFacts(visit, partner, told)}</details>
${below}
<p class="pages"><a href="/dashboard/reports?${new URLSearchParams({ partner_id: id })}">Reports</a> <a href="/dashboard/clicks?${new URLSearchParams({ partner_id: id })}">Clicks</a> <a href="/dashboard/referrals?${new URLSearchParams({ partner_id: id })}">Referrals</a></p>`;
}

const balanceCards = (visit: DashboardVisit, balances: Balance[]): Html | false =>
  balances.length > 0 &&
  html`<ul class="cards">${balances.map(({ state, currency, amount_minor }) => html`<li class="card"><strong>${money(amount_minor, currency, visit.reader)}</strong>${words(state)}</li>`)}</ul>`;
