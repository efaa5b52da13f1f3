import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { idParams, type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { lockOf, resource, tenant } from '../../core/resource/resource.ts';
import { email, id, metadata, objectName, storedMetadata, text, timestamp } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { alreadyExists, type Problem } from '../../core/values/problem.ts';
import { type Partner, partnerOf, partners } from '../partners/partner.ts';
import { assessLater } from '../programs/assess_later.ts';
import { type Program, processors, programs } from '../programs/program.ts';
import { totalOf } from '../programs/tally.ts';
import { links } from '../tracking/link.ts';
import { type Referral, referrals, tracked_by_values } from '../tracking/referral.ts';

const statuses = ['lead', 'trial', 'active', 'cancelled', 'refunded', 'suspended'] as const;
export const writable_statuses = ['lead', 'trial', 'active', 'cancelled', 'suspended'] as const;

export const customers = resource({
  object: 'customer',
  plural: 'customers',
  table: 'program.customer',
  unique: { customer_external_id_unique: 'external_customer_id' },
  total: totalOf('customer'),
  doc: 'Somebody whom a partner brought, from the sign-up on.',
  relations: { partner: partners, referral: referrals, link: links },
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
      .enum(tracked_by_values)
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

export type Customer = z.infer<typeof customers.record>;

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
    resource: customers,
    within: programs,
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
    reply: customers.schema,
    async run({ tx, params, body }) {
      const before = await customers.get(tx, params.id, { lock: true });
      const reassigned = body.partner_id !== undefined && body.partner_id !== before.partner_id;
      if (reassigned) await partnerOf(tx, { id: before.program_id }, body.partner_id as string);
      if (reassigned || body.email) assessLater(tx, 'customer', before.id);
      return customers.update(tx, before.id, { ...body, ...(reassigned ? { tracked_by: 'manual' } : {}) });
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

/** @throws Problem resource_already_exists when the external customer id is taken */
export async function createCustomer(
  tx: Tx,
  of: Program,
  attribution: Attribution,
  fields: CustomerFields,
): Promise<Customer> {
  const made = await customers.insert(
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

export const takenExternalId = (existing: Customer | undefined): Problem =>
  alreadyExists(
    'external_customer_id',
    `A customer with the external_customer_id '${existing?.external_customer_id}' exists in this program.`,
    existing,
  );

/** Found by the processor's id. Where none is found, whoever would make the same one waits for the others: sales, and sign-ups. */
export async function findCustomerOrLock(
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
  customers.find(
    tx,
    sql`${tenant(tx)} and t.program_id = ${of.id} and t.external_customer_id = ${external_customer_id}`,
    lockOf(true),
  );
