import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import type { Caller } from '../../core/resource/operation.ts';
import { newId } from '../../core/values/id.ts';
import { Problem } from '../../core/values/problem.ts';
import { type Endpoint, endpointFor } from '../endpoints/endpoint.ts';
import { type EventPolicy, subjectOf } from '../events/policy.ts';
import { type Delivery, deliveriesOf } from './delivery.ts';

/** @throws Problem feature_not_in_plan, resource_not_found, endpoint_disabled */
export async function enabledEndpoint(
  { tx, caller }: { tx: Tx; caller: Caller },
  policy: EventPolicy,
  endpoint_id: string,
): Promise<Endpoint> {
  await policy.requireIncluded?.(tx);
  const endpoint = await endpointFor({ tx, caller }, policy, endpoint_id);
  if (endpoint.status === 'enabled') return endpoint;
  throw new Problem('endpoint_disabled', 'The endpoint is disabled. Enable it first.', { param: 'id' });
}

/** Appends a delivery to the endpoint's queue. */
export async function append(
  tx: Tx,
  policy: EventPolicy,
  endpoint: Endpoint,
  delivery: Pick<Delivery, 'event_id' | 'event_type' | 'replay_of' | 'request_body'>,
): Promise<Delivery> {
  const appended = (await deliveriesOf(policy).insert(tx, {
    ...delivery,
    id: newId(policy.delivery_prefix),
    program_id: subjectOf(policy, tx, endpoint),
    endpoint_id: endpoint.id,
  })) as Delivery;
  enqueue(tx, [appended.id]);
  return appended;
}

/** Enqueues deliveries for their endpoints and wakes those: last in a transaction, because everybody waits for the lock. */
export const enqueue = (tx: Tx, delivery_ids: string[]): void =>
  tx.atCommit(sql`select webhooks.enqueue_deliveries(${tx.organization_id}, ${delivery_ids})`);
