import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { type Lock, lockOf, resource, tenant } from '../../core/resource/resource.ts';
import { statusSchema } from '../../core/resource/states.ts';
import { enumOf, id, meaningsOf, objectName, timestamp } from '../../core/values/fields.ts';
import { notFound } from '../../core/values/problem.ts';
import type { RefusedActivation } from '../../program/activation.ts';
import { base_path } from '../events/base_path.ts';
import { brand_id } from '../events/fields.ts';
import { deal_states } from './states.ts';
import { Terms, termsColumn } from './terms.ts';

const activation_errors = {
  no_address: 'no usable email address of the prospect is known: add one',
  partner_pending: 'the partner waits for a decision: approve the application',
  partner_declined: 'the application of the partner was declined: the partner must apply again, or be deleted',
  partner_suspended: 'the partner is suspended: reinstate the partner',
  coupon_taken: 'the coupon code belongs to another partner: reopen the deal and choose another code',
  group_not_found: 'the group was deleted: reopen the deal and choose another group',
  currency_mismatch: "the program's currency is not that of the fixed rate: reopen the deal and change the terms",
} satisfies Record<RefusedActivation, string>;

const records = resource({
  object: 'deal',
  plural: 'deals',
  base_path,
  table: 'recruitment.deal',
  unique: { deal_one_open: 'prospect_id' },
  doc: 'What was agreed with a prospect: the terms under which they become a partner of a program.',
  fields: {
    id: id('fdl'),
    object: objectName('deal'),
    brand_id,
    prospect_id: id('fdi').describe('The prospect.'),
    program_id: id('prg').describe('The program of the affiliate program service.'),
    status: statusSchema(deal_states),
    version: z.int().describe('The last version of the terms, from 1.'),
    terms: Terms.describe('The terms of `agreed_version`, or of the last version if none is agreed.'),
    agreed_version: z.int().nullable().describe('The version that was agreed. Null if it is not agreed.'),
    agreed_by: z
      .enum(['member', 'prospect'])
      .nullable()
      .describe('Who said that it is agreed. `member`: the team. `prospect`: the prospect. Null if it is not agreed.'),
    agreed_by_user_id: id('usr')
      .nullable()
      .describe('The user who recorded the agreement. Null if it is not agreed, or if the API key belongs to no user.'),
    agreed_at: timestamp.nullable().describe('When it was agreed. Null if it is not agreed.'),
    partner_id: id('part').nullable().describe('The partner of the affiliate program service. Null unless `active`.'),
    rule_id: id('flw')
      .nullable()
      .describe(
        "The partner's commission rule. Inactive after a later deal with the partner is activated. Null unless `active`.",
      ),
    linked_existing: z
      .boolean()
      .nullable()
      .describe('Whether the partner existed before the activation. Null unless `active`.'),
    bonus_id: id('com')
      .nullable()
      .describe('The bonus that pays the upfront fee. Null if there is no fee, or unless `active`.'),
    activated_at: timestamp.nullable().describe('When it was activated. Null unless `active`.'),
    cancelled_at: timestamp.nullable().describe('When it was cancelled. Null unless `cancelled`.'),
    last_error: enumOf(activation_errors)
      .nullable()
      .describe(`Why the last activation failed. ${meaningsOf(activation_errors)} Null if it did not.`),
    created_at: timestamp,
    updated_at: timestamp,
  },
  computed: {
    // Chosen by `case`: behind row-level security Postgres uses no index for what coalesce() gives.
    terms: sql`(
      select ${termsColumn}
      from recruitment.deal_version v
      where v.organization_id = t.organization_id and v.deal_id = t.id
        and v.version = case when t.agreed_version is null then t.version else t.agreed_version end)`,
  },
});

export type Deal = z.infer<typeof records.record>;

const of_brand = sql`exists (
  select from recruitment.brand b
  where b.organization_id = t.organization_id and b.id = t.brand_id and b.deleted_at is null)`;

/** Deals of brands that are not deleted. Whoever changes the prospect too locks the prospect before the deal. */
export const deals = {
  ...records,
  alive: of_brand,
  /** @throws Problem resource_not_found */
  async get(
    tx: Tx,
    deal_id: string,
    { param = 'id', lock = false }: { param?: string; lock?: Lock } = {},
  ): Promise<Deal> {
    const deal = await records.find(tx, sql`${tenant(tx)} and t.id = ${deal_id} and ${of_brand}`, lockOf(lock));
    if (!deal) throw notFound('deal', deal_id, param);
    return deal;
  },
};
