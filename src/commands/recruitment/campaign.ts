/** `rail campaign status`: what campaigns do now. */
import { setTimeout as sleep } from 'node:timers/promises';
import sql, { type Sql } from 'sql-template-tag';
import { type Store, transaction } from '../../core/postgres/transaction.ts';
import { requireOrganization } from '../chosen.ts';
import { answer, withStore } from '../command.ts';
import { table } from '../output/table.ts';
import { grouped } from '../payouts/tables.ts';
import { catchStop } from '../process.ts';
import { organizationOfBrand, organizationOfCampaign } from './tenant.ts';

const most_listed = 50;
const poll_ms = 2_000;

interface Options {
  organization?: string;
  brand?: string;
  all?: boolean;
  follow?: boolean;
  json?: boolean;
}

interface Status {
  id: string;
  name: string;
  state: string;
  /** Sequences, by their state. */
  sequences: Record<
    'waiting' | 'active' | 'completed' | 'replied' | 'bounced' | 'unsubscribed' | 'stopped' | 'failed',
    number
  >;
  sent_today: number;
  /** Emails that may not have been sent. */
  unknown: number;
  /** The time at which the next sequence is due, even if its email must wait. */
  next_due_at: string | null;
  /** The limit that its next email waits for. Null: none, it is sent now. */
  waits_for: string | null;
  /** The time at which that is over. Null: it is not known, or nothing is waited for. */
  goes_on_at: string | null;
}

/** `rail campaign status`: a table, which `--follow` keeps up to date until Ctrl-C or until every campaign has ended. */
export async function showCampaigns(id: string | undefined, options: Options): Promise<void> {
  const stopping = catchStop();
  await withStore(async ({ store }) => {
    const wanted = await scopeOf(store, id, options);
    if (!options.follow || options.json) {
      const statuses = await read(store, wanted);
      return answer(statuses, { json: options.json, lines: linesOf(statuses) });
    }
    await follow(store, wanted, stopping);
  });
}

interface Wanted {
  organization_id: string | null;
  where: Sql;
}

/** @throws Error when there is no such campaign, brand or organization */
async function scopeOf(store: Store, id: string | undefined, { organization, brand, all }: Options): Promise<Wanted> {
  if (id !== undefined) {
    return { organization_id: await organizationOfCampaign(store.database, id), where: sql`t.id = ${id}` };
  }
  const open = all ? sql`true` : sql`t.state in ('scheduled', 'sending', 'paused')`;
  if (brand !== undefined) {
    const organization_id = await organizationOfBrand(store.database, brand);
    return { organization_id, where: sql`t.brand_id = ${brand} and ${open}` };
  }
  if (organization === undefined) return { organization_id: null, where: open };
  await requireOrganization(store.database, organization);
  return { organization_id: organization, where: sql`t.organization_id = ${organization} and ${open}` };
}

async function follow(store: Store, wanted: Wanted, stopping: AbortSignal): Promise<void> {
  const is_terminal = process.stdout.isTTY;
  for (let shown = 0; ; ) {
    const statuses = await read(store, wanted);
    const lines = linesOf(statuses);
    if (is_terminal && shown > 0) process.stdout.write(`\x1b[${shown}A\x1b[J`);
    console.log(lines.join('\n'));
    shown = lines.length;
    const has_ended = statuses.every(({ state }) => ['draft', 'stopped', 'finished'].includes(state));
    if (has_ended || stopping.aborted) return;
    await sleep(poll_ms, undefined, { signal: stopping }).catch(() => {});
    if (stopping.aborted) return;
  }
}

/** The names of the limits of `recruitment.outreach_queue`. */
const limits = {
  due: 'next due time',
  window: 'window',
  gap: 'gap between emails',
  provider: 'provider: it accepts no more for now',
  cap: 'daily limit of the inbox',
  plan: 'daily limit of the plan',
  daily_new_limit: 'daily limit of the campaign',
  company_limit: 'daily limit of a company',
};
const limits_json = JSON.stringify(limits);

const countOf = (state: string): Sql => sql`(count(*) filter (where s.state = ${state}))::integer`;

const read = (store: Store, { organization_id, where }: Wanted): Promise<Status[]> =>
  transaction(store, { organization_id, request_id: null }, (tx) =>
    tx.all<Status>(sql`
      select t.id, t.name, t.state, counted.sequences, today.sent_today, lost.unknown, counted.next_due_at,
        case
          when t.state = 'paused' then 'paused: ' || array_to_string(t.pause_causes, ', ')
          when t.state = 'scheduled' then 'start'
          when t.state <> 'sending' then t.state
          when not connected.any then 'no inbox'
          when queue.goes_at is not null then ${limits_json}::json ->> queue.waits_for
          when counted.unscheduled > 0 then 'scheduling'
          else 'no email is left'
        end as waits_for,
        case when t.state = 'scheduled' then t.start_at when queue.waits_for is not null then queue.goes_at end as goes_on_at
      from recruitment.campaign t
      cross join lateral (
        select json_build_object(
          'waiting', ${countOf('waiting')}, 'active', ${countOf('active')}, 'completed', ${countOf('completed')},
          'replied', ${countOf('replied')}, 'bounced', ${countOf('bounced')}, 'unsubscribed', ${countOf('unsubscribed')},
          'stopped', ${countOf('stopped')}, 'failed', ${countOf('failed')}
        ) as sequences,
        min(s.due_at) filter (where s.open) as next_due_at,
        count(*) filter (where s.open and s.due_at is null) as unscheduled
        from recruitment.sequence s
        where s.organization_id = t.organization_id and s.campaign_id = t.id
      ) counted
      cross join lateral (
        select count(*)::integer as sent_today from recruitment.message m
        where m.organization_id = t.organization_id and m.campaign_id = t.id and m.purpose = 'sequence'
          and m.sent_at >= date_trunc('day', now() at time zone 'UTC') at time zone 'UTC'
      ) today
      cross join lateral (
        select count(*)::integer as unknown from recruitment.message m
        where m.organization_id = t.organization_id and m.campaign_id = t.id and m.state = 'unknown'
      ) lost
      cross join lateral (
        select exists (
          select from recruitment.inbox i
          where i.organization_id = t.organization_id and i.id = any(t.inbox_ids) and i.status = 'connected' and i.deleted_at is null
        ) as any
      ) connected
      left join lateral (
        select l.goes_at, l.waits_for from recruitment.outreach_queue l
        where l.organization_id = t.organization_id and l.campaign_id = t.id
        order by l.goes_at
        limit 1
      ) queue on true
      where ${where}
      order by t.created_at desc, t.id desc
      limit ${most_listed}`),
  );

const columns = [
  'CAMPAIGN',
  'NAME',
  'STATE',
  'WAITING',
  'ACTIVE',
  'COMPLETED',
  'REPLIED',
  'OTHER ENDS',
  'SENT TODAY',
  'UNKNOWN',
  'WAITS FOR',
  'GOES ON AT',
];

function linesOf(statuses: Status[]): string[] {
  const rows = statuses.map(({ id, name, state, sequences, sent_today, unknown, waits_for, goes_on_at }) => {
    const { waiting, active, completed, replied, ...others } = sequences;
    const ends = Object.values(others).reduce((sum, count) => sum + count, 0);
    const counts = [waiting, active, completed, replied, ends, sent_today, unknown].map(grouped);
    return [id, name.slice(0, 30), state, ...counts, waits_for ?? '', goes_on_at ?? ''];
  });
  return table(columns, rows, 'No campaign matches.');
}
