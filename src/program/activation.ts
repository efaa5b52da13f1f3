import sql, { type Sql } from 'sql-template-tag';
import type { Tx } from '../core/postgres/transaction.ts';
import { lockOf, tenant } from '../core/resource/resource.ts';
import { notInProgram, Problem } from '../core/values/problem.ts';
import { createBonus } from './commissions/commission_change.ts';
import { endRulesOfPartner, insertRuleOfPartner } from './commissions/rule.ts';
import { createPartner } from './partners/create_partner.ts';
import { groups, groupToJoin } from './partners/group.ts';
import { mailPartner } from './partners/mails/mail_partner.ts';
import { rateIn } from './partners/mails/rate_text.ts';
import { type Partner, partners } from './partners/partner.ts';
import { normaliseEmail } from './partners/self_referral.ts';
import { updatePartner } from './partners/update_partner.ts';
import { type Program, programs } from './programs/program.ts';
import { safeSum } from './programs/tally.ts';
import { type Interval, interval_formats } from './reports/window.ts';
import { giveCoupon } from './tracking/coupon.ts';
import { isWithinBounds, rate_bound } from './tracking/link.ts';

/** The interface of the affiliate program for the recruitment service, which imports nothing else of it. */

export { type Interval, interval_formats } from './reports/window.ts';
export { rate_units } from './tracking/link.ts';

/** The program that a brand or a deal is linked to. @throws Problem resource_not_found, naming `param` */
export const linkedProgram = (tx: Tx, program_id: string, param = 'program_id'): Promise<Program> =>
  programs.get(tx, program_id, { param, lock: 'share' });

interface RuleTerms {
  rate_type: 'percent' | 'fixed';
  rate_value: number;
  currency: string;
  group_id: string | null;
}

/**
 * Checks that a program can have a rule with these terms.
 * @param within the field of the request that holds them
 * @throws Problem resource_not_found, invalid_parameter, currency_mismatch, naming the field
 */
export async function requireTermsOf(
  tx: Tx,
  program_id: string,
  { rate_type, rate_value, currency, group_id }: RuleTerms,
  within: string,
): Promise<void> {
  const program = await linkedProgram(tx, program_id);
  if (!isWithinBounds({ rate_type, rate_value })) {
    const param = `${within}.rate_value`;
    throw new Problem('invalid_parameter', `'${param}' ${rate_bound}.`, { param });
  }
  if (rate_type === 'fixed' && currency !== program.currency) throw wrongCurrency(program, `${within}.currency`);
  if (group_id !== null && !(await isGroupOf(tx, program_id, group_id))) {
    throw notInProgram('group', group_id, `${within}.group_id`);
  }
}

const wrongCurrency = ({ currency }: Program, param: string): Problem =>
  new Problem(
    'currency_mismatch',
    `'${param}' must be ${currency}: a fixed rate is in the currency of the program. Send ${currency}, or a percent rate.`,
    { param },
  );

const isGroupOf = async (tx: Tx, program_id: string, group_id: string): Promise<boolean> =>
  (await groups.find(tx, sql`${tenant(tx)} and t.program_id = ${program_id} and t.id = ${group_id}`)) !== undefined;

/** The tokens of the invitations by which partners came, by the id of the partner. */
export async function invitationsOf(tx: Tx, partner_ids: string[]): Promise<Map<string, string>> {
  const invited = await tx.all<{ id: string; invitation_token: string }>(sql`
    select t.id, t.invitation_token
    from program.partner t
    where ${tenant(tx)} and t.id = any(${partner_ids}) and t.invitation_token is not null`);
  return new Map(invited.map(({ id, invitation_token }) => [id, invitation_token]));
}

/** The reason why a partner cannot get the agreed terms. */
export type RefusedActivation =
  | 'no_address'
  | `partner_${Exclude<Partner['status'], 'active'>}`
  | 'coupon_taken'
  | 'group_not_found'
  | 'currency_mismatch';

/** An activation that is refused: its transaction is rolled back. */
export class ActivationRefused extends Error {
  override readonly name = 'ActivationRefused';
  readonly reason: RefusedActivation;

  constructor(reason: RefusedActivation) {
    super(`The activation is refused: ${reason}.`);
    this.reason = reason;
  }
}

