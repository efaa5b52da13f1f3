/** Fields that several types of event have, and that mean the same in each. */
import { z } from 'zod';
import { id, timestamp } from '../../core/values/fields.ts';
import { minor, storedCurrency } from '../../core/values/money.ts';

export const text = z.string();

export const partner_id = id('part');
export const customer_id = id('cus');
export const referral_id = id('ref');
export const link_id = id('lnk');
export const sale_id = id('sale');
export const commission_id = id('com');
export const rule_id = id('flw');
export const application_id = id('app');
export const coupon_id = id('cpn');
export const payout_id = id('pyt');
export const risk_flag_id = id('rsk');
export const group_id = id('grp').nullable().describe("The partner's group.");
export const email = text.describe("The partner's.");
export const handle = text.describe("The partner's: the `?ref=` value.");
export const url = text.describe('The destination with the tracking parameter applied.');
export const destination_url = text.describe('The page that the link leads to.');
export const tracked_by = text.describe('How the partner came to the credit: `link`, `coupon`, `manual` or `api`.');
export const amount_minor = minor.describe('How much, in minor units of the currency.');
export const currency = storedCurrency;
export const due_at = timestamp.describe('When it is to be paid.');
export const method = text
  .nullable()
  .describe("By what it is paid: one of the program's `payout_methods`. Null: none was chosen.");
export const partner_status = text.describe('`pending`, `active`, `declined` or `suspended`.');
export const commission_status = text.describe('`pending`, `approved`, `due`, `paid`, `voided` or `rejected`.');
export const payout_status = text.describe('`pending`, `processing`, `paid` or `failed`.');
export const rule_status = text.describe('`active` or `inactive`.');
export const rule_name = text.describe('What you call the rule.');
export const reviewed_by = text.describe('Who decided: a user (`usr_…`), or the API key (`key_…`) that did it.');

/** What the examples hold. */
export const sample = {
  partner_id: 'sample_part_01kap3b6n8f2v9w4x7y0z1a2b3',
  customer_id: 'sample_cus_01kap3b6n8f2v9w4x7y0z1a2b4',
  referral_id: 'sample_ref_01kap3b6n8f2v9w4x7y0z1a2b5',
  link_id: 'sample_lnk_01kap3b6n8f2v9w4x7y0z1a2b6',
  sale_id: 'sample_sale_01kap3b6n8f2v9w4x7y0z1a2b7',
  commission_id: 'sample_com_01kap3b6n8f2v9w4x7y0z1a2b8',
  rule_id: 'sample_flw_01kap3b6n8f2v9w4x7y0z1a2b9',
  group_id: 'sample_grp_01kap3b6n8f2v9w4x7y0z1a2c0',
  application_id: 'sample_app_01kap3b6n8f2v9w4x7y0z1a2c1',
  coupon_id: 'sample_cpn_01kap3b6n8f2v9w4x7y0z1a2c2',
  payout_id: 'sample_pyt_01kap3b6n8f2v9w4x7y0z1a2c3',
  batch_id: 'sample_batch_01kap3b6n8f2v9w4x7y0z1a2c4',
  risk_flag_id: 'sample_rsk_01kap3b6n8f2v9w4x7y0z1a2c5',
  user_id: 'sample_usr_01kap3b6n8f2v9w4x7y0z1a2c6',
  email: 'ada@example.com',
  handle: 'ada',
  at: '2026-11-21T09:30:00.000Z',
  later: '2026-12-21T09:30:00.000Z',
};
