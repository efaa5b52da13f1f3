import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { insert } from '../../core/postgres/write.ts';
import { type Operation, operation } from '../../core/resource/operation.ts';
import { requireScope } from '../../core/resource/scope.ts';
import { withDefaults } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { currency } from '../../core/values/money.ts';
import { alreadyExists } from '../../core/values/problem.ts';
import { type Program, programs, refuseOwnCurrency, refuseTakenDomain, settings } from './program.ts';
import { slugOf } from './slug.ts';
import { termsAfter } from './terms.ts';

const { name, website_url, ...optional } = settings;

/** The settings of a new program that the request leaves out. */
const defaults = {
  status: 'active',
  custom_domain: null,
  terms_url: null,
  terms_version: null,
  cookie_days: 60,
  url_params: ['ref', 'via'],
  commission_on_net_revenue: false,
  holding_period_days: 30,
  min_payout_minor: 5000,
  payout_term: 'net_30',
  payout_methods: ['bank_transfer', 'paypal'],
  min_payouts: {},
  payout_approval_required: false,
  payout_limit_minor: null,
  payout_limits: {},
  block_self_referrals: true,
  blocked_countries: [],
  require_tax_forms: false,
  auto_payouts_enabled: false,
  processor: null,
  attribution: 'last_click',
  application_required: false,
  auto_enrol_customers: false,
  default_rejection_reason: 'Thank you for applying. We cannot take you on as a partner at this time.',
  weekly_summary: false,
  questions: [],
  partner_emails: true,
  timezone: 'UTC',
} satisfies Partial<Program>;

export const NewProgram = z.strictObject({ name, website_url, currency, ...withDefaults(optional, defaults) });

export const createProgramOperations: Operation[] = [
  operation({
    name: 'programs.create',
    method: 'POST',
    path: '/v1/programs',
    scope: 'programs:write',
    summary: 'Creates a program with its default group.',
    doc: 'The default of `product_name` is the name. A `custom_domain` that another program has is refused with 409, without the program under `existing`. `auto_payouts_enabled: true` requires the scope `payouts:send`, too.',
    body: NewProgram,
    reply: programs.schema,
    status: 201,
    errors: ['resource_already_exists'],
    run({ tx, body, caller }) {
      refuseOwnCurrency(body.currency, body);
      if (body.auto_payouts_enabled) requireScope(caller.scopes, 'payouts:send');
      return createProgram(tx, body);
    },
  }),
];

/** Creates a program with its default group. The subdomain is a slug of the name, unique over all organizations. */
export async function createProgram(tx: Tx, body: z.infer<typeof NewProgram>): Promise<Program> {
  const { name, product_name = name } = body;
  const terms = termsAfter({ terms_url: null, terms_version: null }, body, tx.now);
  const questions = JSON.stringify(body.questions);
  const program = await withFreeSubdomain(name, (subdomain) =>
    programs.insert(
      tx,
      { ...body, ...terms, questions, id: newId('prg'), product_name, subdomain },
      sql`on conflict on constraint program_subdomain_unique do nothing`,
    ),
  ).catch(refuseTakenDomain);
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
