import { eventually, type Rail, sql } from '../../harness.ts';

/**
 * Lets what an endpoint is to be told wait in its queue, as if another worker sent to it: for as long as it takes, which a receiver that does
 * not answer could not do.
 */
export async function holdQueue(
  rail: Rail,
  endpoint_id: string,
): Promise<{
  /** Waits until the queue holds so many deliveries, and lets a worker send them. */
  release(deliveries: number): Promise<void>;
}> {
  const until = (lease_until: ReturnType<typeof sql>) =>
    rail.query(sql`update webhooks.endpoint_queue set lease_until = ${lease_until} where endpoint_id = ${endpoint_id}`);
  await until(sql`now() + interval '1 day'`);
  return {
    async release(deliveries) {
      const held = sql`select from webhooks.queued_delivery where endpoint_id = ${endpoint_id}`;
      await eventually(async () => (await rail.query(held)).length === deliveries, `${deliveries} deliveries to wait`);
      await until(sql`null`);
    },
  };
}
