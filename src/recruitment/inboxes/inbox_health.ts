import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { domainOf, id, objectName, text, timestamp } from '../../core/values/fields.ts';
import { base_path } from '../events/base_path.ts';
import { isUnpaused } from '../sequences/sequence.ts';
import { dailyLimit, type Inbox, inboxes } from './inbox.ts';
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
    'The share of the emails of the last 28 days that bounced, in basis points: 100 is 1 %. 0 if none were sent.',
  ),
  blocked_28d: count.describe(
    'The emails that servers returned in the last 28 days because of what they say or who sends them. `bounce_bps_28d` counts them as well.',
  ),
  complaints_28d: count.describe('The complaints about spam that providers reported in the last 28 days.'),
  unknown_28d: count.describe(
    'The emails of the last 28 days that may not have been sent: the connection was lost at the end, and they were not found in the mailbox.',
  ),
  spf: verdict.describe('Whether the SPF record of the domain lets the SMTP server of the inbox send.'),
  dkim: verdict.describe('Whether the domain has a key that the signatures of its emails verify with.'),
  dmarc: verdict.describe('Whether the domain, or the domain above it, has a DMARC policy.'),
  imap_last_seen: timestamp.nullable().describe('When the inbox was last read. Null if it was not read yet.'),
  imap_answer: text
    .nullable()
    .describe(
      'What the IMAP server answered to the last login, where it failed. Null if it succeeded, or the server said nothing.',
    ),
  queue: count.describe('The emails that are due and not sent yet.'),
});

export const inboxHealthOperations: Operation[] = [
  operation({
    name: 'inboxes.health',
    title: 'Retrieve the health of an inbox',
    method: 'GET',
    path: `${base_path}/inboxes/{id}/health`,
    scope: 'inboxes:read',
    summary:
      'Retrieves the health of an inbox: what it sent today, its bounces and complaints, and SPF, DKIM and DMARC of its domain.',
    doc: 'SPF, DKIM and DMARC are looked up in DNS, for up to 5 seconds. DNS answers are kept for 30 seconds.',
    params: idParams,
    reply: InboxHealth,
    async ask({ params, services, read }) {
      const { lookUpSenderPolicy } = await import('./sender_policy/sender_policy.ts');
      const { email, smtp } = await read((tx) => inboxes.get(tx, params.id));
      return lookUpSenderPolicy(domainOf(email).toLowerCase(), smtp.host, services.name_servers);
    },
    async run({ tx, params, asked: policy }) {
      const inbox = await inboxes.get(tx, params.id);
      return { object: 'inbox_health' as const, inbox_id: inbox.id, ...(await countsOf(tx, inbox)), ...policy };
    },
  }),
];

/** Days are counted as sending counts them: by Postgres, in the zone of the inbox. */
async function countsOf(tx: Tx, inbox: Inbox) {
  const now = sql`${tx.now}::timestamptz`;
  const { days_that_sent_before, ...counts } = await tx.one<Counts>(sql`
    with inbox as (
      select i.organization_id, i.id, i.imap_last_seen_at, (${now} at time zone core.zone(i.timezone))::date as today
      from recruitment.inbox i
      where i.organization_id = ${tx.organization_id} and i.id = ${inbox.id}
    ), day as (
      select d.day, d.sent
      from inbox i
      join recruitment.inbox_day d on d.organization_id = i.organization_id and d.inbox_id = i.id and d.sent > 0
    ), sent as (
      select count(*) as emails, count(m.bounced_at) as bounced
      from inbox i
      join recruitment.message m on m.organization_id = i.organization_id and m.inbox_id = i.id
      where m.direction = 'outbound' and m.sent_at > ${now} - interval '28 days'
    ), blocked as (
      select m.id
      from inbox i
      join recruitment.message m on m.organization_id = i.organization_id and m.inbox_id = i.id
      where m.bounced_at > ${now} - interval '28 days' and m.bounce_reason = 'blocked'
    ), complaint as (
      select m.id
      from inbox i
      join recruitment.message m on m.organization_id = i.organization_id and m.inbox_id = i.id
      where m.purpose = 'complaint' and not m.needs_review and m.received_at > ${now} - interval '28 days'
    ), unknown as (
      select m.id
      from inbox i
      join recruitment.message m on m.organization_id = i.organization_id and m.inbox_id = i.id
      where m.state = 'unknown' and m.claimed_at > ${now} - interval '28 days'
    ), due_message as (
      select m.id
      from inbox i
      join recruitment.message m on m.organization_id = i.organization_id and m.inbox_id = i.id
      where m.sequence_id is null and (m.state = 'sending' or (m.state = 'planned' and (m.due_at is null or m.due_at <= ${now})))
    ), due_sequence as (
      select s.id
      from inbox i
      join recruitment.sequence s on s.organization_id = i.organization_id and s.inbox_id = i.id and s.open and s.due_at <= ${now}
      join recruitment.campaign c on c.organization_id = s.organization_id and c.id = s.campaign_id and c.state = 'sending'
      where s.next_step < jsonb_array_length(c.steps) and ${isUnpaused(sql`s`, tx.now)}
    )
    select i.imap_last_seen_at as imap_last_seen,
      (select r.login_answer from recruitment.inbox_reader r where r.organization_id = i.organization_id and r.inbox_id = i.id)
        as imap_answer,
      coalesce(round(10000.0 * s.bounced / nullif(s.emails, 0)), 0)::integer as bounce_bps_28d,
      (select count(*)::integer from blocked) as blocked_28d,
      (select count(*)::integer from complaint) as complaints_28d,
      (select count(*)::integer from unknown) as unknown_28d,
      coalesce((select d.sent from day d where d.day = i.today), 0) as sent_today,
      (select count(*)::integer from day d where d.day < i.today) as days_that_sent_before,
      (select count(*)::integer from due_message) + (select count(*)::integer from due_sequence) as queue
    from inbox i
    cross join sent s`);
  return { ...counts, limit_today: dailyLimit(inbox, days_that_sent_before) };
}

interface Counts {
  sent_today: number;
  days_that_sent_before: number;
  bounce_bps_28d: number;
  blocked_28d: number;
  complaints_28d: number;
  unknown_28d: number;
  imap_last_seen: string | null;
  imap_answer: string | null;
  queue: number;
}
