/** Home: what a partner has earned, what comes next, and what is still to be done. */
import sql from 'sql-template-tag';
import type { Tx } from '../core/postgres/transaction.ts';
import { databaseTime } from '../core/values/clock.ts';
import { idTimePart } from '../core/values/id.ts';
import { day, dayText, money } from '../pages/format.ts';
import { type Html, html } from '../pages/html.ts';
import { plot } from '../pages/plot.ts';
import { facts, table } from '../pages/table.ts';
import { type Balance, balancesOf } from '../program/commissions/balances.ts';
import { payingRules, type StandingRate, standingRate } from '../program/commissions/standing_rate.ts';
import { rateIn } from '../program/partners/mails/rate_text.ts';
import type { Partner } from '../program/partners/partner.ts';
import { type OnboardingStep, openSteps } from '../program/partners/terms.ts';
import { trackedUrl } from '../program/tracking/link.ts';
import { copyable, type PortalPage } from './frame.ts';
import { type Me, type PortalVisit, readPage } from './visit.ts';

interface Earned {
  day: string;
  amount_minor: number;
}

interface Home {
  balances: Balance[];
  next: { due_at: string } | undefined;
  earned: Earned[];
  steps: OnboardingStep[];
  rate: StandingRate;
  link: string;
}

const plotted_days = 30;

export async function homePage(visit: PortalVisit): Promise<{ me: Me } & PortalPage> {
  const { me, home } = await readPage(visit, async (_, me, tx) => ({
    home: me.partner.status === 'active' ? await homeOf(tx, me) : undefined,
  }));
  const content = home ? activeHome(me, home) : html`<p>${me.texts.home.pending}</p>`;
  const title = home ? me.texts.menu.home : me.texts.home.pending_title;
  return { me, title, content, at: 'home' };
}

async function homeOf(tx: Tx, { partner, program }: Me): Promise<Home> {
  const [balances, next, earned, steps, rules, tag_ids] = await Promise.all([
    balancesOf(tx, partner),
    nextPayout(tx, partner),
    earnedOf(tx, partner, program.currency),
    openSteps(tx, partner),
    payingRules(tx, tx.organization_id, program.id, [partner.id]),
    tagsOf(tx, partner),
  ]);
  const rate = standingRate(rules, { ...partner, tag_ids }, tx.now);
  const link = trackedUrl(program.website_url, program.url_params[0] as string, partner.handle);
  return { balances, next, earned, steps, rate, link };
}

const nextPayout = (tx: Tx, { id }: Partner): Promise<{ due_at: string } | undefined> =>
  tx.maybe(sql`
    select p.due_at from program.payout p
    where p.organization_id = ${tx.organization_id} and p.partner_id = ${id} and p.deleted_at is null and p.status in ('pending', 'processing')
    order by p.due_at limit 1`);

/** The ids of commissions sort by time, so that only those of the days are read. */
const earnedOf = (tx: Tx, { id }: Partner, currency: string): Promise<Earned[]> => {
  const from = new Date(Date.parse(tx.now.slice(0, 10)) - (plotted_days - 1) * 86_400_000);
  return tx.all<Earned>(sql`
    with earned as (
      select (t.created_at at time zone 'UTC')::date as day, sum(t.amount_minor)::bigint as amount_minor
      from program.commission t
      where t.organization_id = ${tx.organization_id} and t.partner_id = ${id} and t.id >= ${`com_${idTimePart(from.getTime())}`}
        and t.deleted_at is null and t.status not in ('voided', 'rejected') and t.currency = ${currency}
      group by 1
    )
    select d.day::date::text as day, coalesce(e.amount_minor, 0) as amount_minor
    from generate_series(${from.toISOString().slice(0, 10)}::date, (${tx.now}::timestamptz at time zone 'UTC')::date, interval '1 day') as d (day)
    left join earned e on e.day = d.day::date
    order by d.day`);
};

