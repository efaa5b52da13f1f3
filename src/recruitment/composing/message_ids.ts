import { domainToASCII } from 'node:url';
import { domainOf } from '../../core/values/fields.ts';

/** `Re: …`, once. */
export const replySubject = (subject: string): string =>
  /^\s*re\s*:/i.test(subject) ? subject.trim() : `Re: ${subject.trim()}`;

interface StoredIds {
  rfc_message_id: string;
  reference_ids: string[];
  /** Message-IDs that it has besides: whoever received it may know it by one of these. */
  other_message_ids: string[];
}

/** The ids of the mail before, each id in angle brackets. */
interface Previous {
  message_id: string;
  /** Its References; null or empty where it has none. */
  references: string | null;
}

/** Servers refuse long fields: a thread keeps the first of its mails and the last ones. */
const most_references = 10;

/** The headers In-Reply-To and References of an answer (RFC 5322, 3.6.4). */
export function threadHeaders({ message_id, references }: Previous): { in_reply_to: string; references: string } {
  const all = [...new Set([...messageIds(references ?? ''), ...messageIds(message_id)])];
  const kept = all.length > most_references ? [...all.slice(0, 1), ...all.slice(1 - most_references)] : all;
  return { in_reply_to: messageIds(message_id)[0] ?? '', references: kept.join(' ') };
}

/** The same for a message as it is stored, whose ids have no angle brackets. Null: it answers nothing. */
export function storedThreadHeaders(previous: StoredIds | null): {
  in_reply_to: string | null;
  reference_ids: string[];
} {
  if (!previous) return { in_reply_to: null, reference_ids: [] };
  const { rfc_message_id, reference_ids, other_message_ids } = previous;
  const references = [...reference_ids, ...other_message_ids].map((id) => `<${id}>`).join(' ');
  const headers = threadHeaders({ message_id: `<${rfc_message_id}>`, references });
  return { in_reply_to: bare(headers.in_reply_to) || null, reference_ids: messageIds(headers.references).map(bare) };
}

const bare = (id: string): string => id.replace(/^<|>$/g, '');

/** The Message-IDs in a text, with their brackets: printable ASCII alone (RFC 5322). */
export const messageIds = (text: string): string[] => text.match(/<[!-;=?-~]{1,500}>/g) ?? [];

/** Amazon SES answers with the id by which it replaces the one that an email has, and adds a domain of its region. */
const of_ses = /^[0-9a-f]{16}-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}-[0-9]{6}$/;
const ses_server = /^email-smtp(?:-fips)?\.([a-z0-9-]{1,40})\.amazonaws\.com$/i;
const ses_domain = /@[a-z0-9-]{1,40}\.amazonses\.com$/i;

/**
 * The Message-ID that a server says it gave an email, when it accepted that: `Ok 0100018…` of SES, `<…@…> [InternalId=…]` of Exchange. Null: none.
 * @param host of the server
 */
export function idGivenBy(answer: string, host: string): string | null {
  const [, given = ''] = /^250 (?:2\.\d\.\d )?ok (\S{1,100})\s*$/i.exec(answer) ?? [];
  if (of_ses.test(given)) {
    const [, region = 'us-east-1'] = ses_server.exec(host) ?? [];
    return `${given}@${region === 'us-east-1' ? 'email' : region}.amazonses.com`;
  }
  const named = messageIds(answer.slice(0, 2_000)).find((id) => /^<[^@]+@[^@]+>$/.test(id));
  return named === undefined ? null : bare(named);
}

/** The names by which a message is found whose Message-ID a mail names: of SES's, which names the region where our server's name may not, both. */
export const namesOf = (id: string): string[] => [...new Set([id, id.replace(ses_domain, '@email.amazonses.com')])];

/** The Message-ID of a row, `<fms_…@domain>`, from which the row is found again. @param resends how often it was sent again: each time by another one */
export function messageIdOf(message_id: string, domain: string, resends = 0): string {
  const ascii = domainToASCII(domain);
  if (!/^fms_[0-9a-z]{26}$/.test(message_id) || ascii === '')
    throw new TypeError(`not a message and a domain: ${message_id}, ${domain}`);
  return `<${message_id}${resends === 0 ? '' : `.${resends}`}@${ascii}>`;
}

/** The same as it is stored, without angle brackets. @param email the address of the inbox */
export const storedMessageIdOf = (message_id: string, email: string, resends = 0): string =>
  bare(messageIdOf(message_id, domainOf(email), resends));

/** The first id of a message in a text: in a Message-ID, in References, in the subject of a mail that unsubscribes. */
export const rowIdOf = (text: string): string | null => rowIdsOf(text)[0] ?? null;

/** All of them, in the order of the text. */
export const rowIdsOf = (text: string): string[] =>
  (text.match(/(?<![0-9a-z])fms_[0-7][0-9a-hjkmnp-tv-z]{25}(?![0-9a-z])/gi) ?? []).map((id) => id.toLowerCase());
