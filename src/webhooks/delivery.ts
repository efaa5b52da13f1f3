import sql from 'sql-template-tag';
import { type Database, run } from '../core/database.ts';
import type { TaskContext } from '../core/task.ts';
import { type Outcome, openSecrets, type Receiver, type Sendable, send } from './send.ts';

/** Attempts a delivery gets, and the least wait before each but the first, in seconds from the previous one. */
export const waits_s = [60, 300, 1_800, 7_200, 43_200, 86_400, 86_400];
export const most_attempts = waits_s.length + 1;

/** A turn ends after this many deliveries, or when this time has passed; then other endpoints have theirs. */
const most_in_turn = 32;
const turn_ms = 1_000;
/** Longer than a turn can last with its last request (10 s), by a margin for a stalled process. */
const lease_s = 30;
/** A turn that finds itself this old begins no further request: its lease might run out under it. */
const too_old_ms = 15_000;

interface Place extends Sendable {
  token: number;
  organization_id: string;
  place: number;
  delivery_id: string;
  status: string;
}

interface Settled {
  organization_id: string;
  delivery_id: string;
  place: number;
  status: string;
  attempt?: number;
  at?: string;
  duration_ms?: number;
  status_code?: number | null;
  response_body?: string | null;
  error?: string | null;
  next_attempt_at?: string | null;
}

/**
 * One turn of an endpoint: sends what waits, in place order, "one request at a time". Nothing is done while another turn is on.
 * What was sent and not written when a worker dies is sent again: "at least once".
 * @throws when the endpoint's secret cannot be opened. The lease then runs out by itself, and only after it comes the next try: no attempt
 * is counted for a fault of ours, and nothing is lost.
 */
export async function takeTurn(endpoint_id: string, context: TaskContext): Promise<void> {
  const { store, worker_id } = context;
  const started = performance.now();
  const places = await run<Place>(
    store.database,
    sql`select token, organization_id, place, delivery_id, event_id, event_type, attempt, body, request_id, status
      from webhooks.begin_turn(${endpoint_id}, ${worker_id}, make_interval(secs => ${lease_s}), ${most_in_turn})`,
  );
  const [first] = places;
  if (!first) return;
  const settled: Settled[] = [];
  let receiver: Receiver | undefined;
  for (const place of places) {
    if (place.status !== 'pending') {
      settled.push({ ...identity(place), status: place.status });
      continue;
    }
    const age = performance.now() - started;
    if (context.stopping.aborted || age > too_old_ms || (settled.length > 0 && age > turn_ms)) break;
    receiver ??= await receiverOf(store.database, first.organization_id, endpoint_id, context);
    const outcome = await unlessAborted(context.cut_off, send(receiver, place, context));
    if (!outcome || (context.cut_off.aborted && outcome.status_code === null)) break;
    settled.push(settle(place, outcome));
  }
  await run(
    store.database,
    sql`select webhooks.end_turn(${endpoint_id}, ${first.token}, ${JSON.stringify(settled)}::json)`,
  );
}

/** A request that is still connecting does not listen to its signal, and is not written once it has connected: nobody waits for it. */
async function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T | undefined> {
  const aborted = Promise.withResolvers<undefined>();
  const abort = () => aborted.resolve(undefined);
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/** What an attempt makes of its delivery. */
function settle(place: Place, outcome: Outcome): Settled {
  const attempt = place.attempt + 1;
  const logged = { ...identity(place), ...outcome, attempt };
  if (outcome.acknowledged) return { ...logged, status: 'delivered' };
  if (attempt >= most_attempts || isTest(place)) return { ...logged, status: 'failed' };
  return { ...logged, status: 'pending', next_attempt_at: nextAttemptAt(outcome.at, attempt) };
}

/** A test event is "sent once and not retried". */
const isTest = ({ event_id }: Place): boolean => event_id.startsWith('evt_test_');

/** "Retry waits, measured from the previous attempt": when attempt `made` + 1 may be made at the earliest. */
export const nextAttemptAt = (previous_at: string, made: number): string =>
  new Date(Date.parse(previous_at) + (waits_s[made - 1] as number) * 1_000).toISOString();

const identity = ({ organization_id, delivery_id, place }: Place) => ({ organization_id, delivery_id, place });

async function receiverOf(
  database: Database,
  organization_id: string,
  endpoint_id: string,
  { services }: TaskContext,
): Promise<Receiver> {
  const [row] = await run<{ url: string; secret: Buffer; previous_secret: Buffer | null }>(
    database,
    sql`
      select e.url, e.secret, case when e.previous_secret_expires_at > now() then e.previous_secret end as previous_secret
      from webhooks.endpoint e
      where e.organization_id = ${organization_id} and e.id = ${endpoint_id}`,
  );
  if (!row) throw new Error('An endpoint with deliveries is gone.');
  return {
    endpoint_id,
    url: row.url,
    secrets: openSecrets(services.vault, endpoint_id, [row.secret, row.previous_secret]),
  };
}
