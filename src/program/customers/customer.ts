import sql, { type Sql } from 'sql-template-tag';
import { z } from 'zod';
import { type Tx, together } from '../../core/postgres/transaction.ts';
import { idParams, type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { lockOf, resource, tenant } from '../../core/resource/resource.ts';
import { type States, statusSchema } from '../../core/resource/states.ts';
import { type Details, details, textDetail } from '../../core/values/detail.ts';
import {
  customerEmail,
  externalId,
  id,
  knownExternalId,
  metadata,
  objectName,
  storedMetadata,
  text,
  timestamp,
} from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { alreadyExists, type Problem } from '../../core/values/problem.ts';
import { program_id } from '../events/fields.ts';
import { links } from '../partners/link.ts';
import { type Partner, partnerOf, partners } from '../partners/partner.ts';
import { assessLater } from '../programs/assess_later.ts';
import { type Program, processors, programs } from '../programs/program.ts';
import { releaseLater } from '../programs/release_later.ts';
import { totalOf } from '../programs/tally.ts';
import { type Referral, referrals, tracked_by_values } from '../tracking/referral.ts';

type Status = 'lead' | 'trial' | 'active' | 'cancelled' | 'refunded' | 'suspended';

/** `pay`: the first sale. `refund`: a sale is refunded in full. `restore`: a correction leaves no sale refunded in full. */
export const customer_states: States<Status, 'pay' | 'refund' | 'restore'> = {
  lead: { doc: 'the customer signed up and has not paid', on: { pay: 'active', refund: 'refunded' } },
  trial: { doc: 'the customer is in a trial and has not paid', on: { pay: 'active', refund: 'refunded' } },
  active: { doc: 'the customer has paid', on: { pay: 'active', refund: 'refunded' } },
  cancelled: { doc: 'the customer cancelled', on: { pay: 'cancelled', refund: 'refunded' } },
  refunded: {
    doc: 'a sale was refunded in full; a request cannot set this status',
    on: { pay: 'refunded', refund: 'refunded', restore: 'active' },
  },
  suspended: { doc: 'you suspended the customer', on: { pay: 'suspended', refund: 'refunded' } },
};
const { refunded: _, ...writable_states } = customer_states;
/** The statuses that a request can set: all but the one that refunds set. */
export const writable_status = statusSchema(writable_states);

export const customers = resource({
  object: 'customer',
  plural: 'customers',
  table: 'program.customer',
  unique: { customer_external_id_unique: 'external_customer_id' },
  total: totalOf('customer'),
  doc: 'A customer attributed to a partner, from sign-up on.',
  soft_delete: true,
  relations: { partner: partners, referral: referrals, link: links },
  fields: {
    id: id('cus'),
    object: objectName('customer'),
    program_id,
    partner_id: id('part').describe('The partner who earns commissions from the customer.'),
    referral_id: id('ref').nullable().describe('The referral that led to the sign-up. Null if there was none.'),
    link_id: id('lnk').nullable().describe('The link that the customer followed. Null if there was none.'),
    coupon_id: id('cpn')
      .nullable()
      .describe('The coupon that attributed the customer to the partner. Null if there was none.'),
    processor: z
      .enum(processors)
      .nullable()
      .describe("The program's processor at the time of sign-up. Null if it had none."),
    external_customer_id: text
      .nullable()
      .describe("The processor's customer id. Incoming charges are matched by it. Null if not provided."),
    external_subscription_id: text
      .nullable()
      .describe("The processor's subscription id, from the first sale. Null if not provided."),
    email: text.nullable().describe("The customer's email address. Null if not provided."),
    name: text.nullable().describe("The customer's name. Null if not provided."),
    identifier: text.nullable().describe('Your own id of the customer. Null if not provided.'),
    status: statusSchema(customer_states),
    tracked_by: z
      .enum(tracked_by_values)
      .describe(
        'How the customer was attributed: `link` (a link or handle), `coupon`, `manual`, or `api` (an id in a request).',
      ),
    verified: z
      .boolean()
      .describe(
        'False if a browser recorded the customer with a publishable key, and nothing that only your server can send has confirmed it. Set it to true once you have.',
      ),
    lead_at: timestamp.nullable().describe('When the customer signed up.'),
    converted_at: timestamp.nullable().describe('When the customer first paid. Null until then.'),
    metadata: storedMetadata,
    created_at: timestamp,
    updated_at: timestamp,
  },
});

export type Customer = z.infer<typeof customers.record>;

/** The fields that identify a customer, in each request that can create one. */
export const identity = {
  email: customerEmail
    .optional()
    .describe(
      "The customer's email address, kept as you send it. If it is the partner's own, the sign-up is a self-referral.",
    ),
  name: text.max(200).optional().describe("The customer's name."),
  identifier: externalId.optional().describe('Your own id of the customer.'),
  external_customer_id: externalId
    .optional()
    .describe("The processor's customer id. Unique in the program; incoming charges are matched by it."),
};

/** The fields of a customer that no sign-up and no sale is refused for. */
export const identityDetails = { email: details.email, name: textDetail(200, identity.name) } satisfies Details;

/** A customer who was moved by hand stays there, whatever sales come late. */
const by_hand = { tracked_by: 'manual', known_from: null, origin_partner_id: null, origin_tracked_by: null };

export const customerOperations: Operation[] = [
  ...readOperations({
    resource: customers,
    within: programs,
    by: ['status', 'partner_id', 'link_id', 'coupon_id'],
    filters: {
      email: {
        schema: customerEmail.optional(),
        where: (value: string) => sql`t.email_key = ${value.toLowerCase()}`,
        is_of_few: true,
      },
      external_customer_id: {
        schema: knownExternalId.optional(),
        where: (value: string) => sql`t.external_customer_id = ${value}`,
        is_of_few: true,
      },
    },
  }),
  operation({
    name: 'customers.update',
    method: 'PATCH',
    path: '/v1/customers/{id}',
    scope: 'customers:write',
    summary: 'Updates a customer, or moves the customer to another partner.',
    doc: 'With a new `partner_id`, `tracked_by` becomes `manual`. The status `refunded` cannot be set: a full refund sets it.',
    params: idParams,
    body: z
      .strictObject({
        email: customerEmail.nullable(),
        name: text.max(200).nullable(),
        identifier: externalId.nullable(),
        status: writable_status,
        partner_id: id('part'),
        verified: z.boolean(),
        metadata,
      })
      .partial(),
    reply: customers.schema,
    async run({ tx, params, body }) {
      const customer = await customers.get(tx, params.id, { lock: true });
      const reassigned = body.partner_id !== undefined && body.partner_id !== customer.partner_id;
      if (reassigned) await partnerOf(tx, { id: customer.program_id }, body.partner_id as string);
      if (reassigned || body.email) assessLater(tx, 'customer', customer.id);
      return customers.update(tx, customer.id, { ...body, ...(reassigned ? by_hand : {}) });
    },
  }),
];

export interface CustomerFields {
  /** Left out, a new one. */
  id?: string | undefined;
  email?: string | undefined;
  name?: string | undefined;
  identifier?: string | undefined;
  external_customer_id?: string | undefined;
  external_subscription_id?: string | undefined;
  status?: Customer['status'] | undefined;
  converted_at?: string | undefined;
  /** False: a browser says so. */
  verified?: boolean | undefined;
  /** The time of the sale that records the customer, if it was sent with one. */
  known_from?: string | null | undefined;
  /** Whose the customer would be without the coupon of the sale that records them. */
  origin_partner_id?: string | null | undefined;
  origin_tracked_by?: string | null | undefined;
  metadata?: Customer['metadata'] | undefined;
}

export interface Attribution {
  partner: Partner;
  tracked_by: Customer['tracked_by'];
  referral?: Referral;
  coupon_id?: string;
}

/** Records a customer. Where the processor's id was taken meanwhile the transaction has lost a race: run again, it finds that. */
export async function createCustomer(
  tx: Tx,
  program: Program,
  attribution: Attribution,
  fields: CustomerFields,
): Promise<Customer> {
  const customer = (await customers.insert(tx, customerRow(tx, program, attribution, fields))) as Customer;
  assessLater(tx, 'customer', customer.id);
  releaseCustomer(tx, program, customer);
  return customer;
}

/** The columns of a new customer. */
export function customerRow(
  tx: Tx,
  program: Program,
  { partner, referral, coupon_id, tracked_by }: Attribution,
  fields: CustomerFields,
) {
  return {
    ...fields,
    id: fields.id ?? newId('cus'),
    program_id: program.id,
    partner_id: partner.id,
    referral_id: referral?.id,
    link_id: referral?.link_id,
    coupon_id,
    processor: program.processor,
    status: fields.status ?? ('lead' as const),
    tracked_by,
    lead_at: tx.now,
  };
}

/** Has worked on what a billing processor sent about the customer before, now that a partner is credited. */
export function releaseCustomer(
  tx: Tx,
  { id, processor }: Program,
  { external_customer_id }: Pick<Customer, 'external_customer_id'>,
): void {
  if (processor !== null && external_customer_id !== null) releaseLater(tx, id, [external_customer_id]);
}

export const takenExternalId = (existing: Customer | undefined): Problem =>
  alreadyExists(
    'external_customer_id',
    `A customer with the external_customer_id '${existing?.external_customer_id}' already exists in this program.`,
    existing,
  );

/** The customer of a sale, locked: also one who was erased, whose sales are still refunded and corrected. */
export const lockCustomer = (tx: Tx, id: string): Promise<Customer> =>
  tx.one<Customer>(
    sql`select ${customers.columns} from ${customers.from} where ${tenant(tx)} and t.id = ${id} ${lockOf(true)}`,
  );

/** The lock of an id of the processor that no customer has. @param id the id of the program, a space, and the processor's */
export const idLock = (id: Sql): Sql => sql`hashtextextended(${id}, 1)`;

/**
 * The customer with the processor's id, locked. Where there is none the id is: of the sales and sign-ups that would create the customer one does, and
 * the others find it.
 */
export async function findCustomerOrLock(
  tx: Tx,
  program_id: string,
  external_customer_id: string,
): Promise<Customer | undefined> {
  const hasId = sql`${tenant(tx)} and t.program_id = ${program_id} and t.external_customer_id = ${external_customer_id}`;
  const [, customer] = await together([
    tx.all(sql`
      select pg_advisory_xact_lock(${idLock(sql`${`${program_id} ${external_customer_id}`}`)})
      where not exists (select from ${customers.from} where ${hasId} and ${customers.alive})`),
    customers.find(tx, hasId, lockOf(true)),
  ]);
  return customer;
}
