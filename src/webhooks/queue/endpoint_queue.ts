import sql from 'sql-template-tag';
import { batched } from '../../core/postgres/batch.ts';
import { type Database, run, runAgain } from '../../core/postgres/database.ts';
import type { DeliveryResult, QueuedDelivery } from './delivery.ts';
import type { Addressee } from './send.ts';

/** Deliveries that a run reads at a time. */
export const most_deliveries = 32;
/** Renewed by whatever is written of the run; longer than a run can go without (a request lasts 10 s), by a margin for a stalled process. */
export const lease_s = 30;
/** How long the result of an attempt, and the end of a run, are kept to be written together with the next ones. */
const max_wait_ms = 4;
/** Endpoints that share a statement. */
const most_endpoints = 100;

/** An endpoint to which this worker alone may send, until its lease runs out. */
export interface Lease extends Addressee {
  token: number;
  organization_id: string;
  /** Of the endpoint as the run knows it. */
  endpoint_updated_at: string;
  /** When the lease was asked for, by `performance.now()`: it runs from no earlier. */
  asked_at: number;
  /** The first in the queue; `most_deliveries` at most. */
  deliveries: QueuedDelivery[];
}

/** What is written of a run: a delivery's result, or that the run ended. */
export interface Report {
  lease: Omit<Lease, 'deliveries'>;
  result?: DeliveryResult;
  /** Whether the attempt took long; undefined: as before. */
  slow?: boolean;
  ended?: boolean;
}

/** The statements on endpoints' queues, shared by all runs of a worker. */
export interface EndpointQueues {
  /** Takes the lease. Undefined where nothing waits or somebody else sends. */
  begin(endpoint_id: string): Promise<Lease | undefined>;
  /** The deliveries after a position in the queue. */
  following(endpoint_id: string, queue_position: number): Promise<QueuedDelivery[]>;
  /**
   * Resolves when it is durable: to false when the run must end, because its lease was lost (the successor sends again what was reported) or
   * the endpoint has changed.
   * @throws when it could not be written. Then nothing is written of what the run reports later, which would pass it by.
   */
  report(report: Report): Promise<boolean>;
  /** Writes what was reported and waits to be written: somebody waits for the end of its run. */
  hurry(): void;
  /** Enqueues the job of the endpoint's next run, where something waits. */
  wake(endpoint_id: string): Promise<void>;
}

export function openQueues(database: Database, worker_id: string): EndpointQueues {
  const broken = new WeakSet<Report['lease']>();
  const reportAll = async (reports: Report[]): Promise<boolean[]> => {
    const whole = reports.filter(({ lease }) => !broken.has(lease));
    try {
      const going_on = whole.length > 0 ? await recordRuns(database, whole) : new Set();
      return reports.map(({ lease }) => going_on.has(keyOf(lease)));
    } catch (error) {
      for (const { lease } of whole) broken.add(lease);
      throw error;
    }
  };
  const report = batched(reportAll, { most: most_endpoints * 4, canWait: () => true, max_wait_ms });
  return {
    report,
    hurry: () => report.hurry(),
    begin: batched((endpoint_ids) => beginRuns(database, worker_id, endpoint_ids), { most: most_endpoints }),
    wake: batched((endpoint_ids) => wakeEndpoints(database, endpoint_ids), { most: most_endpoints }),
    following: (endpoint_id, queue_position) =>
      run<QueuedDelivery>(
        database,
        sql`select queue_position, delivery_id, event_id, event_type, attempt, body, request_id, cancelled
          from webhooks.next_deliveries(${endpoint_id}, ${queue_position}, ${most_deliveries})`,
      ),
  };
}

export type LeaseRow = Omit<Lease, 'asked_at' | 'deliveries'> & (QueuedDelivery | { queue_position: null });

async function beginRuns(
  database: Database,
  worker_id: string,
  endpoint_ids: string[],
): Promise<(Lease | undefined)[]> {
  const asked_at = performance.now();
  const rows = await runAgain<LeaseRow>(
    database,
    sql`select endpoint_id, token, organization_id, endpoint_updated_at, type, url, https_only, secret, previous_secret, queue_position,
        delivery_id, event_id, event_type, attempt, body, request_id, cancelled
      from webhooks.begin_runs(${endpoint_ids}, ${worker_id}, make_interval(secs => ${lease_s}), ${most_deliveries})`,
  );
  const leases = leasesOf(rows, asked_at);
  return endpoint_ids.map((endpoint_id) => {
    const lease = leases.get(endpoint_id);
    leases.delete(endpoint_id);
    return lease;
  });
}

/** By endpoint. @param rows a delivery each, those of one endpoint in their order */
export function leasesOf(rows: LeaseRow[], asked_at: number): Map<string, Lease> {
  const leases = new Map<string, Lease>();
  for (const row of rows) {
    const { endpoint_id, token, organization_id, endpoint_updated_at } = row;
    const { type, url, https_only, secret, previous_secret } = row;
    const lease = leases.get(endpoint_id) ?? {
      ...{ endpoint_id, token, organization_id, endpoint_updated_at },
      ...{ type, url, https_only, secret, previous_secret },
      asked_at,
      deliveries: [],
    };
    leases.set(endpoint_id, lease);
    if (row.queue_position !== null) lease.deliveries.push(row);
  }
  return leases;
}

/** @returns the keys of those that may go on */
async function recordRuns(database: Database, reports: Report[]): Promise<Set<string>> {
  const runs = new Map<string, { done_position: number; ended: boolean; slow?: boolean | undefined }>();
  for (const { lease, result, slow, ended = false } of reports) {
    const { endpoint_id, token, endpoint_updated_at } = lease;
    const known = runs.get(keyOf(lease));
    runs.set(keyOf(lease), {
      ...{ endpoint_id, token, endpoint_updated_at, slow: slow ?? known?.slow },
      done_position: Math.max(known?.done_position ?? 0, result?.queue_position ?? 0),
      ended: ended || known?.ended === true,
    });
  }
  const results = reports.flatMap(({ lease: { endpoint_id, organization_id }, result }) =>
    result ? [{ endpoint_id, organization_id, ...result }] : [],
  );
  const going_on = await runAgain<Pick<Lease, 'endpoint_id' | 'token'>>(
    database,
    sql`select endpoint_id, token from webhooks.record_runs(${JSON.stringify([...runs.values()])}::json, ${JSON.stringify(results)}::json,
      make_interval(secs => ${lease_s}))`,
  );
  return new Set(going_on.map(keyOf));
}

const keyOf = ({ endpoint_id, token }: Pick<Lease, 'endpoint_id' | 'token'>): string => `${endpoint_id} ${token}`;

async function wakeEndpoints(database: Database, endpoint_ids: string[]): Promise<undefined[]> {
  await runAgain(database, sql`select webhooks.wake_endpoints(${endpoint_ids})`);
  return endpoint_ids.map(() => undefined);
}