interface AgreedTerms extends RuleTerms {
  recurring_months: number | null;
  coupon_code: string | null;
  upfront_fee_minor: number | null;
  /** Days of UTC, both included. */
  starts_on: string | null;
  ends_on: string | null;
}

export interface Activation {
  program_id: string;
  /** The partner whom the person is known to be. */
  partner_id: string | null;
  /** The addresses of the person, the best first. */
  emails: string[];
  /** Returns whether two addresses are spellings of one mailbox, as everywhere else in recruitment. */
  isSameMailbox(one: string, other: string): boolean;
  /** The profile of a new partner. */
  profile: Partial<Pick<Partner, 'display_name' | 'website_url' | 'country_code'>>;
  terms: AgreedTerms;
}

interface Activated {
  partner_id: string;
  rule_id: string;
  /** The bonus that pays the upfront fee. */
  bonus_id: string | null;
  /** True if the partner existed before. */
  linked_existing: boolean;
}

/**
 * Makes a person a partner of a program under agreed terms: finds the partner or creates one, adds the rule, and gives the group, the coupon
 * and the upfront fee where they were agreed. @throws ActivationRefused
 */
export async function activatePartner(tx: Tx, activation: Activation): Promise<Activated> {
  const { program_id, terms } = activation;
  const program = await linkedProgram(tx, program_id);
  if (terms.rate_type === 'fixed' && terms.currency !== program.currency) {
    throw new ActivationRefused('currency_mismatch');
  }
  const group_id = await groupOf(tx, program_id, terms.group_id);
  const { partner, linked_existing } = await partnerFor(tx, activation, group_id);
  if (terms.group_id !== null && partner.group_id !== group_id) await updatePartner(tx, partner, { group_id });
  if (terms.coupon_code !== null && !(await giveCoupon(tx, partner, terms.coupon_code))) {
    throw new ActivationRefused('coupon_taken');
  }
  const agreed = ruleOf(terms);
  await endRulesOfPartner(tx, partner, agreed.starts_at);
  const rule = await insertRuleOfPartner(tx, partner.id, { ...agreed, program_id, name: nameOf(terms) });
  const bonus_id = await payUpfront(tx, partner, terms);
  return { partner_id: partner.id, rule_id: rule.id, bonus_id, linked_existing };
}

async function groupOf(tx: Tx, program_id: string, group_id: string | null): Promise<string> {
  if (group_id !== null && !(await isGroupOf(tx, program_id, group_id))) throw new ActivationRefused('group_not_found');
  return groupToJoin(tx, program_id, group_id ?? undefined);
}

/** The partner, locked and active. @throws ActivationRefused */
async function partnerFor(
  tx: Tx,
  activation: Activation,
  group_id: string,
): Promise<{ partner: Partner; linked_existing: boolean }> {
  const known = await knownPartner(tx, activation);
  if (known) return { partner: requireActive(known), linked_existing: true };
  const { program_id, profile, emails } = activation;
  const [email] = emails;
  if (email === undefined) throw new ActivationRefused('no_address');
  try {
    const partner = await createPartner(tx, { ...profile, program_id, email, group_id, status: 'active' });
    mailPartner(tx, partner.id, { kind: 'welcome' });
    return { partner, linked_existing: false };
  } catch (error) {
    if (!(error instanceof Problem && error.code === 'resource_already_exists')) throw error;
    // Somebody else created the partner in the meantime.
    return partnerFor(tx, activation, group_id);
  }
}

function requireActive(partner: Partner): Partner {
  const { status } = partner;
  if (status !== 'active') throw new ActivationRefused(`partner_${status}`);
  return partner;
}

/** By the id, else by the best of the addresses that a partner has: as it is written, else in another spelling. */
async function knownPartner(tx: Tx, activation: Activation): Promise<Partner | undefined> {
  const { program_id, partner_id, emails } = activation;
  const find = (condition: Sql) =>
    partners.find(tx, sql`${tenant(tx)} and t.program_id = ${program_id} and ${condition}`, lockOf(true));
  const by_id = partner_id === null ? undefined : await find(sql`t.id = ${partner_id}`);
  if (by_id) return by_id;
  for (const email of emails) {
    const by_email = await find(sql`t.email_key = lower(${email})`);
    if (by_email) return by_email;
    const respelt = await otherSpelling(tx, activation, email);
    const by_spelling = respelt && (await find(sql`t.id = ${respelt.id} and t.email = ${respelt.email}`));
    if (by_spelling) return by_spelling;
  }
  return undefined;
}

