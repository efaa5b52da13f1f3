import { z } from 'zod';
import { id, text, timestamp } from '../../../core/values/fields.ts';
import { minor, minorNotNegative, storedCurrency } from '../../../core/values/money.ts';

const Line = z.object({
  date: timestamp.describe('When the commission was created.'),
  commission_id: id('com'),
  kind: z.enum(['sale', 'bonus', 'clawback']).describe('The kind of the commission.'),
  sale_reference: text
    .nullable()
    .describe("The sale's `external_charge_id`. Of a clawback, that of the sale it goes back to. Null: a bonus."),
  sale_amount_minor: minor.nullable().describe('The amount of the sale. Null: a bonus, or a sale in another currency.'),
  description: text.describe('What the line is, in words.'),
  amount_minor: minor.describe('What the partner is paid. Negative for a clawback.'),
});

const Totals = z.object({
  earned_minor: minor.describe('The sum of the lines of the kind `sale`.'),
  clawed_back_minor: minor.describe('The sum of the lines of the kind `clawback`: zero or negative.'),
  bonus_minor: minor.describe('The sum of the lines of the kind `bonus`.'),
  total_minor: minor.describe('The sum of all lines: the amount of the payout.'),
});

const StatementPayout = z.object({
  id: id('pyt'),
  status: z
    .enum(['pending', 'processing', 'paid', 'failed'])
    .describe('The status of the payout. With a number: `paid`, or `failed` if the payment was returned.'),
  amount_minor: minorNotNegative.describe('The amount of the payout.'),
  fee_minor: minorNotNegative.nullable().describe('The fee of the rail. Null: not known.'),
  method: text.nullable().describe('How the partner is paid. Null: not yet chosen.'),
  destination_hint: text.nullable().describe('The last four characters of the account. Null: none.'),
  paid_at: timestamp.nullable().describe('When it settled, also if the payment was returned later. Null: not yet.'),
  external_id: text.nullable().describe("The rail's id of the payment. Null: none."),
});

/** The parts of a payout, for accountants. Its renderings are JSON (this schema), CSV and PDF. */
export const Statement = z
  .object({
    number: text.describe(
      'The number of the statement, such as `2026-00042`. `DRAFT` until the payout is paid, `TEST` in test mode.',
    ),
    livemode: z.boolean().describe('False: the payout is sent through a rail in test mode, and nobody is paid.'),
    program: z.object({ id: id('prg'), name: text.describe('The name of the program.') }).describe('Who pays.'),
    partner: z
      .object({
        id: id('part'),
        name: text.describe('The name of the partner.'),
        email: text.nullable().describe("The partner's email address. Null: none."),
      })
      .describe('Who is paid.'),
    period_start: timestamp.nullable().describe('Start of the period of the payout. Null: no start.'),
    period_end: timestamp.describe('End of the period, which is no part of it.'),
    currency: storedCurrency,
    payout: StatementPayout.describe('The payout, and once the statement has a number, its payment.'),
    lines: z.array(Line).describe('The commissions of the payout, oldest first.'),
    totals: Totals.describe('The sums of the lines.'),
  })
  .meta({ id: 'Statement', description: 'What a payout consists of: each commission with its sale, and totals.' });

export type Statement = z.infer<typeof Statement>;
export type StatementLine = z.infer<typeof Line>;

/** The totals of the lines. @throws RangeError when a sum is not a safe integer */
export function statementTotals(lines: Pick<StatementLine, 'kind' | 'amount_minor'>[]): Statement['totals'] {
  const sumOf = (kinds: StatementLine['kind'][]): number => {
    const sum = lines.reduce((sum, line) => (kinds.includes(line.kind) ? sum + BigInt(line.amount_minor) : sum), 0n);
    if (!Number.isSafeInteger(Number(sum))) throw new RangeError(`The sum ${sum} is not a safe integer.`);
    return Number(sum);
  };
  return {
    earned_minor: sumOf(['sale']),
    clawed_back_minor: sumOf(['clawback']),
    bonus_minor: sumOf(['bonus']),
    total_minor: sumOf(['sale', 'clawback', 'bonus']),
  };
}

/** @throws RangeError when the totals are not those of the lines, or the total is not the amount of the payout */
export function requireThatItAddsUp({ number, lines, totals, payout }: Statement): void {
  const sums = statementTotals(lines);
  const differing = (Object.keys(sums) as (keyof typeof sums)[]).find((name) => sums[name] !== totals[name]);
  if (differing)
    throw new RangeError(
      `The statement ${number} has the ${differing} ${totals[differing]}, and its lines ${sums[differing]}.`,
    );
  if (totals.total_minor !== payout.amount_minor)
    throw new RangeError(
      `The statement ${number} has the total ${totals.total_minor}, and its payout ${payout.amount_minor}.`,
    );
}
