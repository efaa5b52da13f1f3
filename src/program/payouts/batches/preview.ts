import { z } from 'zod';
import type { Tx } from '../../../core/postgres/transaction.ts';
import type { Services } from '../../../core/resource/services.ts';
import { id, objectName, text, timestamp } from '../../../core/values/fields.ts';
import { minor, storedCurrency } from '../../../core/values/money.ts';
import { program_id } from '../../events/fields.ts';
import { type PayoutMethodName, type Program, payout_methods } from '../../programs/program.ts';
import { type NotEligibleReason, not_eligible_reasons, reason_texts } from '../eligibility.ts';
import { batchSums } from '../payout_batch.ts';
import { addUp, balancesOf, type CheckedBalance, nextPartners, type Sums } from './selection.ts';

/** The number of partners that one statement checks. */
const step = 2000;
/** The number of payouts, and of balances that are not paid, that a preview lists. Its sums cover all. */
const most_listed = 1000;

const listed = {
  partner_id: id('part'),
  amount_minor: minor.describe('The balance, in minor units of the currency.'),
  currency: storedCurrency,
};

export const BatchPreview = z
  .object({
    object: objectName('payout_batch_preview'),
    program_id,
    cutoff: timestamp.describe('Commissions whose `mature_at` is before this time are included.'),
    due_at: timestamp.describe('When the payouts would be due.'),
    partners_looked_at: z.int().min(0).describe('The partners whose balance was looked at.'),
    payouts_total: z.int().min(0).describe('How many payouts the batch would have.'),
    ...batchSums,
    payouts: z
      .array(
        z.object({
          ...listed,
          method: z.enum(payout_methods).describe("The partner's payout method."),
          commission_count: z.int().describe('The number of commissions in it.'),
        }),
      )
      .describe(`Who would be paid what: the first ${most_listed} by partner.`),
    unpaid: z
      .array(
        z.object({
          ...listed,
          reason: z.enum(not_eligible_reasons).describe('Why the balance is not paid.'),
          reason_text: text.describe('The reason in words.'),
        }),
      )
      .describe(`Who would not be paid, and why: the first ${most_listed} by partner.`),
  })
  .meta({ id: 'PayoutBatchPreview', description: 'What a batch would contain if it were created now.' });

/** Previews a batch. Writes nothing, and locks nothing. */
export async function preview(
  tx: Tx,
  services: Pick<Services, 'vault'>,
  program: Program,
  { cutoff, due_at }: { cutoff: string; due_at: string },
): Promise<z.input<typeof BatchPreview>> {
  const selection = { program_id: program.id, cutoff, is_preview: true };
  const payouts: CheckedBalance[] = [];
  const unpaid: CheckedBalance[] = [];
  let sums: Sums = { payouts: 0, amounts: {}, not_eligible: {} };
  let looked_at = 0;
  for (let after = ''; ; ) {
    const partner_ids = await nextPartners(tx, selection, { after, most: step });
    const { checked, partners } = await balancesOf(tx, services, program, selection, partner_ids);
    const added = addUp(checked, sums);
    sums = { ...added, payouts: sums.payouts + added.payouts };
    looked_at += partners;
    payouts.push(...checked.filter(({ reason }) => !reason).slice(0, most_listed - payouts.length));
    unpaid.push(...checked.filter(({ reason }) => reason).slice(0, most_listed - unpaid.length));
    if (partner_ids.length < step) break;
    after = partner_ids.at(-1) as string;
  }
  return {
    ...{ object: 'payout_batch_preview', program_id: program.id, cutoff, due_at, partners_looked_at: looked_at },
    ...{ payouts_total: sums.payouts, amounts: amountsOf(sums), not_eligible: reasonsOf(sums) },
    payouts: payouts.map(asPayout),
    unpaid: unpaid.map(asUnpaid),
  };
}

const amountsOf = ({ amounts }: Sums) =>
  Object.entries(amounts)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([currency, sum]) => ({ currency, ...sum }));

/** By reason, as a batch lists them. */
const reasonsOf = ({ not_eligible }: Sums) =>
  not_eligible_reasons.toSorted().flatMap((reason) => {
    const count = not_eligible[reason];
    return count ? [{ reason, count }] : [];
  });

const asPayout = ({ partner_id, amount_minor, currency, payee, commission_count }: CheckedBalance) => ({
  ...{ partner_id, amount_minor, currency, method: payee.method as PayoutMethodName },
  commission_count,
});

const asUnpaid = ({ partner_id, amount_minor, currency, reason }: CheckedBalance) => ({
  ...{ partner_id, amount_minor, currency },
  ...{ reason: reason as NotEligibleReason, reason_text: reason_texts[reason as NotEligibleReason] },
});
