/**
 * Decides what follows from a connection that failed: a wait that grows, and after a while the end of the inbox.
 *
 * - A connection waits 1 s, doubled up to a minute; a refused login one minute, doubled up to four. The third refusal whose code says that the login is wrong
 *   disconnects the inbox, and so do 15 minutes without a login. What the server said to it is logged, and shown by `health`.
 * - A server that accepts logins and drops connections is tried for as long as it takes.
 */
import sql from 'sql-template-tag';
import { type Store, transaction } from '../../core/postgres/transaction.ts';
import { disconnectInbox } from '../campaigns/inbox_connection.ts';
import type { DisconnectedReason, InboxKey } from '../inboxes/inbox.ts';
import { LoginRefused } from '../inboxes/mail_server.ts';
import { connectionFailed, type Failure } from './metrics.ts';

const most_refused = 3;
const refused_wait_s = 30;
const most_refused_wait_s = 240;
const most_wait_s = 60;
const most_unreachable = '15 minutes';
/** A connection that lasted was good: the next one does not wait longer than the first. */
const lasting_ms = 60_000;

/** The kind of a failure. In doubt: a login was refused without a code that says that it is wrong; it worked before, and may again. */
type Kind = Failure | 'in_doubt';

/** Classifies an error that came before or after a login succeeded. */
export function failureOf(error: unknown, logged_in: boolean): Kind {
  if (logged_in) return 'lost';
  if (error instanceof LoginRefused) return error.is_certain ? 'refused' : 'in_doubt';
  return (error as { code?: unknown }).code === 'oauth_failed' ? 'refused' : 'unreachable';
}

/**
 * Gives the inbox back, to be tried again after a wait by any worker. The third login that is refused for certain disconnects it, and so does a
 * server that took no login for 15 minutes.
 * @param lasted_ms how long the connection was open
 * @param said what the server answered to the login
 */
export function giveBack(
  store: Store,
  { organization_id, inbox_id }: InboxKey,
  worker_id: string,
  failure: Kind,
  lasted_ms: number,
  said: string | undefined,
): Promise<void> {
  connectionFailed(failure === 'in_doubt' ? 'refused' : failure);
  return transaction(store, { organization_id, request_id: null }, async (tx) => {
    const of_reader = sql`r.organization_id = ${tx.organization_id} and r.inbox_id = ${inbox_id} and r.worker_id = ${worker_id}`;
    const failed = lasted_ms >= lasting_ms ? sql`1` : sql`r.failed + 1`;
    const reader = await tx.maybe<{ refused: number; failed: number; is_over: boolean }>(sql`
      update recruitment.inbox_reader r set
        worker_id = null,
        failed = ${failed},
        refused = case when ${failure === 'refused'} then r.refused + 1 else r.refused end,
        login_answer = ${said ?? null},
        unreachable_since = case when ${failure === 'unreachable' || failure === 'in_doubt'} then coalesce(r.unreachable_since, ${tx.now}::timestamptz) end
      where ${of_reader}
      returning r.refused, r.failed,
        coalesce(r.unreachable_since <= ${tx.now}::timestamptz - ${most_unreachable}::interval, false) as is_over`);
    if (!reader) return;
    const reason = reasonOf(failure, reader);
    if (reason) await disconnectInbox(tx, { id: inbox_id }, reason);
    const wait_s = reason ? 0 : waitOf(failure, reader);
    const reset = reason ? sql`refused = 0, failed = 0, unreachable_since = null,` : sql``;
    await tx.all(sql`
      update recruitment.inbox_reader r
      set ${reset} next_try_at = ${tx.now}::timestamptz + make_interval(secs => ${wait_s})
      where r.organization_id = ${tx.organization_id} and r.inbox_id = ${inbox_id}`);
  });
}

function reasonOf(
  failure: Kind,
  { refused, is_over }: { refused: number; is_over: boolean },
): DisconnectedReason | undefined {
  if (failure === 'refused' && refused >= most_refused) return 'auth_failed';
  if (failure === 'in_doubt' && is_over) return 'auth_failed';
  return failure === 'unreachable' && is_over ? 'connection_failed' : undefined;
}

/** Doubled with each failure; a part is left to chance, so that inboxes of one server do not all come at once. */
function waitOf(failure: Kind, { refused, failed }: { refused: number; failed: number }): number {
  const times = failure === 'refused' ? refused : failed;
  const is_refusal = failure === 'refused' || failure === 'in_doubt';
  const wait_s = is_refusal
    ? Math.min(refused_wait_s * 2 ** times, most_refused_wait_s)
    : Math.min(2 ** (times - 1), most_wait_s);
  return wait_s * (0.75 + Math.random() / 2);
}
