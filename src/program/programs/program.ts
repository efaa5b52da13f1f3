import sql from 'sql-template-tag';
import { z } from 'zod';
import { type Operation, readOperations } from '../../core/resource/operation.ts';
import { resource } from '../../core/resource/resource.ts';
import { type States, statusSchema } from '../../core/resource/states.ts';
import { id, objectName, oneLine, text, timestamp, url, visitorCountry } from '../../core/values/fields.ts';
import { currency, minorNotNegative, storedCurrency } from '../../core/values/money.ts';
import { alreadyExists, Problem } from '../../core/values/problem.ts';
import { timeZone } from '../../core/values/time_zone.ts';
import { questions, storedQuestions } from './questions.ts';
import { type Counter, countersOf, moneyOf, rowsOf } from './tally.ts';

export const payout_methods = ['bank_transfer', 'wire', 'crypto', 'paypal', 'wise', 'stripe'] as const;
/** Those that can be connected. */
export const billing_processors = ['stripe', 'paddle', 'chargebee'] as const;
export const processors = [...billing_processors, 'manual', 'api'] as const;
const payout_terms = ['net_15', 'net_30', 'net_60'] as const;

/** Either status can be set at any time. `join`: by an application, or on the first sale. `refer`: clicks and coupons earn credit. */
export const program_states: States<'active' | 'paused', 'activate' | 'pause' | 'join' | 'refer'> = {
  active: {
    doc: 'the program is running',
    on: { activate: 'active', pause: 'paused', join: 'active', refer: 'active' },
  },
  paused: {
    doc: 'the program takes no applications and makes no new referrals: clicks are recorded but earn no credit, also after the program is active again, and coupons bring no new customers; sales to customers from before still earn commissions',
    on: { activate: 'active', pause: 'paused' },
    refusal: 'The program is paused and takes no applications. Set its status to `active` first.',
  },
};
const status = statusSchema(program_states);

const counters = {
  partners: rowsOf('partner'),
  active_partners: { sum: 'rows', where: sql`n.noun = 'partner' and n.kind = 'active'` },
  clicks: rowsOf('click'),
  referrals: rowsOf('referral'),
  customers: rowsOf('customer'),
  sales_minor: moneyOf('sale'),
  commissions_minor: moneyOf('commission'),
} satisfies Record<string, Counter>;

/** `{"EUR": 5000}`: minor units of each currency. */
const amountsByCurrency = z.record(currency, minorNotNegative).meta({ examples: [{ EUR: 5000 }] });

export const programs = resource({
  object: 'program',
  plural: 'programs',
  table: 'program.program',
  unique: { program_subdomain_unique: 'subdomain', program_custom_domain_unique: 'custom_domain' },
  doc: 'An affiliate program and its settings. Partners, links, customers, sales and commissions belong to a program.',
  fields: {
    id: id('prg'),
    object: objectName('program'),
    name: text.describe('The name of the program.'),
    product_name: text.describe('The name of the product, as shown to partners.'),
    website_url: text.describe('The website that partners send visitors to.'),
    subdomain: text.describe(
      'An identifier derived from the name at creation. Unique across all programs; it does not change. Partners join at `/join/{subdomain}`, and at `/join/{subdomain}/{slug of a group}`.',
    ),
    currency: storedCurrency,
    status,
    custom_domain: text
      .nullable()
      .describe(
        'The host name of short links. Unique across all programs; letter case is ignored. Null: the host name of the service.',
      ),
    terms_url: text.nullable().describe('The URL of the terms that partners accept. Null if there are none.'),
    terms_version: text
      .nullable()
      .describe(
        'The current version of the terms. Null if there are none. Partners who accepted another version are asked again. If `terms_url` changes and no version is sent, it is the date of the change (UTC).',
      ),
    cookie_days: z
      .int()
      .describe('The number of days after a click in which a sign-up is credited to the partner, 1 to 365.'),
    url_params: z
      .array(text)
      .describe(
        "Query parameters that can carry a partner's handle, such as `ref` in `?ref=ada`. New links use the first one.",
      ),
    commission_on_net_revenue: z
      .boolean()
      .describe('Whether commissions are computed from `net_amount_minor` (true) or `amount_minor` (false).'),
    holding_period_days: z
      .int()
      .describe('The number of days after the sale until a commission becomes due, 0 to 180.'),
    min_payout_minor: minorNotNegative.describe(
      "The minimum balance for a payout, in minor units of the program's currency. A partner's own `min_payout_minor` takes precedence.",
    ),
    payout_term: z
      .enum(payout_terms)
      .describe('When a payout is due: 15, 30 or 60 days after the end of the month it covers.'),
    payout_methods: z.array(z.enum(payout_methods)).describe('The payout methods that partners can choose from.'),
    min_payouts: amountsByCurrency.describe(
      'The minimum balance for a payout in other currencies, in minor units of each: `{"EUR": 5000}`. Without one, every positive balance is paid.',
    ),
    payout_approval_required: z
      .boolean()
      .describe('Whether a payout batch must be approved by another user than the one who created it.'),
    payout_limit_minor: minorNotNegative
      .nullable()
      .describe(
        "The most that is sent in a UTC day, in minor units of the program's currency. What exceeds it is not sent that day, and the owner is emailed. Null: no limit.",
      ),
    payout_limits: amountsByCurrency.describe(
      'The most that is sent in a UTC day in other currencies, in minor units of each: `{"EUR": 100000}`.',
    ),
    block_self_referrals: z
      .boolean()
      .describe(
        "Whether partners are prevented from referring themselves. If true, a sign-up with the partner's own email address or browser fails with 409 `self_referral`, and a partner's own purchase is recorded without a commission.",
      ),
    blocked_countries: z
      .array(text)
      .describe(
        'ISO 3166-1 alpha-2 codes of countries, or what clicks have instead (`T1` for Tor), whose clicks earn no credit.',
      ),
    require_tax_forms: z.boolean().describe('Whether a partner needs a tax form to be paid.'),
    auto_payouts_enabled: z
      .boolean()
      .describe('Whether payouts are sent automatically when they are due. If false, each payout is sent by hand.'),
    processor: z
      .enum(processors)
      .nullable()
      .describe(
        'The billing processor that charges customers. New customers are recorded with it. Null if not provided.',
      ),
    attribution: z
      .enum(['last_click', 'first_click'])
      .describe('Which click is credited until the visitor becomes a customer: the last one, or the first one.'),
    application_required: z
      .boolean()
      .describe(
        'Whether automatically enrolled customers start as `pending` partners with an application in the review queue. Partners that you create are `active` unless you specify otherwise.',
      ),
    auto_enrol_customers: z.boolean().describe('Whether a customer becomes a partner on the first sale.'),
    default_rejection_reason: text.describe(
      'The reason given to a rejected applicant when the rejection has no reason.',
    ),
    weekly_summary: z
      .boolean()
      .describe(
        'Whether the owner of the organization is emailed a summary of the past week each Monday at 06:00 UTC.',
      ),
    questions: storedQuestions,
    partner_emails: z
      .boolean()
      .describe(
        'Whether partners are emailed about their application, their first and new referrals, and changed rates. What a partner has switched off is not sent.',
      ),
    timezone: text.meta({
      description:
        'The IANA time zone in which the dashboard and the portal show times, with UTC beside them. Days, such as those of payouts, are those of UTC.',
      examples: ['Europe/Berlin'],
    }),
    created_at: timestamp,
    updated_at: timestamp,
  },
  stats: {
    fields: {
      partners: z.int().describe('Partners with any status.'),
      active_partners: z.int().describe('Partners with the status `active`.'),
      clicks: z.int().describe('All clicks, including repeated ones. Those of bots are not counted.'),
      referrals: z.int().describe('Visitors referred by partners.'),
      customers: z.int().describe('Customers attributed to partners.'),
      sales_minor: z
        .int()
        .describe(
          "The sum of sales before refunds, in minor units of the program's currency. Sales in other currencies are not included.",
        ),
      commissions_minor: z
        .int()
        .describe(
          "Commissions net of clawbacks, without voided and rejected ones, in minor units of the program's currency.",
        ),
    },
    load: (tx, rows) => countersOf(tx, rows, counters),
  },
});