async function tagsOf(tx: Tx, { id }: Partner): Promise<string[]> {
  const tags = await tx.all<{ tag_id: string }>(sql`
    select t.tag_id from program.partner_tag t where t.organization_id = ${tx.organization_id} and t.partner_id = ${id}`);
  return tags.map(({ tag_id }) => tag_id);
}

function activeHome(me: Me, home: Home): Html {
  const { texts, reader, program } = me;
  const { home: said, general } = texts;
  const shown = (value: number) => money(value, program.currency, reader);
  const points = home.earned.map(({ day, amount_minor }) => ({ label: dayText(day, reader), value: amount_minor }));
  const has_earned = home.earned.some(({ amount_minor }) => amount_minor !== 0);
  return html`${todo(me, home.steps)}
<h2>${said.balances}</h2>
${balanceCards(me, home.balances)}
<p>${home.next ? said.next_payout(day(home.next.due_at, reader)) : nextBatch(me)}</p>
${
  has_earned
    ? html`${plot(said.plot, points, shown)}<details><summary>${said.as_table}</summary>${table(
        said.plot,
        [
          { title: said.day, cell: (row: Earned) => dayText(row.day, reader) },
          { title: general.amount, is_number: true, cell: (row: Earned) => shown(row.amount_minor) },
        ],
        home.earned.filter(({ amount_minor }) => amount_minor !== 0),
        general.none_yet,
      )}</details>`
    : html`<h2>${said.plot}</h2><p class="none">${said.no_earnings}</p>`
}
<h2>${said.your_link}</h2>
<p class="card">${copyable(home.link, texts)}</p>
<h2>${said.rate}</h2>
${facts(rateFacts(me, home.rate))}`;
}

const step_paths = {
  terms: '/portal/terms',
  payout_method: '/portal/payout_method',
  tax_form: '/portal/tax_form',
} as const;

function todo({ texts: { general } }: Me, steps: OnboardingStep[]): Html {
  if (steps.length === 0) return html``;
  const names = {
    terms: general.step_terms,
    payout_method: general.step_payout_method,
    tax_form: general.step_tax_form,
  };
  return html`<div class="card"><h2>${general.steps}</h2><ul>${steps.map((step) => html`<li><a href="${step_paths[step]}">${names[step]}</a></li>`)}</ul></div>`;
}

function balanceCards({ texts: { home }, reader, program }: Me, balances: Balance[]): Html {
  const currencies = [...new Set([program.currency, ...balances.map(({ currency }) => currency)])];
  const amount = (state: Balance['state'], currency: string): number =>
    balances.find((one) => one.state === state && one.currency === currency)?.amount_minor ?? 0;
  const shown = (state: 'pending' | 'due' | 'paid', currency: string) =>
    money(amount(state, currency) + (state === 'pending' ? amount('on_hold', currency) : 0), currency, reader);
  return html`<ul class="cards">${(['pending', 'due', 'paid'] as const).map(
    (state) => html`<li class="card">${home.balance[state]}
${currencies.map((currency) => html`<strong>${shown(state, currency)}</strong>`)}
<span class="hint">${home.balance_hint[state]}</span></li>`,
  )}</ul>`;
}

/** "On the first day of a month a scheduled run makes a batch … and `due_at` = cut-off + 15, 30 or 60 days." */
function nextBatch(me: Me): Html {
  const { program, texts, reader } = me;
  const now = new Date(databaseTime());
  const cutoff = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1);
  const due = cutoff + Number(program.payout_term.slice('net_'.length)) * 86_400_000;
  // What falls due in the month: until the end of its last day.
  const [at, by] = [cutoff - 1, due].map((ms) => day(new Date(ms).toISOString(), reader)) as [Html, Html];
  return texts.home.next_batch(at, by);
}

function rateFacts({ texts: { home }, reader, program }: Me, { first, renewal }: StandingRate): [string, string][] {
  const text = (rate: StandingRate['first']) =>
    rate === null ? home.no_rate : rateIn(reader.language, rate, program.currency);
  return [
    [home.rate_first, text(first)],
    [home.rate_renewal, text(renewal)],
  ];
}
