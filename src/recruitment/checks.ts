/** The checks of `rail doctor` on inboxes, emails and runs. */
import sql from 'sql-template-tag';
import { ago, counted, named } from '../core/doctor/amounts.ts';
import { check, ok, rowOf, rowsOf, warning } from '../core/doctor/check.ts';
import { lateness } from '../core/doctor/queue.ts';

const unread_s = 900;
const unknown_s = 900;

export const checks = [
  check({
    name: 'recruitment/inboxes',
    read: rowsOf<{ id: string; organization_id: string; reason: string }>(sql`
      select i.id, i.organization_id, i.disconnected_reason as reason
      from recruitment.inbox i
      where i.deleted_at is null and i.disconnected_reason in ('auth_failed', 'connection_failed')
      order by i.disconnected_at desc`),
    assess: (found) =>
      found.length === 0
        ? ok('All inboxes can log in, but those that were disabled.')
        : warning(
            `${counted(found.length, 'inbox is', 'inboxes are')} disconnected: ${named(found.map(({ id, organization_id, reason }) => `${id} of ${organization_id} (${reason})`))}.`,
            "Their owners were emailed. 'npx --no rail inbox test ID' tries the logins.",
          ),
  }),
  check({
    name: 'recruitment/replies',
    read: rowsOf<{ id: string; seconds: number }>(sql`
      select i.id, extract(epoch from now() - greatest(i.imap_last_seen_at, i.connected_at))::float8 as seconds
      from recruitment.inbox i
      where i.status = 'connected' and i.deleted_at is null
        and greatest(i.imap_last_seen_at, i.connected_at) < now() - ${unread_s} * interval '1 second'
      order by 2 desc`),
    assess: (found) =>
      found.length === 0
        ? ok('All connected inboxes are read.')
        : warning(
            `Not read: ${named(found.map(({ id, seconds }) => `${id} for ${ago(seconds)}`))}. Replies since then are not known.`,
            "See service/workers. 'npx --no rail inbox test ID' tries the login.",
          ),
  }),
  check({
    name: 'recruitment/emails',
    read: rowOf<{ seconds: number | null }>(sql`
      select extract(epoch from now() - least(
        (select min(l.free_since) from recruitment.outreach_queue l where l.due_at <= now() and l.waits_for is null),
        (
          select min(greatest(m.due_at, m.created_at))
          from recruitment.message m
          where m.state = 'planned' and m.sequence_id is null and (m.due_at is null or m.due_at <= now())
        )
      ))::float8 as seconds`),
    assess: ({ seconds }) =>
      lateness(
        seconds,
        'No email of a campaign could be sent and is not.',
        (age) => `The oldest email that no limit holds back has waited for ${age}.`,
        "'npx --no rail campaign status' shows what campaigns wait for. See service/workers.",
      ),
  }),
  check({
    name: 'recruitment/emails_unknown',
    read: rowOf<{ emails: number; seconds: number | null }>(sql`
      select count(*)::int as emails, extract(epoch from now() - min(m.look_up_at))::float8 as seconds
      from recruitment.message m
      where m.state = 'unknown'`),
    assess({ emails, seconds }) {
      if (emails === 0) return ok('Of all emails it is known whether they were sent.');
      const text = `${counted(emails, 'email')} may have been sent, and ${emails === 1 ? 'was' : 'were'} not found in the mailbox.`;
      if ((seconds ?? 0) <= unknown_s) return ok(text);
      return warning(
        `${text} The search is late by ${ago(seconds ?? 0)}.`,
        'See recruitment/inboxes and service/workers.',
      );
    },
  }),
  check({
    name: 'recruitment/runs',
    read: rowsOf<{ id: string; seconds: number }>(sql`
      select r.id, extract(epoch from now() - r.created_at)::float8 as seconds
      from recruitment.run r
      where r.state in ('queued', 'running') and r.created_at < now() - interval '6 hours'
      union all
      select i.id, extract(epoch from now() - i.created_at)::float8
      from recruitment.import i
      where i.state in ('queued', 'running') and i.created_at < now() - interval '6 hours'
      order by 2 desc`),
    assess: (found) =>
      found.length === 0
        ? ok('No search, scan or import runs for long.')
        : warning(
            `Running: ${named(found.map(({ id, seconds }) => `${id} for ${ago(seconds)}`))}.`,
            "'npx --no rail jobs list --object ID' shows its jobs.",
          ),
  }),
];
