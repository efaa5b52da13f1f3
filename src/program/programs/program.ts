import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { insert } from '../../core/postgres/write.ts';
import { idParams, type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { resource } from '../../core/resource/resource.ts';
import { type States, statusSchema } from '../../core/resource/states.ts';
import { country, id, objectName, text, timestamp, url, withDefaults } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { currency, minorNotNegative, storedCurrency } from '../../core/values/money.ts';
import { alreadyExists } from '../../core/values/problem.ts';
import { type Counter, countersOf, moneyOf, rowsOf, totalOf } from './tally.ts';

export const payout_methods = ['bank_transfer', 'wire', 'crypto', 'paypal', 'wise', 'stripe'] as const;
export const processors = ['stripe', 'paddle', 'chargebee', 'manual', 'api'] as const;
const payout_terms = ['net_15', 'net_30', 'net_60'] as const;

/** Either status can be set at any time. */
export const program_states: States<'active' | 'paused', 'activate' | 'pause'> = {
  active: { doc: 'the program is running', on: { activate: 'active', pause: 'paused' } },
  paused: {
    doc: 'informational only, clicks are still recorded and commissions are still earned',
    on: { activate: 'active', pause: 'paused' },
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

export const programs = resource({
  object: 'program',
  plural: 'programs',
  table: 'program.program',
  unique: { program_subdomain_unique: 'subdomain' },
  total: totalOf('program'),
  doc: 'An affiliate program and its settings. Partners, links, customers, sales and commissions belong to a program.',
  fields: {
    id: id('prg'),
    object: objectName('program'),
    name: text.describe('The name of the program.'),
    product_name: text.describe('The name of the product, as shown to partners.'),
    website_url: text.describe('The website that partners send visitors to.'),
    subdomain: text.describe(
      'An identifier derived from the name at creation. Unique across all programs; it does not change.',
    ),
    currency: storedCurrency,
    status,
    custom_domain: text.nullable().describe('The host name of short links. Null: the host name of the service.'),
    terms_url: text.nullable().describe('The URL of the terms that partners accept. Null if there are none.'),
    terms_version: text.nullable().describe('The current version of the terms. Null if there are none.'),
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
    block_self_referrals: z
      .boolean()
      .describe(
        "Whether partners are prevented from referring themselves. If true, a sign-up with the partner's own email address or browser fails with 409 `self_referral`, and no commission is earned.",
      ),
    blocked_countries: z.array(text).describe('ISO 3166-1 alpha-2 codes of countries whose clicks earn no credit.'),
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
    created_at: timestamp,
    updated_at: timestamp,
  },
  stats: {
    fields: {
      partners: z.int().describe('Partners with any status.'),
      active_partners: z.int().describe('Partners with the status `active`.'),
      clicks: z.int().describe('All clicks, including repeated clicks and clicks by bots.'),
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

const settings = {
  name: text.min(1).max(200),
  product_name: text.min(1).max(200),
  website_url: url,
  status,
  custom_domain: z
    .string()
    .regex(
      /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+$/,
      'must be a host name, as in partners.example.com',
    )
    .max(253)
    .nullable(),
  terms_url: url.nullable(),
  cookie_days: z.int().min(1).max(365),
  url_params: z.array(text.min(1).max(32)).min(1).max(20),
  commission_on_net_revenue: z.boolean(),
  holding_period_days: z.int().min(0).max(180),
  min_payout_minor: minorNotNegative,
  payout_term: z.enum(payout_terms),
  payout_methods: z.array(z.enum(payout_methods)),
  block_self_referrals: z.boolean(),
  blocked_countries: z.array(country),
  require_tax_forms: z.boolean(),
  auto_payouts_enabled: z.boolean(),
  processor: z.enum(processors).nullable(),
  attribution: z.enum(['last_click', 'first_click']),
  application_required: z.boolean(),
  auto_enrol_customers: z.boolean(),
  default_rejection_reason: text.max(1000).regex(/\S/, 'must not be blank'),
};

const { name, website_url, ...optional } = settings;

/** The settings of a new program that the request leaves out. */
const defaults = {
  status: 'active',
  custom_domain: null,
  terms_url: null,
  cookie_days: 60,
  url_params: ['ref', 'via'],
  commission_on_net_revenue: false,
  holding_period_days: 30,
  min_payout_minor: 5000,
  payout_term: 'net_30',
  payout_methods: ['bank_transfer', 'paypal'],
  block_self_referrals: true,
  blocked_countries: [],
  require_tax_forms: false,
  auto_payouts_enabled: false,
  processor: null,
  attribution: 'last_click',
  application_required: false,
  auto_enrol_customers: false,
  default_rejection_reason: 'Thank you for applying. We cannot take you on as a partner at this time.',
} satisfies Partial<Program>;

export const NewProgram = z.strictObject({ name, website_url, currency, ...withDefaults(optional, defaults) });

export const programOperations: Operation[] = [
  ...readOperations({ resource: programs, by: ['status'] }),
  operation({
    name: 'programs.create',
    method: 'POST',
    path: '/v1/programs',
    scope: 'programs:write',
    summary: 'Creates a program with its default group.',
    doc: 'The default of `product_name` is the name.',
    body: NewProgram,
    reply: programs.schema,
    status: 201,
    errors: ['resource_already_exists'],
    run: ({ tx, body }) => createProgram(tx, body),
  }),
  operation({
    name: 'programs.update',
    method: 'PATCH',
    path: '/v1/programs/{id}',
    scope: 'programs:write',
    summary: "Updates a program's settings.",
    doc: 'Only the fields in the request change. Existing commissions keep their amounts and dates: a new holding period applies to later commissions only.',
    params: idParams,
    body: z.strictObject(settings).partial(),
    reply: programs.schema,
    async run({ tx, params, body }) {
      await programs.get(tx, params.id, { lock: true });
      return programs.update(tx, params.id, body);
    },
  }),
];

/** Creates a program with its default group. The subdomain is a slug of the name, unique over all organizations. */
export async function createProgram(tx: Tx, settings: z.infer<typeof NewProgram>): Promise<Program> {
  const { name, product_name = name } = settings;
  const program = await withFreeSubdomain(name, (subdomain) =>
    programs.insert(
      tx,
      { ...settings, id: newId('prg'), product_name, subdomain },
      sql`on conflict on constraint program_subdomain_unique do nothing`,
    ),
  );
  const group = { id: newId('grp'), program_id: program.id, name: 'Default', slug: 'default', is_default: true };
  await insert(tx, 'program.partner_group', group);
  return program;
}

/** Creates the program under the first subdomain that is free: the slug of the name, or the slug with a random suffix. */
async function withFreeSubdomain(
  name: string,
  create: (subdomain: string) => Promise<Program | undefined>,
): Promise<Program> {
  const slug = slugOf(name) || 'program';
  for (const suffix of ['', ...Array.from({ length: 10 }, () => `-${Math.random().toString(36).slice(2, 8)}`)]) {
    const program = await create(slug + suffix);
    if (program) return program;
  }
  throw alreadyExists('name', `No free subdomain was found for the name '${name}'. Use a different name.`, undefined);
}

/** The name in lowercase letters without diacritics, digits and single hyphens. */
export const slugOf = (name: string): string =>
  name
    .normalize('NFKD')
    .replaceAll(/\p{M}+/gu, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, 48)
    .replace(/-+$/, '');
