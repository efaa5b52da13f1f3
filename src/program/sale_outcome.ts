import { z } from 'zod';
import { DetailWarning } from '../core/values/detail.ts';
import { type Commission, commissions } from './commissions/commission.ts';
import type { Earning } from './commissions/earn.ts';
import { type Sale, sales } from './sales/sale.ts';

const warning_messages = {
  no_partner_attributed:
    "No partner is credited with this sale: it names no customer, click or coupon of a partner, its click earns no credit, its coupon is of a paused program, its partner was deleted, it happened before the sale that recorded the customer, or it is the partner's own purchase and the program blocks self-referrals. To credit a partner, send partner_id with the sale or in a correction of it.",
  no_commission_from_rules:
    'No active rule pays for this sale. Check that a rule applies, that the partner is active, and that the amount is above 0.',
  fixed_rate_currency_mismatch:
    "The rule pays a fixed amount in the program's currency, and the sale is in another one; amounts are not converted. Use a percentage rate.",
} as const;

type WarningCode = keyof typeof warning_messages;

const Warning = z.object({
  code: z
    .enum(Object.keys(warning_messages) as [WarningCode, ...WarningCode[]])
    .describe(
      '`no_partner_attributed`: no partner is credited with the sale. `no_commission_from_rules`: no active rule pays for it. `fixed_rate_currency_mismatch`: the rule pays a fixed amount in another currency than that of the sale.',
    ),
  message: z.string().describe('The warning in words, and what to do.'),
});

export type SaleOutcome = z.infer<typeof SaleOutcome>;
export const SaleOutcome = z
  .object({
    ...sales.record.shape,
    activity_outcome: z
      .enum(['commission_created', 'sale_recorded'])
      .describe(
        '`commission_created`: the sale earned a commission. `sale_recorded`: the sale was recorded without a commission.',
      ),
    warnings: z
      .array(z.union([Warning, DetailWarning]))
      .optional()
      .describe(
        'Why there is no commission, and which details of the sale were changed or left out. Present only then.',
      ),
    commissions: z.array(commissions.schema).describe('The commission that the sale earned: one, or none.'),
  })
  .meta({ id: 'SaleOutcome', description: 'The sale, and the commission that it earned.' });

export function outcomeOf(
  { earning }: { earning: Earning | undefined },
  sale: Sale,
  commission: Commission | undefined,
): SaleOutcome {
  const commissions = commission ? [commission] : [];
  const warning = warningOf(earning);
  if (!warning) return { ...sale, activity_outcome: 'commission_created', commissions };
  return {
    ...sale,
    activity_outcome: 'sale_recorded',
    warnings: [{ code: warning, message: warning_messages[warning] }],
    commissions,
  };
}

function warningOf(earning: Earning | undefined): WarningCode | undefined {
  if (!earning) return 'no_partner_attributed';
  return earning.outcome.outcome === 'none' ? earning.outcome.warning : undefined;
}
