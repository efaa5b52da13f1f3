import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { lockOf, tenant } from '../../core/resource/resource.ts';
import { domainOf } from '../../core/values/fields.ts';
import { type Customer, customers } from '../customers/customer.ts';
import { partners } from '../partners/partner.ts';
import { partnerVisits } from '../partners/partner_visit.ts';
import { normaliseEmail, selfReferralBy, type Visit } from '../partners/self_referral.ts';
import { type RiskFlagDraft, raiseFlag } from '../programs/raise_flag.ts';
import { sales } from '../sales/sale.ts';
import { conversion_velocity, refund_rate, same_ip } from './risk_threshold.ts';

/** The partner and the customer that a flag is about. */
type Subject = Pick<RiskFlagDraft, 'program_id' | 'partner_id' | 'customer_id'>;

/** Checks a new customer: self-referral, disposable email address, and other customers from the same IP address. */
export async function assessCustomer(tx: Tx, customer_id: string): Promise<void> {
  // Locked, so that no event names a customer who is erased meanwhile.
  const customer = await customers.find(tx, sql`${tenant(tx)} and t.id = ${customer_id}`, lockOf('share'));
  if (!customer) return;
  const { program_id, partner_id } = customer;
  const subject = { program_id, partner_id, customer_id };
  const clicks = await clicksOf(tx, customer.referral_id);
  await flagSelfReferral(tx, customer, clicks, subject);
  await flagDisposableEmail(tx, customer, subject);
  await flagSameIp(tx, clicks, subject);
}

async function flagSelfReferral(tx: Tx, { partner_id, email }: Customer, clicks: Click[], subject: Subject) {
  const partner = await partners.find(tx, sql`${tenant(tx)} and t.id = ${partner_id}`);
  if (!partner) return;
  const partner_visits = await partnerVisits(tx, [partner_id], clicks);
  const matched = selfReferralBy({ partner_email: partner.email, customer_email: email, partner_visits, clicks });
  if (matched) await raiseFlag(tx, { ...subject, kind: 'self_referral', severity: 'high', evidence: { matched } });
}

interface Click extends Visit {
  ip_hash: string;
  partner_id: string;
}

/** The newest clicks of a referral whose address is known, the newest first. */
const clicksOf = async (tx: Tx, referral_id: string | null): Promise<Click[]> =>
  referral_id === null
    ? []
    : tx.all<Click>(sql`
        select t.ip_hash, t.user_agent, t.partner_id
        from program.click t
        where ${tenant(tx)} and t.referral_id = ${referral_id} and t.ip_hash is not null
        order by t.id desc
        limit ${same_ip.newest}`);

async function flagDisposableEmail(tx: Tx, { email }: Customer, subject: Subject) {
  if (email === null || !(await isDisposable(email))) return;
  const host = domainOf(email);
  await raiseFlag(tx, { ...subject, kind: 'disposable_email', severity: 'medium', evidence: { host } });
}

/** The list of disposable hosts takes ten megabytes, so it is loaded on first use. */
async function isDisposable(email: string): Promise<boolean> {
  const { default: MailChecker } = await import('mailchecker');
  return !MailChecker.isValid(email);
}

/** Looks at the newest clicks alone from the newest addresses. Each referral is looked up by itself: Postgres might read all customers to join those of a few. */
async function flagSameIp(tx: Tx, clicks: Click[], subject: Subject) {
  const addresses = [...new Map(clicks.map((click) => [`${click.ip_hash} ${click.partner_id}`, click])).values()];
  const newest = addresses.slice(0, same_ip.addresses);
  if (newest.length === 0) return;
  const { customers } = await tx.one<{ customers: number }>(sql`
    with theirs as (
      select distinct c.referral_id
      from unnest(${newest.map(({ ip_hash }) => ip_hash)}::text[], ${newest.map((click) => click.partner_id)}::text[]) as address (ip_hash, partner_id)
      cross join lateral (
        select t.partner_id, t.referral_id from program.click t where ${tenant(tx)} and t.ip_hash = address.ip_hash
        order by t.id desc
        limit ${same_ip.newest}
      ) c
      where c.partner_id = address.partner_id
    )
    select count(*) as customers
    from (
      select from theirs t
      cross join lateral (
        select from program.customer o where o.organization_id = ${tx.organization_id} and o.referral_id = t.referral_id
        limit ${same_ip.newest}
      ) o
      limit ${same_ip.newest}
    ) found`);
  if (customers <= same_ip.max) return;
  await raiseFlag(tx, { ...subject, kind: 'same_ip', severity: 'medium', evidence: { customers } });
}

interface RecentSales {
  first_sales: number;
  sales: number;
  refunded_bps: number;
}

/** Checks the sales of a partner after a new sale or a refund: how fast customers convert, and how much is refunded. */
export async function assessSale(tx: Tx, sale_id: string): Promise<void> {
  const sale = await sales.find(tx, sql`${tenant(tx)} and t.id = ${sale_id}`);
  if (!sale || sale.partner_id === null) return;
  const { program_id, partner_id, currency } = sale;
  const subject = { program_id, partner_id, customer_id: null };
  const recent = await recentSales(tx, partner_id, currency);
  if (recent.first_sales > conversion_velocity.max) {
    const evidence = { first_sales: recent.first_sales, within: conversion_velocity.within };
    await raiseFlag(tx, { ...subject, kind: 'conversion_velocity', severity: 'medium', evidence });
  }
  if (recent.sales >= refund_rate.min_sales && recent.refunded_bps > refund_rate.max_bps) {
    const evidence = { refunded_bps: recent.refunded_bps, sales: recent.sales, currency };
    await raiseFlag(tx, { ...subject, kind: 'refund_rate', severity: 'high', evidence });
  }
}

/** Reads the partner's newest sales. */
const recentSales = (tx: Tx, partner_id: string, currency: string): Promise<RecentSales> =>
  tx.one<RecentSales>(sql`
    select
      count(*) filter (where t.is_first_sale and t.created_at > ${tx.now}::timestamptz - ${conversion_velocity.within}::interval) as first_sales,
      count(*) filter (where t.currency = ${currency}) as sales,
      coalesce(
        trunc(sum(t.refunded_minor) filter (where t.currency = ${currency}) * 10000 / nullif(sum(t.amount_minor) filter (where t.currency = ${currency}), 0)),
        0
      )::integer as refunded_bps
    from (
      select * from program.sale t
      where ${tenant(tx)} and t.partner_id = ${partner_id} and t.deleted_at is null
        and t.occurred_at > ${tx.now}::timestamptz - ${refund_rate.within}::interval
      order by t.occurred_at desc
      limit ${refund_rate.newest}
    ) t`);

/** Checks a new partner: whether another partner of the program has the same mailbox. */
export async function assessPartner(tx: Tx, partner_id: string): Promise<void> {
  const partner = await partners.find(tx, sql`${tenant(tx)} and t.id = ${partner_id}`);
  if (!partner) return;
  const { program_id, email } = partner;
  const other = await partners.find(
    tx,
    sql`${tenant(tx)} and t.program_id = ${program_id} and t.mailbox = ${normaliseEmail(email)} and t.id <> ${partner_id}`,
  );
  if (!other) return;
  const evidence = { matched: 'email', other_partner_id: other.id };
  const subject = { program_id, partner_id, customer_id: null };
  await raiseFlag(tx, { ...subject, kind: 'duplicate_partner', severity: 'medium', evidence });
}
