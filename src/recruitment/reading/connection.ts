/**
 * The IMAP connection of one inbox: reads what is new, and waits for more. INBOX is watched by IDLE, or asked every 15 seconds where the server has none, or ends it
 * at once again and again; the junk folder is looked into every minute. A server may take 90 seconds for an answer, and meanwhile holds nobody else.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import type { ImapFlow } from 'imapflow';
import type { WorkerContext } from '../../core/jobs/worker_context.ts';
import { transaction } from '../../core/postgres/transaction.ts';
import { domainOf } from '../../core/values/fields.ts';
import type { OwnServer } from '../../mail/incoming/message/authserv.ts';
import type { InboxKey } from '../inboxes/inbox.ts';
import { openStoredImap } from '../inboxes/stored_login.ts';
import type { Classifier } from './classifier.ts';
import { beginReading, NotTheReader } from './cursor.ts';
import { readSetAside, setAside } from './failed_mail.ts';
import { failureOf, giveBack } from './failure.ts';
import { type FolderReading, readFolder, unlessLost } from './folder.ts';
import { type Reader, readMail } from './read_mail.ts';

export interface Sharing {
  /** Bounds how many connections are opened at a time. */
  limitConnecting<T>(work: () => Promise<T>): Promise<T>;
  /** Bounds how many mails are in memory. */
  limitReading: FolderReading['limited'];
  classifier: Classifier;
  opened(): void;
  /** The inbox was read up to now. */
  seen(inbox: InboxKey): void;
}

interface Pace {
  /** The time between looks into the other folders, and at what was set aside. */
  other_folders_ms: number;
  /** The time between questions to a server without IDLE. */
  poll_ms: number;
  /** A server that owes an answer for so long is gone. One that idles is asked whether it is there as often. */
  silence_ms: number;
}

/** A server may end each wait at once: one that has said nothing new is asked again after this, doubled up to `poll_ms`. */
const least_pause_ms = 250;

const usual_pace: Pace = { other_folders_ms: 60_000, poll_ms: 15_000, silence_ms: 90_000 };

/** Reads an inbox until `stopped`, or until its connection fails: then it is given back, to be read again later. It never throws. */
export async function readInbox(
  inbox: InboxKey,
  context: WorkerContext,
  sharing: Sharing,
  stopped: AbortSignal,
  pace: Pace = usual_pace,
): Promise<void> {
  const { store, worker_id, log } = context;
  let begun: number | undefined;
  try {
    const login = await sharing.limitConnecting(async () =>
      stopped.aborted ? undefined : logIn(inbox, context, pace.silence_ms),
    );
    if (!login) return;
    begun = performance.now();
    await session(inbox, login, context, sharing, stopped, pace);
  } catch (error) {
    if (stopped.aborted || error instanceof NotTheReader) return;
    const failure = failureOf(error, begun !== undefined);
    // A server's message may hold a mail and is not logged; its message to the login is here without that.
    const { code, name, said } = error as { code?: unknown; name?: string; said?: string };
    const what = begun === undefined ? 'logging in to read an inbox' : 'reading an inbox';
    log.warn({ inbox_id: inbox.inbox_id, failure, code, name, said }, `${what} failed; it is tried again`);
    const lasted_ms = begun === undefined ? 0 : performance.now() - begun;
    await giveBack(store, inbox, worker_id, failure, lasted_ms, said).catch((err) =>
      log.warn({ err }, 'an inbox was not given back'),
    );
  }
}

async function session(
  inbox: InboxKey,
  { client, own_addresses, own_server, created_at }: LoggedIn,
  context: WorkerContext,
  sharing: Sharing,
  stopped: AbortSignal,
  pace: Pace,
): Promise<void> {
  const { store, worker_id } = context;
  const close = () => client.close();
  stopped.addEventListener('abort', close, { once: true });
  try {
    sharing.opened();
    const opening = { organization_id: inbox.organization_id, request_id: null };
    const cursors = await transaction(store, opening, (tx) => beginReading(tx, inbox));
    const reader: Reader = { inbox, own_addresses, own_server, classifier: sharing.classifier, context };
    const reading: FolderReading = {
      ...{ store, worker_id, cursors, inbox: { ...inbox, created_at }, limited: sharing.limitReading },
      apply: (mail, moves) => readMail(mail, moves, reader),
      setAside: (place, mail, error, advance) => setAside(place, mail, error, advance, reader),
    };
    await readOnAndOn(client, reading, reader, () => sharing.seen(inbox), stopped, pace);
  } finally {
    stopped.removeEventListener('abort', close);
    client.close();
  }
}