export type PayoutMethodName = (typeof payout_methods)[number];

export type Program = z.infer<typeof programs.record>;

/** The settings that a request can set. */
export const settings = {
  name: text.min(1).max(200),
  product_name: text.min(1).max(200),
  website_url: url,
  status,
  custom_domain: z
    .string()
    .toLowerCase()
    .regex(
      /^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z]([a-z0-9-]*[a-z0-9])?$/,
      'must be a host name, as in partners.example.com',
    )
    .max(253)
    .nullable(),
  terms_url: url.nullable(),
  terms_version: oneLine(100).nullable(),
  cookie_days: z.int().min(1).max(365),
  url_params: z.array(text.min(1).max(32)).min(1).max(20),
  commission_on_net_revenue: z.boolean(),
  holding_period_days: z.int().min(0).max(180),
  min_payout_minor: minorNotNegative,
  payout_term: z.enum(payout_terms),
  payout_methods: z.array(z.enum(payout_methods)),
  min_payouts: amountsByCurrency,
  payout_approval_required: z.boolean(),
  payout_limit_minor: minorNotNegative.nullable(),
  payout_limits: amountsByCurrency,
  block_self_referrals: z.boolean(),
  blocked_countries: z.array(visitorCountry),
  require_tax_forms: z.boolean(),
  auto_payouts_enabled: z.boolean(),
  processor: z.enum(processors).nullable(),
  attribution: z.enum(['last_click', 'first_click']),
  application_required: z.boolean(),
  auto_enrol_customers: z.boolean(),
  default_rejection_reason: text.max(1000).regex(/\S/, 'must not be blank'),
  weekly_summary: z.boolean(),
  questions,
  partner_emails: z.boolean(),
  timezone: timeZone,
};

/**
 * The database refuses a domain that is taken: a program of another organization is not visible here, and nothing about it is revealed.
 * @throws Problem resource_already_exists without the program that has the domain; any other error as it is
 */
export function refuseTakenDomain(error: unknown): never {
  if ((error as { constraint?: string }).constraint !== 'program_custom_domain_unique') throw error;
  throw alreadyExists('custom_domain', 'The custom_domain is already in use. Use a different one.', undefined);
}

const fields_of_own_currency = { min_payouts: 'min_payout_minor', payout_limits: 'payout_limit_minor' } as const;

/**
 * Amounts in the program's own currency have a field of their own: among those of other currencies, nothing would ever read them.
 * @throws Problem invalid_parameter
 */
export function refuseOwnCurrency(
  currency: string,
  given: Partial<Pick<Program, keyof typeof fields_of_own_currency>>,
): void {
  for (const [field, own] of Object.entries(fields_of_own_currency)) {
    if (given[field as keyof typeof fields_of_own_currency]?.[currency] === undefined) continue;
    const message = `${currency} is the program's currency, and '${field}' holds the other currencies. Set '${own}' instead.`;
    throw new Problem('invalid_parameter', message, { param: `${field}.${currency}` });
  }
}

export const programOperations: Operation[] = readOperations({ resource: programs, by: ['status'] });
