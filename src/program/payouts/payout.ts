import sql from 'sql-template-tag';
import { z } from 'zod';
import { type Operation, readOperations } from '../../core/resource/operation.ts';
import { resource } from '../../core/resource/resource.ts';
import { statusSchema } from '../../core/resource/states.ts';
import { id, objectName, text, timestamp } from '../../core/values/fields.ts';
import { minor, minorNotNegative, storedCurrency } from '../../core/values/money.ts';
import { program_id } from '../events/fields.ts';
import { partners } from '../partners/partner.ts';
import { groupFilter, timeFilters } from '../programs/period.ts';
import { payout_methods, programs } from '../programs/program.ts';
import { payoutBatches } from './payout_batch.ts';
import { payout_states } from './payout_state.ts';
import { payout_error_codes } from './rails/rail.ts';

export const payouts = resource({
  object: 'payout',
  plural: 'payouts',
  table: 'program.payout',
  unique: { payout_statement_number: null },
  doc: 'What a partner is paid at once, in one currency: the sum of the commissions in it.',
  soft_delete: true,
  relations: { partner: partners, batch: payoutBatches },
  fields: {
    id: id('pyt'),
    object: objectName('payout'),
    program_id,
    batch_id: id('batch').describe('The batch that it was created in.'),
    partner_id: id('part'),
    amount_minor: minor.describe('The sum of its commissions, in minor units of the currency.'),
    fee_minor: minorNotNegative
      .nullable()
      .describe('What the rail charged, in minor units of the currency, where it reports that. Null: not known.'),
    currency: storedCurrency,
    status: statusSchema(payout_states),
    livemode: z
      .boolean()
      .describe(
        'False: it is sent through a rail in test mode. It never counts as paid, and its commissions are due again when it ends.',
      ),
    method: z.enum(payout_methods).describe("The partner's payout method."),
    external_id: text.nullable().describe("The rail's id of the payment. Null: none."),
    destination_hint: text.nullable().describe('The last four characters of the account that it is paid to.'),
    period_start: timestamp.describe('When the oldest of its commissions was created, or matured if that was earlier.'),
    period_end: timestamp.describe("The batch's cut-off."),
    due_at: timestamp.describe('When it is due.'),
    submitted_at: timestamp.nullable().describe('When it was last sent. Null: not yet.'),
    paid_at: timestamp.nullable().describe('When it settled. Null: not paid.'),
    failed_at: timestamp.nullable().describe('When it failed. Null: not failed.'),
    attempt: z.int().min(0).describe('How often it was sent. Each attempt has an idempotency key of its own.'),
    error_code: z.enum(payout_error_codes).nullable().describe('Why it failed. Null: not failed.'),
    error_message: text.nullable().describe('The error in words. Null: not failed.'),
    commission_count: z.int().min(0).describe('How many commissions are in it.'),
    created_at: timestamp,
    updated_at: timestamp,
  },
});

export type Payout = z.infer<typeof payouts.record>;

export const payoutOperations: Operation[] = readOperations({
  resource: payouts,
  within: programs,
  by: ['status', 'partner_id', 'batch_id', 'method', 'currency'],
  filters: { group_id: groupFilter, ...timeFilters({ at: sql`t.created_at`, name: 'created_at' }) },
});
