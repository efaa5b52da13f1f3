import sql, { type Sql } from 'sql-template-tag';
import { batched } from '../../core/postgres/batch.ts';
import { type Database, run, runAgain, runThen } from '../../core/postgres/database.ts';
import type { DeliveryResult, QueuedDelivery } from './delivery.ts';
import type { Addressee } from './send.ts';

/** Deliveries that a run reads at a time. */
export const most_deliveries = 32;
/** Renewed by whatever is written of the run; longer than a run can go without (a request lasts 10 s), by a margin for a stalled process. */
export const lease_s = 30;
/** The time for which the result of an attempt, and the end of a run, wait to be written together with the next ones. */
const result_wait_ms = 30;
const end_wait_ms = 4;
/** Endpoints that share a statement. */
const most_endpoints = 100;

/** An endpoint to which this worker alone may send, until its lease runs out. */
export interface Lease extends Addressee {
  token: number;
  organization_id: string;
  /** The version of the endpoint that the run knows. */
  endpoint_version: string;
  /** The time at which the lease was requested, by `performance.now()`: it runs from no earlier. */
  asked_at: number;
  /** The first in the queue; `most_deliveries` at most. */
  deliveries: QueuedDelivery[];
}

/** A write of a run: a delivery's result, or the end of the run. */
export interface RunWrite {
  lease: Omit<Lease, 'deliveries'>;
  result?: DeliveryResult;
  /** True if the attempt took long; undefined: as before. */
  slow?: boolean;
  /** `looks`: and that it begins anew where something waits. */
  ended?: 'looks' | 'leaves';
}

/** The effect of a write on its run. */
export interface Recorded {
  /** False when it must end, because its lease was lost (the successor sends the results again) or the endpoint has changed. */
  goes_on: boolean;
  /** The run that follows it, where it looked and something waits. */
  next?: Lease | undefined;
}

/** The statements on endpoints' queues, shared by all runs of a worker. */
export interface EndpointQueues {
  /** Takes the lease. Undefined where nothing waits or somebody else sends. */
  begin(endpoint_id: string): Promise<Lease | undefined>;
  /** The deliveries after a position in the queue. Undefined where the endpoint has changed: the run knows an old address or secret. */
  following(lease: Lease, queue_position: number): Promise<QueuedDelivery[] | undefined>;
  /**
   * Resolves when it is durable.
   * @throws when it could not be written. Then nothing is written of what the run writes later, which would pass it by.
   */
  write(write: RunWrite): Promise<Recorded>;
  /** Writes the waiting results now: somebody waits for the end of its run. */
  hurry(): void;
  /** Enqueues the job of the endpoint's next run, where something waits. */
  wake(endpoint_id: string): Promise<void>;
}

export function openQueues(database: Database, worker_id: string): EndpointQueues {
  const broken = new WeakSet<RunWrite['lease']>();
  const writeAll = async (writes: RunWrite[]): Promise<Recorded[]> => {
    const whole = writes.filter(({ lease }) => !broken.has(lease));
    try {
      const { going_on, begun } = whole.length > 0 ? await recordRuns(database, worker_id, whole) : nothing_recorded;
      return writes.map(({ lease, ended }) => ({
        goes_on: going_on.has(keyOf(lease)),
        next: ended === 'looks' ? taken(begun, lease.endpoint_id) : undefined,
      }));
    } catch (error) {
      for (const { lease } of whole) broken.add(lease);
      throw error;
    }
  };
  const write = batched(writeAll, { most: most_endpoints * 4, canWait: () => true, max_wait_ms: result_wait_ms });
  let ending: NodeJS.Timeout | undefined;
  const end = () => {
    ending = undefined;
    write.hurry();
  };
  return {
    write(given) {
      if (given.ended && !ending) ending = setTimeout(end, end_wait_ms);
      return write(given);
    },
    hurry: () => write.hurry(),
    begin: batched((endpoint_ids) => beginRuns(database, worker_id, endpoint_ids), { most: most_endpoints }),
    wake: batched((endpoint_ids) => wakeEndpoints(database, endpoint_ids), { most: most_endpoints }),
    async following({ endpoint_id, endpoint_version }, queue_position) {
      const found = await run<QueuedDelivery & Pick<Lease, 'endpoint_version'>>(
        database,
        sql`select endpoint_version, queue_position, delivery_id, event_id, event_type, attempt, body, request_id, traceparent, cancelled
          from webhooks.next_deliveries(${endpoint_id}, ${queue_position}, ${most_deliveries})`,
      );
      return found.every((one) => one.endpoint_version === endpoint_version) ? found : undefined;
    },
  };
}

