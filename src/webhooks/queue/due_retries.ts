import sql from 'sql-template-tag';
import { inBatches } from '../../core/jobs/task.ts';
import { type Database, run } from '../../core/postgres/database.ts';

const most = 1_000;

/** Schedules on which a product's due retries are enqueued: at 1 and 31 minutes past, or every minute. */
export const retry_times = { half_hourly: '1,31 * * * *', every_minute: '* * * * *' };
export type RetryTimes = keyof typeof retry_times;

/**
 * The delivery sweep: retries that are due go to the ends of their endpoints' queues, for each of these prefixes of deliveries. Endpoints are
 * woken after the commit: a run that ends before it cannot see what was enqueued.
 */
export async function enqueueDueRetries(database: Database, at: string, delivery_prefixes: string[]): Promise<void> {
  for (const prefix of delivery_prefixes) await inBatches(most, () => enqueueBatch(database, at, prefix));
}

async function enqueueBatch(database: Database, at: string, prefix: string): Promise<number> {
  const [row] = await run<{ enqueued: number; endpoint_ids: string[] | null }>(
    database,
    sql`select enqueued, endpoint_ids from webhooks.enqueue_due_retries(${at}::timestamptz, ${most}, ${prefix})`,
  );
  if (row?.endpoint_ids) await run(database, sql`select webhooks.wake_endpoints(${row.endpoint_ids})`);
  return row?.enqueued ?? 0;
}
