import type { ImapFlow } from 'imapflow';
import type { WorkerContext } from '../../../core/jobs/worker_context.ts';
import { domainOf } from '../../../core/values/fields.ts';
import { openImap } from '../../inboxes/imap_login.ts';
import { mailServerAddress } from '../../inboxes/mail_host.ts';
import { proveStored, readStored } from '../../inboxes/try_stored.ts';
import type { ReadInbox } from './cursor.ts';

export interface LoggedIn {
  client: ImapFlow;
  /** Whose mail is a copy of what was sent. */
  own_addresses: string[];
  /** Whose servers may report on what was sent. */
  own_domains: string[];
  created_at: string;
}

/** Opens the IMAP connection of an inbox as it is stored. @throws LoginRefused, Problem, or whatever says why the server cannot be used */
export async function logIn(
  of: ReadInbox,
  context: Pick<WorkerContext, 'store' | 'services'>,
  silence_ms: number,
): Promise<LoggedIn> {
  const { inbox, login } = await readStored(of, context);
  const proofs = await proveStored(of, login, context);
  const address = await mailServerAddress('imap', login.imap, context.services);
  const client = await openImap(login.imap, address, proofs.imap, silence_ms);
  const own_domains = [domainOf(inbox.email).toLowerCase(), login.smtp.host.toLowerCase()];
  return { client, own_addresses: [inbox.email], own_domains, created_at: inbox.created_at };
}
