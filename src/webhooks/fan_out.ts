import sql from 'sql-template-tag';
import { type Database, run } from '../core/database.ts';

const batch = 1_000;
const running = new WeakMap<Database, { current: Promise<void>; next: Promise<void> | undefined }>();

/**
 * Fans out every event that was committed before the call. One run at a time in a process: calls that come during a run share the next one.
 */
export function fanOut(database: Database): Promise<void> {
  const state = running.get(database);
  if (!state) {
    const current = fanOutAll(database).finally(() => running.delete(database));
    running.set(database, { current, next: undefined });
    return current;
  }
  state.next ??= state.current.catch(() => {}).then(() => fanOut(database));
  return state.next;
}

async function fanOutAll(database: Database): Promise<void> {
  for (;;) {
    const [row] = await run<{ taken: number; endpoint_ids: string[] | null }>(
      database,
      sql`select taken, endpoint_ids from webhooks.fan_out(${batch})`,
    );
    if (row?.endpoint_ids) await run(database, sql`select webhooks.wake_lanes(${row.endpoint_ids})`);
    if ((row?.taken ?? 0) < batch) return;
  }
}
