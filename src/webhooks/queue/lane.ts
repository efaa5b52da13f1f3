import sql from 'sql-template-tag';
import { batched } from '../../core/postgres/batch.ts';
import { type Database, run, runAgain } from '../../core/postgres/database.ts';
import type { Place, Settled } from './delivery.ts';
import type { Addressee } from './send.ts';

/** Places that a turn takes up at a time. */
export const most_places = 32;
/** Renewed by whatever is written of the turn; longer than a turn can go without (a request lasts 10 s), by a margin for a stalled process. */
const lease_s = 30;
/** How long what came of an attempt is kept to be written together with the next ones, while its turn goes on. */
const max_wait_ms = 1;
/** Lanes that share a statement. */
const most_lanes = 100;

/** An endpoint to which this worker alone may send, until its lease runs out. */
export interface Lane extends Addressee {
  token: number;
  organization_id: string;
  /** Of the endpoint as the turn knows it. */
  endpoint_updated_at: string;
  /** When the lease was asked for, by `performance.now()`: it runs from no earlier. */
  asked_at: number;
  /** What stands in its sequence first; `most_places` at most. */
  places: Place[];
}

/** What is written of a turn: what came of a place, or that the turn ended. */
export interface Report {
  lane: Omit<Lane, 'places'>;
  settled?: Settled;
  /** Whether the attempt took long; undefined: as before. */
  slow?: boolean;
  ended?: boolean;
}

/** The statements of turns, shared by all turns of a worker. */
export interface Lanes {
  /** Takes the lease. Undefined where nothing waits or somebody else sends. */
  begin(endpoint_id: string): Promise<Lane | undefined>;
  /** What stands behind a place. */
  following(endpoint_id: string, place: number): Promise<Place[]>;
  /**
   * Durable once it settles. False when the turn must end: its lease was lost, and the successor sends again what was reported; or the
   * endpoint has changed.
   * @throws when it could not be written. Then nothing is written of what the turn reports later, which would pass it by.
   */
  report(report: Report): Promise<boolean>;
  /** Enqueues the lane's next turn, where something waits. */
  wake(endpoint_id: string): Promise<void>;
}

export function openLanes(database: Database, worker_id: string): Lanes {
  const broken = new WeakSet<Report['lane']>();
  const report = async (reports: Report[]): Promise<boolean[]> => {
    const whole = reports.filter(({ lane }) => !broken.has(lane));
    try {
      const going_on = whole.length > 0 ? await endTurns(database, whole) : new Set();
      return reports.map(({ lane }) => going_on.has(keyOf(lane)));
    } catch (error) {
      for (const { lane } of whole) broken.add(lane);
      throw error;
    }
  };
  return {
    begin: batched((endpoint_ids) => beginTurns(database, worker_id, endpoint_ids), { most: most_lanes }),
    report: batched(report, { most: most_lanes * 4, canWait: ({ ended }) => !ended, max_wait_ms }),
    wake: batched((endpoint_ids) => wakeLanes(database, endpoint_ids), { most: most_lanes }),
    following: (endpoint_id, place) =>
      run<Place>(
        database,
        sql`select place, delivery_id, event_id, event_type, attempt, body, request_id, cancelled
          from webhooks.next_places(${endpoint_id}, ${place}, ${most_places})`,
      ),
  };
}

type LaneRow = Omit<Lane, 'asked_at' | 'places'> & (Place | { place: null });

async function beginTurns(
  database: Database,
  worker_id: string,
  endpoint_ids: string[],
): Promise<(Lane | undefined)[]> {
  const asked_at = performance.now();
  const rows = await runAgain<LaneRow>(
    database,
    sql`select endpoint_id, token, organization_id, endpoint_updated_at, url, https_only, secret, previous_secret, place, delivery_id, event_id,
        event_type, attempt, body, request_id, cancelled
      from webhooks.begin_turns(${endpoint_ids}, ${worker_id}, make_interval(secs => ${lease_s}), ${most_places})`,
  );
  const lanes = new Map<string, Lane>();
  for (const row of rows) {
    const { endpoint_id, token, organization_id, endpoint_updated_at, url, https_only, secret, previous_secret } = row;
    const lane = lanes.get(endpoint_id) ?? {
      ...{ endpoint_id, token, organization_id, endpoint_updated_at, url, https_only, secret, previous_secret },
      asked_at,
      places: [],
    };
    lanes.set(endpoint_id, lane);
    if (row.place !== null) lane.places.push(row);
  }
  return endpoint_ids.map((endpoint_id) => {
    const lane = lanes.get(endpoint_id);
    lanes.delete(endpoint_id);
    return lane;
  });
}

/** @returns those whose turns may go on */
async function endTurns(database: Database, reports: Report[]): Promise<Set<string>> {
  const lanes = new Map<string, { done_place: number; ended: boolean; slow?: boolean | undefined }>();
  for (const { lane, settled, slow, ended = false } of reports) {
    const { endpoint_id, token, endpoint_updated_at } = lane;
    const known = lanes.get(keyOf(lane));
    lanes.set(keyOf(lane), {
      ...{ endpoint_id, token, endpoint_updated_at, slow: slow ?? known?.slow },
      done_place: Math.max(known?.done_place ?? 0, settled?.place ?? 0),
      ended: ended || known?.ended === true,
    });
  }
  const outcomes = reports.flatMap(({ lane: { endpoint_id, organization_id }, settled }) =>
    settled ? [{ endpoint_id, organization_id, ...settled }] : [],
  );
  const going_on = await runAgain<Pick<Lane, 'endpoint_id' | 'token'>>(
    database,
    sql`select endpoint_id, token from webhooks.end_turns(${JSON.stringify([...lanes.values()])}::json, ${JSON.stringify(outcomes)}::json,
      make_interval(secs => ${lease_s}))`,
  );
  return new Set(going_on.map(keyOf));
}

const keyOf = ({ endpoint_id, token }: Pick<Lane, 'endpoint_id' | 'token'>): string => `${endpoint_id} ${token}`;

async function wakeLanes(database: Database, endpoint_ids: string[]): Promise<undefined[]> {
  await runAgain(database, sql`select webhooks.wake_lanes(${endpoint_ids})`);
  return endpoint_ids.map(() => undefined);
}
