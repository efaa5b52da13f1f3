import sql, { raw, type Sql } from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { type Operation, readOperations } from '../../core/resource/operation.ts';
import { type Lock, type Row, resource } from '../../core/resource/resource.ts';
import { type States, statusSchema } from '../../core/resource/states.ts';
import { email, id, objectName, storedMetadata, text, timestamp } from '../../core/values/fields.ts';
import { minorNotNegative, storedCurrency } from '../../core/values/money.ts';
import { notInProgram } from '../../core/values/problem.ts';
import { program_id } from '../events/fields.ts';
import { programs } from '../programs/program.ts';
import { type Counter, countersOf, moneyOf, rowsOf, totalOf } from '../programs/tally.ts';
import { groups } from './group.ts';

type Status = 'pending' | 'active' | 'declined' | 'suspended';

/** `apply`: again, after a decision. `record_click`: their clicks are recorded. `earn`: these earn credit, and sales earn commissions. `sign_in`: to the portal. */
type Action = 'apply' | 'approve' | 'decline' | 'suspend' | 'reinstate' | 'record_click' | 'earn' | 'sign_in';

export const partner_states: States<Status, Action> = {
  pending: {
    doc: 'waiting for a decision on the application',
    on: { approve: 'active', decline: 'declined', sign_in: 'pending' },
    refusal: 'A pending partner cannot be suspended or reinstated. Approve or reject the application instead.',
  },
  active: {
    doc: 'earns commissions',
    on: { suspend: 'suspended', reinstate: 'active', record_click: 'active', earn: 'active', sign_in: 'active' },
  },
  declined: {
    doc: 'the application was rejected or withdrawn',
    on: { apply: 'pending' },
    refusal:
      'A declined partner cannot be suspended or reinstated. Submit a new application with the same email address, or delete the partner and create it again.',
  },
  suspended: {
    doc: 'earns no new commissions until reinstated',
    on: { suspend: 'suspended', reinstate: 'active', record_click: 'suspended' },
  },
};

export const partners = resource({
  object: 'partner',
  plural: 'partners',
  table: 'program.partner',
  unique: { partner_email_unique: 'email', partner_handle_unique: 'handle' },
  total: totalOf('partner'),
  doc: 'A person or company that refers customers to a program and earns commissions.',
  soft_delete: true,
  relations: { group: groups },
  computed: {
    tag_ids: sql`array(
      select x.tag_id from program.partner_tag x
      where x.organization_id = t.organization_id and x.partner_id = t.id
      order by x.tag_id)`,
  },
  fields: {
    id: id('part'),
    object: objectName('partner'),
    program_id,
    group_id: id('grp').nullable().describe('The group that the partner belongs to.'),
    tag_ids: z.array(id('tag')).describe('The tags of the partner. Empty if there are none.'),
    email: text.describe("The partner's email address. Unique in the program; letter case is ignored."),
    first_name: text.nullable().describe("The partner's first name. Null if not provided."),
    last_name: text.nullable().describe("The partner's last name. Null if not provided."),
    display_name: text.nullable().describe('The name shown to others. Null: the first and last name are shown.'),
    company_name: text.nullable().describe("The partner's company. Null if not provided."),
    website_url: text.nullable().describe("The partner's website or channel. Null if not provided."),
    country_code: text.nullable().describe('ISO 3166-1 alpha-2 country code. Null if not provided.'),
    language_code: text
      .nullable()
      .describe(
        'ISO 639-1: the language of emails to the partner, and of the portal. Null, or one without texts: English.',
      ),
    handle: text.describe(
      "The value that identifies the partner in a tracking parameter, as in `?ref=ada`. Unique in the program, also among the values of other partners' links under its `url_params`.",
    ),
    status: statusSchema(partner_states),
    decline_reason: text
      .nullable()
      .describe('Why the application was rejected, or `withdrawn`. Null unless `declined`.'),
    suspension_reason: text.nullable().describe('Your note on why the partner is suspended. Null unless `suspended`.'),
    currency: storedCurrency.describe("The program's currency. All amounts on the partner are in this currency."),
    min_payout_minor: minorNotNegative
      .nullable()
      .describe(
        "The minimum balance for a payout, in minor units of the currency. Null: the program's minimum applies.",
      ),
    terms_accepted_at: timestamp
      .nullable()
      .describe("When the partner accepted the program's terms. Null if not accepted."),
    terms_version: text
      .nullable()
      .describe('The version of the terms that the partner accepted. Null if not accepted.'),
    completed_onboarding: z
      .boolean()
      .describe(
        'Whether the partner has once done in the portal all that the program needs: accepted the terms, set a payout method, and handed in a tax form where `require_tax_forms` is on.',
      ),
    email_first_referral: z
      .boolean()
      .describe('Whether the partner is emailed about the first customer they referred, who signed up or paid.'),
    email_new_referral: z
      .boolean()
      .describe(
        'Whether the partner is emailed about each new customer they referred. From the eleventh of a day (UTC) on, in one email after the day.',
      ),
    email_payout_paid: z.boolean().describe('Whether the partner is emailed when a payout is paid.'),
    metadata: storedMetadata,
    created_at: timestamp,
    updated_at: timestamp,
  },
  stats: {
    fields: {
      clicks: z.int().describe("Clicks on the partner's links and handle."),
      referrals: z.int().describe('Visitors referred by the partner.'),
      customers: z.int().describe('Customers attributed to the partner.'),
      commissions_minor: z
        .int()
        .describe('Commissions net of clawbacks, without voided and rejected ones, in minor units of the currency.'),
      paid_minor: z.int().describe('The part of `commissions_minor` that is paid, in minor units of the currency.'),
      currency: storedCurrency,
    },
    load: partnerStats,
  },
});

