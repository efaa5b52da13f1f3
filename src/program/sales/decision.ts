import type { Place } from './place.ts';

/** By what a partner is credited with a sale. `correction`: a person named the partner afterwards. */
export type CreditedBy = 'partner_id' | 'coupon' | 'customer' | 'click' | 'correction';

/** Who could have been credited with a sale: the ids of the partners. Null: what the sale named is of no partner, a coupon of none who can earn. */
export interface Candidates {
  partner_id?: string;
  coupon?: { external_id: string; coupon_id: string | null; partner_id: string | null };
  customer?: string;
  click?: { click_id: string; referral_id: string | null; partner_id: string | null };
}

/** The facts of a sale that its place among others decides, and that rules compare with. */
export interface PlaceFacts {
  is_first_sale: boolean;
  /** Null where the sale is the first. */
  first_sale_at: string | null;
  /** The sales of the customer before this one that each rule pays for, of rules that pay for a limited number. */
  payments: Record<string, number>;
  /** The partner's calendar month before the sale. Left out where no tiers depend on it. */
  month?: { sales_count: number; revenue_minor: number };
}

/**
 * By what a sale was credited and paid, as it is kept in `program.sale.decision`. A sale that comes late is compared with it: what its place
 * changes in later ones is corrected, and what a merchant has changed since is not.
 */
export interface Decision extends Decided {
  by: CreditedBy | null;
  candidates: Candidates;
  /** The processor's id of the customer, where the sale named one who was not known. An earlier sale that comes late may make them known. */
  unknown_customer?: string | null;
}

/** The grounds on which the commission of a sale is decided. */
export interface Decided {
  /** Null where nobody is credited: no rule was asked. */
  facts: PlaceFacts | null;
  /** The rule that pays, and of each other one that was active the first condition that did not hold. "": it applied, and another one came first. */
  rule_id: string | null;
  unmet: Record<string, string>;
  /** True if the rate is that of the link, and no rule's. */
  by_link: boolean;
  /** The outcome when it was decided: a commission, or why there is none. Null where nobody is credited. */
  outcome: 'commission' | 'partner_not_active' | 'no_commission_from_rules' | 'fixed_rate_currency_mismatch' | null;
}

/** A recorded sale's place. */
export const placeIn = ({
  occurred_at,
  external_charge_id,
}: {
  occurred_at: string;
  external_charge_id: string;
}): Place => ({
  at: occurred_at,
  charge: external_charge_id,
});

/** Nothing is decided of what the sale earns. */
export const undecided: Decided = { facts: null, rule_id: null, unmet: {}, by_link: false, outcome: null };
