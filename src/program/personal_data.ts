/** Exports and erases the personal data that is stored about a customer. */
import sql, { type Sql } from 'sql-template-tag';
import { z } from 'zod';
import { type Tx, together } from '../core/postgres/transaction.ts';
import { DeletedMarker } from '../core/resource/deleted_marker.ts';
import { idParams, type Operation, operation } from '../core/resource/operation.ts';
import { type AnyResource, type Row, tenant } from '../core/resource/resource.ts';
import { id, objectName, text, timestamp } from '../core/values/fields.ts';
import { timeOfId } from '../core/values/id.ts';
import type { EventType } from '../webhooks/events/catalogue.ts';
import {
  erasePersonalData,
  eventsMentioning,
  type LogPart,
  nextPart,
  type StoredEvent,
} from '../webhooks/events/personal_data.ts';
import { commissions } from './commissions/commission.ts';
import { type Customer, customers } from './customers/customer.ts';
import { catalogue, prefixes } from './events/catalogue.ts';
import { processorEvents } from './processors/inbox.ts';
import { programs } from './programs/program.ts';
import { riskFlags } from './risk/risk_flag.ts';
import { disputes } from './sales/dispute.ts';
import { refunds } from './sales/refund.ts';
import { sales } from './sales/sale.ts';
import { saleClaims } from './sales/sale_claim.ts';
import { attributeVisitors, waitingOf } from './tracking/attribution.ts';
import { clicks } from './tracking/click.ts';
import { referrals } from './tracking/referral.ts';

const visitor_token = text.nullable().describe('Your identifier of the browser. Null if there was none.');

const CustomerExport = z
  .object({
    object: objectName('customer_export'),
    exported_at: timestamp.describe('When the document was made.'),
    customer: customers.record.describe('The customer.'),
    referrals: z.array(referrals.record.extend({ visitor_token })).describe('The visits that the sign-up came from.'),
    clicks: z
      .array(
        clicks.record.extend({
          visitor_token,
          ip_hash: text.nullable().describe('The keyed hash of the IP address. Null if no address was provided.'),
        }),
      )
      .describe('The clicks of the browser that signed up, also those that earned no credit.'),
    sales: z.array(sales.record).describe('What the customer paid.'),
    refunds: z.array(refunds.record).describe('What the customer got back.'),
    disputes: z.array(disputes.record).describe('What the customer disputed at their bank.'),
    commissions: z.array(commissions.record).describe('What partners earned from the customer.'),
    risk_flags: z.array(riskFlags.record).describe('The flags raised about the customer, or about one of the clicks.'),
    sale_claims: z.array(saleClaims.record).describe('The claims of partners to the sales of the customer.'),
    processor_events: z
      .array(processorEvents.record.extend({ body: text.nullable().describe('What the processor sent.') }))
      .describe('What billing processors sent about the customer, as far as it is still kept.'),
    events: z
      .array(
        z.object({
          id: id('evt'),
          type: text.describe('What happened.'),
          created_at: timestamp,
          data: z.record(z.string(), z.json()).describe("The type's fields."),
        }),
      )
      .describe('The events about the customer that are still kept.'),
  })
  .meta({ id: 'CustomerExport', description: 'Everything that is stored about a customer, each list oldest first.' });

export const personalDataOperations: Operation[] = [
  operation({
    name: 'customers.delete',
    method: 'DELETE',
    path: '/v1/customers/{id}',
    scope: 'customers:write',
    summary: 'Erases a customer: the identity is removed, and the sales and commissions stay.',
    doc: 'Email, name, identifier, external ids and metadata are removed from the customer, and with them everything that identifies the person in their sales (metadata and subscription id), claims of sales, referrals, clicks, risk flags and stored events, also in events that are still to be delivered: of a program with many events since then, a worker does so after the response. Sales can still be refunded and corrected. The `external_customer_id` is free again. A partner account of the same person is not deleted: use `DELETE /v1/partners/{id}`. The ids of charges, refunds and disputes stay, and so do texts that you wrote into refunds, disputes and commissions. Replies stored for an `Idempotency-Key` are kept for up to 24 hours. This cannot be undone.',
    params: idParams,
    reply: DeletedMarker,
    async run({ tx, params }) {
      await erase(tx, await customers.get(tx, params.id, { lock: true }));
      return { id: params.id, object: 'customer', deleted: true as const };
    },
  }),
  operation({
    name: 'customers.export',
    method: 'GET',
    path: '/v1/customers/{id}/export',
    scope: 'customers:read',
    summary: 'Exports everything that is stored about a customer.',
    doc: 'One JSON document, to answer a person who asks what you store about them. Sales, refunds, disputes and commissions that were deleted are part of it.',
    params: idParams,
    reply: CustomerExport,
    run: async ({ tx, params }) => exportOf(tx, await customers.get(tx, params.id)),
  }),
];