export type LeaseRow = Omit<Lease, 'asked_at' | 'deliveries'> & (QueuedDelivery | { queue_position: null });

const beginning = (worker_id: string, endpoint_ids: string[]): Sql =>
  sql`select endpoint_id, token, organization_id, endpoint_version, type, url, https_only, secret, previous_secret, queue_position,
      delivery_id, event_id, event_type, attempt, body, request_id, traceparent, cancelled
    from webhooks.begin_runs(${endpoint_ids}, ${worker_id}, make_interval(secs => ${lease_s}), ${most_deliveries})
    where exists (select from webhooks.queued_delivery q where q.endpoint_id = any (${endpoint_ids}))`;

async function beginRuns(
  database: Database,
  worker_id: string,
  endpoint_ids: string[],
): Promise<(Lease | undefined)[]> {
  const asked_at = performance.now();
  const leases = leasesOf(await runAgain<LeaseRow>(database, beginning(worker_id, endpoint_ids)), asked_at);
  return endpoint_ids.map((endpoint_id) => taken(leases, endpoint_id));
}

/** Each goes to one who asked. */
function taken(leases: Map<string, Lease>, endpoint_id: string): Lease | undefined {
  const lease = leases.get(endpoint_id);
  leases.delete(endpoint_id);
  return lease;
}

/** By endpoint. @param rows a delivery each, those of one endpoint in their order */
export function leasesOf(rows: LeaseRow[], asked_at: number): Map<string, Lease> {
  const leases = new Map<string, Lease>();
  for (const row of rows) {
    const { endpoint_id, token, organization_id, endpoint_version } = row;
    const { type, url, https_only, secret, previous_secret } = row;
    const lease = leases.get(endpoint_id) ?? {
      ...{ endpoint_id, token, organization_id, endpoint_version },
      ...{ type, url, https_only, secret, previous_secret },
      asked_at,
      deliveries: [],
    };
    leases.set(endpoint_id, lease);
    if (row.queue_position !== null) lease.deliveries.push(row);
  }
  return leases;
}

interface RecordedRuns {
  /** The keys of those that may go on. */
  going_on: Set<string>;
  /** The runs that follow those that look, by endpoint. */
  begun: Map<string, Lease>;
}

const nothing_recorded: RecordedRuns = { going_on: new Set(), begun: new Map() };

/** Sends the writes and then, in the same round trip and by itself, begins the runs that follow those which look. */
async function recordRuns(database: Database, worker_id: string, writes: RunWrite[]): Promise<RecordedRuns> {
  const recording = sql`select endpoint_id, token
    from webhooks.record_runs(${JSON.stringify(runsOf(writes))}::json, ${JSON.stringify(resultsOf(writes))}::json, make_interval(secs => ${lease_s}))`;
  const looking = writes.filter(({ ended }) => ended === 'looks').map(({ lease }) => lease.endpoint_id);
  const asked_at = performance.now();
  const [recorded, rows] =
    looking.length > 0
      ? await runThen<Key, LeaseRow>(database, recording, beginning(worker_id, looking))
      : [await runAgain<Key>(database, recording), []];
  return { going_on: new Set(recorded.map(keyOf)), begun: leasesOf(rows, asked_at) };
}

function runsOf(writes: RunWrite[]): object[] {
  const runs = new Map<string, { done_position: number; ended: boolean; slow?: boolean | undefined }>();
  for (const { lease, result, slow, ended } of writes) {
    const { endpoint_id, token, endpoint_version } = lease;
    const known = runs.get(keyOf(lease));
    runs.set(keyOf(lease), {
      ...{ endpoint_id, token, endpoint_version, slow: slow ?? known?.slow },
      done_position: Math.max(known?.done_position ?? 0, result?.queue_position ?? 0),
      ended: ended !== undefined || known?.ended === true,
    });
  }
  return [...runs.values()];
}

const resultsOf = (writes: RunWrite[]): object[] =>
  writes.flatMap(({ lease: { endpoint_id, organization_id }, result }) =>
    result ? [{ endpoint_id, organization_id, ...result }] : [],
  );

type Key = Pick<Lease, 'endpoint_id' | 'token'>;

const keyOf = ({ endpoint_id, token }: Key): string => `${endpoint_id} ${token}`;

async function wakeEndpoints(database: Database, endpoint_ids: string[]): Promise<undefined[]> {
  await runAgain(database, sql`select webhooks.wake_endpoints(${endpoint_ids})`);
  return endpoint_ids.map(() => undefined);
}
