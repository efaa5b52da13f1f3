import sql from 'sql-template-tag';
import { counted } from '../core/doctor/amounts.ts';
import { service_opening } from '../core/jobs/task.ts';
import { causeOf, type Hold, heldSince, holdText, restoredHold } from '../core/metrics/hold.ts';
import { run } from '../core/postgres/database.ts';
import { whyNotReady } from '../core/postgres/migrate.ts';
import { type Tx, transaction } from '../core/postgres/transaction.ts';
import { lookBackTo } from '../recruitment/sending/look_back.ts';
import { answer, withStore } from './command.ts';

interface ResumeOptions {
  dryRun?: boolean;
  payoutsCompared?: boolean;
  nothingLost?: boolean;
  json?: boolean;
}

/** The number of waiting items, and the age of the oldest. */
interface Waiting {
  count: number;
  oldest: string | null;
}

interface Report {
  held: Hold | null;
  resumed: boolean;
  /** Emails of campaigns and of people that are due, and inboxes that read their Sent folder first. */
  emails: Waiting;
  inboxes: number;
  /** Rail's own. */
  notifications: Waiting;
  /** Sent to a provider, without an outcome yet. */
  payouts_in_progress: Waiting;
  payouts_pending: Waiting;
  /** True if payouts created since the restore may be sent. */
  payouts_compared: boolean;
}

/** `rail hold`: as a restore does that is found. */
export const hold = ({ json }: { json?: boolean }): Promise<void> =>
  withStore(async ({ store }) => {
    await run(store.database, sql`select core.hold_for('an operator')::text`);
    const held = (await restoredHold(store.database)) as Hold;
    answer(held, { json, lines: [holdText(held)] });
  });

/** `rail resume`: says what is held, and lets it go on. */
export const resume = ({ dryRun, payoutsCompared = false, nothingLost = false, json }: ResumeOptions): Promise<void> =>
  withStore(async ({ store }) => {
    const missing = await whyNotReady(store.database);
    if (missing !== undefined) throw new Error(missing);
    // Whoever restored it and asks at once need not wait for a process to notice.
    await run(store.database, sql`select from core.beat(null)`);
    const held = await restoredHold(store.database);
    const report = await transaction(store, service_opening, async (tx) => {
      const waiting = await readWaiting(tx);
      if (!dryRun) await letGo(tx, held, { payoutsCompared, nothingLost });
      const { payouts_compared } = await tx.one<{ payouts_compared: boolean }>(
        sql`select c.payouts_compared from core.cluster c`,
      );
      return { held: held ?? null, resumed: !dryRun && held !== undefined, ...waiting, payouts_compared };
    });
    answer(report, { json, lines: linesOf(report, { dryRun, nothingLost }) });
  });

async function letGo(
  tx: Tx,
  held: Hold | undefined,
  { payoutsCompared, nothingLost }: { payoutsCompared: boolean; nothingLost: boolean },
): Promise<void> {
  await tx.all(sql`select core.resume(${nothingLost}::boolean, ${payoutsCompared}::boolean)::text`);
  await tx.all(
    sql`update program.payout t set held_reason = null, held_until = null where t.held_reason = 'service_restored'`,
  );
  if (held && !nothingLost) await lookBackTo(tx, held.state_at);
}

const readWaiting = (tx: Tx): Promise<Omit<Report, 'held' | 'resumed' | 'payouts_compared'>> =>
  tx.one(sql`
    select
      (
        select json_build_object('count', count(*), 'oldest', min(x.due_at))
        from (
          select s.due_at from recruitment.sequence s
          join recruitment.campaign c on c.organization_id = s.organization_id and c.id = s.campaign_id and c.state = 'sending'
          where s.open and s.due_at <= now() and s.next_step < jsonb_array_length(c.steps)
          union all
          select coalesce(m.due_at, m.created_at) from recruitment.message m
          where m.state = 'planned' and m.sequence_id is null and (m.due_at is null or m.due_at <= now())
        ) as x
      ) as emails,
      (select count(*) from recruitment.inbox i where i.deleted_at is null) as inboxes,
      (
        select json_build_object('count', count(*), 'oldest', min(m.created_at)) from core.outgoing_mail m
        where m.sent_at is null and m.error is null
      ) as notifications,
      (
        select json_build_object('count', count(*), 'oldest', min(a.began_at)) from program.payout_attempt a
        where a.status in ('prepared', 'in_doubt')
      ) as payouts_in_progress,
      (
        select json_build_object('count', count(*), 'oldest', min(p.due_at)) from program.payout p
        where p.status = 'pending' and p.deleted_at is null and p.due_at <= now()
      ) as payouts_pending`);

function linesOf(report: Report, { dryRun, nothingLost }: Pick<ResumeOptions, 'dryRun' | 'nothingLost'>): string[] {
  const { held, resumed, emails, inboxes, notifications, payouts_in_progress, payouts_pending, payouts_compared } =
    report;
  return [
    heldLine(report),
    `Emails due: ${ofWaiting(emails)}, in ${counted(inboxes, 'inbox', 'inboxes')}. Notifications queued: ${ofWaiting(notifications)}.`,
    `Payouts sent to a provider, without an outcome: ${ofWaiting(payouts_in_progress)}. Payouts pending and due: ${ofWaiting(payouts_pending)}.`,
    ...(resumed ? [nothingLost ? 'Emails and payouts go on.' : looked_up] : []),
    ...(held && dryRun ? [`Run 'npx --no rail resume' to let them go on. ${looked_up_first}`] : []),
    ...(payouts_compared || (held && dryRun) ? [] : [to_compare]),
  ];
}

function heldLine({ held, resumed }: Report): string {
  if (!held) return 'Nothing is held.';
  return resumed ? `Emails and payouts were held since ${held.since}: ${causeOf(held)}.` : heldSince(held);
}

const ofWaiting = ({ count, oldest }: Waiting): string => (count === 0 ? '0' : `${count} (oldest ${oldest})`);

const looked_up_first =
  'What may have been sent before is looked up first: emails in the Sent folder of each inbox, payouts at their provider. Notifications that are older than the restore are not sent.';
const looked_up = `Emails and payouts go on. ${looked_up_first}`;
const to_compare =
  "Payouts that are created from now on stay held if they pay what was due before the restore. Compare the payouts at your providers since the restored state with 'npx --no rail payouts status', mark as paid what Rail does not know to be paid, and run 'npx --no rail resume --payouts-compared'.";
