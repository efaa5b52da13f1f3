/** Fields that several types of event have, and that mean the same in each. */
import { z } from 'zod';
import { id, timestamp } from '../../core/values/fields.ts';
import { minor, storedCurrency } from '../../core/values/money.ts';

export const text = z.string();

/** Fields of every object of a program. */
export const program_id = id('prg').describe('The program that the object belongs to.');
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
export const email = text.describe("The partner's email address.");
export const handle = text.describe("The partner's handle: the `?ref=` value.");
export const url = text.describe('The destination with the tracking parameter applied.');
export const destination_url = text.describe('The page that the link leads to.');
export const tracked_by = text.describe('How the partner was credited: `link`, `coupon`, `manual` or `api`.');
export const amount_minor = minor.describe('The amount, in minor units of the currency.');
export const currency = storedCurrency;
export const due_at = timestamp.describe('When the payout is due.');
export const method = text
  .nullable()
  .describe("The payout method: one of the program's `payout_methods`. Null: none was chosen.");
export const partner_status = text.describe('`pending`, `active`, `declined` or `suspended`.');
export const commission_status = text.describe(
  '`pending`, `approved`, `due`, `on_hold`, `paid`, `voided` or `rejected`.',
);
export const payout_status = text.describe('`pending`, `processing`, `paid` or `failed`.');
export const rule_status = text.describe('`active` or `inactive`.');
export const rule_name = text.describe('The name of the rule.');
export const reviewed_by = text.describe('Who reviewed the application: a user (`usr_…`) or an API key (`key_…`).');
