import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { changesOf, insert } from '../../core/postgres/write.ts';
import { idParams, type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { type Lock, type Row, resource, tenant } from '../../core/resource/resource.ts';
import {
  country,
  email,
  id,
  metadata,
  objectName,
  requireState,
  storedMetadata,
  text,
  timestamp,
  url,
} from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { minorNotNegative, storedCurrency } from '../../core/values/money.ts';
import { alreadyExists, notFound, Problem } from '../../core/values/problem.ts';
import { event } from '../events/catalogue.ts';
import { assessLater } from '../programs/assess_later.ts';
import { programs } from '../programs/program.ts';
import { type Counter, countersOf, moneyOf, rowsOf, totalOf } from '../programs/tally.ts';
import { groups, groupToJoin } from './group.ts';
import { normaliseEmail } from './self_referral.ts';
import { replaceTags } from './tag.ts';

const statuses = ['pending', 'active', 'declined', 'suspended'] as const;

export const partners = resource({
  object: 'partner',
  plural: 'partners',
  table: 'program.partner',
  unique: { partner_email_unique: 'email', partner_handle_unique: 'handle' },
  total: totalOf('partner'),
  doc: 'Somebody who brings customers, and earns by it.',
  soft_delete: true,
  relations: { group: groups },
  fields: {
    id: id('part'),
    object: objectName('partner'),
    program_id: id('prg'),
    group_id: id('grp').nullable().describe("The partner's group."),
    email: text.describe('Unique in the program, letter case ignored.'),
    first_name: text.nullable().describe("The person's first name. Null: not known."),
    last_name: text.nullable().describe("The person's last name. Null: not known."),
    display_name: text.nullable().describe('What others see. Null: the name.'),
    company_name: text.nullable().describe('The company, where there is one. Null: not known.'),
    website_url: text.nullable().describe('Where the partner publishes. Null: not known.'),
    country_code: text.nullable().describe('ISO 3166-1 alpha-2. Null: not known.'),
    language_code: text.nullable().describe('ISO 639-1. Null: not known.'),
    handle: text.describe('The `?ref=` value.'),
    status: z
      .enum(statuses)
      .describe(
        '`pending`: the application is not decided. `active`: earns. `declined`: the application was rejected or withdrawn. `suspended`: earns nothing new, until reinstated.',
      ),
    decline_reason: text
      .nullable()
      .describe('Why the application was rejected, or `withdrawn`. Null unless `declined`.'),
    suspension_reason: text.nullable().describe('Your note on why the partner is suspended. Null unless `suspended`.'),
    currency: storedCurrency.describe("The program's currency; every amount on the partner is in it."),
    min_payout_minor: minorNotNegative
      .nullable()
      .describe(
        "What must be due before the partner is paid out, in minor units of the currency. Null: the program's threshold holds.",
      ),
    terms_accepted_at: timestamp.nullable().describe("When the partner accepted the program's terms. Null: not yet."),
    terms_version: text.nullable().describe('The version of the terms that the partner accepted. Null: none.'),
    completed_onboarding: z.boolean().describe('Whether the partner has gone through the first steps of the portal.'),
    email_first_referral: z.boolean().describe('Whether the partner wants an email at the first referral.'),
    email_new_referral: z.boolean().describe('Whether the partner wants an email at each new referral.'),
    email_payout_paid: z.boolean().describe('Whether the partner wants an email when a payout is paid.'),
    metadata: storedMetadata,
    created_at: timestamp,
    updated_at: timestamp,
  },
  stats: {
    fields: {
      clicks: z.int().describe("Clicks through the partner's links and handle."),
      referrals: z.int().describe('Visitors whom the partner brought.'),
      customers: z.int().describe('Customers whom the partner brought.'),
      commissions_minor: z
        .int()
        .describe('Earned and neither voided nor rejected, clawbacks subtracted, in minor units of the currency.'),
      paid_minor: z.int().describe('What of it was paid, in minor units of the currency.'),
      currency: storedCurrency,
    },
    load: partnerStats,
  },
});

export type Partner = z.infer<typeof partners.record>;

const handle = z
  .string()
  .regex(
    /^[a-z0-9][a-z0-9-]{0,30}[a-z0-9]$/,
    'must be 2 to 32 lowercase letters, digits or hyphens, with no hyphen at an end',
  );

/** What is known of somebody who becomes a partner. */
export const person = {
  email,
  first_name: text.max(200).optional().describe("The person's first name."),
  last_name: text.max(200).optional().describe("The person's last name."),
  company_name: text.max(200).optional().describe('The company, where there is one.'),
  website_url: url.optional().describe('Where the partner publishes.'),
  country_code: country.optional(),
  handle: handle.optional().describe('Derived from the email when left out.'),
  group_id: id('grp').optional().describe("The program's default group when left out."),
};
const nullable_names = {
  first_name: text.max(200).nullable(),
  last_name: text.max(200).nullable(),
  company_name: text.max(200).nullable(),
};

export const partnerOperations: Operation[] = [
  ...readOperations({
    resource: partners,
    within: programs,
    by: ['status', 'group_id'],
    filters: {
      email: { schema: email.optional(), where: (value: string) => sql`t.email_key = ${value.toLowerCase()}` },
    },
  }),
  operation({
    name: 'partners.create',
    method: 'POST',
    path: '/v1/partners',
    scope: 'partners:write',
    summary: 'Adds a partner.',
    doc: 'Email and handle are unique in the program, letter case ignored: a taken one answers 409 with the partner under `existing`. A handle that is left out is derived from the email.',
    body: z.strictObject({
      program_id: id('prg'),
      ...person,
      status: z
        .enum(['active', 'pending'])
        .default('active')
        .describe('`pending` puts the partner in the review queue.'),
      metadata: metadata.optional(),
    }),
    reply: partners.schema,
    status: 201,
    errors: ['resource_already_exists'],
    async run({ tx, body }) {
      await programs.get(tx, body.program_id, { param: 'program_id' });
      const group_id = await groupToJoin(tx, body.program_id, body.group_id);
      return createPartner(tx, { ...body, group_id });
    },
  }),
  operation({
    name: 'partners.update',
    method: 'PATCH',
    path: '/v1/partners/{id}',
    scope: 'partners:write',
    summary: 'Changes a partner, suspends one, or reinstates one.',
    doc: 'A pending partner is approved through its application.',
    params: idParams,
    body: z
      .strictObject({
        ...nullable_names,
        display_name: text.max(200).nullable(),
        website_url: url.nullable(),
        country_code: country.nullable(),
        handle,
        group_id: id('grp').nullable(),
        min_payout_minor: minorNotNegative.nullable(),
        status: z
          .enum(['active', 'suspended'])
          .meta({ description: '`suspended`: earns nothing new. `active`: reinstated.', examples: ['suspended'] }),
        suspension_reason: text
          .max(1000)
          .nullable()
          .describe('Your note on why the partner is suspended. Of suspended partners alone.'),
        tag_ids: z.array(id('tag')).max(100).describe("Replaces the partner's tags."),
        metadata,
      })
      .partial(),
    reply: partners.schema,
    errors: ['resource_already_exists', 'invalid_state_transition'],
    async run({ tx, params, body: { tag_ids, ...changes } }) {
      const before = await partners.get(tx, params.id, { lock: true });
      const retagged = tag_ids !== undefined && (await replaceTags(tx, before, tag_ids));
      return updatePartner(tx, before, changes, retagged);
    },
  }),
];

/** @throws Problem resource_not_found when the partner is not one of the program */
export async function partnerOf(tx: Tx, of: { id: string }, partner_id: string, lock: Lock = false): Promise<Partner> {
  const found = await partners.get(tx, partner_id, { param: 'partner_id', lock });
  if (found.program_id !== of.id) throw notFound('partner', partner_id, 'partner_id');
  return found;
}

type NewPartner = Pick<Partner, 'program_id' | 'email' | 'status'> & Partial<Partner>;

/**
 * Adds a partner and tells `affiliate.created`. A handle that is not given is derived from the email.
 * @throws Problem resource_already_exists with the partner that holds the email or the handle
 */
export async function createPartner(tx: Tx, { handle: wanted, ...fields }: NewPartner): Promise<Partner> {
  const { program_id, email: address } = fields;
  const handle = wanted ?? (await freeHandle(tx, program_id, address));
  const made = await partners.insert(
    tx,
    { ...fields, id: newId('part'), handle, mailbox: normaliseEmail(address) },
    sql`on conflict do nothing`,
  );
  if (!made) {
    await refuseTaken(tx, { program_id, email: address, handle: wanted });
    // Another partner took the derived handle meanwhile, or who held the handle that was asked for let it go.
    return createPartner(tx, { ...fields, ...(wanted === undefined ? {} : { handle: wanted }) });
  }
  const { id: partner_id, email: kept, status, group_id } = made;
  if (status === 'pending') await queueForReview(tx, made);
  assessLater(tx, 'partner', partner_id);
  tx.emit(event('affiliate.created', program_id, { partner_id, email: kept, handle, status, group_id }));
  return made;
}

/** "Created with status `pending`, or by an applicant, a partner has an application in the review queue." */
const queueForReview = (tx: Tx, { id: partner_id, program_id, group_id, email: address }: Partner) =>
  insert(tx, 'program.application', { id: newId('app'), program_id, group_id, partner_id, email: address });

/** "The email's local part, made to fit the pattern, with `-2`, `-3` … behind it when taken." */
async function freeHandle(tx: Tx, program_id: string, address: string): Promise<string> {
  const base = handleOf(address);
  const taken = await tx.all<{ handle: string }>(sql`
    select t.handle from ${partners.from}
    where ${tenant(tx)} and t.program_id = ${program_id} and ${partners.alive}
      and t.handle >= ${base.slice(0, 26)} and t.handle < ${`${base.slice(0, 26)}~`}`);
  const handles = new Set(taken.map((row) => row.handle));
  let handle = base;
  for (let nth = 2; handles.has(handle); nth++) handle = `${trimmed(base, 31 - String(nth).length)}-${nth}`;
  return handle;
}

function handleOf(address: string): string {
  const local = address.slice(0, address.lastIndexOf('@')).toLowerCase();
  const fitting = local.replaceAll(/[^a-z0-9]+/g, '-').replaceAll(/^-+|-+$/g, '');
  return trimmed(fitting.length >= 2 ? fitting : `${fitting}partner`, 32);
}

const trimmed = (text: string, most: number): string => text.slice(0, most).replace(/-+$/, '');

async function refuseTaken(
  tx: Tx,
  { program_id, email: address, handle: wanted }: { program_id: string; email: string; handle: string | undefined },
): Promise<void> {
  const inProgram = sql`${tenant(tx)} and t.program_id = ${program_id}`;
  const sameEmail = await partners.find(tx, sql`${inProgram} and t.email_key = lower(${address})`);
  if (sameEmail)
    throw alreadyExists('email', `A partner with the email '${address}' exists in this program.`, sameEmail);
  if (wanted !== undefined) await refuseTakenHandle(tx, program_id, wanted);
}

async function refuseTakenHandle(tx: Tx, program_id: string, wanted: string): Promise<void> {
  const existing = await partners.find(
    tx,
    sql`${tenant(tx)} and t.program_id = ${program_id} and t.handle = ${wanted}`,
  );
  if (existing)
    throw alreadyExists('handle', `The handle '${wanted}' is taken in this program. Choose another one.`, existing);
}

async function updatePartner(tx: Tx, before: Partner, changes: Partial<Partner>, retagged: boolean): Promise<Partner> {
  const { status, suspension_reason, handle: wanted } = changes;
  if (wanted !== undefined && wanted !== before.handle) await refuseTakenHandle(tx, before.program_id, wanted);
  if (status !== undefined) {
    requireState(
      before.status === 'active' || before.status === 'suspended',
      before.status === 'declined'
        ? 'A partner who is declined can be neither suspended nor reinstated. Delete the partner and add them again.'
        : 'A partner who is pending can be neither suspended nor reinstated: approve or reject the application.',
    );
  }
  if ((suspension_reason ?? null) !== null && (status ?? before.status) !== 'suspended') {
    throw new Problem(
      'invalid_parameter',
      "'suspension_reason' is of suspended partners alone: send it with the status 'suspended'.",
      { param: 'suspension_reason' },
    );
  }
  if (typeof changes.group_id === 'string') await groupToJoin(tx, before.program_id, changes.group_id);
  const reason = status === 'active' ? null : suspension_reason;
  const after = await partners.update(tx, before.id, {
    ...changes,
    suspension_reason: reason,
    ...(retagged ? { updated_at: tx.now } : {}),
  });
  if (!retagged && changesOf(before, after).length === 0) return after;
  tx.emit(
    event('affiliate.updated', after.program_id, {
      partner_id: after.id,
      status: after.status,
      reason: after.suspension_reason,
    }),
  );
  return after;
}

const counters = {
  clicks: rowsOf('click'),
  referrals: rowsOf('referral'),
  customers: rowsOf('customer'),
  commissions_minor: moneyOf('commission'),
  paid_minor: { of: 'amount_minor', where: sql`n.noun = 'commission' and n.kind = s.currency || ' paid'` },
} satisfies Record<string, Counter>;

async function partnerStats(tx: Tx, rows: Row[]): Promise<Map<string, object>> {
  const counted = await countersOf(tx, rows, counters);
  return new Map(rows.map(({ id, currency }) => [id, { ...counted.get(id), currency }]));
}
