/** Emails that may have been sent, and the copies of those that were: what the mailbox says of them. */
import sql from 'sql-template-tag';
import type { WorkerContext } from '../../core/jobs/worker_context.ts';
import { type Tx, transaction } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { composed, draftsOf } from './letter.ts';
import { type Mailbox, openMailbox } from './mailbox.ts';
import { lookedUp } from './metrics.ts';
import { recordEnds } from './record_sent.ts';
import { isToCopy, type LaneOf } from './wake.ts';

interface Doubtful {
  id: string;
  rfc_message_id: string;
  claimed_at: string;
}

/**
 * Finds out about an email that may have been sent: "look for the Message-ID in the Sent folder and in bounces; found → sent; else unknown, which
 * counts as sent, is never resent, and tells message.sent only once proof turns it sent".
 */
export async function lookUp(context: WorkerContext, lane: LaneOf, message_id: string): Promise<void> {
  const within = <T>(work: (tx: Tx) => Promise<T>) =>
    transaction(context.store, { organization_id: lane.organization_id, request_id: null }, work);
  const message = await within((tx) =>
    tx.maybe<Doubtful>(
      sql`select t.id, t.rfc_message_id, t.claimed_at from recruitment.message t where ${tenant(tx)} and t.id = ${message_id}`,
    ),
  );
  if (!message) return;
  const proof = await withMailbox(context, lane, (mailbox) => proofOf(mailbox, message));
  lookedUp(proof === undefined ? 'unreadable' : proof.is_sent ? 'found' : 'missing');
  await within(async (tx) => {
    await recordEnds(tx, [{ message_id, as: proof?.is_sent ? 'sent' : 'unknown' }]);
    await rememberId(tx, message, proof?.copy);
  });
}

type Copy = Awaited<ReturnType<Mailbox['copyOf']>>;

async function proofOf(
  mailbox: Mailbox,
  { rfc_message_id, claimed_at }: Doubtful,
): Promise<{ is_sent: boolean; copy: Copy }> {
  const copy = await mailbox.copyOf(rfc_message_id);
  const is_sent = copy !== undefined || (await mailbox.isNamedSince(rfc_message_id, new Date(claimed_at)));
  return { is_sent, copy };
}

/** The provider has written another Message-ID: answers and bounces name that. */
async function rememberId(tx: Tx, { id, rfc_message_id }: Doubtful, copy: Copy): Promise<void> {
  const other = copy?.message_id ?? rfc_message_id;
  if (other === rfc_message_id) return;
  tx.atCommit(sql`
    update recruitment.message t set other_message_ids = array_append(t.other_message_ids, ${other})
    where ${tenant(tx)} and t.id = ${id} and not ${other} = any(t.other_message_ids)`);
}

/** A mailbox that cannot be read is none: the sweep looks again. What watches it tells when that lasts. */
async function withMailbox<T>(
  context: WorkerContext,
  lane: LaneOf,
  work: (mailbox: Mailbox) => Promise<T>,
): Promise<T | undefined> {
  let mailbox: Mailbox | undefined;
  try {
    mailbox = await openMailbox(lane, context);
    return await work(mailbox);
  } catch (error) {
    context.log.debug(
      { inbox_id: lane.inbox_id, code: (error as { code?: string }).code },
      'a mailbox could not be searched',
    );
    return undefined;
  } finally {
    mailbox?.close();
  }
}

/** The proof may come late: it is looked for again after 5 minutes, 1, 6 and 24 hours. */
const waits_s = [3_600, 6 * 3_600, 24 * 3_600];
const most_copies = 100;

interface Copied extends Doubtful {
  sent_at: string;
}

/** Looks for the emails of an inbox that may have been sent, and adds the copies that its Sent folder lacks. */
export async function tendMailbox(context: WorkerContext, lane: LaneOf): Promise<void> {
  const { store, services } = context;
  const within = <T>(work: (tx: Tx) => Promise<T>) =>
    transaction(store, { organization_id: lane.organization_id, request_id: null }, work);
  const { doubtful, to_copy } = await within(async (tx) => ({
    doubtful: await tx.all<Doubtful>(sql`
      select t.id, t.rfc_message_id, t.claimed_at from recruitment.message t
      where ${tenant(tx)} and t.inbox_id = ${lane.inbox_id} and t.look_up_at <= ${tx.now}::timestamptz and t.state = 'unknown' limit ${most_copies}`),
    to_copy: await tx.all<Copied>(sql`
      select t.id, t.rfc_message_id, t.claimed_at, t.sent_at from recruitment.message t
      where ${tenant(tx)} and t.inbox_id = ${lane.inbox_id} and t.direction = 'outbound' and t.copied_at is null and ${isToCopy(tx.now)}
      order by t.sent_at limit ${most_copies}`),
  }));
  await withMailbox(context, lane, async (mailbox) => {
    for (const message of doubtful) {
      const { is_sent, copy } = await proofOf(mailbox, message);
      lookedUp(is_sent ? 'found' : 'missing');
      await within<unknown>(async (tx) => {
        if (!is_sent) return lookLater(tx, message.id);
        await recordEnds(tx, [{ message_id: message.id, as: 'sent' }]);
        return rememberId(tx, message, copy);
      });
    }
    for (const message of to_copy) {
      const copy = await mailbox.copyOf(message.rfc_message_id);
      if (!copy) {
        const [draft] = await within((tx) => draftsOf(tx, services.vault, services.base_url, [message.id]));
        if (draft) await mailbox.addCopy((await composed(draft)).content, new Date(message.sent_at));
      }
      await within(async (tx) => {
        await rememberId(tx, message, copy);
        await tx.all(
          sql`update recruitment.message t set copied_at = ${tx.now}::timestamptz where ${tenant(tx)} and t.id = ${message.id}`,
        );
      });
    }
  });
}

const lookLater = (tx: Tx, message_id: string): Promise<object[]> =>
  tx.all(sql`
    update recruitment.message t set
      look_ups = t.look_ups + 1,
      look_up_at = ${tx.now}::timestamptz + make_interval(secs => (${waits_s}::integer[])[t.look_ups + 1])
    where ${tenant(tx)} and t.id = ${message_id}`);