/**
 * Returns the name of a partner in payments and statements: the company, else the first and last name, else the display name, else the email address.
 * @param alias of program.partner in the statement
 */
export const payeeName = (alias: 't' | 'p'): Sql => {
  const partner = raw(alias);
  return sql`coalesce(
    nullif(${partner}.company_name, ''), nullif(concat_ws(' ', nullif(${partner}.first_name, ''), nullif(${partner}.last_name, '')), ''),
    nullif(${partner}.display_name, ''), ${partner}.email
  )`;
};

export type Partner = z.infer<typeof partners.record>;

export const partnerOperations: Operation[] = readOperations({
  resource: partners,
  within: programs,
  by: ['status', 'group_id'],
  filters: {
    tag_id: {
      schema: id('tag').optional(),
      where: (value: string) => sql`exists (
        select from program.partner_tag x
        where x.organization_id = t.organization_id and x.partner_id = t.id and x.tag_id = ${value})`,
    },
    email: {
      schema: email.optional(),
      where: (value: string) => sql`t.email_key = ${value.toLowerCase()}`,
      is_of_few: true,
    },
  },
});

/** @throws Problem resource_not_found when the partner belongs to another program */
export async function partnerOf(
  tx: Tx,
  program: { id: string },
  partner_id: string,
  lock: Lock = false,
): Promise<Partner> {
  const partner = await partners.get(tx, partner_id, { param: 'partner_id', lock });
  if (partner.program_id !== program.id) throw notInProgram('partner', partner_id, 'partner_id');
  return partner;
}

const counters = {
  clicks: rowsOf('click'),
  referrals: rowsOf('referral'),
  customers: rowsOf('customer'),
  commissions_minor: moneyOf('commission'),
  paid_minor: { sum: 'amount_minor', where: sql`n.noun = 'commission' and n.kind = s.currency || ' paid'` },
} satisfies Record<string, Counter>;

async function partnerStats(tx: Tx, rows: Row[]): Promise<Map<string, object>> {
  const stats = await countersOf(tx, rows, counters);
  return new Map(rows.map(({ id, currency }) => [id, { ...stats.get(id), currency }]));
}
