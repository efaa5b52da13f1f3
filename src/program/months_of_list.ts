import { type Tx, together } from '../core/postgres/transaction.ts';
import { partnerMonth } from './commissions/partner_month.ts';
import { correctTiersAfter, correctTiersIn } from './late_sale.ts';
import { placeIn } from './sales/decision.ts';
import type { SaleDraft } from './sales/new_sale.ts';
import { comparePlaces } from './sales/place.ts';

/** The months of partners that decide on rates, as the sales of the list have left them. */
export class Months {
  readonly #found = new Map<string, Month>();
  #read: { id: string; recorded: SoldBefore } | undefined;

  /** Returns whether a sale comes after those of the list in its month. */
  isLast(sale: SaleDraft): boolean {
    const month = this.#found.get(monthOf(sale));
    return !month || comparePlaces(placeIn(sale), placeIn(month.last)) > 0;
  }

  /** Returns what was sold before a sale in its month, also by the list. What is recorded is read once, if it all comes before the list. */
  async soldBefore(tx: Tx, sale: SaleDraft): Promise<{ sales_count: number; revenue_minor: number }> {
    const month = this.#found.get(monthOf(sale));
    const recorded =
      month?.recorded.get(sale.currency) ??
      (await partnerMonth(tx, { ...sale, partner_id: sale.partner_id as string }));
    this.#read = { id: sale.id, recorded };
    return {
      sales_count: recorded.sales_count + (month?.sales_count ?? 0),
      revenue_minor: Math.min(
        recorded.revenue_minor + (month?.revenue.get(sale.currency) ?? 0),
        Number.MAX_SAFE_INTEGER,
      ),
    };
  }

  add(sale: SaleDraft): void {
    const month = this.#found.get(monthOf(sale)) ?? {
      ...{ first: sale, last: sale, sales_count: 0, revenue: new Map(), recorded: new Map(), is_ordered: true },
    };
    const is_last = this.isLast(sale);
    if (is_last) month.last = sale;
    if (comparePlaces(placeIn(sale), placeIn(month.first)) < 0) month.first = sale;
    month.is_ordered &&= is_last;
    month.sales_count += 1;
    month.revenue.set(sale.currency, (month.revenue.get(sale.currency) ?? 0) + sale.amount_minor);
    if (this.#read?.id === sale.id && !this.#read.recorded.has_later)
      month.recorded.set(sale.currency, this.#read.recorded);
    this.#found.set(monthOf(sale), month);
  }

  /** Has the months corrected in which the order of the sales is another one, or sales come later. To be called before the sales are written. */
  async correct(tx: Tx): Promise<void> {
    const months = [...this.#found.values()].map(
      ({ first, is_ordered }) => [{ ...first, partner_id: first.partner_id as string }, is_ordered] as const,
    );
    await together(
      months.map(([first, is_ordered]) => (is_ordered ? correctTiersAfter(tx, first) : correctTiersIn(tx, first))),
    );
  }
}

interface Month {
  first: SaleDraft;
  last: SaleDraft;
  is_ordered: boolean;
  sales_count: number;
  revenue: Map<string, number>;
  /** By currency, what is recorded, where all of it comes before the list. */
  recorded: Map<string, SoldBefore>;
}

type SoldBefore = Awaited<ReturnType<typeof partnerMonth>>;

const monthOf = ({ partner_id, occurred_at }: SaleDraft): string => `${partner_id} ${occurred_at.slice(0, 7)}`;
