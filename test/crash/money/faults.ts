/** Finds the faults after the kills: in the answers to clients, in the money, and in the webhooks of receivers. */
import { raw, type Sql } from 'sql-template-tag';
import { type Json, sql } from '../../harness.ts';
import type { Movement } from '../../program/payouts/rails/provider_server.ts';
import { most_unwritten, type Received } from '../receivers.ts';
import type { Noun, Shop } from './load.ts';

type Query = <Row extends object = Json>(statement: Sql) => Promise<Row[]>;

const most_shown = 5;

const faults = (what: string, those: readonly unknown[]): string[] =>
  those.length === 0 ? [] : [`${those.length} ${what}: ${JSON.stringify(those.slice(0, most_shown))}`];

/** Checks that the result of each answered request exists once, and nothing else does: each was sent until it was answered. */
export async function faultsOfAnswers(query: Query, { program_id, made }: Shop): Promise<string[]> {
  const found: string[] = [];
  for (const [noun, ids] of Object.entries(made) as [Noun, string[]][]) {
    const known_by = raw(noun === 'refund' ? 'external_refund_id' : 'id');
    const rows = await query<{ id: string }>(
      sql`select ${known_by} as id from ${raw(`program.${noun}`)} where program_id = ${program_id}`,
    );
    const [told, there] = [new Set(ids), new Set(rows.map(({ id }) => id))];
    found.push(...faults(`lost, ${noun}`, [...told.difference(there)]));
    found.push(...faults(`that nobody was told of, ${noun}`, [...there.difference(told)]));
    if (told.size < ids.length || there.size < rows.length) found.push(`The same ${noun} twice.`);
  }
  return found;
}

/** A sale has one commission of its own, all of its commissions come to its rate of what is left, and refunds are taken from it once. */
export async function faultsOfMoney(query: Query, { program_id }: Shop, bps: number): Promise<string[]> {
  const sales = await query(sql`
    select s.id, s.amount_minor, s.refunded_minor, r.refunded, c.of_sale, c.earned
    from program.sale s
    cross join lateral (
      select coalesce(sum(r.amount_minor), 0)::bigint as refunded from program.refund r where r.organization_id = s.organization_id and r.sale_id = s.id and r.reversed_at is null
    ) as r
    cross join lateral (
      select count(*) filter (where c.kind = 'sale') as of_sale,
        coalesce(sum(c.amount_minor) filter (where c.status not in ('voided', 'rejected')), 0)::bigint as earned
      from program.commission c
      where c.organization_id = s.organization_id and c.sale_id = s.id and c.deleted_at is null
    ) as c
    where s.program_id = ${program_id}
      and (c.of_sale <> 1 or s.refunded_minor <> r.refunded or c.earned <> (s.amount_minor - s.refunded_minor) * ${bps}::bigint / 10000)`);
  return faults('sales with other commissions', sales);
}

/** One whose sales were refunded before it was sent is deleted, and not paid. */
export async function faultsOfPayouts(query: Query, shops: Shop[], moved: Movement[]): Promise<string[]> {
  const program_ids = shops.map(({ program_id }) => program_id);
  const payouts = await query<{ id: string; amount_minor: number; status: string }>(
    sql`select id, amount_minor, status from program.payout where program_id = any (${program_ids}) and deleted_at is null`,
  );
  const movements = Map.groupBy(moved, ({ key }) => key.replace(/-\d+$/, ''));
  const wrong = payouts.filter(({ id, amount_minor, status }) => {
    const [one, ...others] = movements.get(id) ?? [];
    return status !== 'paid' || one?.times !== 1 || one.amount_minor !== amount_minor || others.length > 0;
  });
  return [
    ...faults('payouts that were not paid once', wrong),
    ...(payouts.length === 0 ? ['There was no payout.'] : []),
    ...(movements.size === payouts.length ? [] : [`${movements.size} payments of ${payouts.length} payouts`]),
  ];
}

const of_event = (field: string) => `e.body::json #>> '{data,${field}}'`;

