import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import type { Customer } from '../customers/customer.ts';
import { flagSelfReferral, selfReferralMatch } from '../customers/self_referral.ts';
import { type Partner, partners } from '../partners/partner.ts';
import type { Visit } from '../partners/self_referral.ts';
import type { Program } from '../programs/program.ts';
import type { AttributedSale, Sale } from './sale.ts';

/** A partner's own purchase. `sale`: it was recorded as one. `referral`: its click led to a sign-up that was refused as one. */
export interface OwnPurchase {
  partner_id: string;
  matched: 'email' | 'browser' | 'referral' | 'sale';
}

/** A click, and the partner who was found to have made it. */
export type OwnedClick = Visit & { own_of: string | null };

/** Returns the match if a partner would be paid for a purchase of their own. Undefined also if the program allows that. */
export async function ownPurchaseBy(
  tx: Tx,
  program: Program,
  partner: Partner,
  { email, click }: { email: string | null; click?: OwnedClick | undefined },
): Promise<OwnPurchase | undefined> {
  const partner_id = partner.id;
  const matched = await selfReferralMatch(tx, partner, { email, click });
  if (!program.block_self_referrals) return undefined;
  if (matched) return { partner_id, matched };
  return click?.own_of === partner_id ? { partner_id, matched: 'referral' } : undefined;
}

/** Returns the match of a recorded sale: by the email address that the customer has now, or as it was recorded. */
export async function ownPurchaseOf(
  tx: Tx,
  program: Program,
  { id: sale_id, partner_id }: AttributedSale,
  customer: Customer | undefined,
): Promise<OwnPurchase | undefined> {
  const { own_of } = await tx.one<{ own_of: string | null }>(
    sql`select t.self_referral_partner_id as own_of from program.sale t where ${tenant(tx)} and t.id = ${sale_id}`,
  );
  const partner = await partners.find(tx, sql`${tenant(tx)} and t.id = ${partner_id}`);
  const own = partner && (await ownPurchaseBy(tx, program, partner, { email: customer?.email ?? null }));
  return own ?? (program.block_self_referrals && own_of === partner_id ? { partner_id, matched: 'sale' } : undefined);
}

/** Keeps whose purchase a recorded sale is, and raises the flag. */
export async function withholdSale(tx: Tx, sale: Sale, own_purchase: OwnPurchase): Promise<void> {
  await tx.all(sql`
    update program.sale t set self_referral_partner_id = ${own_purchase.partner_id} where ${tenant(tx)} and t.id = ${sale.id}`);
  await flagOwnPurchase(tx, sale, own_purchase);
}

/** Raises the flag, unless that was done when the sale was recorded. */
export async function flagOwnPurchase(tx: Tx, sale: Sale, { partner_id, matched }: OwnPurchase): Promise<void> {
  if (matched === 'sale') return;
  const { program_id, customer_id } = sale;
  await flagSelfReferral(tx, { program_id, partner_id, customer_id }, { matched, sale_id: sale.id });
}

/** The partner who is credited may earn by the sale: self-referrals are no longer blocked. */
export const releaseSale = (tx: Tx, { id: sale_id }: Sale) =>
  tx.all(sql`
    update program.sale t set self_referral_partner_id = null
    where ${tenant(tx)} and t.id = ${sale_id} and t.self_referral_partner_id = t.partner_id`);