async function readOnAndOn(
  client: ImapFlow,
  reading: FolderReading,
  reader: Reader,
  seen: () => void,
  stopped: AbortSignal,
  { other_folders_ms, poll_ms }: Pace,
): Promise<void> {
  const news = watchNews(client);
  let junk = await junkFolder(client);
  let look_at = 0;
  let pause_ms = 0;
  while (!stopped.aborted) {
    if (performance.now() >= look_at) {
      if (junk !== undefined) junk = (await readOther(client, reading, junk)) ?? (await junkFolder(client));
      await readSetAside(client, reading, reader);
      look_at = performance.now() + other_folders_ms;
    }
    if (client.mailbox === false || client.mailbox.path !== 'INBOX')
      await client.mailboxOpen('INBOX', { readOnly: true });
    news.forget();
    const is_new = await readFolder(client, reading);
    seen();
    const waits_since = performance.now();
    await untilNews(client, news, look_at - waits_since, poll_ms);
    const waited_ms = performance.now() - waits_since;
    pause_ms = is_new || waited_ms >= poll_ms ? 0 : Math.min(Math.max(2 * pause_ms, least_pause_ms), poll_ms);
    await news.closing(pause_ms - waited_ms);
    if (news.closed()) throw Object.assign(new Error('The IMAP connection was lost.'), { code: 'closed' });
  }
}

/** A folder beside INBOX. `state`: how it was when it was read last. */
interface Other {
  path: string;
  state: string | undefined;
}

async function junkFolder(client: ImapFlow): Promise<Other | undefined> {
  const folders = await client.list();
  const found = folders.find(({ specialUse, flags }) => specialUse === '\\Junk' && !flags.has('\\Noselect'));
  return found && { path: found.path, state: undefined };
}

/** Selects and reads a folder that is not as it was when it was read last. @returns how it is now; undefined where it cannot be selected */
async function readOther(client: ImapFlow, reading: FolderReading, { path, state }: Other): Promise<Other | undefined> {
  const now = await stateOf(client, path);
  if (now !== undefined && now === state) return { path, state };
  if (!(await isSelected(client, path))) return undefined;
  await readFolder(client, reading);
  return { path, state: now };
}

/** Undefined: the server does not say. It was renamed, perhaps, or the server leaves out what is asked for. */
async function stateOf(client: ImapFlow, folder: string): Promise<string | undefined> {
  const asked = client.status(folder, { uidNext: true, uidValidity: true });
  const status = await unlessLost(client, asked);
  if (!status || status.uidNext === undefined || status.uidValidity === undefined) return undefined;
  return `${status.uidValidity} ${status.uidNext}`;
}

const isSelected = async (client: ImapFlow, folder: string): Promise<boolean> =>
  (await unlessLost(client, client.mailboxOpen(folder, { readOnly: true }))) !== undefined;

interface News {
  forget(): void;
  closed(): boolean;
  /** Settles when something arrives, or the connection closes. */
  arrival(): Promise<void>;
  /** Settles when the connection closes, but after so long at the latest. */
  closing(ms: number): Promise<void>;
}

/** Watches what the server says of the selected folder, from now on. */
function watchNews(client: ImapFlow): News {
  let arrived = false;
  let notify = () => {};
  const end = new AbortController();
  client.on('exists', () => {
    arrived = true;
    notify();
  });
  client.on('close', () => {
    end.abort();
    notify();
  });
  return {
    forget() {
      arrived = false;
    },
    closed: () => end.signal.aborted,
    arrival: () =>
      new Promise((resolve) => {
        notify = resolve;
        if (arrived || end.signal.aborted) resolve();
      }),
    closing: (ms) => sleep(Math.max(0, ms), undefined, { signal: end.signal }).catch(() => {}),
  };
}

/** Waits for mail, but no longer than so. The next command ends IDLE. */
async function untilNews(client: ImapFlow, news: News, ms: number, poll_ms: number): Promise<void> {
  const timer = new AbortController();
  const wait = (for_ms: number) => sleep(Math.max(0, for_ms), undefined, { signal: timer.signal }).catch(() => {});
  const idles = client.capabilities.has('IDLE');
  const idling = idles ? client.idle().then((answer) => (answer === false ? wait(poll_ms) : undefined)) : wait(poll_ms);
  try {
    await Promise.race([news.arrival(), idling, wait(ms)]);
  } finally {
    timer.abort();
  }
}

interface LoggedIn {
  client: ImapFlow;
  /** The addresses whose mail is a copy of what was sent. */
  own_addresses: string[];
  /** The servers that may report on what was sent, and say what they found out about a mail that came in. */
  own_server: OwnServer;
  created_at: string;
}

/** Opens the IMAP connection of an inbox as it is stored. @throws LoginRefused, Problem, or whatever says why the server cannot be used */
async function logIn(
  read: InboxKey,
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
