import sql, { type Sql } from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import type { EventPolicy } from '../events/policy.ts';

/**
 * The organization's plan no longer includes webhooks: endpoints stay, and receive what has happened by the end of this transaction, its own
 * events included.
 */
export const stopEndpoints = (tx: Tx, policy: EventPolicy): void =>
  tx.atCommit(sql`
    update webhooks.endpoint e
    set listens_until = nextval('webhooks.event_position')
    where ${endpointsOf(tx, policy)} and e.listens_until is null`);

/** It includes them again: endpoints receive what happens from now on. */
export async function resumeEndpoints(tx: Tx, policy: EventPolicy): Promise<void> {
  await tx.all(sql`
    update webhooks.endpoint e
    set listens_until = null, listens_from = nextval('webhooks.event_position'), updated_at = ${tx.now}::timestamptz
    where ${endpointsOf(tx, policy)} and e.listens_until is not null`);
}

const endpointsOf = (tx: Tx, { endpoint_prefix }: EventPolicy): Sql =>
  sql`e.organization_id = ${tx.organization_id} and starts_with(e.id, ${`${endpoint_prefix}_`}) and e.deleted_at is null`;
