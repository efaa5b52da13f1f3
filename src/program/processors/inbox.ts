import sql, { type Sql } from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { idParams, type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { resource, tenant } from '../../core/resource/resource.ts';
import {
  documentedEnum,
  id,
  knownExternalId,
  objectName,
  requireState,
  text,
  timestamp,
} from '../../core/values/fields.ts';
import { program_id } from '../events/fields.ts';
import { billing_processors, programs } from '../programs/program.ts';
import { queueKey } from './backlog.ts';
import { processor_name } from './connection.ts';

export const event_statuses = {
  pending: 'it is worked on as soon as a worker is free',
  waiting: 'it came before what it names: it is worked on as soon as `waiting_for` is known',
  done: 'it had its effect, or what it says was known already',
  ignored: 'it has no effect, as `reason` says',
  failed: 'its effect is refused, as `message` says: correct that, and retry',
  unresolved: 'it waited for 72 hours, and the processor does not know either what it names',
};

export const processorEvents = resource({
  object: 'processor_event',
  plural: 'processor_events',
  scoped_as: 'sales',
  table: 'program.processor_event',
  unique: { processor_event_once: null },
  doc: 'An event that a billing processor sent, and what became of it.',
  fields: {
    id: id('pev'),
    object: objectName('processor_event'),
    program_id,
    processor: processor_name,
    external_event_id: text.describe("The processor's id of the event."),
    type: text.describe("The processor's type of the event, such as `invoice.paid`."),
    external_object_id: text.nullable().describe("The processor's id of what the event is about. Null: it has none."),
    external_customer_id: text.nullable().describe("The processor's id of the customer. Null: the event names none."),
    livemode: z.boolean().describe('False: of the test mode of the processor.'),
    status: documentedEnum(event_statuses),
    waiting_for: text
      .nullable()
      .describe("The processor's id that must be known here for the event to have its effect. Null: none."),
    reason: text
      .nullable()
      .describe(
        'Why it had no effect, such as `unattributed`: no partner is credited with the customer. Such a charge becomes a sale once the customer is known.',
      ),
    message: text.nullable().describe('The reason in words. Null if there is none.'),
    result_id: text.nullable().describe('The sale, refund, dispute, customer or coupon that it created or changed.'),
    run_id: id('run').describe('The request id of the changes that it makes, in the events that tell of them.'),
    occurred_at: timestamp.describe('When it happened, by the processor.'),
    worked_at: timestamp.nullable().describe('When it was last worked on. Null while `pending`.'),
    created_at: timestamp,
    updated_at: timestamp,
  },
});

export type ProcessorEvent = z.infer<typeof processorEvents.record>;

const ofFew = (field: 'external_object_id' | 'external_customer_id' | 'external_event_id') => ({
  schema: knownExternalId.optional(),
  where: (value: string) =>
    ({
      external_object_id: sql`t.external_object_id = ${value}`,
      external_customer_id: sql`t.external_customer_id = ${value}`,
      external_event_id: sql`t.external_event_id = ${value}`,
    })[field],
  is_of_few: true,
});

export const inboxOperations: Operation[] = [
  ...readOperations({
    resource: processorEvents,
    within: programs,
    by: ['status', 'type', 'processor'],
    filters: {
      external_event_id: ofFew('external_event_id'),
      external_object_id: ofFew('external_object_id'),
      external_customer_id: ofFew('external_customer_id'),
    },
    list_doc: 'Events are kept for 90 days.',
  }),
  operation({
    name: 'processor_events.retry',
    title: 'Retry a processor event',
    method: 'POST',
    path: '/v1/processor_events/{id}/retry',
    scope: 'sales:write',
    summary: 'Works on an event of a billing processor again.',
    doc: 'For an event that failed, is unresolved, or was ignored, once its reason is gone. It has its effect once, however often it is retried.',
    params: idParams,
    reply: processorEvents.schema,
    errors: ['invalid_state_transition'],
    async run({ tx, params }) {
      const before = await processorEvents.get(tx, params.id, { lock: true });
      requireState(before.status !== 'done', 'The event had its effect already.');
      const { body, queue } = await tx.one<{ body: string | null; queue: string }>(
        sql`select t.body, t.queue from program.processor_event t where ${tenant(tx)} and t.id = ${before.id}`,
      );
      requireState(body !== null, 'The event was erased together with its customer.');
      workLater(tx, before.program_id, [queue]);
      return processorEvents.update(tx, before.id, { status: 'pending', worked_at: null });
    },
  }),
];

/** Has the events of queues worked on: a job each, however often they are named. */
export function workLater(tx: Tx, program_id: string, queues: string[]): void {
  const { organization_id } = tx;
  for (const queue of [...new Set(queues)].sort())
    tx.enqueue(
      'program/work_processor_events',
      { organization_id, program_id, queue },
      { job_key: queueKey(program_id, queue) },
    );
}

/** Reasons that may be gone: nobody was credited, nothing was left of a sale to refund, or a sale or a refund that failed was not recorded. */
const released_reasons = [
  ...['unattributed', 'sale_already_refunded', 'refund_exceeds_sale', 'refund_failed', 'sale_deleted'],
];

/**
 * Works on what waited for ids that are known now. Charges of a customer who was not known are among them, and refunds of what was refunded otherwise.
 * @param ids of the processor, each locked by `lockIds`
 */
export const release = (tx: Tx, program_id: string, ids: string[]): Promise<void> =>
  workAgain(
    tx,
    program_id,
    sql`t.waiting_for = any(${ids})
      and (t.status in ('waiting', 'unresolved') or t.status in ('ignored', 'failed') and t.reason = any(${released_reasons}::text[]))`,
  );

/**
 * The same for ids that were nobody's, or those of a deleted sale, until a request recorded the sale, by them or others of the payment.
 * @param external_ids locked, with those that `alsoOf` gives
 */
export async function releaseOfSale(
  tx: Tx,
  program_id: string,
  { external_ids, sale_id }: { external_ids: string[]; sale_id: string },
): Promise<void> {
  const named = await tx.all<{ external_id: string; event_id: string | null; deleted_id: string | null }>(sql`
    update program.processor_object t set object_id = ${sale_id}, updated_at = ${tx.now}::timestamptz
    from program.processor_object o
    left join program.sale s on s.organization_id = o.organization_id and s.id = o.object_id and s.deleted_at is not null
    where ${tenant(tx)} and t.program_id = ${program_id} and t.external_id = any(${external_ids})
      and t.processor = any(${[...billing_processors]}::text[])
      and o.organization_id = t.organization_id and o.program_id = t.program_id and o.processor = t.processor and o.external_id = t.external_id
      and (o.object_id is null or s.id is not null)
    returning t.external_id, t.event_id, s.id as deleted_id`);
  await workAgain(
    tx,
    program_id,
    // An id names one of the events that told it: others of its customer may know the payment by further ids.
    sql`t.status = 'ignored' and t.reason = 'unattributed' and t.queue in (
      select e.queue from program.processor_event e
      where e.organization_id = t.organization_id and e.id = any(${named.map(({ event_id }) => event_id)})
    )`,
  );
  await release(
    tx,
    program_id,
    named.map(({ external_id }) => external_id),
  );
  const deleted_ids = named.flatMap(({ deleted_id }) => deleted_id ?? []);
  if (deleted_ids.length > 0) await workAgain(tx, program_id, wentWith(deleted_ids));
}

/** Selects the events `t` whose refund or dispute went with one of these sales. */
const wentWith = (sale_ids: string[]): Sql => sql`
  t.status = 'done' and t.result_id in (
    select r.id from program.refund r where r.organization_id = t.organization_id and r.sale_id = any(${sale_ids})
    union all
    select d.id from program.dispute d where d.organization_id = t.organization_id and d.sale_id = any(${sale_ids})
  )`;

/** Works on the charges that were nobody's and happened since a time: a coupon was active then. */
export const releaseSince = (tx: Tx, program_id: string, at: string): Promise<void> =>
  workAgain(
    tx,
    program_id,
    sql`t.status = 'ignored' and t.reason = 'unattributed' and t.occurred_at >= ${at}::timestamptz`,
  );

/** The ids, and the others of the sales that they are. */
export const alsoOf = async (tx: Tx, program_id: string, external_ids: string[]): Promise<string[]> => {
  const others = await tx.all<{ external_id: string }>(sql`
    select o.external_id
    from program.processor_object t
    join program.processor_object o on o.organization_id = t.organization_id and o.program_id = t.program_id and o.object_id = t.object_id
    where ${tenant(tx)} and t.program_id = ${program_id} and t.external_id = any(${external_ids})
      and t.processor = any(${[...billing_processors]}::text[])`);
  return [...external_ids, ...others.map(({ external_id }) => external_id)];
};

async function workAgain(tx: Tx, program_id: string, which: Sql): Promise<void> {
  const released = await tx.all<{ queue: string }>(sql`
    update program.processor_event t
    set status = 'pending', worked_at = null, updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.program_id = ${program_id} and ${which}
    returning t.queue`);
  workLater(
    tx,
    program_id,
    released.map(({ queue }) => queue),
  );
}
