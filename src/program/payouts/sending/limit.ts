import sql from 'sql-template-tag';
import type { Tx } from '../../../core/postgres/transaction.ts';
import { tenant } from '../../../core/resource/resource.ts';
import { inOneLine } from '../../../core/values/texts/one_line.ts';
import { mailOwner } from '../../programs/mail_owner.ts';
import type { Program } from '../../programs/program.ts';
import { formatMoney } from '../money_text.ts';

/** The most that a program sends in a currency in a UTC day. Null: no limit. */
export const limitOf = (
  { currency, payout_limit_minor, payout_limits }: Pick<Program, 'currency' | 'payout_limit_minor' | 'payout_limits'>,
  of: string,
): number | null => (of === currency ? payout_limit_minor : (payout_limits[of] ?? null));

/**
 * The amount that a program may still send today, by currency: "a UTC day's sum per program". Failed payouts do not count, nor those that are marked
 * as paid by hand. Until the transaction ends nothing else of the program is sent.
 */
export class DailyLimit {
  readonly #tx: Tx;
  readonly #program: Program;
  readonly #left = new Map<string, number>();

  constructor(tx: Tx, program: Program) {
    this.#tx = tx;
    this.#program = program;
  }

  /** Claims an amount from what may still be sent today. @returns false where it is too much: then nothing is claimed, and the owner is emailed once a day */
  async claim(amount_minor: number, currency: string): Promise<boolean> {
    const limit = limitOf(this.#program, currency);
    if (limit === null) return true;
    const left = this.#left.get(currency) ?? limit - (await this.#sentToday(currency));
    const is_within = amount_minor <= left;
    this.#left.set(currency, is_within ? left - amount_minor : left);
    if (!is_within) await this.#notifyOwner(currency, limit);
    return is_within;
  }

  async #sentToday(currency: string): Promise<number> {
    const { id: program_id } = this.#program;
    await this.#tx.all(sql`select pg_advisory_xact_lock(hashtextextended(${`payout limit of ${program_id}`}, 0))`);
    const { sent } = await this.#tx.one<{ sent: number }>(sql`
      select least(coalesce(sum(t.amount_minor), 0), ${Number.MAX_SAFE_INTEGER})::bigint as sent
      from program.payout_attempt t
      where ${tenant(this.#tx)} and t.program_id = ${program_id} and t.currency = ${currency} and t.mode = 'live'
        and t.began_at >= date_trunc('day', ${this.#tx.now}::timestamptz, 'UTC') and t.status <> 'failed'`);
    return sent;
  }

  async #notifyOwner(currency: string, limit: number): Promise<void> {
    const { id: program_id, name } = this.#program;
    const is_first = await this.#tx.maybe(sql`
      insert into program.payout_limit_notice (organization_id, program_id, day, currency)
      values (${this.#tx.organization_id}, ${program_id}, ${this.#tx.now.slice(0, 10)}, ${currency})
      on conflict do nothing
      returning program_id`);
    if (!is_first) return;
    mailOwner(this.#tx, {
      organization_id: this.#tx.organization_id,
      subject: `The payout limit of ${inOneLine(name)} is reached`,
      text: `The program ${program_id} has reached its payout limit of ${formatMoney(limit, currency)} a day. Payouts beyond it are not sent today (UTC); they stay pending. To send them today, raise the limit: payout_limit_minor, or payout_limits for other currencies than the program's.`,
    });
  }
}
