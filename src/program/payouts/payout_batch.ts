import sql from 'sql-template-tag';
import { z } from 'zod';
import { resource } from '../../core/resource/resource.ts';
import { statusSchema } from '../../core/resource/states.ts';
import { id, objectName, text, timestamp } from '../../core/values/fields.ts';
import { minor, storedCurrency } from '../../core/values/money.ts';
import { program_id } from '../events/fields.ts';
import { held_reasons, held_texts, not_eligible_reasons } from './eligibility.ts';

const count = z.int().min(0);

export const batch_states = {
  generating: { doc: 'a worker is creating its payouts' },
  awaiting_approval: { doc: 'another person than the one who created it must approve it before anything is sent' },
  ready: { doc: 'its payouts can be sent' },
  completed: { doc: 'every payout is paid, failed or deleted, or there was none' },
};

/** The sums of batches and previews. */
export const batchSums = {
  amounts: z
    .array(
      z.object({
        currency: storedCurrency,
        payouts: count.describe('The number of payouts in the currency.'),
        amount_minor: minor.describe('Their sum, in minor units of the currency.'),
      }),
    )
    .describe('The number of payouts and their sum, for each currency.'),
  not_eligible: z
    .array(
      z.object({
        reason: z.enum(not_eligible_reasons).describe('Why the balances are not paid.'),
        count: count.describe('The number of balances.'),
      }),
    )
    .describe('How many balances could not be paid, by reason.'),
};

const not_sent = z.array(
  z.object({
    reason: z.enum(held_reasons).describe('Why they were not sent.'),
    reason_text: text.describe('The reason in words.'),
    count: count.describe('The number of payouts.'),
  }),
);

const Progress = z
  .object({
    state: z.enum(['running', 'done']).describe('`running`: payouts are being created. `done`: all of them are.'),
    partners_looked_at: count.describe('The partners whose balance was looked at so far.'),
    payouts: count.describe('The payouts created so far.'),
    ...batchSums,
  })
  .describe('How far the creation of payouts is, and what it came to. Later changes of the payouts are not included.');

export const payoutFiles = z.array(
  z.object({
    file: z.int().describe('The number of the file: the `file` parameter of the export.'),
    message_id: text.describe('The message id in the file (`MsgId`), which reports of the bank name.'),
    method: text.describe('The payout method of its payouts.'),
    payouts: count.describe('The number of payouts in the file.'),
    created_at: timestamp,
  }),
);

export const payoutBatches = resource({
  object: 'payout_batch',
  plural: 'payout_batches',
  scoped_as: 'payouts',
  table: 'program.payout_batch',
  unique: { payout_batch_one_a_month: null, payout_file_number: null, payout_report_once: null },
  doc: 'A selection of what is due to partners: one payout for each partner and currency.',
  soft_delete: true,
  fields: {
    id: id('batch'),
    object: objectName('payout_batch'),
    program_id,
    status: statusSchema(batch_states),
    cutoff: timestamp.describe('Commissions whose `mature_at` is before this time are included.'),
    due_at: timestamp.describe('When its payouts are due.'),
    scheduled_for: timestamp
      .nullable()
      .describe('The beginning of the month for which the schedule created it. Null: created by a request.'),
    approval_required: z.boolean().describe('Whether it must be approved before its payouts can be sent.'),
    created_by_user_id: id('usr')
      .nullable()
      .describe('The user whose key created it. Null: the schedule, or a key of no user.'),
    approved_by_user_id: id('usr').nullable().describe('The user who approved it. Null: not approved.'),
    approved_at: timestamp.nullable().describe('When it was approved. Null: not approved.'),
    progress: Progress,
    not_sent: not_sent.describe(
      'The pending and failed payouts that were to be sent or retried and could not be, by reason. They can be once the reason is gone.',
    ),
    files: payoutFiles.describe('The files of the payouts that were sent by bank transfer, wire or crypto.'),
    created_at: timestamp,
    updated_at: timestamp,
  },
  changes_with: { table: 'program.payout', field: 'batch_id' },
  computed: {
    status: sql`case
      when t.stage <> 'ready' then t.stage
      when exists (
        select from program.payout p
        where p.organization_id = t.organization_id and p.batch_id = t.id and p.status in ('pending', 'processing') and p.deleted_at is null
      ) then 'ready'
      else 'completed'
    end`,
    progress: sql`(
      select json_build_object(
        'state', case t.stage when 'generating' then 'running' else 'done' end,
        'partners_looked_at', s.partners_looked_at,
        'payouts', s.payouts,
        'amounts', (
          select coalesce(json_agg(json_build_object('currency', a.key, 'payouts', a.value -> 'payouts', 'amount_minor', a.value -> 'amount_minor') order by a.key), '[]')
          from jsonb_each(s.amounts) as a
        ),
        'not_eligible', (
          select coalesce(json_agg(json_build_object('reason', r.key, 'count', r.value) order by r.key), '[]')
          from jsonb_each(s.not_eligible) as r
        ))
      from program.payout_batch_sums(t) as s)`,
    not_sent: sql`(
      select coalesce(json_agg(json_build_object(
        'reason', h.reason, 'reason_text', ${JSON.stringify(held_texts)}::jsonb ->> h.reason, 'count', h.count) order by h.reason), '[]')
      from (
        select p.held_reason as reason, count(*) as count
        from program.payout p
        where p.organization_id = t.organization_id and p.batch_id = t.id and p.status in ('pending', 'failed') and p.held_reason is not null
          and p.deleted_at is null
        group by p.held_reason
      ) as h)`,
    files: sql`(
      select coalesce(json_agg(json_build_object(
        'file', f.number, 'message_id', replace(f.id, '_', '-'), 'method', f.rail,
        'payouts', (select count(*) from program.payout_attempt a where a.organization_id = f.organization_id and a.file_id = f.id),
        'created_at', to_char(f.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) order by f.number), '[]')
      from program.payout_file f
      where f.organization_id = t.organization_id and f.batch_id = t.id)`,
  },
});

export type PayoutBatch = z.infer<typeof payoutBatches.record>;
