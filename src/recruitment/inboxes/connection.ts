import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import type { Values } from '../../core/postgres/write.ts';
import { event } from '../events/event.ts';
import { type DisconnectedReason, type Inbox, inboxes } from './inbox.ts';

/** Connects an inbox whose login was tried. Emits `inbox.connected`. The caller holds the inbox's row lock. */
export async function connect(tx: Tx, { id: inbox_id }: Inbox, values: Values = {}): Promise<Inbox> {
  const connected = await inboxes.update(tx, inbox_id, {
    ...{ status: 'connected', disconnected_reason: null, disconnected_at: null, connected_at: tx.now },
    ...values,
  });
  await readSoon(tx, inbox_id);
  tx.emit(event('inbox.connected', tx.organization_id, { inbox_id, occurred_at: tx.now }));
  return connected;
}

/** A login that was tried just now ends the wait after those that failed: a worker reads the inbox within a second. */
export const readSoon = (tx: Tx, inbox_id: string): Promise<object[]> =>
  tx.all(sql`
    update recruitment.inbox_reader r
    set next_try_at = ${tx.now}::timestamptz, refused = 0, failed = 0, unreachable_since = null, login_answer = null
    where r.organization_id = ${tx.organization_id} and r.inbox_id = ${inbox_id}`);

/** Ends the lease of the inbox's reader, so that it is read over a new connection. */
export const readAgain = (tx: Tx, inbox_id: string): Promise<object[]> =>
  tx.all(sql`
    update recruitment.inbox_reader r set worker_id = null
    where r.organization_id = ${tx.organization_id} and r.inbox_id = ${inbox_id}`);

/**
 * The mails of another mailbox have numbers of their own: how far the one before was read says nothing of it, and what was set aside of that is not in
 * it.
 */
export async function readAnew(tx: Tx, inbox_id: string): Promise<void> {
  const of_inbox = sql`t.organization_id = ${tx.organization_id} and t.inbox_id = ${inbox_id}`;
  await readAgain(tx, inbox_id);
  await tx.all(sql`delete from recruitment.inbox_folder t where ${of_inbox}`);
  await tx.all(sql`delete from recruitment.mail_set_aside t where ${of_inbox}`);
}

/** The counts that disconnecting an inbox pauses. */
interface Paused {
  paused_sequences: number;
  paused_campaigns: number;
}

/** Disconnects a connected inbox. Emits `inbox.disconnected`. The caller holds the inbox's row lock. */
export async function disconnect(
  tx: Tx,
  { id: inbox_id }: Inbox,
  reason: DisconnectedReason,
  paused: Paused,
): Promise<Inbox> {
  const disconnected = await inboxes.update(tx, inbox_id, {
    ...{ status: 'disconnected', disconnected_reason: reason, disconnected_at: tx.now },
  });
  tx.emit(event('inbox.disconnected', tx.organization_id, { inbox_id, reason, ...paused, occurred_at: tx.now }));
  return disconnected;
}