async function erase(tx: Tx, customer: Customer): Promise<void> {
  const { id: customer_id, program_id, referral_id } = customer;
  const visitor_token = await visitorTokenOf(tx, referral_id);
  // A click whose job has not run yet is the visitor's, too.
  if (visitor_token !== null) {
    const [program, waiting] = await together([
      programs.get(tx, program_id),
      waitingOf(tx, { program_id, visitor_token }),
    ]);
    attributeVisitors(tx, new Map([[program.id, program]]), waiting);
  }
  const traces = await tracesOf(tx, customer, visitor_token);
  await eraseFromEvents(tx, { ...mentionOf(customer, traces), after: '0' });
  await tx.all(sql`
    update program.risk_flag t
    set evidence = '{}', note = case when t.note is not null then 'erased' end, updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = any(${traces.risk_flag_ids})`);
  await tx.all(sql`
    update program.click t
    set visitor_token = 'erased_' || coalesce(t.referral_id, t.id), ip_hash = null, user_agent = null, referer = null, landing_url = ${withoutQuery}
    where ${tenant(tx)} and t.id = any(${traces.click_ids})`);
  await tx.all(sql`
    update program.referral t
    set visitor_token = 'erased_' || t.id, utm = null, landing_url = ${withoutQuery}, updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = any(${traces.referral_ids})`);
  await tx.all(sql`
    update program.sale t
    set metadata = null, external_subscription_id = null, updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = any(${traces.sale_ids})`);
  await tx.all(sql`
    update program.sale t set decision = t.decision - 'unknown_customer'
    where ${tenant(tx)} and t.program_id = ${program_id} and t.customer_id is null and t.decision ->> 'unknown_customer' = ${customer.external_customer_id}`);
  await eraseFromInbox(tx, customer, traces);
  await tx.all(sql`
    update program.sale_claim t set email = null, note = null, updated_at = ${tx.now}::timestamptz where ${claimsAbout(tx, customer, traces)}`);
  const identity = { email: null, name: null, identifier: null, external_customer_id: null, metadata: null };
  await customers.update(tx, customer_id, { ...identity, external_subscription_id: null, deleted_at: tx.now });
}

/** Selects the claims `t` of sales of a customer, and those that name their email address. */
const claimsAbout = (tx: Tx, { program_id, email }: Customer, { sale_ids }: Traces): Sql => sql`${tenant(tx)}
  and (t.sale_id = any(${sale_ids}) or t.program_id = ${program_id} and t.email_key = ${email?.toLowerCase() ?? null})`;

/** Keeps what happened, without what was sent of it. What names nobody and may still change what they paid stays. */
async function eraseFromInbox(tx: Tx, customer: Customer, traces: Traces): Promise<void> {
  await tx.all(sql`
    update program.processor_event t
    set body = null, external_customer_id = null, queue = t.id, updated_at = ${tx.now}::timestamptz
    where ${inboxAbout(tx, customer, traces)} and (
      t.external_customer_id is not null or t.status in ('done', 'ignored') and t.waiting_for is null
    )`);
  await tx.all(sql`delete from program.processor_object t where ${tenant(tx)} and t.object_id = ${customer.id}`);
}

