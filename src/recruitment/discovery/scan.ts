/**
 * Scans over REST, and the schedule of weekly ones: on `scan_weekday` in `default_timezone`, with the first tick of that day, once; not on the day on which the brand
 * was created, and not on the plan starter.
 */
import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { resource } from '../../core/resource/resource.ts';
import { documentedEnum, id, objectName, text, timestamp } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { minorNotNegative, storedCurrency } from '../../core/values/money.ts';
import { brands } from '../brands/brand.ts';
import { base_path } from '../events/base_path.ts';
import { spendCredit } from '../plan/credit.ts';
import { provider_currency } from '../plan/limits.ts';
import { requireUnspentCeiling } from '../runs/monthly_limit.ts';
import { queueScan } from '../runs/queue_scan.ts';
import { triggers } from '../runs/run.ts';

const states = {
  running: 'providers are asked and pages are visited',
  done: 'it finished',
  stopped_at_ceiling: 'it ended at `ceiling_minor`, or at the spending ceiling of the plan',
  failed: '`error` says why',
} as const;

export const scans = resource({
  object: 'scan',
  plural: 'scans',
  base_path,
  table: 'recruitment.scan',
  unique: { run_weekly_unique: null },
  doc: 'A scan: it visits the pages of prospects and finds evidence. Scans of a brand find prospects first.',
  relations: { brand: brands },
  fields: {
    id: id('fsc'),
    object: objectName('scan'),
    brand_id: id('fbr').describe('The brand.'),
    trigger: z
      .enum(triggers)
      .describe(
        'What started it. `first`: the brand was created. `weekly`: the schedule. `search`: a search, whose results it visits. `manual`: a request.',
      ),
    search_id: id('fsc').nullable().describe('The search whose results it visits. Null: it finds prospects itself.'),
    state: documentedEnum(states),
    error: text.nullable().describe('Why it failed, as a sentence. Null if it has not failed.'),
    found: z.int().describe('How many prospects it found, or found something new about.'),
    visits: z.int().describe('How many pages it visits.'),
    visits_left: z.int().describe('How many of them it has yet to visit.'),
    ceiling_minor: minorNotNegative
      .nullable()
      .describe('The most that the scan may spend on search providers, in US cents. Null: what the plan has left.'),
    spent_minor: minorNotNegative.describe('What it spent on providers, in US cents, rounded up.'),
    currency: storedCurrency,
    credit_refunded: z.boolean().describe('Whether a credit was refunded. False if none was charged.'),
    finished_at: timestamp.nullable().describe('When it ended. Null if it has not ended.'),
    created_at: timestamp,
    updated_at: timestamp,
  },
  computed: { currency: sql`${provider_currency}::text` },
});
export type Scan = z.infer<typeof scans.record>;

export const scanOperations: Operation[] = [
  ...readOperations({ resource: scans, within: brands, by: ['trigger', 'state', 'search_id'] }),
  operation({
    name: 'scans.create',
    title: 'Start a scan',
    method: 'POST',
    path: `${base_path}/scans`,
    scope: 'scans:write',
    summary: 'Starts a scan of a brand. It runs as a job.',
    doc: "The scan costs a credit, which is refunded if it fails. It visits the brand's website, asks search providers for its keywords and competitors, spends at most `scan_ceiling_minor` of the brand, and visits what they found. It emits `scan.completed` or `scan.failed` when it ends.",
    body: z.strictObject({
      brand_id: z
        .string()
        .min(1)
        .meta({ description: 'The brand.', examples: ['fbr_…'] }),
    }),
    reply: scans.schema,
    status: 202,
    errors: ['plan_limit_reached', 'no_credits'],
    run: ({ tx, body }) => createScan(tx, body.brand_id),
  }),
];

/** @throws Problem resource_not_found, plan_limit_reached, no_credits */
export async function createScan(tx: Tx, brand_id: string): Promise<Scan> {
  const brand = await brands.get(tx, brand_id, { param: 'brand_id' });
  await requireUnspentCeiling(tx);
  const scan_id = newId('fsc');
  await spendCredit(tx, 'scan', { scan_id });
  await queueScan(tx, brand, 'manual', { credit: 'taken', id: scan_id });
  return scans.get(tx, scan_id);
}

/** A brand that was deleted since has no scan. */
export async function startWeeklyScan(tx: Tx, brand_id: string, week: string): Promise<void> {
  const brand = await brands.find(tx, sql`t.organization_id = ${tx.organization_id} and t.id = ${brand_id}`);
  if (brand) await queueScan(tx, brand, 'weekly', { week });
}
