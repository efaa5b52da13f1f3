import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { customers } from '../customers/customer.ts';
import { partners } from '../partners/partner.ts';
import { partnerVisits } from '../partners/partner_visit.ts';
import { normaliseEmail, selfReferralBy, type Visit } from '../partners/self_referral.ts';
import { programs } from '../programs/program.ts';
import { raiseFlag } from '../programs/raise_flag.ts';
import { sales } from '../sales/sale.ts';
import { click_velocity, conversion_velocity, refund_rate, same_address_most } from './risk_threshold.ts';

/** Query parameters that ad networks add to the address of a click that was paid for. */
const ad_click_params = [
  'gclid',
  'gbraid',
  'wbraid',
  'dclid',
  'fbclid',
  'msclkid',
  'ttclid',
  'twclid',
  'li_fat_id',
  'yclid',
  'rdt_cid',
];

/** After a click: where it came from, by what, and how fast. */
export async function assessClick(tx: Tx, click_id: string): Promise<void> {
  const click = await tx.maybe<{
    program_id: string;
    partner_id: string;
    country: string | null;
    landing_url: string;
    ip_hash: string | null;
  }>(sql`
    select t.program_id, t.partner_id, t.country, t.landing_url, t.ip_hash
    from program.click t
    where ${tenant(tx)} and t.id = ${click_id}`);
  if (!click) return;
  const { program_id, partner_id, country, landing_url, ip_hash } = click;
  const about = { program_id, partner_id, customer_id: null };
  const { blocked_countries } = await programs.get(tx, program_id);
  if (country !== null && blocked_countries.includes(country)) {
    await raiseFlag(tx, { ...about, kind: 'blocked_country', severity: 'low', evidence: { click_id, country } });
  }
  const param = ad_click_params.find((name) => new URL(landing_url).searchParams.has(name));
  if (param !== undefined) {
    await raiseFlag(tx, {
      ...about,
      kind: 'paid_ad_traffic',
      severity: 'medium',
      evidence: { click_id, parameter: param, landing_url },
    });
  }
  if (ip_hash === null) return;
  const { clicks } = await tx.one<{ clicks: number }>(sql`
    select count(*) as clicks
    from program.click t
    where ${tenant(tx)} and t.partner_id = ${partner_id} and t.ip_hash = ${ip_hash}
      and t.created_at > ${tx.now}::timestamptz - ${click_velocity.within}::interval`);
  if (clicks <= click_velocity.most) return;
  const evidence = { click_id, clicks, within: click_velocity.within };
  await raiseFlag(tx, { ...about, kind: 'click_velocity', severity: 'medium', evidence });
}

/** After a sign-up: whether it is the partner, a throw-away address, or one of many from one place. */
export async function assessCustomer(tx: Tx, customer_id: string): Promise<void> {
  const { program_id, partner_id, email, referral_id } = await customers.get(tx, customer_id);
  const about = { program_id, partner_id, customer_id };
  const owner = await partners.find(tx, sql`${tenant(tx)} and t.id = ${partner_id}`);
  const clicks = await visitsOf(tx, referral_id);
  const partner_visits = await partnerVisits(tx, partner_id, clicks);
  const matched =
    owner && selfReferralBy({ partner_email: owner.email, customer_email: email, partner_visits, clicks });
  if (matched) await raiseFlag(tx, { ...about, kind: 'self_referral', severity: 'high', evidence: { matched } });
  if (email !== null && (await isDisposable(email))) {
    const host = email.slice(email.lastIndexOf('@') + 1);
    await raiseFlag(tx, { ...about, kind: 'disposable_email', severity: 'medium', evidence: { host } });
  }
  if (referral_id === null) return;
  const { sharing } = await tx.one<{ sharing: number }>(sql`
    select count(distinct other.id) as sharing
    from program.click mine
    join program.click theirs
      on theirs.organization_id = mine.organization_id and theirs.partner_id = mine.partner_id and theirs.ip_hash = mine.ip_hash
    join program.customer other on other.organization_id = theirs.organization_id and other.referral_id = theirs.referral_id
    where mine.organization_id = ${tx.organization_id} and mine.referral_id = ${referral_id} and mine.ip_hash is not null`);
  if (sharing <= same_address_most) return;
  await raiseFlag(tx, { ...about, kind: 'same_ip', severity: 'medium', evidence: { customers: sharing } });
}

/** The browsers by which a referral came. */
const visitsOf = async (tx: Tx, referral_id: string | null): Promise<Visit[]> =>
  referral_id === null
    ? []
    : tx.all<Visit>(sql`
        select distinct t.ip_hash, t.user_agent
        from program.click t
        where ${tenant(tx)} and t.referral_id = ${referral_id} and t.ip_hash is not null and t.user_agent is not null
        limit 100`);

/** After a sale or its refund: how fast the partner's customers buy, and how much comes back. */
export async function assessSale(tx: Tx, sale_id: string): Promise<void> {
  const found = await sales.find(tx, sql`${tenant(tx)} and t.id = ${sale_id}`);
  if (!found || found.partner_id === null) return;
  const { program_id, partner_id, currency } = found;
  const about = { program_id, partner_id, customer_id: null };
  const recent = await tx.one<{ first_sales: number; sales: number; refunded_bps: number }>(sql`
    select
      count(*) filter (where t.is_first_sale and t.created_at > ${tx.now}::timestamptz - ${conversion_velocity.within}::interval) as first_sales,
      count(*) filter (where t.currency = ${currency}) as sales,
      coalesce(
        trunc(sum(t.refunded_minor) filter (where t.currency = ${currency}) * 10000 / nullif(sum(t.amount_minor) filter (where t.currency = ${currency}), 0)),
        0
      )::integer as refunded_bps
    from program.sale t
    where ${tenant(tx)} and t.partner_id = ${partner_id} and t.deleted_at is null
      and t.occurred_at > ${tx.now}::timestamptz - ${refund_rate.within}::interval`);
  if (recent.first_sales > conversion_velocity.most) {
    const evidence = { first_sales: recent.first_sales, within: conversion_velocity.within };
    await raiseFlag(tx, { ...about, kind: 'conversion_velocity', severity: 'medium', evidence });
  }
  if (recent.sales >= refund_rate.least_sales && recent.refunded_bps > refund_rate.most_bps) {
    const evidence = { refunded_bps: recent.refunded_bps, sales: recent.sales, currency };
    await raiseFlag(tx, { ...about, kind: 'refund_rate', severity: 'high', evidence });
  }
}

/** After a partner joined: whether the same mailbox is a partner already. */
export async function assessPartner(tx: Tx, partner_id: string): Promise<void> {
  const found = await partners.find(tx, sql`${tenant(tx)} and t.id = ${partner_id}`);
  if (!found) return;
  const { program_id, email } = found;
  const twin = await partners.find(
    tx,
    sql`${tenant(tx)} and t.program_id = ${program_id} and t.mailbox = ${normaliseEmail(email)} and t.id <> ${partner_id}`,
  );
  if (!twin) return;
  const evidence = { matched: 'email', other_partner_id: twin.id };
  await raiseFlag(tx, {
    program_id,
    partner_id,
    customer_id: null,
    kind: 'duplicate_partner',
    severity: 'medium',
    evidence,
  });
}

/** The list of hosts takes ten megabytes: it is loaded by the first who needs it. */
async function isDisposable(email: string): Promise<boolean> {
  const { default: MailChecker } = await import('mailchecker');
  return !MailChecker.isValid(email);
}
