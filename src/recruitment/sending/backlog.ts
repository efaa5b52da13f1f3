/** Measures what waits in the database: by it an operator sees that nothing is sent, or nothing read. */
import sql from 'sql-template-tag';
import { type Backlog, type Measured, most_counted } from '../../core/metrics/backlog.ts';
import { SharedGauge } from '../../core/metrics/registry.ts';
import { type Database, run } from '../../core/postgres/database.ts';

const emails = new SharedGauge(
  'rail_outreach_emails',
  {
    help: 'Emails that wait: due; held by a limit, gap or window although due; being sent; or unknown: they may have been sent, and were neither found in the mailbox nor sent again. Counted up to 100,000.',
    row: 'Outreach',
    title: 'Emails that wait',
    alerts: [
      {
        name: 'RailEmailsUnknown',
        expr: 'max(rail_outreach_emails{state="unknown"}) > max(rail_outreach_emails{state="unknown"} offset 1h)',
        for: '1h',
        severity: 'warning',
        summary: 'More and more emails may have been sent without a proof of it.',
        remedy:
          'Look whether the mailboxes can be searched: rail_outreach_look_ups_total says how searches end, rail_inboxes which logins fail.',
      },
    ],
  },
  ['state'],
);
const oldest = new SharedGauge(
  'rail_outreach_oldest_seconds',
  {
    help: 'How long the oldest email could have been sent (due), has been sending (sending), or how long its search in the mailbox is overdue (unknown).',
    row: 'Outreach',
    title: 'Oldest email that waits',
    alerts: [
      {
        name: 'RailEmailsLate',
        expr: 'max(rail_outreach_oldest_seconds{state="due"}) > 300',
        for: '5m',
        severity: 'warning',
        summary: 'An email that nothing holds back has not been sent for five minutes.',
        remedy:
          'Look whether workers run, for jobs of recruitment/send_from_inbox that fail, and whether workers reach the SMTP servers.',
      },
      {
        name: 'RailLookUpsLate',
        expr: 'max(rail_outreach_oldest_seconds{state="unknown"}) > 900',
        for: '5m',
        severity: 'warning',
        summary: 'The search for an email that may have been sent is overdue by more than 15 minutes.',
        remedy: 'Look for jobs of recruitment/read_mailbox that fail, and whether workers reach the IMAP servers.',
      },
    ],
  },
  ['state'],
);
const inboxes = new SharedGauge(
  'rail_inboxes',
  {
    help: 'Inboxes, by state: connected, or why they are not: auth_failed, connection_failed, disabled.',
    row: 'Outreach',
    title: 'Inboxes',
    alerts: [
      {
        name: 'RailInboxDisconnected',
        expr: 'sum(max by (state) (rail_inboxes{state=~"auth_failed|connection_failed"})) > sum(max by (state) (rail_inboxes{state=~"auth_failed|connection_failed"} offset 1h))',
        for: '10m',
        severity: 'warning',
        summary: 'An inbox cannot be logged in to any more: its campaigns do not send.',
        remedy:
          "Run 'npx --no rail inbox list' and 'inbox test'; its owner has to renew the password or the permission.",
      },
    ],
  },
  ['state'],
);
const unread = new SharedGauge('rail_inbox_unread_seconds', {
  help: 'Time since the least recently read connected inbox was read. Replies and unsubscribes since then are not known.',
  row: 'Outreach',
  title: 'Longest unread inbox',
  alerts: [
    {
      name: 'RailInboxUnread',
      expr: 'max(rail_inbox_unread_seconds) > 900',
      for: '5m',
      severity: 'warning',
      summary: 'A connected inbox has not been read for more than 15 minutes.',
      remedy:
        'Look whether workers run and reach the IMAP servers: rail_inbox_connection_failures_total says how connections fail.',
    },
  ],
});

/** Emails that are due and not sent, inboxes that are disconnected, and mailboxes that are not read. */
export const outreachBacklog: Backlog = {
  gauges: [emails, oldest, inboxes, unread],
  read: async (database) => [...(await readEmails(database)), ...(await readInboxes(database))],
};

interface Waiting {
  state: string;
  size: number;
  /** Null: its age says nothing. */
  age: number | null;
}

async function readEmails(database: Database): Promise<Measured[]> {
  const waiting: Waiting[] = [];
  for (const statement of [ofSequences, ofPeople, sending, unknown])
    waiting.push(...(await run<Waiting>(database, statement)));
  const of = (state: string) => waiting.filter((one) => one.state === state);
  return ['due', 'held', 'sending', 'unknown'].flatMap((state) => [
    { gauge: emails, labels: { state }, value: of(state).reduce((sum, { size }) => sum + size, 0) },
    ...(state === 'held'
      ? []
      : [{ gauge: oldest, labels: { state }, value: Math.max(0, ...of(state).map(({ age }) => age ?? 0)) }]),
  ]);
}

/** Emails of campaigns that send, by what is first in each inbox: what is behind it goes when that has gone. */
const ofSequences = sql`
  with queue as materialized (
    select l.* from recruitment.outreach_queue l where l.due_at <= now()
  ), counted as (
    select l.waits_for is null as is_due
    from queue l
    cross join lateral (
      select from recruitment.sequence s
      where s.organization_id = l.organization_id and s.inbox_id = l.inbox_id and s.campaign_id = l.campaign_id and s.state = l.state
        and s.open and s.due_at <= now() and s.next_step < l.steps
    ) as s
    limit ${most_counted}
  )
  select 'due' as state, (count(*) filter (where c.is_due))::integer as size,
    (select extract(epoch from clock_timestamp() - min(l.free_since))::float8 from queue l where l.waits_for is null) as age
  from counted c
  union all
  select 'held', (count(*) filter (where not c.is_due))::integer, null from counted c`;

/** Invitations, answers and tests, which no limit holds. */
const ofPeople = sql`
  select 'due' as state, count(*)::integer as size,
    extract(epoch from clock_timestamp() - min(greatest(m.due_at, m.created_at)))::float8 as age
  from recruitment.message m
  where m.state = 'planned' and m.sequence_id is null and (m.due_at is null or m.due_at <= now())`;

const sending = sql`
  select 'sending' as state, count(*)::integer as size, extract(epoch from clock_timestamp() - min(m.claimed_at))::float8 as age
  from recruitment.message m
  where m.state = 'sending'`;

const unknown = sql`
  select 'unknown' as state, count(*)::integer as size, extract(epoch from clock_timestamp() - min(m.look_up_at))::float8 as age
  from recruitment.message m
  where m.state = 'unknown'`;

async function readInboxes(database: Database): Promise<Measured[]> {
  const counts = await run<{ state: string; size: number; unread: number | null }>(
    database,
    sql`
      select s.state, count(i.id)::integer as size,
        extract(epoch from clock_timestamp() - min(greatest(i.imap_last_seen_at, i.connected_at)))::float8 as unread
      from unnest(array['connected', 'auth_failed', 'connection_failed', 'disabled']) as s (state)
      left join recruitment.inbox i on i.deleted_at is null and coalesce(i.disconnected_reason, 'connected') = s.state
      group by s.state`,
  );
  const longest = counts.find(({ state }) => state === 'connected')?.unread ?? 0;
  return [
    ...counts.map(({ state, size }) => ({ gauge: inboxes, labels: { state }, value: size })),
    { gauge: unread, labels: {}, value: Math.max(0, longest) },
  ];
}
