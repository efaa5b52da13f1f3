/** The metrics of the mail that a worker reads. */
import { counter, gauge, histogram } from '../../core/metrics/registry.ts';
import type { ReplyKind } from '../sequences/message.ts';

const connections = { open: 0, waiting: 0 };

gauge(
  'rail_inbox_connections',
  {
    help: 'Inboxes that this worker reads: open, or waiting for a connection.',
    row: 'Outreach',
    title: 'Inboxes that workers read',
    draws: 'sum by (state) (rail_inbox_connections)',
  },
  ['state'],
  (shown) => {
    shown.set({ state: 'open' }, connections.open);
    shown.set({ state: 'waiting' }, connections.waiting);
  },
);
const failures = counter(
  'rail_inbox_connection_failures_total',
  {
    help: 'IMAP connections that failed: the login was refused, the server could not be reached, or the connection was lost.',
    row: 'Outreach',
    title: 'IMAP connections that failed',
  },
  ['failure'],
);
const mails = counter(
  'rail_mails_read_total',
  {
    help: 'Emails read in inboxes, by kind. unrelated: no reply to an email that was sent; not stored. known: already read. forged: sender authentication failed; kept for a person to check. set_aside: reading failed; retried later. skipped: deleted, or failed too often.',
    row: 'Outreach',
    title: 'Emails read',
  },
  ['verdict'],
);
const replies = counter(
  'rail_replies_total',
  {
    help: 'Replies of prospects, by their kind: positive, question, not_now, negative, wrong_person, angry.',
    row: 'Outreach',
    title: 'Replies',
  },
  ['kind'],
);
const lag = histogram(
  'rail_mail_lag_seconds',
  {
    help: 'Time from the arrival of a reply in the mailbox, by the clock of its server, to the commit of its effects.',
    row: 'Outreach',
    title: 'Time until a reply has effect',
    alerts: [
      {
        name: 'RailRepliesLate',
        expr: 'histogram_quantile(0.95, sum by (le) (rate(rail_mail_lag_seconds_bucket[30m]))) > 60',
        for: '15m',
        severity: 'warning',
        summary: 'One reply in twenty takes effect more than a minute after it arrived.',
        remedy:
          'If rail_inbox_connections shows inboxes that wait, add workers; else compare the clocks of the mail servers.',
      },
    ],
  },
  [0.25, 0.5, 1, 2, 3, 5, 10, 30, 60, 300, 3_600],
);

export type Failure = 'refused' | 'unreachable' | 'lost';

export const connectionFailed = (failure: Failure): void => failures.inc({ failure });
export const connectionsAre = (open: number, waiting: number): void =>
  void Object.assign(connections, { open, waiting });

export type Verdict =
  | 'own'
  | 'complaint'
  | 'bounce'
  | 'auto_reply'
  | 'unsubscribe'
  | 'reply'
  | 'forged'
  | 'unrelated'
  | 'known'
  | 'set_aside'
  | 'skipped';

/** @param lag_ms of an answer; undefined where it has no event, or it was read again */
export function mailRead(verdict: Verdict, lag_ms?: number): void {
  mails.inc({ verdict });
  if (lag_ms !== undefined) lag.observe(Math.max(0, lag_ms) / 1_000);
}

export const replyRead = (kind: ReplyKind): void => replies.inc({ kind });
