/**
 * After a restore to an older state (`core.hold()`), before the next email of an inbox: what was sent from it since that state is found in its Sent folder,
 * by the key of its step or the id of its message. When its turn comes again it is recorded as sent under the id that it had, so that answers and links
 * find it, and what came in since then is read again.
 *
 * - A Sent folder that cannot be read keeps the inbox waiting: it is tried each minute.
 * - Where a server makes no copies itself, those of the last minutes may be missing: as many as could be sent in that time are `unknown`, in the order
 *   in which they would go.
 */
import sql from 'sql-template-tag';
import type { WorkerContext } from '../../core/jobs/worker_context.ts';
import { type Tx, transaction } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { stepKey } from '../composing/mail.ts';
import { readAgain } from '../inboxes/connection.ts';
import type { InboxKey } from '../inboxes/inbox.ts';
import { type Candidate, lockCandidates } from './candidates.ts';
import { lockQueues, sendingCampaigns } from './limits.ts';
import { type FoundCopy, withMailbox } from './look_up.ts';

/** An email that was sent before. */
export interface Before {
  /** The id that its message had. Null: nobody can tell whether it was sent. */
  message_id: string | null;
  sent_at: string | null;
}

/** A step of no prospect is one of an erased one, and is not sent. */
export const keyOf = ({ campaign_id, prospect_id, next_step }: Candidate): string =>
  stepKey({ campaign_id, prospect_id: prospect_id ?? '', step_index: next_step });

/** Returns the emails that were sent before, by these keys. */
export async function sentBefore(tx: Tx, keys: string[]): Promise<Map<string, Before>> {
  if (keys.length === 0) return new Map();
  const rows = await tx.all<Before & { key: string }>(
    sql`select t.key, t.message_id, t.sent_at from recruitment.sent_before t where ${tenant(tx)} and t.key = any(${keys})`,
  );
  return new Map(rows.map(({ key, ...before }) => [key, before]));
}

/** Servers count days by other clocks than ours. */
const margin_ms = 86_400_000;
/** The copy of an email is made within this time: see `wakeMailboxes`. */
const copied_within_s = 180;

/** @returns whether the inbox may send again */
export async function lookBack(context: WorkerContext, queue: InboxKey, since: string): Promise<boolean> {
  const { organization_id, inbox_id } = queue;
  const copies = await withMailbox(context, queue, (mailbox) =>
    mailbox.sentSince(new Date(Date.parse(since) - margin_ms)),
  );
  if (!copies) {
    context.log.warn(
      { organization_id, inbox_id },
      'the database was restored, and the Sent folder of an inbox cannot be read: it sends nothing until it can',
    );
    return false;
  }
  await transaction(context.store, { organization_id, request_id: null }, async (tx) => {
    await keepCopies(tx, copies);
    await doubtLast(tx, inbox_id);
    await tx.all(sql`update recruitment.inbox t set looks_back_to = null where ${tenant(tx)} and t.id = ${inbox_id}`);
  });
  context.log.info({ organization_id, inbox_id, emails: copies.length }, 'the Sent folder of an inbox was read');
  return true;
}

/** Stores the found emails, but for those that are known to be sent, or given up: they are not sent again anyway. */
const keepCopies = (tx: Tx, copies: FoundCopy[]): Promise<object[]> =>
  tx.all(sql`
    insert into recruitment.sent_before (organization_id, key, message_id, sent_at, created_at)
    select distinct on (1, 2) ${tx.organization_id}, coalesce(g.step_key, g.message_id), g.message_id, g.sent_at, ${tx.now}::timestamptz
    from json_to_recordset(${JSON.stringify(copies)}::json) as g (message_id text, step_key text, sent_at timestamptz)
    where not exists (
      select from recruitment.message m
      where m.organization_id = ${tx.organization_id} and m.id = g.message_id and m.state not in ('planned', 'sending', 'cancelled')
    )
    order by 1, 2, g.sent_at
    on conflict (organization_id, key) do update set message_id = excluded.message_id, sent_at = excluded.sent_at`);

async function doubtLast(tx: Tx, inbox_id: string): Promise<void> {
  const { adds_copies, min_gap_s } = await tx.one<{ adds_copies: boolean; min_gap_s: number }>(
    sql`select t.adds_copies, t.min_gap_s from recruitment.inbox t where ${tenant(tx)} and t.id = ${inbox_id}`,
  );
  if (!adds_copies) return;
  const most = 1 + Math.floor(copied_within_s / Math.max(1, min_gap_s));
  const campaigns = await sendingCampaigns(tx, new Date(tx.now));
  const [queue] = await lockQueues(tx, [inbox_id]);
  const sequences = await lockCandidates(tx, [inbox_id], campaigns, most);
  const keys = [...(queue?.planned ? [queue.planned] : []), ...sequences.map(keyOf)];
  await tx.all(sql`
    insert into recruitment.sent_before (organization_id, key, created_at)
    select ${tx.organization_id}, g.key, ${tx.now}::timestamptz from unnest(${keys}::text[]) as g (key)
    on conflict do nothing`);
}

/** Has the mailbox read again from a time on: what answers an email that was forgotten was passed over. What is kept already is known. */
export const readAgainSince = (
  { store }: Pick<WorkerContext, 'store'>,
  { organization_id, inbox_id }: InboxKey,
  since: string,
): Promise<unknown> =>
  transaction(store, { organization_id, request_id: null }, async (tx) => {
    await tx.all(sql`
      update recruitment.inbox_folder t set uid_validity = -1, begun_uid = null, tries = 0, updated_at = least(t.updated_at, ${since}::timestamptz)
      where ${tenant(tx)} and t.inbox_id = ${inbox_id}`);
    await readAgain(tx, inbox_id);
  });

/** Flags the inboxes of all organizations: a restore has forgotten what they sent since then. @param since null: nothing was lost */
export const lookBackTo = (tx: Tx, since: string | null): Promise<object[]> =>
  tx.all(sql`
    update recruitment.inbox t set looks_back_to = least(t.looks_back_to, ${since}::timestamptz)
    where t.deleted_at is null and ${since}::timestamptz is not null`);
