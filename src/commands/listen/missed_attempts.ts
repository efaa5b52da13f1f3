import sql from 'sql-template-tag';
import { type Database, run } from '../../core/postgres/database.ts';
import type { Registered } from './listener_endpoint.ts';

const watch_ms = 1_000;
const most_failures = 3;

/**
 * Shows attempts that never arrived: the service refuses the address, or cannot reach it. Also waits while Postgres is gone, as when the `rail start`
 * that ran it was stopped: the endpoint is still there when it is back, and the missed attempts arrive.
 */
export function watchDeliveries(database: Database, { organization_id, endpoint_id }: Registered): { stop(): void } {
  const shown = new Set<string>();
  let failures = 0;
  const look = async () => {
    const failed = await run<{ delivery_id: string; attempt: number; error: string }>(
      database,
      sql`select a.delivery_id, a.attempt, a.error
        from webhooks.delivery d
        join webhooks.attempt a on a.organization_id = d.organization_id and a.delivery_id = d.id
        where d.organization_id = ${organization_id} and d.endpoint_id = ${endpoint_id} and a.status_code is null and a.error is not null
        order by a.at desc
        limit 100`,
    );
    if (failures >= most_failures) console.error(back);
    failures = 0;
    for (const { delivery_id, attempt, error } of failed.reverse()) {
      if (shown.has(`${delivery_id} ${attempt}`)) continue;
      shown.add(`${delivery_id} ${attempt}`);
      console.error(`✗ ${delivery_id}, attempt ${attempt}, did not arrive: ${error} ${remedy}`);
    }
  };
  const timer = setInterval(() => {
    look().catch(() => {
      failures++;
      if (failures === most_failures) console.error(gone);
    });
  }, watch_ms);
  return { stop: () => clearInterval(timer) };
}

const gone = 'Postgres has gone, as when the service stops. Waiting until it is back.';
const back = 'Postgres is back: listening goes on.';
const remedy = "If the service refuses this machine's addresses, start it with RAIL_WEBHOOK_ALLOW_PRIVATE=1.";
