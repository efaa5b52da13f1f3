import sql from 'sql-template-tag';
import type { Agent } from 'undici';
import type { WorkerExtension } from '../../core/jobs/extension.ts';
import type { WorkerContext } from '../../core/jobs/worker_context.ts';
import { type Database, run } from '../../core/postgres/database.ts';
import { events_channel } from '../../core/postgres/transaction.ts';
import type { Services } from '../../core/resource/services.ts';
import { once } from '../../core/values/once.ts';
import { Deliverer } from './deliverer.ts';
import { FanOut } from './fan_out.ts';

const sweep_every_ms = 1_000;

/**
 * Adds webhooks to a worker.
 * @param slots deliveries at a time, besides those to slow receivers
 */
export function extendWorker(context: WorkerContext, slots: number): WorkerExtension {
  const { store } = context;
  const { database } = store;
  let opened: Agent | undefined;
  const agent = once(async () => {
    opened = await openAgent(context.services);
    return opened;
  });
  const deliverer = new Deliverer({ ...context, agent, slots });
  const fan_out = new FanOut({
    ...context,
    database,
    deliverer,
  });
  store.hearEvents = fan_out.hear;
  return {
    parts: [deliverer],
    chores: [{ every_ms: sweep_every_ms, run: () => sweep(database, fan_out) }],
    hears: { [events_channel]: fan_out.hear },
    freeFromDead: (worker_ids) => freeLeases(database, worker_ids),
    async idle() {
      await Promise.allSettled([deliverer.idle(), fan_out.idle()]);
    },
    async close() {
      if (store.hearEvents === fan_out.hear) store.hearEvents = undefined;
      await opened?.destroy();
    },
  };
}

/** Loads the HTTP client with the first delivery: it takes a tenth of the memory of a worker at rest. */
async function openAgent({ allow_private_addresses, own_hosts, name_servers }: Services): Promise<Agent> {
  const { createPinnedAgent } = await import('../../core/net/agent.ts');
  return createPinnedAgent({ allowPrivate: allow_private_addresses, ownHosts: own_hosts, nameServers: name_servers });
}

/** Makes up for wake-ups that were lost: events without a notification, endpoints that no job delivers to. */
async function sweep(database: Database, fan_out: FanOut): Promise<void> {
  const [row] = await run<{ waiting: boolean }>(database, sql`select webhooks.sweep() as waiting`);
  if (row?.waiting) fan_out.hear();
}

async function freeLeases(database: Database, worker_ids: string[]): Promise<void> {
  const [row] = await run<{ freed: string[] | null }>(
    database,
    sql`select webhooks.free_leases(${worker_ids}) as freed`,
  );
  if (row?.freed) await run(database, sql`select webhooks.wake_endpoints(${row.freed})`);
}
