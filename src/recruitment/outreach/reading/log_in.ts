import type { ImapFlow } from 'imapflow';
import type { WorkerContext } from '../../../core/jobs/worker_context.ts';
import { domainOf } from '../../../core/values/fields.ts';
import { openStoredImap } from '../../inboxes/try_stored.ts';
import type { ReadInbox } from './cursor.ts';

export interface LoggedIn {
  client: ImapFlow;
  /** Whose mail is a copy of what was sent. */
  own_addresses: string[];
  /** Whose servers may report on what was sent, and say what they found out about a mail that came in. */
  own_domains: string[];
  created_at: string;
}

/** Opens the IMAP connection of an inbox as it is stored. @throws LoginRefused, Problem, or whatever says why the server cannot be used */
export async function logIn(
  read: ReadInbox,
  context: Pick<WorkerContext, 'store' | 'services'>,
  silence_ms: number,
): Promise<LoggedIn> {
  const { client, inbox, login } = await openStoredImap(read, context, silence_ms);
  const hosts = [domainOf(inbox.email), login.smtp.host, login.imap.host];
  return {
    client,
    own_addresses: [inbox.email],
    own_domains: hosts.map((host) => host.toLowerCase()),
    created_at: inbox.created_at,
  };
}
