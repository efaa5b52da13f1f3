import sql, { type Sql } from 'sql-template-tag';
import { z } from 'zod';
import { type Database, run } from '../../core/postgres/database.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { componentName, tenant } from '../../core/resource/resource.ts';
import { id, objectName, timestamp, timestampInput } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { Problem } from '../../core/values/problem.ts';
import { kept_days } from '../events/event_log.ts';
import { type EventPolicy, perProduct, planErrors } from '../events/policy.ts';
import { append, enabledEndpoint, enqueue } from './append.ts';
import { deliveriesOf, deliveryFor } from './delivery.ts';

const day_ms = 86_400_000;

const replayOf = perProduct(({ namespace, endpoint_prefix }) =>
  z
    .object({ object: objectName('webhook_replay'), endpoint_id: id(endpoint_prefix), from: timestamp, to: timestamp })
    .meta({
      id: componentName(`${namespace}webhook_replay`),
      description: 'A replay of many deliveries that has been queued.',
    }),
);

export const replayOperations = (policy: EventPolicy): Operation[] => [
  replayOneOperation(policy),
  ...(policy.lists_all ? [replayManyOperation(policy)] : []),
];

const replayOneOperation = (policy: EventPolicy): Operation =>
  operation({
    name: 'webhook_deliveries.replay',
    method: 'POST',
    path: '/v1/webhook_deliveries/{id}/replay',
    scope: 'webhooks:write',
    summary: 'Sends a delivery again, as a new delivery of the same event at the end of the queue.',
    doc: 'Returns the new delivery. The original delivery is unchanged. An endpoint receives the same data as before: personal data too, unless its `personal_data` is `false`.',
    params: idParams,
    reply: deliveriesOf(policy).schema,
    status: 202,
    errors: ['endpoint_disabled', ...planErrors(policy)],
    test_keys: true,
    async run({ tx, params, caller }) {
      const deliveries = deliveriesOf(policy);
      const { id: replay_of, endpoint_id, event_id, event_type } = await deliveryFor({ tx, caller }, policy, params.id);
      const to = await enabledEndpoint({ tx, caller }, policy, endpoint_id);
      const { body } = await tx.one<{ body: string | null }>(
        sql`select t.request_body as body from ${deliveries.from} where ${tenant(tx)} and t.id = ${replay_of}`,
      );
      return append(tx, policy, to, { event_id, event_type, replay_of, request_body: body });
    },
  });

const replayManyOperation = (policy: EventPolicy): Operation =>
  operation({
    name: 'webhook_endpoints.replay',
    title: "Replay an endpoint's deliveries",
    method: 'POST',
    path: '/v1/webhook_endpoints/{id}/replay',
    scope: 'webhooks:write',
    summary: `Replays the deliveries that failed since a given time, or all deliveries in a window of up to ${kept_days} days.`,
    doc: 'Send either `failed_since`, or `from` and `to`. The replays are queued in batches, in the order of the events.',
    params: idParams,
    body: z.strictObject({
      failed_since: timestampInput
        .optional()
        .describe('Replays the deliveries that have failed since this time. Do not send it with `from` or `to`.'),
      from: timestampInput
        .optional()
        .describe(
          'Start of the window (inclusive). All deliveries created in the window are replayed, including delivered ones. Requires `to`.',
        ),
      to: timestampInput.optional().describe('End of the window (exclusive). Requires `from`.'),
    }),
    example: { failed_since: '2026-11-21T09:30:00.000Z' },
    reply: replayOf(policy),
    status: 202,
    errors: ['endpoint_disabled', ...planErrors(policy)],
    test_keys: true,
    async run({ tx, params, body, caller }) {
      const { id: endpoint_id } = await enabledEndpoint({ tx, caller }, policy, params.id);
      const { from, to } = windowOf(body, tx.now);
      const failed_only = body.failed_since !== undefined;
      enqueueReplay(tx, { endpoint_id, from, to, failed_only, after_position: 0, key: `replay:${newId('job')}` });
      return { object: 'webhook_replay' as const, endpoint_id, from, to };
    },
  });

/** @throws Problem missing_parameter, invalid_parameter */
function windowOf(
  {
    failed_since,
    to,
    ...given
  }: { failed_since?: string | undefined; from?: string | undefined; to?: string | undefined },
  now: string,
): { from: string; to: string } {
  const from = given.from ?? failed_since;
  if (from === undefined)
    throw new Problem('missing_parameter', "Give 'failed_since', or 'from' and 'to'.", { param: 'from' });
  if (failed_since !== undefined && (given.from !== undefined || to !== undefined)) {
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
  if (end <= from) throw new Problem('invalid_parameter', "'to' must be after 'from'.", { param: 'to' });
  if (Date.parse(end) - Date.parse(from) > kept_days * day_ms) {
    throw new Problem('invalid_parameter', `The window must be at most ${kept_days} days long.`, {
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
  /** The key of all its jobs: each takes the place of the one before, also where a worker dies between the commit of that one and its end. */
  key: string;
}

const enqueueReplay = (tx: Tx, replay: Replay): void =>
  tx.enqueue('webhooks/replay_many', { organization_id: tx.organization_id, ...replay }, { job_key: replay.key });

/**
 * Queues the next replays of a window, in the order of their events. A job of the same transaction takes the place of this one, and goes on after
 * the last of them, so that a crash repeats none and leaves none out; it ends with the first that finds none.
 */
export async function replayNext(tx: Tx, replay: Replay, most: number): Promise<void> {
  const { endpoint_id, after_position } = replay;
  if (!(await isEnabled(tx, endpoint_id))) return;
  const { delivery_ids, last_position } = await tx.one<{
    delivery_ids: string[] | null;
    last_position: number | null;
  }>(sql`
    with chosen as (
      select distinct on (v.position) v.position, d.id, d.event_id, d.event_type, d.program_id
      ${windowed(tx.organization_id, replay)} and v.position > ${after_position}
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
  enqueue(tx, delivery_ids);
  enqueueReplay(tx, { ...replay, after_position: last_position as number });
}

/** The deliveries `d` of a window that are replayed, with their events `v`. */
const windowed = (
  organization_id: string,
  { endpoint_id, from, to, failed_only }: Omit<Replay, 'after_position' | 'key'>,
): Sql => sql`
  from webhooks.delivery d
  join webhooks.event v on v.organization_id = d.organization_id and v.id = d.event_id
  where d.organization_id = ${organization_id} and d.endpoint_id = ${endpoint_id}
    and ${failed_only ? sql`d.status = 'failed' and d.updated_at >= ${from}::timestamptz` : sql`d.created_at >= ${from}::timestamptz`}
    and d.created_at < ${to}::timestamptz`;

/** Counts the events that a replay sends again, among so many deliveries at most: those that it makes are after its window. */
export async function countReplayed(
  database: Database,
  organization_id: string,
  window: Omit<Replay, 'after_position' | 'key'>,
  most: number,
): Promise<number> {
  const [row] = await run<{ events: number }>(
    database,
    sql`select count(distinct x.event_id) as events from (select d.event_id ${windowed(organization_id, window)} limit ${most}) as x`,
  );
  return row?.events ?? 0;
}

async function isEnabled(tx: Tx, endpoint_id: string): Promise<boolean> {
  const enabled = await tx.maybe(sql`
    select e.id
    from webhooks.endpoint e
    where e.organization_id = ${tx.organization_id} and e.id = ${endpoint_id} and e.status = 'enabled' and e.deleted_at is null`);
  return enabled !== undefined;
}