/** The oldest partner whose address is another spelling of this one. The index by mailbox finds more: it ignores dots at every host. */
async function otherSpelling(
  tx: Tx,
  { program_id, isSameMailbox }: Activation,
  email: string,
): Promise<Pick<Partner, 'id' | 'email'> | undefined> {
  const alike = await tx.all<Pick<Partner, 'id' | 'email'>>(sql`
    select t.id, t.email
    from program.partner t
    where ${tenant(tx)} and t.program_id = ${program_id} and t.mailbox = ${normaliseEmail(email)} and t.deleted_at is null
    order by t.id`);
  return alike.find((partner) => isSameMailbox(partner.email, email));
}

const ruleOf = ({ rate_type, rate_value, recurring_months, starts_on, ends_on }: AgreedTerms) => ({
  ...{ rate_type, rate_value, duration_months: recurring_months },
  starts_at: starts_on === null ? null : dayAfter(starts_on, 0),
  ends_at: ends_on === null ? null : dayAfter(ends_on, 1),
});

/** The name of the rule: `Deal: 20% of each sale for 12 months`. */
function nameOf({ currency, recurring_months: months, ...rate }: AgreedTerms): string {
  const of = rate.rate_type === 'percent' ? 'of' : 'for';
  const during = months === null ? '' : ` for ${months} month${months === 1 ? '' : 's'}`;
  return `Deal: ${rateIn('en', rate, currency)} ${of} each sale${during}`;
}

/** The start of a day, or of one some days later. */
const dayAfter = (day: string, days: number): string =>
  new Date(Date.parse(`${day}T00:00:00.000Z`) + days * 86_400_000).toISOString();

async function payUpfront(
  tx: Tx,
  { id: partner_id, program_id }: Partner,
  { upfront_fee_minor, currency }: AgreedTerms,
): Promise<string | null> {
  if (upfront_fee_minor === null) return null;
  const amount = { amount_minor: upfront_fee_minor, currency, mature_at: tx.now };
  return (await createBonus(tx, { program_id, partner_id, note: 'Upfront fee of a deal', ...amount })).id;
}

interface RevenueWindow {
  from: string;
  to: string;
  timezone: string;
  interval: Interval | null;
}

/** The revenue of one partner in a period, in one currency. */
export interface PartnerRevenue {
  partner_id: string;
  period: string | null;
  currency: string;
  /** Sales less refunds. */
  revenue_minor: number;
  /** Commissions less clawbacks. */
  commissions_minor: number;
}

/** Reads the revenue of partners in a window, each since a time of their own, as the reports of the program count it. */
export const revenueOf = (
  tx: Tx,
  partners: { partner_id: string; since: string }[],
  { from, to, timezone, interval }: RevenueWindow,
): Promise<PartnerRevenue[]> =>
  tx.all<PartnerRevenue>(sql`
    select
      f.partner_id, ${interval ? sql`to_char(f.at at time zone ${timezone}, ${interval_formats[interval]})` : sql`null::text`} as period, f.currency,
      ${safeSum(sql`coalesce(sum(f.revenue_minor), 0) - coalesce(sum(f.refunds_minor), 0)`)} as revenue_minor,
      ${safeSum(sql`coalesce(sum(f.commissions_minor), 0) - coalesce(sum(f.clawbacks_minor), 0)`)} as commissions_minor
    from json_to_recordset(${JSON.stringify(partners)}::json) as given (partner_id text, since timestamptz)
    join program.report_fact f on f.organization_id = ${tx.organization_id} and f.partner_id = given.partner_id
    -- Leaves out what is taken back of a sale from before, as the sale itself.
    left join program.sale s on s.organization_id = f.organization_id and s.id = f.sale_id
    where (s.id is null or s.occurred_at >= given.since) and f.at >= greatest(${from}::timestamptz, given.since) and f.at < ${to}::timestamptz
      and f.noun not in ('click', 'referral', 'lead', 'customer') and f.currency <> ''
    group by 1, 2, 3
    order by 1, 2, 3`);
