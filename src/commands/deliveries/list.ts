/** `rail deliveries list` and `rail deliveries show`. */
import sql, { join } from 'sql-template-tag';
import { type Database, run } from '../../core/postgres/database.ts';
import { nearest } from '../../core/values/texts/nearest.ts';
import { requireOrganization } from '../chosen.ts';
import { answer, UsageError, withStore } from '../command.ts';
import { age } from '../output/age.ts';
import { table } from '../output/table.ts';

export const statuses = ['pending', 'delivered', 'failed', 'cancelled'] as const;

interface ListOptions {
  endpoint?: string;
  organization?: string;
  status?: string[];
  type?: string;
  within: number;
  olderThan?: number;
  limit: number;
  json?: boolean;
}

interface Delivery {
  id: string;
  organization_id: string;
  endpoint_id: string;
  event_id: string;
  event_type: string;
  status: (typeof statuses)[number];
  attempt: number;
  next_attempt_at: string | null;
  age_s: number;
  created_at: string;
  /** The endpoint's answer to the last attempt. */
  status_code: number | null;
  error: string | null;
}

const columns = sql`
  d.id, d.organization_id, d.endpoint_id, d.event_id, d.event_type, d.status, d.attempt, d.next_attempt_at,
  extract(epoch from now() - d.created_at)::float8 as age_s, d.created_at, last.status_code, last.error`;

/** The last attempt of a delivery `d`. */
const last_attempt = sql`
  left join lateral (
    select a.status_code, a.error from webhooks.attempt a
    where a.organization_id = d.organization_id and a.delivery_id = d.id
    order by a.attempt desc
    limit 1
  ) as last on true`;

/** The newest deliveries: only so far back, because the log of all organizations is long. */
export const listDeliveries = (options: ListOptions): Promise<void> =>
  withStore(async ({ store }) => {
    const { endpoint, organization, status, type, within, olderThan, limit, json } = options;
    if (organization !== undefined) await requireOrganization(store.database, organization);
    if (endpoint !== undefined) await requireEndpoint(store.database, endpoint);
    if (type !== undefined) await requireType(type);
    const conditions = [
      sql`x.created_at > now() - ${within} * interval '1 second'`,
      ...(olderThan === undefined ? [] : [sql`x.created_at < now() - ${olderThan} * interval '1 second'`]),
      ...(organization === undefined ? [] : [sql`x.organization_id = ${organization}`]),
      ...(status === undefined ? [] : [sql`x.status = any (${status}::text[])`]),
      ...(type === undefined ? [] : [sql`x.event_type = ${type}`]),
      ...(endpoint === undefined
        ? []
        : [
            sql`x.endpoint_id = ${endpoint}`,
            // The index begins with the organization.
            sql`x.organization_id = (select q.organization_id from webhooks.endpoint_queue q where q.endpoint_id = ${endpoint})`,
          ]),
    ];
    const deliveries = await run<Delivery>(
      store.database,
      sql`
        with d as materialized (
          select x.* from webhooks.delivery x where ${join(conditions, ' and ')} order by x.created_at desc, x.id desc limit ${limit}
        )
        select ${columns} from d ${last_attempt} order by d.created_at desc, d.id desc`,
    );
    answer(deliveries, { json, lines: listLines(deliveries, age(within)) });
  });

async function requireEndpoint(database: Database, id: string): Promise<void> {
  const found = await run(database, sql`select from webhooks.endpoint_queue q where q.endpoint_id = ${id}`);
  if (found.length === 0) throw new Error(`There is no endpoint '${id}'.`);
}

/** Loads the catalogues of all products. @throws UsageError */
async function requireType(type: string): Promise<void> {
  const { products } = await import('../../products.ts');
  const types = products.flatMap(({ events }) => Object.keys(events.catalogue));
  if (types.includes(type)) return;
  const meant = nearest(type, types);
  throw new UsageError(
    `There is no event type '${type}'. ${meant === undefined ? `Types: ${types.join(' ')}` : `Did you mean ${meant}?`}`,
  );
}

const listLines = (deliveries: Delivery[], within: string): string[] =>
  table(
    ['DELIVERY', 'EVENT TYPE', 'STATUS', 'TRIES', 'AGE', 'ANSWER', 'ENDPOINT'],
    deliveries.map((one) => [
      ...[one.id, one.event_type, one.status, one.attempt, age(one.age_s), answerOf(one), one.endpoint_id],
    ]),
    `There is no such delivery within ${within}. --within looks further back.`,
  );

const answerOf = ({ status_code, error }: Pick<Delivery, 'status_code' | 'error'>): string =>
  status_code === null ? (error ?? '').slice(0, 30) : String(status_code);

function nextAttempt({ next_attempt_at }: Delivery): string {
  if (next_attempt_at === null) return '';
  return `${next_attempt_at <= new Date().toISOString() ? 'due since ' : ''}${next_attempt_at}`;
}

interface Attempt {
  attempt: number;
  at: string;
  duration_ms: number;
  status_code: number | null;
  error: string | null;
}

/** A delivery and its attempts: without what was sent, and without what was answered. */
export const showDelivery = (id: string, { json }: { json?: boolean }): Promise<void> =>
  withStore(async ({ config, store: { database } }) => {
    const [found] = await run<Delivery & { replay_of: string | null; endpoint_status: string | null }>(
      database,
      sql`
        select ${columns}, d.replay_of, e.status as endpoint_status
        from webhooks.delivery d
        left join webhooks.endpoint e on e.organization_id = d.organization_id and e.id = d.endpoint_id
        ${last_attempt}
        where d.id = ${id}`,
    );
    if (!found) throw new Error(`There is no delivery '${id}'. They are kept for ${config.EVENT_RETENTION_DAYS} days.`);
    const attempts = await run<Attempt>(
      database,
      sql`
        select a.attempt, a.at, a.duration_ms, a.status_code, a.error
        from webhooks.attempt a
        where a.organization_id = ${found.organization_id} and a.delivery_id = ${id}
        order by a.attempt`,
    );
    const fields = [
      ['Delivery', id],
      ['Event', `${found.event_id} (${found.event_type})`],
      ['Endpoint', `${found.endpoint_id}${found.endpoint_status ? ` (${found.endpoint_status})` : ''}`],
      ['Organization', found.organization_id],
      ['Status', found.status],
      ['Next attempt', nextAttempt(found)],
      ['Replay of', found.replay_of ?? ''],
    ].filter(([, value]) => value);
    const rows = attempts.map((one) => [
      ...[one.attempt, one.at, `${one.duration_ms} ms`, one.status_code ?? '', (one.error ?? '').slice(0, 50)],
    ]);
    answer(
      { ...found, attempts },
      {
        json,
        lines: [
          ...fields.map(([name = '', value = '']) => `${name.padEnd(14)}${value}`),
          '',
          ...table(['ATTEMPT', 'AT', 'TOOK', 'ANSWER', 'ERROR'], rows, 'It was not tried yet.'),
        ],
      },
    );
  });
