import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { id, objectName, timestamp } from '../../core/values/fields.ts';
import { base_path } from '../events/base_path.ts';
import { dailyLimit } from '../outreach/windows/limits.ts';
import { dayIn } from '../outreach/windows/local_time.ts';
import { type Inbox, inboxes } from './inbox.ts';
import { lookUpSenderPolicy } from './sender_policy/sender_policy.ts';
import { verdict } from './sender_policy/verdict.ts';

const count = z.int().min(0);

const InboxHealth = z.object({
  object: objectName('inbox_health'),
  inbox_id: id('fin'),
  sent_today: count.describe(
    "The emails that were sent today, in the inbox's `timezone`. Those whose outcome is unknown count.",
  ),
  limit_today: count.describe('The most emails of today: `daily_limit`, or less while `ramp` grows.'),
  bounce_bps_28d: count.describe(
    'The share of the emails of the last 28 days that bounced, in basis points: 100 is 1%. 0 if none were sent.',
  ),
  complaints_28d: count.describe('The complaints about spam that providers reported in the last 28 days.'),
  spf: verdict.describe('Whether the SPF record of the domain lets the SMTP server of the inbox send.'),
  dkim: verdict.describe('Whether the domain has a key that the signatures of its emails verify with.'),
  dmarc: verdict.describe('Whether the domain, or the domain above it, has a DMARC policy.'),
  imap_last_seen: timestamp.nullable().describe('When the inbox was last read. Null if it was not read yet.'),
  queue: count.describe('The emails that are due and not sent yet.'),
});

export const inboxHealthOperations: Operation[] = [
  operation({
    name: 'inboxes.health',
    title: 'Get the health of an inbox',
    method: 'GET',
    path: `${base_path}/inboxes/{id}/health`,
    scope: 'inboxes:read',
    summary: 'Gets what an inbox sent, what came back, and whether DNS lets it send.',
    doc: 'SPF, DKIM and DMARC are looked up in DNS, for up to 5 seconds. DNS answers are kept for 30 seconds.',
    params: idParams,
    reply: InboxHealth,
    async ask({ params, services, read }) {
      const { email, smtp } = await read((tx) => inboxes.get(tx, params.id));
      return lookUpSenderPolicy(domainOf(email), smtp.host, services.name_servers);
    },
    async run({ tx, params, asked: policy }) {
      const inbox = await inboxes.get(tx, params.id);
      return { object: 'inbox_health' as const, inbox_id: inbox.id, ...(await countsOf(tx, inbox)), ...policy };
    },
  }),
];

const domainOf = (email: string): string => email.slice(email.lastIndexOf('@') + 1).toLowerCase();

async function countsOf(tx: Tx, inbox: Inbox) {
  const today = dayIn(inbox.timezone, new Date(tx.now));
  const { days_that_sent_before, ...counts } = await tx.one<Counts>(sql`
    with day as (
      select d.day, d.sent
      from recruitment.inbox_day d
      where d.organization_id = ${tx.organization_id} and d.inbox_id = ${inbox.id} and d.sent > 0
    ), message as (
      select m.direction, m.purpose, m.state, m.sent_at, m.bounced_at, m.received_at
      from recruitment.message m
      where m.organization_id = ${tx.organization_id} and m.inbox_id = ${inbox.id}
    ), sent as (
      select count(*) as sent, count(m.bounced_at) as bounced
      from message m
      where m.direction = 'outbound' and m.sent_at > ${tx.now}::timestamptz - interval '28 days'
    )
    select
      coalesce((select d.sent from day d where d.day = ${today}::date), 0) as sent_today,
      (select count(*)::integer from day d where d.day < ${today}::date) as days_that_sent_before,
      (select coalesce(round(10000.0 * s.bounced / nullif(s.sent, 0)), 0)::integer from sent s) as bounce_bps_28d,
      (
        select count(*)::integer
        from message m
        where m.purpose = 'complaint' and m.received_at > ${tx.now}::timestamptz - interval '28 days'
      ) as complaints_28d,
      (select i.imap_last_seen_at from recruitment.inbox i where i.organization_id = ${tx.organization_id} and i.id = ${inbox.id})
        as imap_last_seen,
      (select count(*)::integer from message m where m.purpose <> 'sequence' and m.state in ('planned', 'sending')) + (
        select count(*)::integer
        from recruitment.sequence s
        join recruitment.campaign c on c.organization_id = s.organization_id and c.id = s.campaign_id and c.state = 'sending'
        where s.organization_id = ${tx.organization_id} and s.inbox_id = ${inbox.id} and s.open and s.due_at <= ${tx.now}
          and not s.paused_by_user and (s.paused_until is null or s.paused_until <= ${tx.now})
      ) as queue`);
  return { ...counts, limit_today: dailyLimit(inbox, days_that_sent_before) };
}

interface Counts {
  sent_today: number;
  days_that_sent_before: number;
  bounce_bps_28d: number;
  complaints_28d: number;
  imap_last_seen: string | null;
  queue: number;
}
