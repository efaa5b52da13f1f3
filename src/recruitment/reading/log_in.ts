import type { ImapFlow } from 'imapflow';
import type { WorkerContext } from '../../core/jobs/worker_context.ts';
import { domainOf } from '../../core/values/fields.ts';
import type { OwnServer } from '../../mail/incoming/message/authserv.ts';
import { openStoredImap } from '../inboxes/try_stored.ts';
import type { ReadInbox } from './cursor.ts';

export interface LoggedIn {
  client: ImapFlow;
  /** Whose mail is a copy of what was sent. */
  own_addresses: string[];
  /** Whose servers may report on what was sent, and say what they found out about a mail that came in. */
  own_server: OwnServer;
  created_at: string;
}

/** Opens the IMAP connection of an inbox as it is stored. @throws LoginRefused, Problem, or whatever says why the server cannot be used */
export async function logIn(
  read: ReadInbox,
  context: Pick<WorkerContext, 'store' | 'services'>,
  silence_ms: number,
): Promise<LoggedIn> {
  const { client, inbox, login } = await openStoredImap(read, context, silence_ms);
  const { authserv_id } = inbox;
  const imap_host = login.imap.host.toLowerCase();
  const hosts = [domainOf(inbox.email), login.smtp.host, imap_host].map((host) => host.toLowerCase());
  return {
    client,
    own_addresses: [inbox.email],
    own_server: { imap_host, hosts, authserv_id },
    created_at: inbox.created_at,
  };
}
