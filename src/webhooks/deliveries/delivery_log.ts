import sql, { type Sql } from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { list } from '../../core/resource/list.ts';
import { idParams, type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { type AnyResource, resource, tenant } from '../../core/resource/resource.ts';
import { id, objectName, text, timestamp, timestampInput } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { Problem } from '../../core/values/problem.ts';
import { type Endpoint, endpoints, requirePostbackTypes } from '../endpoints/endpoint.ts';
import { type EventPolicy, postbackBody } from '../events/event.ts';
import { kept_days } from '../events/event_log.ts';

const statuses = ['pending', 'delivered', 'failed', 'cancelled'] as const;
const day_ms = 86_400_000;

const Attempt = z.object({
  attempt: z.int().describe('1 for the first.'),
  at: timestamp,
  duration_ms: z.int().describe('How long it took, in milliseconds.'),
  status_code: z.int().nullable().describe('What the endpoint answered. Null: nothing that could be read.'),
  response_body: text.nullable().describe('The first 16 KiB of what the endpoint answered. Null: no answer.'),
  error: text.nullable().describe('What went wrong, in words. Null: it was acknowledged.'),
});

export const deliveries = resource({
  object: 'webhook_delivery',
  plural: 'webhook_deliveries',
  table: 'webhooks.delivery',
  doc: `An event on its way to an endpoint, and afterwards the log of it. Kept for ${kept_days} days.`,
  fields: {
    id: id('whd'),
    object: objectName('webhook_delivery'),
    program_id: id('prg'),
    endpoint_id: id('whe'),
    event_id: id('evt'),
    event_type: text.describe('The type of the event.'),
    status: z
      .enum(statuses)
      .describe(
        '`pending`: not acknowledged yet. `delivered`: a 2xx came. `failed`: every attempt failed. `cancelled`: the endpoint was switched off or deleted before.',
      ),
    attempt: z.int().describe('Attempts made so far, 8 at most.'),
    next_attempt_at: timestamp.nullable().describe('The earliest time of the next attempt after a failed one.'),
    replay_of: id('whd').nullable().describe('The delivery that this one repeats. Null: it is the first.'),
    request_body: text.nullable().describe('The exact body that is sent.'),
    attempts: z.array(Attempt).describe('What came of each attempt, oldest first.'),
    created_at: timestamp,
    updated_at: timestamp,
  },
  computed: {
    request_body: sql`coalesce(t.request_body, (
      select case when e.partner_id is null then v.body else v.postback_body end
      from webhooks.event v
      join webhooks.endpoint e on e.organization_id = t.organization_id and e.id = t.endpoint_id
      where v.organization_id = t.organization_id and v.id = t.event_id
    ))`,
    attempts: sql`(
      select coalesce(json_agg(json_build_object(
        'attempt', a.attempt,
        'at', to_char(a.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
        'duration_ms', a.duration_ms,
        'status_code', a.status_code,
        'response_body', a.response_body,
        'error', a.error
      ) order by a.attempt), '[]')
      from webhooks.attempt a
      where a.organization_id = t.organization_id and a.delivery_id = t.id
    )`,
  },
});

type Delivery = z.infer<typeof deliveries.record>;

const ReplayOfMany = z
  .object({ object: objectName('webhook_replay'), endpoint_id: id('whe'), from: timestamp, to: timestamp })
  .meta({ id: 'WebhookReplay', description: 'A replay of many deliveries that has been queued.' });

const ofType = (types: [string, ...string[]]) => ({
  schema: z.enum(types).optional(),
  where: (value: string) => sql`t.event_type = ${value}`,
});

/** @param most the newest that are shown; null: all that are kept */
const ofEndpoint = (most: number | null) => ({
  schema: z.never().optional(),
  where: (value: string) => newestOf(value, most),
  cursor: (value: string) => sql`t.endpoint_id = ${value}`,
});

const newestOf = (endpoint_id: string, most: number | null): Sql =>
  most === null
    ? sql`t.endpoint_id = ${endpoint_id}`
    : sql`t.endpoint_id = ${endpoint_id} and t.id in (
        select newest.id from webhooks.delivery newest
        where newest.organization_id = t.organization_id and newest.endpoint_id = ${endpoint_id}
        order by newest.id desc
        limit ${most}
      )`;

/** The delivery log, replays, and test events. */
export function deliveryOperations({ policy, program }: { policy: EventPolicy; program: AnyResource }): Operation[] {
  const types = Object.keys(policy.catalogue) as [string, ...string[]];
  const event_type = ofType(types);
  const log = list({
    resource: deliveries,
    by: ['status'],
    filters: { event_type, endpoint_id: ofEndpoint(policy.most_in_log) },
  });
  return [
    ...readOperations({
      resource: deliveries,
      within: program,
      by: ['endpoint_id', 'status'],
      filters: { event_type },
    }).map((read) => ({
      ...read,
      scope: 'webhooks:read',
    })),
    operation({
      name: 'webhook_endpoints.deliveries',
      method: 'GET',
      path: '/v1/webhook_endpoints/{id}/deliveries',
      scope: 'webhooks:read',
      summary: 'Lists the deliveries to one endpoint, newest first.',
      params: idParams,
      query: (log.query as z.ZodObject).omit({ endpoint_id: true }),
      reply: log.reply,
      async run({ tx, params, query, caller }) {
        const { id: endpoint_id } = await endpoints.get(tx, params.id);
        return log.page(tx, { ...(query as Record<string, unknown>), endpoint_id }, caller.scopes);
      },
    }),
    operation({
      name: 'webhook_deliveries.replay',
      method: 'POST',
      path: '/v1/webhook_deliveries/{id}/replay',
      scope: 'webhooks:write',
      summary: 'Sends a delivery again: a new delivery of the same event, at the end of the sequence.',
      doc: 'The answer is the new delivery. The old log entry is unchanged.',
      params: idParams,
      reply: deliveries.schema,
      status: 202,
      errors: ['endpoint_disabled'],
      async run({ tx, params }) {
        const { id: replay_of, endpoint_id, event_id, event_type } = await deliveries.get(tx, params.id);
        const to = await enabledEndpoint(tx, endpoint_id);
        const { body } = await tx.one<{ body: string | null }>(
          sql`select t.request_body as body from ${deliveries.from} where ${tenant(tx)} and t.id = ${replay_of}`,
        );
        return append(tx, policy, to, { event_id, event_type, replay_of, request_body: body });
      },
    }),
    operation({
      name: 'webhook_endpoints.replay',
      method: 'POST',
      path: '/v1/webhook_endpoints/{id}/replay',
      scope: 'webhooks:write',
      summary: `Replays everything that failed since a point in time, or everything of a window of up to ${kept_days} days.`,
      doc: 'Give `failed_since`, or `from` and `to`. Jobs queue the replays in batches, in the order in which the events happened.',
      params: idParams,
      body: z.strictObject({
        failed_since: timestampInput.optional().describe('Replays what has failed for good since then. Alone.'),
        from: timestampInput
          .optional()
          .describe('With `to`: replays every delivery that was made since then, delivered ones too.'),
        to: timestampInput.optional().describe('The end of the window, itself not in it.'),
      }),
      example: { failed_since: '2026-11-21T09:30:00.000Z' },
      reply: ReplayOfMany,
      status: 202,
      errors: ['endpoint_disabled'],
      async run({ tx, params, body }) {
        const { id: endpoint_id } = await enabledEndpoint(tx, params.id);
        const { from, to } = windowOf(body, tx.now);
        tx.enqueue('webhooks/replay_many', {
          organization_id: tx.organization_id,
          endpoint_id,
          from,
          to,
          failed_only: body.failed_since !== undefined,
          after_position: 0,
        });
        return { object: 'webhook_replay' as const, endpoint_id, from, to };
      },
    }),
    operation({
      name: 'webhook_endpoints.ping',
      method: 'POST',
      path: '/v1/webhook_endpoints/{id}/ping',
      scope: 'webhooks:write',
      summary: "Sends a test event now: the catalogue's example of a type, signed with the endpoint's secret.",
      doc: 'Its id starts with `evt_test_`; it is sent once and not retried.',
      params: idParams,
      body: z
        .strictObject({
          event_type: z
            .enum(types)
            .optional()
            .describe(
              'The type whose example is sent: of the catalogue, for a postback of those that it may receive. The first that the endpoint chose when left out.',
            ),
        })
        .default({}),
      reply: deliveries.schema,
      errors: ['endpoint_disabled'],
      async run({ tx, params, body }) {
        const to = await enabledEndpoint(tx, params.id);
        const event_type = body.event_type ?? to.event_types[0] ?? firstTypeFor(to, policy);
        if (to.partner_id !== null) requirePostbackTypes(policy.catalogue, [event_type], 'event_type');
        const event_id = newId('evt').replace('evt_', 'evt_test_');
        const request_body = testBody(tx, policy, to, { id: event_id, type: event_type });
        return append(tx, policy, to, { event_id, event_type, replay_of: null, request_body });
      },
    }),
  ];
}

/** The first of the catalogue that an endpoint may receive. */
const firstTypeFor = ({ partner_id }: Endpoint, { catalogue }: EventPolicy): string =>
  Object.keys(catalogue).find((type) => partner_id === null || catalogue[type]?.postback !== false) as string;

/** The catalogue's example of a type, as the endpoint would receive it. */
function testBody(
  { now: created_at }: Tx,
  policy: EventPolicy,
  { partner_id }: Endpoint,
  { id: event_id, type }: { id: string; type: string },
): string | null {
  const data = policy.catalogue[type]?.example as object;
  const told = { id: event_id, type, created_at, data, request_id: undefined, livemode: false };
  return partner_id === null ? JSON.stringify(policy.envelope(told)) : postbackBody(policy, told);
}

/** @throws Problem endpoint_disabled */
async function enabledEndpoint(tx: Tx, endpoint_id: string): Promise<Endpoint> {
  const found = await endpoints.get(tx, endpoint_id);
  if (found.status === 'enabled') return found;
  throw new Problem('endpoint_disabled', 'The endpoint is switched off: enable it first.', { param: 'id' });
}

/** Puts a delivery at the end of the endpoint's sequence. */
async function append(
  tx: Tx,
  { delivery_prefix }: EventPolicy,
  { id: endpoint_id, program_id }: Endpoint,
  of: Pick<Delivery, 'event_id' | 'event_type' | 'replay_of' | 'request_body'>,
): Promise<Delivery> {
  const made = (await deliveries.insert(tx, {
    ...of,
    id: newId(delivery_prefix),
    program_id,
    endpoint_id,
  })) as Delivery;
  stand(tx, [made.id]);
  return made;
}

/** Puts deliveries at the ends of their endpoints' sequences and wakes those: last in a transaction, because everybody waits for the lock. */
const stand = (tx: Tx, delivery_ids: string[]): void =>
  tx.atCommit(sql`select webhooks.stand(${tx.organization_id}, ${delivery_ids})`);

/** @throws Problem missing_parameter, invalid_parameter */
function windowOf(
  {
    failed_since,
    from = failed_since,
    to,
  }: { failed_since?: string | undefined; from?: string | undefined; to?: string | undefined },
  now: string,
): { from: string; to: string } {
  if (from === undefined)
    throw new Problem('missing_parameter', "Give 'failed_since', or 'from' and 'to'.", { param: 'from' });
  if (failed_since !== undefined && (from !== failed_since || to !== undefined)) {
    throw new Problem('invalid_parameter', "Give either 'failed_since', or 'from' and 'to'.", {
      param: 'failed_since',
    });
  }
  if (failed_since === undefined && to === undefined) {
    throw new Problem('missing_parameter', "'to' is required with 'from'.", { param: 'to' });
  }
  const start = failed_since === undefined ? 'from' : 'failed_since';
  if (from >= now) throw new Problem('invalid_parameter', `'${start}' must be in the past.`, { param: start });
  const end = to === undefined || to > now ? now : to;
  if (end <= from) throw new Problem('invalid_parameter', 'The window ends before it begins.', { param: 'to' });
  if (Date.parse(end) - Date.parse(from) > kept_days * day_ms) {
    throw new Problem('invalid_parameter', `The window may be ${kept_days} days long at most.`, {
      param: start,
    });
  }
  return { from, to: end };
}

export interface Replay {
  endpoint_id: string;
  from: string;
  to: string;
  failed_only: boolean;
  /** Events up to this position are queued already. */
  after_position: number;
}

/**
 * Queues the next replays of a window, in the order of their events; the one after the last of them follows in a job of the same
 * transaction, so that a crash repeats none and leaves none out.
 */
export async function replayNext(tx: Tx, replay: Replay, most: number): Promise<void> {
  const { endpoint_id, from, to, failed_only, after_position } = replay;
  const found = await endpoints.find(tx, sql`${tenant(tx)} and t.id = ${endpoint_id} and t.status = 'enabled'`);
  if (!found) return;
  const { delivery_ids, last_position } = await tx.one<{
    delivery_ids: string[] | null;
    last_position: number | null;
  }>(sql`
    with chosen as (
      select distinct on (v.position) v.position, d.id, d.event_id, d.event_type, d.program_id
      from webhooks.delivery d
      join webhooks.event v on v.organization_id = d.organization_id and v.id = d.event_id
      where d.organization_id = ${tx.organization_id} and d.endpoint_id = ${endpoint_id}
        and v.position > ${after_position}
        and ${failed_only ? sql`d.status = 'failed' and d.updated_at >= ${from}::timestamptz` : sql`d.created_at >= ${from}::timestamptz`}
        and d.created_at < ${to}::timestamptz
      order by v.position, d.id
      limit ${most}
    ),
    numbered as materialized (
      select c.position, c.id as replay_of, c.event_id, c.event_type, c.program_id, core.new_id(split_part(c.id, '_', 1)) as id
      from chosen c
    ),
    logged as (
      insert into webhooks.delivery (organization_id, id, program_id, endpoint_id, event_id, event_type, replay_of)
      select ${tx.organization_id}, n.id, n.program_id, ${endpoint_id}, n.event_id, n.event_type, n.replay_of
      from numbered n
    )
    select array_agg(id order by position) as delivery_ids, max(position) as last_position from numbered`);
  if (!delivery_ids) return;
  stand(tx, delivery_ids);
  if (delivery_ids.length === most) {
    tx.enqueue('webhooks/replay_many', {
      ...replay,
      organization_id: tx.organization_id,
      after_position: last_position,
    });
  }
}
