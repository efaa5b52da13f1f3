/** Compares the payments of rails with the books. */
import { eventually, type Json, type Rail, sql } from '../../harness.ts';
import type { Shop } from '../../shop.ts';
import type { Movement } from './rails/provider_server.ts';

type Server = { movedFor(key: string): Movement | undefined };

let ticks = 0;

/** Has the rails asked about every payout of a program that has attempts, as if the time had come. */
export async function pollAll(rail: Rail, { program_id }: Shop): Promise<void> {
  await rail.query(sql`
    update program.payout_attempt set next_poll_at = '2026-01-01'
    where program_id = ${program_id} and rail in ('paypal', 'wise', 'stripe') and claimed_until is null`);
  await rail.tick('program/poll_payouts', new Date(Date.UTC(2026, 0, 2, 0, ++ticks)).toISOString());
}

/** Waits until no job about payouts is left. */
export const quiet = (rail: Rail): Promise<void> =>
  eventually(
    async () =>
      (await rail.query(sql`select from graphile_worker.jobs where task_identifier like 'program/%payout%'`)).length ===
      0,
    'the end of the work on payouts',
  );

/** Lets every attempt come to its end, by the rails' word. */
export async function settleAll(rail: Rail, shop: Shop): Promise<void> {
  await quiet(rail);
  await pollAll(rail, shop);
  await quiet(rail);
}

/** Returns the faults of a program's payouts once all attempts have ended. */
export async function booksOf(rail: Rail, { program_id }: Shop, ...servers: Server[]): Promise<string[]> {
  const attempts = await rail.query<Json>(sql`
    select a.id, a.status, a.amount_minor, a.currency, a.settled, a.excess_commission_id, p.status as payout_status, p.deleted_at
    from program.payout_attempt a
    join program.payout p on p.organization_id = a.organization_id and p.id = a.payout_id
    where a.program_id = ${program_id} and a.rail in ('paypal', 'wise', 'stripe')
    order by a.id`);
  const ledger = await rail.query<Json>(sql`
    select 'the amount of ' || p.id || ' is not what its commissions come to' as fault
    from program.payout p
    where p.program_id = ${program_id} and p.deleted_at is null and p.livemode
      and p.amount_minor is distinct from (select sum(c.amount_minor) from program.commission c where c.payout_id = p.id)
    union all
    select c.id || ' is paid, and its payout is not'
    from program.commission c
    left join program.payout p on p.id = c.payout_id and p.deleted_at is null
    where c.program_id = ${program_id} and c.status = 'paid' and p.status is distinct from 'paid'
    union all
    select e.body::jsonb #>> '{data,payout_id}' || ' was paid ' || count(*) || ' times in a row'
    from (
      select e.*, lag(e.type) over (partition by e.body::jsonb #>> '{data,payout_id}' order by e.position) as before
      from webhooks.event e
      where e.program_id = ${program_id} and e.type in ('payout.paid', 'payout.failed')
    ) as e
    where e.type = 'payout.paid' and e.before = 'payout.paid'
    group by e.body::jsonb #>> '{data,payout_id}'`);
  return [...ledger.map(({ fault }) => fault as string), ...attempts.flatMap((attempt) => faultsOf(attempt, servers))];
}

function faultsOf(
  { id, status, amount_minor, currency, settled, excess_commission_id }: Json,
  servers: Server[],
): string[] {
  const moved = servers.map((server) => server.movedFor(id)).find((movement) => movement !== undefined);
  const faults: string[] = [];
  if (moved && moved.times !== 1) faults.push(`${id} was paid ${moved.times} times`);
  if (moved && (moved.amount_minor !== amount_minor || moved.currency !== currency)) {
    faults.push(`${id} was paid ${moved.amount_minor} ${moved.currency} instead of ${amount_minor} ${currency}`);
  }
  const is_out = moved !== undefined && !moved.came_back;
  if (is_out !== (status === 'paid')) faults.push(`${id} is ${status}, and its money is ${is_out ? 'out' : 'not out'}`);
  if (status === 'paid' && settled === (excess_commission_id !== null))
    faults.push(`${id} was paid, and nothing says for what`);
  return faults;
}
