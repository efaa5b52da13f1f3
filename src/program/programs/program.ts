import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { insert } from '../../core/postgres/write.ts';
import { idParams, type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { resource } from '../../core/resource/resource.ts';
import { country, id, objectName, text, timestamp, url, withDefaults } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { currency, minorNotNegative, storedCurrency } from '../../core/values/money.ts';
import { alreadyExists } from '../../core/values/problem.ts';
import { type Counter, countersOf, moneyOf, rowsOf, totalOf } from './tally.ts';

export const payout_methods = ['bank_transfer', 'wire', 'crypto', 'paypal', 'wise', 'stripe'] as const;
export const processors = ['stripe', 'paddle', 'chargebee', 'manual', 'api'] as const;
const payout_terms = ['net_15', 'net_30', 'net_60'] as const;
const statuses = ['active', 'paused'] as const;

const counters = {
  partners: rowsOf('partner'),
  active_partners: { of: 'rows', where: sql`n.noun = 'partner' and n.kind = 'active'` },
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
  doc: 'An affiliate program: its settings, and what everything else belongs to.',
  fields: {
    id: id('prg'),
    object: objectName('program'),
    name: text.describe('What you call the program.'),
    product_name: text.describe('What partners promote, as they are told.'),
    website_url: text.describe('The website that partners bring visitors to.'),
    subdomain: text.describe('A slug of the name, unique over all programs. Fixed at creation.'),
    currency: storedCurrency,
    status: z
      .enum(statuses)
      .describe(
        'A state of yours, to show and to filter by: clicks are recorded and commissions earned in a `paused` program too.',
      ),
    custom_domain: text.nullable().describe('The host name that short links are under. Null: that of the service.'),
    terms_url: text.nullable().describe('Where the terms lie that partners accept. Null: there are none.'),
    terms_version: text.nullable().describe('The version of the terms that are in force. Null: there are none.'),
    cookie_days: z.int().describe('How many days after a click a sign-up still counts for the partner, 1 to 365.'),
    url_params: z
      .array(text)
      .describe(
        "Query parameters whose value may be a partner's handle, as `ref` in `?ref=ada`. The first is that of new links.",
      ),
    commission_on_net_revenue: z
      .boolean()
      .describe('True: a commission is a share of `net_amount_minor`. False: of `amount_minor`.'),
    holding_period_days: z.int().describe('How many days after its sale a commission becomes due, 0 to 180.'),
    min_payout_minor: minorNotNegative.describe(
      "What must be due to a partner before it is paid out, in minor units of the program's currency. A partner's own `min_payout_minor` wins.",
    ),
    payout_term: z
      .enum(payout_terms)
      .describe('When a payout is due: 15, 30 or 60 days after the end of the month that it covers.'),
    payout_methods: z.array(z.enum(payout_methods)).describe('How partners may be paid.'),
    block_self_referrals: z
      .boolean()
      .describe(
        "True: who signs up through their own link, known by the partner's mailbox or browser, earns nothing: the sign-up answers 409 `self_referral`.",
      ),
    blocked_countries: z.array(text).describe('ISO 3166-1 alpha-2 codes: a click from there earns no credit.'),
    require_tax_forms: z.boolean().describe('True: nobody is paid without a tax form.'),
    auto_payouts_enabled: z
      .boolean()
      .describe('True: payouts are sent when they are due. False: somebody sends each by hand.'),
    processor: z
      .enum(processors)
      .nullable()
      .describe("Who takes the customers' payments; new customers are marked with it. Null: not said."),
    attribution: z
      .enum(['last_click', 'first_click'])
      .describe('Who is credited while a visitor is no customer yet: the partner of the last click, or of the first.'),
    application_required: z
      .boolean()
      .describe(
        'True: who joins on their own accord waits in the review queue until somebody decides; so does a customer who is enrolled. Only whom you add yourself is active at once.',
      ),
    auto_enrol_customers: z.boolean().describe('True: a customer becomes a partner on the first sale.'),
    default_rejection_reason: text.describe('What a rejected applicant reads where the rejection gives no reason.'),
    created_at: timestamp,
    updated_at: timestamp,
  },
  stats: {
    fields: {
      partners: z.int().describe('Partners, of any status.'),
      active_partners: z.int().describe('Partners who are `active`.'),
      clicks: z.int().describe('Clicks, of robots and repeats too.'),
      referrals: z.int().describe('Visitors whom partners brought.'),
      customers: z.int().describe('Customers whom partners brought.'),
      sales_minor: z
        .int()
        .describe(
          "The sum of its sales, refunds not subtracted, in minor units of the program's currency; sales in others are not added up.",
        ),
      commissions_minor: z
        .int()
        .describe(
          "Earned and neither voided nor rejected, clawbacks subtracted, in minor units of the program's currency.",
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
  status: z.enum(statuses),
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

/** What a new program is set to where its maker says nothing. */
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
    doc: '`product_name` is the name when left out.',
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
    summary: "Changes a program's settings.",
    doc: 'Only what is sent changes. What was computed before stays: a new holding period holds for later commissions.',
    params: idParams,
    body: z.strictObject(settings).partial(),
    reply: programs.schema,
    async run({ tx, params, body }) {
      await programs.get(tx, params.id, { lock: true });
      return programs.update(tx, params.id, body);
    },
  }),
];

/** Creates a program with its default group; the subdomain is a slug of the name, made unique over all organizations. */
export async function createProgram(tx: Tx, given: z.infer<typeof NewProgram>): Promise<Program> {
  const { name: called, product_name = called } = given;
  const made = await firstFree(called, (subdomain) =>
    programs.insert(
      tx,
      { ...given, id: newId('prg'), product_name, subdomain },
      sql`on conflict on constraint program_subdomain_unique do nothing`,
    ),
  );
  const group = { id: newId('grp'), program_id: made.id, name: 'Default', slug: 'default', is_default: true };
  await insert(tx, 'program.partner_group', group);
  return made;
}

async function firstFree(name: string, claim: (subdomain: string) => Promise<Program | undefined>): Promise<Program> {
  const slug = slugOf(name) || 'program';
  for (const end of ['', ...Array.from({ length: 10 }, () => `-${Math.random().toString(36).slice(2, 8)}`)]) {
    const made = await claim(slug + end);
    if (made) return made;
  }
  throw alreadyExists('name', `No free subdomain was found for '${name}'. Use another name.`, undefined);
}

/** Lowercase letters without their marks, digits and single hyphens. */
export const slugOf = (name: string): string =>
  name
    .normalize('NFKD')
    .replaceAll(/\p{M}+/gu, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, 48)
    .replace(/-+$/, '');
