import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { idParams, type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { type Lock, lockOf, resource, tenant } from '../../core/resource/resource.ts';
import { email, id, metadata, objectName, storedMetadata, text, timestamp } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { alreadyExists, notFound, Problem } from '../../core/values/problem.ts';
import { event } from '../events/catalogue.ts';
import { type Partner, partner } from '../partners/partner.ts';
import { ownVisits, rememberVisit } from '../partners/partner_visit.ts';
import { selfReferralBy, type Visit } from '../partners/self_referral.ts';
import { assessLater } from '../programs/assess_later.ts';
import { type Program, processors, program } from '../programs/program.ts';
import { raise } from '../programs/raise_flag.ts';
import { totalOf } from '../programs/tally.ts';
import { attributeClick, windowEnd } from '../tracking/attribution.ts';
import { link } from '../tracking/link.ts';
import { deleteReferral, type Referral, referral, tracked_by } from '../tracking/referral.ts';

const statuses = ['lead', 'trial', 'active', 'cancelled', 'refunded', 'suspended'] as const;
const writable_statuses = ['lead', 'trial', 'active', 'cancelled', 'suspended'] as const;

export const customer = resource({
  object: 'customer',
  plural: 'customers',
  table: 'program.customer',
  total: totalOf('customer'),
  doc: 'Somebody whom a partner brought, from the sign-up on.',
  relations: { partner, referral, link },
  fields: {
    id: id('cus'),
    object: objectName('customer'),
    program_id: id('prg'),
    partner_id: id('part').describe('Who earns by the customer.'),
    referral_id: id('ref').nullable().describe('The visit that the customer came by. Null: there was none.'),
    link_id: id('lnk').nullable().describe('The link that the customer came by. Null: there was none.'),
    coupon_id: id('cpn')
      .nullable()
      .describe('The coupon that brought the customer to the partner. Null: there was none.'),
    processor: z
      .enum(processors)
      .nullable()
      .describe("The program's processor when the customer was recorded. Null: it had none."),
    external_customer_id: text.nullable().describe("The processor's customer id: incoming charges are matched on it."),
    external_subscription_id: text
      .nullable()
      .describe("The processor's id of the subscription, as the first sale said. Null: not said."),
    email: text.nullable().describe("The customer's. Null: not known."),
    name: text.nullable().describe("The customer's. Null: not known."),
    identifier: text.nullable().describe('Your own id of the customer. Null: not said.'),
    status: z
      .enum(statuses)
      .describe(
        'Where the customer stands. The first sale turns `lead` and `trial` into `active`; `refunded` is written by a whole refund alone.',
      ),
    tracked_by: z
      .enum(tracked_by)
      .describe(
        'How the partner came to the customer: by a link (or handle), a coupon, by hand, or by an id that a request named.',
      ),
    lead_at: timestamp.nullable().describe('When the customer was recorded.'),
    converted_at: timestamp.nullable().describe('When the customer first paid. Null: not yet.'),
    metadata: storedMetadata,
    created_at: timestamp,
    updated_at: timestamp,
  },
});

export type Customer = z.infer<typeof customer.record>;

/** What identifies a customer, wherever one can be made. */
export const identity = {
  email: email.optional().describe('A partner with the same mailbox is a self-referral.'),
  name: text.max(200).optional().describe("The customer's."),
  identifier: text.min(1).max(255).optional().describe('Your own id of the customer.'),
  external_customer_id: text
    .min(1)
    .max(255)
    .optional()
    .describe("The processor's id of the customer, unique in the program: incoming charges are matched on it."),
};

export const customerOperations: Operation[] = [
  ...readOperations({
    of: customer,
    within: program,
    by: ['status', 'partner_id', 'link_id', 'coupon_id'],
    filters: {
      email: { schema: email.optional(), where: (value: string) => sql`t.email_key = ${value.toLowerCase()}` },
      external_customer_id: {
        schema: text.optional(),
        where: (value: string) => sql`t.external_customer_id = ${value}`,
      },
    },
  }),
  operation({
    name: 'customers.create',
    method: 'POST',
    path: '/v1/customers',
    scope: 'customers:write',
    summary: 'Records a sign-up.',
    doc: 'One of `partner_id` (attribute directly) and `click_id` (attribute through the click) is required.',
    body: z
      .strictObject({
        program_id: id('prg'),
        partner_id: id('part').optional().describe('Who brought the customer. This or `click_id`.'),
        click_id: id('clk').optional().describe('The click that brought the customer. This or `partner_id`.'),
        ...identity,
        status: z.enum(writable_statuses).default('lead'),
        metadata: metadata.optional(),
      })
      .refine(({ partner_id, click_id }) => (partner_id === undefined) !== (click_id === undefined), {
        path: ['click_id'],
        message: 'give one of click_id and partner_id',
      }),
    reply: customer.schema,
    status: 201,
    errors: ['resource_already_exists', 'self_referral', 'click_expired'],
    async run({ tx, body }) {
      const of = await program.get(tx, body.program_id, { param: 'program_id' });
      const { click_id, partner_id, ...fields } = body;
      const existing = fields.external_customer_id && (await soleCustomer(tx, of, fields.external_customer_id));
      if (existing) throw takenExternalId(existing);
      if (click_id !== undefined)
        return createCustomerOfReferral(tx, of, await requireReferred(tx, of, click_id), fields);
      const owner = await partnerOf(tx, of, partner_id as string);
      return createCustomer(tx, of, { partner: owner, tracked_by: 'api' }, fields);
    },
  }),
  operation({
    name: 'customers.update',
    method: 'PATCH',
    path: '/v1/customers/{id}',
    scope: 'customers:write',
    summary: 'Changes a customer, or gives the customer to another partner.',
    doc: 'A new `partner_id` is recorded as manual attribution. `refunded` is written by the refund alone.',
    params: idParams,
    body: z
      .strictObject({
        email: email.nullable(),
        name: text.max(200).nullable(),
        identifier: text.min(1).max(255).nullable(),
        status: z.enum(writable_statuses),
        partner_id: id('part'),
        metadata,
      })
      .partial(),
    reply: customer.schema,
    async run({ tx, params, body }) {
      const before = await customer.get(tx, params.id, { lock: true });
      const reassigned = body.partner_id !== undefined && body.partner_id !== before.partner_id;
      if (reassigned) await partnerOf(tx, { id: before.program_id }, body.partner_id as string);
      if (reassigned || body.email) assessLater(tx, 'customer', before.id);
      return customer.update(tx, before.id, { ...body, ...(reassigned ? { tracked_by: 'manual' } : {}) });
    },
  }),
];

export interface CustomerFields {
  email?: string | undefined;
  name?: string | undefined;
  identifier?: string | undefined;
  external_customer_id?: string | undefined;
  external_subscription_id?: string | undefined;
  status?: Customer['status'] | undefined;
  metadata?: Customer['metadata'] | undefined;
}

export interface Attribution {
  partner: Partner;
  tracked_by: Customer['tracked_by'];
  referral?: Referral;
  coupon_id?: string;
}

/** The visitor's live referral, whose it is, and the visit by which it is named now. */
export interface Referred {
  referral: Referral;
  owner: Partner;
  visit: Visit;
}

/**
 * The live referral behind a click, judged on the spot where its job has not run yet; none where the click earned no credit, or its partner
 * is deleted. `expired`: the click is outside its window.
 */
export async function referredBy(
  tx: Tx,
  of: Program,
  click_id: string,
): Promise<{ referred: Referred | undefined; expired: boolean }> {
  const { click, referral: credited } = await attributeClick(tx, click_id, of.id);
  const owner = credited && (await partner.find(tx, sql`${tenant(tx)} and t.id = ${credited.partner_id}`));
  return {
    referred: credited && owner && { referral: credited, owner, visit: click },
    expired: windowEnd(click.created_at, of.cookie_days) <= tx.now,
  };
}

/**
 * @throws Problem click_expired when the click is outside its window; self_referral, as the first time, when its referral ended so;
 * invalid_parameter when the click earned no credit
 */
async function requireReferred(tx: Tx, of: Program, click_id: string): Promise<Referred> {
  const { referred, expired } = await referredBy(tx, of, click_id);
  if (expired) {
    throw new Problem(
      'click_expired',
      `The click is older than the program's ${of.cookie_days} days. Name a partner_id to attribute by hand.`,
      {
        param: 'click_id',
      },
    );
  }
  if (!referred) {
    if (await endedAsSelfReferral(tx, click_id)) {
      throw new Problem(
        'self_referral',
        'The visitor of this click is the partner, and this program blocks self-referrals. Nothing was credited.',
        {
          param: 'click_id',
        },
      );
    }
    throw new Problem(
      'invalid_parameter',
      'The click earned no credit: a robot, a blocked country, a partner who is not active, or a referral that was deleted. Name a partner_id.',
      {
        param: 'click_id',
      },
    );
  }
  return referred;
}

async function endedAsSelfReferral(tx: Tx, click_id: string): Promise<boolean> {
  const ended = await tx.maybe(sql`
    select
    from program.click t
    join program.referral r on r.organization_id = t.organization_id and r.id = t.referral_id
    where ${tenant(tx)} and t.id = ${click_id} and r.deleted_reason = 'self_referral'`);
  return ended !== undefined;
}

/** @throws Problem resource_not_found when the partner is not one of the program */
export async function partnerOf(tx: Tx, of: { id: string }, partner_id: string, lock: Lock = false): Promise<Partner> {
  const found = await partner.get(tx, partner_id, { param: 'partner_id', lock });
  if (found.program_id !== of.id) throw notFound('partner', partner_id, 'partner_id');
  return found;
}

/** Records the sign-up of a referred visitor: the referral becomes a `lead`, told once. */
export async function createCustomerOfReferral(
  tx: Tx,
  of: Program,
  referred: Referred,
  fields: CustomerFields,
): Promise<Customer> {
  await refuseSelfReferral(tx, of, referred, fields.email);
  const { referral: credited, owner } = referred;
  const made = await createCustomer(
    tx,
    of,
    { partner: owner, tracked_by: credited.tracked_by, referral: credited },
    fields,
  );
  if (credited.status !== 'visit') return made;
  await referral.update(tx, credited.id, { status: 'lead' });
  const { id: customer_id, partner_id, email: address, tracked_by: how } = made;
  tx.emit(
    event('referral.lead', of.id, {
      referral_id: credited.id,
      customer_id,
      partner_id,
      email: address,
      tracked_by: how,
    }),
  );
  return made;
}

/** @throws Problem resource_already_exists when the external customer id is taken */
export async function createCustomer(
  tx: Tx,
  of: Program,
  attribution: Attribution,
  fields: CustomerFields,
): Promise<Customer> {
  const made = await customer.insert(
    tx,
    {
      ...fields,
      id: newId('cus'),
      program_id: of.id,
      partner_id: attribution.partner.id,
      referral_id: attribution.referral?.id,
      link_id: attribution.referral?.link_id,
      coupon_id: attribution.coupon_id,
      processor: of.processor,
      status: fields.status ?? 'lead',
      tracked_by: attribution.tracked_by,
      lead_at: tx.now,
    },
    sql`on conflict do nothing`,
  );
  if (made) {
    assessLater(tx, 'customer', made.id);
    return made;
  }
  throw takenExternalId(await customerByExternalId(tx, of, fields.external_customer_id ?? ''));
}

const takenExternalId = (existing: Customer | undefined): Problem =>
  alreadyExists(
    'external_customer_id',
    `A customer with the external_customer_id '${existing?.external_customer_id}' exists in this program.`,
    existing,
  );

/** Found by the processor's id. Where none is found, whoever would make the same one waits for the others: sales, and sign-ups. */
export async function soleCustomer(
  tx: Tx,
  of: { id: string },
  external_customer_id: string,
): Promise<Customer | undefined> {
  const found = await customerByExternalId(tx, of, external_customer_id);
  if (found) return found;
  await tx.all(sql`select pg_advisory_xact_lock(hashtextextended(${`${of.id} ${external_customer_id}`}, 1))`);
  return customerByExternalId(tx, of, external_customer_id);
}

const customerByExternalId = (
  tx: Tx,
  of: { id: string },
  external_customer_id: string,
): Promise<Customer | undefined> =>
  customer.find(
    tx,
    sql`${tenant(tx)} and t.program_id = ${of.id} and t.external_customer_id = ${external_customer_id}`,
    lockOf(true),
  );

/** "Self-referral … with `block_self_referrals`: 409 `self_referral`, the referral is deleted with that reason." */
async function refuseSelfReferral(
  tx: Tx,
  of: Program,
  { referral: credited, owner, visit }: Referred,
  address: string | undefined,
): Promise<void> {
  const matched = selfReferralBy({
    partner_email: owner.email,
    customer_email: address ?? null,
    partner_visits: await ownVisits(tx, owner.id, [visit]),
    clicks: [visit],
  });
  if (matched === 'email') await rememberVisit(tx, owner.id, visit);
  if (!of.block_self_referrals || matched === undefined) return;
  if (credited.status === 'visit') await deleteReferral(tx, credited, 'self_referral');
  await raise(tx, {
    program_id: of.id,
    partner_id: owner.id,
    customer_id: null,
    kind: 'self_referral',
    severity: 'high',
    evidence: { matched, referral_id: credited.id },
  });
  throw new Problem(
    'self_referral',
    matched === 'email'
      ? 'The customer is the partner, and this program blocks self-referrals. Nothing was credited.'
      : "The click came from the partner's own browser, and this program blocks self-referrals. Nothing was credited.",
    {
      param: matched === 'email' ? 'email' : 'click_id',
      keep_effects: true,
    },
  );
}
