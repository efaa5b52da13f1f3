import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { type Operation, readOperations } from '../../core/resource/operation.ts';
import { resource, tenant } from '../../core/resource/resource.ts';
import { type States, statusSchema } from '../../core/resource/states.ts';
import {
  customerEmail,
  documentedEnum,
  externalId,
  id,
  objectName,
  pastTimestamp,
  text,
  timestamp,
} from '../../core/values/fields.ts';
import { program_id } from '../events/fields.ts';
import { partners } from '../partners/partner.ts';
import { type Program, programs } from '../programs/program.ts';
import { type Sale, sales } from './sale.ts';

/** A resolution is the status that it leads to. */
export const resolutions = ['accepted', 'rejected'] as const;
type Resolution = (typeof resolutions)[number];

export const claim_states: States<'open' | Resolution, Resolution> = {
  open: { doc: 'you have not decided yet', on: { accepted: 'accepted', rejected: 'rejected' } },
  accepted: { doc: 'the sale is credited to the partner', on: {}, refusal: 'The claim is already accepted.' },
  rejected: { doc: 'the sale stays as it is', on: {}, refusal: 'The claim is already rejected. Create another one.' },
};

export const findings = {
  credited: 'the sale is recorded, and the partner is credited with it',
  found_with_click:
    'the sale is recorded and credited to somebody else or nobody, and its customer clicked a link of the partner within the attribution window',
  found_without_click:
    'the sale is recorded, and no click of its customer on a link of the partner within the attribution window is known',
  received:
    'the billing processor reported the charge, and it is no sale, because nobody is credited with its customer',
  not_found: 'no sale and no charge is known by what the claim says',
};
export type Finding = keyof typeof findings;

export const saleClaims = resource({
  object: 'sale_claim',
  plural: 'sale_claims',
  scoped_as: 'sales',
  table: 'program.sale_claim',
  doc: 'A sale that a partner misses: what was found of it at once, and your decision.',
  relations: { partner: partners, sale: sales },
  fields: {
    id: id('clm'),
    object: objectName('sale_claim'),
    program_id,
    partner_id: id('part').describe('The partner who claims the sale.'),
    external_charge_id: text
      .nullable()
      .describe("The processor's id of the charge, or the order number. Null if not provided."),
    email: text.nullable().describe("The customer's email address. Null if not provided, or erased with the customer."),
    coupon_code: text.nullable().describe('The code of the coupon that the customer used. Null if not provided.'),
    occurred_at: timestamp.nullable().describe('About when the customer paid. Null if not provided.'),
    note: text.nullable().describe('What the partner says about it. Null if not provided.'),
    finding: documentedEnum(findings).describe('What was found when the claim was created.'),
    sale_id: id('sale').nullable().describe('The sale. Null: none was found.'),
    processor_event_id: id('pev')
      .nullable()
      .describe('The event of the billing processor that reports the charge. Null unless the finding is `received`.'),
    status: statusSchema(claim_states),
    resolution_note: text.nullable().describe('Your note. Null: none.'),
    resolved_at: timestamp.nullable().describe('When it was accepted or rejected. Null while `open`.'),
    created_at: timestamp,
    updated_at: timestamp,
  },
});

export type SaleClaim = z.infer<typeof saleClaims.record>;

export const claimReadOperations: Operation[] = readOperations({
  resource: saleClaims,
  within: programs,
  by: ['status', 'partner_id', 'finding'],
});

/** A claim as callers send it. */
export const NewSaleClaim = z
  .strictObject({
    program_id,
    partner_id: id('part').describe('The partner who claims the sale.'),
    external_charge_id: externalId
      .optional()
      .describe(
        "The processor's id of the charge, or the order number. If you send it, nothing else decides which sale it is.",
      ),
    email: customerEmail.optional().describe("The customer's email address."),
    coupon_code: text
      .max(100)
      .optional()
      .describe(
        'The code of the coupon that the customer used. Needs `occurred_at`: the sale is looked for within a day of it.',
      ),
    occurred_at: pastTimestamp
      .optional()
      .describe(
        "About when the customer paid. With an `email`, the sale, or a charge that is no sale, is looked for within a day of it; without it, only the customer's last sale is.",
      ),
    note: text.max(1000).optional().describe('What the partner says about it.'),
  })
  .refine(({ external_charge_id, email, coupon_code }) => external_charge_id ?? email ?? coupon_code, {
    path: ['external_charge_id'],
    message: 'send at least one of external_charge_id, email and coupon_code',
  })
  .refine(({ coupon_code, occurred_at }) => coupon_code === undefined || occurred_at !== undefined, {
    path: ['occurred_at'],
    message: 'send about when the customer paid, to look for a coupon_code',
  });

export type NewSaleClaim = z.infer<typeof NewSaleClaim>;

/** Finds the sale that a claim describes: by the charge alone, if it names one, else by the customer, else by the coupon. Of several the nearest in time. */
export async function findClaimed(tx: Tx, claim: NewSaleClaim): Promise<Sale | undefined> {
  const { external_charge_id: charge, email, coupon_code, occurred_at } = claim;
  const ofProgram = sql`${tenant(tx)} and t.program_id = ${claim.program_id}`;
  if (charge !== undefined) return sales.find(tx, sql`${ofProgram} and t.external_charge_id = ${charge}`);
  const nearby = occurred_at
    ? sql`t.occurred_at between ${occurred_at}::timestamptz - interval '1 day' and ${occurred_at}::timestamptz + interval '1 day'`
    : sql`true`;
  const nearest = occurred_at
    ? sql`order by abs(extract(epoch from t.occurred_at - ${occurred_at}::timestamptz)) limit 1`
    : sql`order by t.occurred_at desc limit 1`;
  const by_customer =
    email &&
    (await tx.maybe<Sale>(sql`
      select ${sales.columns} from ${sales.from}
      where ${ofProgram} and ${sales.alive} and ${nearby} and t.customer_id in (
        select c.id from program.customer c
        where c.organization_id = ${tx.organization_id} and c.program_id = ${claim.program_id} and c.email_key = ${email.toLowerCase()}
          and c.deleted_at is null
      )
      ${nearest}`));
  if (by_customer || !coupon_code) return by_customer || undefined;
  return tx.maybe<Sale>(sql`
    select ${sales.columns} from ${sales.from}
    where ${ofProgram} and ${sales.alive} and ${nearby} and t.decision #>> '{candidates,coupon,external_id}' in (
      select c.external_id from program.coupon c
      where c.organization_id = ${tx.organization_id} and c.program_id = ${claim.program_id} and c.partner_id = ${claim.partner_id}
        and lower(c.code) = lower(${coupon_code}) and c.deleted_at is null
    )
    ${nearest}`);
}

/** Returns whether the visitor who became the sale's customer clicked a link of the partner within the attribution window before the sale. */
export async function hasClicked(tx: Tx, program: Program, sale: Sale, partner_id: string): Promise<boolean> {
  const click = await tx.maybe(sql`
    select
    from program.customer c
    join program.referral r on r.organization_id = c.organization_id and r.id = c.referral_id
    join program.click t on t.organization_id = r.organization_id and t.program_id = r.program_id and t.visitor_token = r.visitor_token
    where c.organization_id = ${tx.organization_id} and c.id = ${sale.customer_id} and t.partner_id = ${partner_id}
      and t.created_at between ${sale.occurred_at}::timestamptz - make_interval(days => ${program.cookie_days}) and ${sale.occurred_at}::timestamptz
    limit 1`);
  return click !== undefined;
}
