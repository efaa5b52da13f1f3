/** The endpoint that `rail listen` registers for itself. */
import { hostname } from 'node:os';
import sql from 'sql-template-tag';
import { run } from '../../core/postgres/database.ts';
import { type Store, transaction } from '../../core/postgres/transaction.ts';
import { update } from '../../core/postgres/write.ts';
import type { Services } from '../../core/resource/services.ts';
import { openServices } from '../../service.ts';
import { createEndpoint } from '../../webhooks/endpoints/create_endpoint.ts';
import type { Opened } from '../command.ts';
import type { Listened } from './listened.ts';

export interface Registered {
  organization_id: string;
  endpoint_id: string;
  secret: string;
}

/** Marks the endpoint of a listener, so that one whose process was killed can be removed by the next. */
const marker = 'rail listen on';
const describe = (): string => `${marker} ${hostname()}, process ${process.pid}`;

export async function register(
  { config, log, store }: Opened,
  { id: subject_id, organization_id, policy }: Listened,
  endpoint: { url: string; event_types: string[]; type: 'live' | 'test' },
): Promise<Registered> {
  // The service's own setting decides whether it sends to this machine: a refusal shows among the failures.
  const opened = await openServices(config, log, store.database);
  const services: Services = { ...opened, allow_private_addresses: true, own_hosts: [] };
  const { id, secret } = await transaction(store, { organization_id, request_id: null }, async (tx) => {
    await policy.requireIncluded?.(tx);
    await policy.subject?.resource.get(tx, subject_id, { lock: true });
    return createEndpoint(tx, services, policy, { ...endpoint, subject_id, description: describe() });
  });
  return { organization_id, endpoint_id: id, secret: secret as string };
}

export async function remove(
  store: Store,
  { organization_id, endpoint_id }: Omit<Registered, 'secret'>,
): Promise<void> {
  await transaction(store, { organization_id, request_id: null }, (tx) =>
    update(tx, 'webhooks.endpoint', endpoint_id, { deleted_at: tx.now }),
  );
}

/** Removes those of listeners of this machine that were killed. */
export async function removeAbandoned(store: Store, { id, organization_id }: Listened): Promise<void> {
  const left = await run<{ endpoint_id: string; description: string }>(
    store.database,
    sql`select id as endpoint_id, description from webhooks.endpoint
      where program_id = ${id} and deleted_at is null and starts_with(description, ${`${marker} ${hostname()},`})`,
  );
  for (const { endpoint_id, description } of left) {
    const process_id = Number(/process (\d+)$/.exec(description)?.[1]);
    if (!isAlive(process_id)) await remove(store, { organization_id, endpoint_id });
  }
}

function isAlive(process_id: number): boolean {
  try {
    return process.kill(process_id, 0);
  } catch (error) {
    return (error as { code?: string }).code === 'EPERM';
  }
}