/** Selects the events `t` of billing processors that name a customer, or else what they paid: the queue is one or the other. */
const inboxAbout = (tx: Tx, { program_id, external_customer_id }: Customer, { sale_ids }: Traces): Sql => sql`
  ${tenant(tx)} and t.program_id = ${program_id} and t.queue in (
    select ${external_customer_id}::text
    union all
    select o.external_id from program.processor_object o
    where o.organization_id = ${tx.organization_id} and o.program_id = ${program_id} and o.object_id = any(${sale_ids})
  )`;

/** Reports count by host and path; a query can hold anything. */
const withoutQuery: Sql = sql`regexp_replace(t.landing_url, '[?#].*$', '')`;

/** Records of a customer that are found by more than their id. */
interface Traces {
  /** Referrals of the same browser, whatever partner they were credited to. */
  referral_ids: string[];
  /** Clicks of the same browser, also those that earned no credit. */
  click_ids: string[];
  risk_flag_ids: string[];
  /** Deleted ones too. */
  sale_ids: string[];
}

async function tracesOf(
  tx: Tx,
  { id: customer_id, program_id, partner_id, referral_id }: Customer,
  visitor_token: string | null,
): Promise<Traces> {
  const of_browser = sql`t.program_id = ${program_id} and t.visitor_token = ${visitor_token}`;
  const referral_ids =
    visitor_token === null
      ? [referral_id].filter((one) => one !== null)
      : await withDeleted(tx, sql`program.referral`, of_browser);
  const sale_ids = await withDeleted(tx, sql`program.sale`, sql`t.customer_id = ${customer_id}`);
  // Clicks that earned no credit have an index of their own.
  const clicks = await tx.all<Row & { partner_id: string }>(sql`
    select t.id, t.partner_id from program.click t where ${tenant(tx)} and t.referral_id = any(${referral_ids})
    union all
    select t.id, t.partner_id from program.click t
    where ${tenant(tx)} and ${of_browser} and t.referral_id is null and t.attributed_at is not null`);
  const click_ids = idsOf(clicks);
  const partner_ids = [...new Set([partner_id, ...clicks.map((click) => click.partner_id)])];
  const risk_flag_ids = idsOf(
    await tx.all<Row>(sql`
      select t.id
      from program.risk_flag t
      where ${tenant(tx)}
        and (
          t.customer_id = ${customer_id}
          or t.partner_id = any(${partner_ids})
            and (t.evidence ->> 'click_id' = any(${click_ids}) or t.evidence ->> 'referral_id' = any(${referral_ids}))
        )`),
  );
  return { referral_ids, click_ids, risk_flag_ids, sale_ids };
}

async function visitorTokenOf(tx: Tx, referral_id: string | null): Promise<string | null> {
  if (referral_id === null) return null;
  const referral = await tx.maybe<{ visitor_token: string | null }>(
    sql`select t.visitor_token from program.referral t where ${tenant(tx)} and t.id = ${referral_id}`,
  );
  return referral?.visitor_token ?? null;
}

/** The ids of rows that may be deleted. Two parts, because those that are not deleted have an index of their own, and those that are another. */
const withDeleted = async (tx: Tx, table: Sql, where: Sql): Promise<string[]> =>
  idsOf(
    await tx.all<Row>(sql`
      select t.id from ${table} t where ${tenant(tx)} and ${where} and t.deleted_at is null
      union all
      select t.id from ${table} t where ${tenant(tx)} and ${where} and t.deleted_at is not null`),
  );

const idsOf = (rows: Row[]): string[] => rows.map(({ id }) => id);

/** The types of events that name a customer, or what led to one. */
const types_about_customers = Object.entries<EventType>(catalogue)
  .filter(([, { data }]) => ['customer_id', 'referral_id', 'risk_flag_id'].some((field) => field in data.shape))
  .map(([type]) => type);

const log = { catalogue, ...prefixes };

/** The ids that events about a customer mention. */
interface Mentioned {
  customer_id: string;
  program_id: string;
  ids: string[];
  since_ms: number;
}

function mentionOf({ id: customer_id, program_id }: Customer, traces: Traces): Mentioned {
  const ids = [customer_id, ...traces.referral_ids, ...traces.risk_flag_ids];
  return { customer_id, program_id, ids, since_ms: Math.min(...[...ids, ...traces.click_ids].map(timeOfId)) };
}

