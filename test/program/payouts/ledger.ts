/** A model of the earnings and payments of partners, in a few lines: it does not know how Rail stores them. Amounts are minor units. */

export interface LedgerSale {
  partner: number;
  currency: string;
  amount: number;
  refunded: number;
  is_deleted: boolean;
}

export class Ledger {
  readonly #rate_bps: number;
  readonly sales: LedgerSale[] = [];
  readonly #bonuses: { partner: number; currency: string; amount: number }[] = [];
  /** Payments outside of Rail. */
  readonly #by_hand: { partner: number; currency: string; amount: number }[] = [];
  /** The most that sales were worth before refunds, corrections and deletions. */
  readonly #most = new Map<LedgerSale, number>();

  constructor(rate_bps: number) {
    this.#rate_bps = rate_bps;
  }

  sell(partner: number, currency: string, amount: number): void {
    const sale = { partner, currency, amount, refunded: 0, is_deleted: false };
    this.sales.push(sale);
    this.#most.set(sale, this.#share(amount));
  }

  refund(nth: number, amount: number): void {
    this.#saleAt(nth).refunded += amount;
  }

  correct(nth: number, amount: number): void {
    const sale = this.#saleAt(nth);
    sale.amount = amount;
    this.#most.set(sale, Math.max(this.#most.get(sale) ?? 0, this.#share(amount)));
  }

  deleteSale(nth: number): void {
    this.#saleAt(nth).is_deleted = true;
  }

  grant(partner: number, currency: string, amount: number): void {
    this.#bonuses.push({ partner, currency, amount });
  }

  payByHand(partner: number, currency: string, amount: number): void {
    this.#by_hand.push({ partner, currency, amount });
  }

  /** Returns the earnings of a partner, less refunds, corrections and deletions. */
  earned(partner: number, currency: string): number {
    const of_sales = this.#of(this.sales, partner, currency)
      .filter(({ is_deleted }) => !is_deleted)
      .reduce((sum, { amount, refunded }) => sum + this.#share(amount - refunded), 0);
    return of_sales + this.#granted(partner, currency);
  }

  /** Returns the earnings of a partner if nothing had ever been taken back. */
  earnedAtMost(partner: number, currency: string): number {
    const of_sales = this.#of(this.sales, partner, currency);
    return of_sales.reduce((sum, sale) => sum + (this.#most.get(sale) ?? 0), 0) + this.#granted(partner, currency);
  }

  paidByHand(partner: number, currency: string): number {
    return this.#of(this.#by_hand, partner, currency).reduce((sum, { amount }) => sum + amount, 0);
  }

  #granted(partner: number, currency: string): number {
    return this.#of(this.#bonuses, partner, currency).reduce((sum, { amount }) => sum + amount, 0);
  }

  #of<T extends { partner: number; currency: string }>(all: T[], partner: number, currency: string): T[] {
    return all.filter((one) => one.partner === partner && one.currency === currency);
  }

  #saleAt(nth: number): LedgerSale {
    return this.sales[nth] as LedgerSale;
  }

  /** The share of an amount, half a unit away from zero. */
  #share(amount: number): number {
    return Math.floor((amount * this.#rate_bps + 5000) / 10_000);
  }
}