/** The types that are emitted once: rows of a table, by the field that names them. */
const told_once: Record<string, { table: string; field: string; rows?: string; events?: string }> = {
  'referral.created': { table: 'referral', field: 'referral_id' },
  'sale.created': { table: 'sale', field: 'sale_id' },
  'commission.created': { table: 'commission', field: 'commission_id' },
  'commission.updated': {
    ...{ table: 'commission', field: 'commission_id' },
    rows: `t.status in ('due', 'paid') and t.id in (select ${of_event('commission_id')} from webhooks.event e
      where e.type = 'commission.created' and ${of_event('status')} = 'pending')`,
    events: `${of_event('previous_status')} = 'pending' and ${of_event('status')} = 'due'`,
  },
  'commission.paid': { table: 'commission', field: 'commission_id', rows: `t.status = 'paid'` },
  'payout.created': { table: 'payout', field: 'payout_id' },
  'payout.paid': { table: 'payout', field: 'payout_id', rows: `t.status = 'paid'` },
};

const life = `array['commission.created', 'commission.updated', 'commission.paid']`;

/** Each is told once, and what follows from another after it. */
export async function faultsOfEvents(query: Query, { program_id }: Shop): Promise<string[]> {
  const found: string[] = [];
  for (const [type, { table, field, rows = 'true', events = 'true' }] of Object.entries(told_once)) {
    const wrong = await query(sql`
      select id, told.times
      from (select t.id from ${raw(`program.${table}`)} t where t.program_id = ${program_id} and ${raw(rows)}) as own
      full join (
        select ${raw(of_event(field))} as id, count(*) as times
        from webhooks.event e where e.program_id = ${program_id} and e.type = ${type} and ${raw(events)}
        group by 1
      ) as told using (id)
      where told.times is null or told.times > 1`);
    found.push(...faults(`not told once, ${type}`, wrong));
  }
  const early = await query(sql`
    select told.id, told.type
    from (
      select e.id, e.type, array_position(${raw(life)}, e.type) as step, max(array_position(${raw(life)}, e.type)) over w as reached
      from webhooks.event e
      where e.program_id = ${program_id} and e.type = any (${raw(life)})
      window w as (partition by ${raw(of_event('commission_id'))} order by e.position)
    ) as told
    where told.step < told.reached`);
  return [...found, ...faults('told before what they follow from', early)];
}

/**
 * An endpoint receives every event in the one order. After a death those come again whose attempts were not written: from that order some steps
 * back, and none that was written when it came.
 */
export async function faultsOfEndpoint(query: Query, endpoint_id: string, received: Received[]): Promise<string[]> {
  const deliveries = await query<{ event_id: string; position: number; status: string; written_ms: number | null }>(sql`
    select d.event_id, e.position, d.status, (
        select min(extract(epoch from pg_xact_commit_timestamp(a.xmin)) * 1000)::float8
        from webhooks.attempt a where a.organization_id = d.organization_id and a.delivery_id = d.id
      ) as written_ms
    from webhooks.delivery d
    join webhooks.event e on e.organization_id = d.organization_id and e.id = d.event_id
    where d.endpoint_id = ${endpoint_id}
    order by d.queue_position`);
  const [{ events } = {}] = await query<{ events: number }>(sql`
    select count(*) as events from webhooks.event e join webhooks.endpoint p on p.program_id = e.program_id and p.listens_from < e.position
    where p.id = ${endpoint_id}`);
  const place = new Map(deliveries.map(({ event_id }, nth) => [event_id, nth]));
  let furthest = -1;
  const wrong = received.filter(({ event_id, at }) => {
    const here = place.get(event_id);
    if (here === furthest + 1) {
      furthest = here;
      return false;
    }
    // It comes again: not far back, and not when it was written already. The clock of what was written is finer.
    const back = furthest - (here ?? Number.POSITIVE_INFINITY);
    return !(back >= 0 && back < most_unwritten && at <= (deliveries[here as number]?.written_ms ?? 0) + 1);
  });
  const unordered = deliveries.filter(({ position }, nth) => position <= (deliveries[nth - 1]?.position ?? 0));
  const undelivered = deliveries.filter(({ status }) => status !== 'delivered');
  return [
    ...(deliveries.length === events ? [] : [`${endpoint_id}: ${deliveries.length} deliveries of ${events} events`]),
    ...(furthest === deliveries.length - 1 ? [] : [`${endpoint_id}: ${furthest + 1} of ${deliveries.length} received`]),
    ...faults(`out of order, ${endpoint_id}`, unordered),
    ...faults(`not delivered, ${endpoint_id}`, undelivered),
    ...faults(`received again or too early, ${endpoint_id}`, wrong),
  ];
}