/** An event that names a customer is about that one; one that names none is about whose referral or flag it names. */
async function eventsAbout(tx: Tx, { program_id, ids, since_ms }: Mentioned, part: LogPart): Promise<StoredEvent[]> {
  const mention = { subject_id: program_id, types: types_about_customers, ids, since_ms };
  const events = await eventsMentioning(tx, log, mention, part);
  return events.filter(({ body }) => {
    const { data } = JSON.parse(body);
    const named = data.customer_id ?? data.referral_id ?? data.risk_flag_id;
    return ids.includes(named);
  });
}

/** Erases a customer from a part of the log, and has a job do the same behind it. */
export async function eraseFromEvents(tx: Tx, { after, ...about }: Mentioned & { after: string }): Promise<void> {
  const { program_id, since_ms, customer_id } = about;
  const part = await nextPart(tx, log, { subject_id: program_id, since_ms }, after);
  await erasePersonalData(tx, log, program_id, await eventsAbout(tx, about, part));
  if (part.is_last) return;
  const { organization_id, request_id } = tx;
  const payload = { organization_id, request_id, ...about, after: part.until };
  tx.enqueue('program/erase_customer', payload, { job_key: `erase_customer:${customer_id}` });
}

/** Part by part: no statement reads more of the log than another of its parts. */
async function allEventsAbout(tx: Tx, about: Mentioned): Promise<StoredEvent[]> {
  const { program_id: subject_id, since_ms } = about;
  const events: StoredEvent[] = [];
  let part: LogPart = { after: '0', until: '0', is_last: false };
  while (!part.is_last) {
    part = await nextPart(tx, log, { subject_id, since_ms }, part.until);
    events.push(...(await eventsAbout(tx, about, part)));
  }
  return events;
}

async function exportOf(tx: Tx, customer: Customer): Promise<z.infer<typeof CustomerExport>> {
  const traces = await tracesOf(tx, customer, await visitorTokenOf(tx, customer.referral_id));
  const of_customer = sql`t.customer_id = ${customer.id}`;
  const records = <Record_>(resource: AnyResource, where: Sql, besides: Sql = sql``) =>
    tx.all<Row>(sql`
      select ${resource.columns}${besides} from ${resource.from} where ${tenant(tx)} and ${where} order by t.id`) as Promise<
      Record_[]
    >;
  type Export = z.infer<typeof CustomerExport>;
  type Item<
    List extends
      | 'referrals'
      | 'clicks'
      | 'sales'
      | 'commissions'
      | 'risk_flags'
      | 'refunds'
      | 'disputes'
      | 'sale_claims'
      | 'processor_events',
  > = Export[List][number];
  const events = await allEventsAbout(tx, mentionOf(customer, traces));
  return {
    object: 'customer_export',
    exported_at: tx.now,
    customer,
    referrals: await records<Item<'referrals'>>(
      referrals,
      sql`t.id = any(${traces.referral_ids})`,
      sql`, t.visitor_token`,
    ),
    clicks: await records<Item<'clicks'>>(
      clicks,
      sql`t.id = any(${traces.click_ids})`,
      sql`, t.visitor_token, t.ip_hash`,
    ),
    sales: await records<Item<'sales'>>(sales, sql`t.id = any(${traces.sale_ids})`),
    refunds: await records<Item<'refunds'>>(refunds, sql`t.sale_id = any(${traces.sale_ids})`),
    disputes: await records<Item<'disputes'>>(disputes, sql`t.sale_id = any(${traces.sale_ids})`),
    commissions: await records<Item<'commissions'>>(commissions, of_customer),
    risk_flags: await records<Item<'risk_flags'>>(riskFlags, sql`t.id = any(${traces.risk_flag_ids})`),
    sale_claims: await records<Item<'sale_claims'>>(saleClaims, claimsAbout(tx, customer, traces)),
    processor_events: await records<Item<'processor_events'>>(
      processorEvents,
      inboxAbout(tx, customer, traces),
      sql`, t.body`,
    ),
    events: events.map(({ body }) => {
      const { id: event_id, type, created_at, data } = JSON.parse(body);
      return { id: event_id, type, created_at, data };
    }),
  };
}
