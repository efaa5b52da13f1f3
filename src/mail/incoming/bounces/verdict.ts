import { dead, type Reason, reasonIn, usual_status } from './reasons.ts';

/** A bounce's entry for one recipient. */
export interface RecipientStatus {
  /** RFC 3464: failed, delayed, delivered, relayed, expanded; in lower case. */
  action: string;
  /** The field, if there is one. */
  status: string;
  /** The server's response, or the text near the address. */
  text: string;
  /** The text about several recipients at once, or about the mail; read where `text` gives no reason. */
  context: string;
}

export interface Verdict {
  /** RFC 3463; taken from the reason where the server wrote none. Null where nothing is known. */
  status: string | null;
  hard: boolean;
  reason: Reason | null;
}

/**
 * Decides whether a refusal means that the address is dead. The server's words count more than its number, because servers answer 5.1.1 to blocked
 * senders and 5.0.0 to unknown recipients.
 */
export function classifyRefusal({ action, status: field, text, context }: RecipientStatus): Verdict {
  const reason = reasonIn(text) ?? reasonIn(context) ?? null;
  const written = statusOf(text, field);
  const status = written ?? (reason && usual_status[reason]);
  if (action !== '' && action !== 'failed') return { status, hard: false, reason };
  if (isTemporary(written, text) && !(reason === 'host_unknown' && no_domain.test(text)))
    return { status, hard: false, reason };
  if (reason === null) return { status, hard: isDead(status), reason };
  const said = `${text}\n${context}`;
  const is_sender = beforeRecipient.test(said) || /^5\.1\.[78]$/.test(written ?? '');
  const hard = dead.has(reason) && !is_sender && (reason !== 'user_unknown' || isProven(text, said, written));
  return { status, hard, reason };
}

/** Returns whether a refusal is about the mail or its sender: its content, its signature, the reputation of the sender. The next one fares no better. */
export const isBlock = ({ hard, status, reason }: Verdict): boolean =>
  !hard && (blocks.has(reason) || /^[45]\.7\./.test(status ?? ''));

const blocks: ReadonlySet<Reason | null> = new Set<Reason>([
  ...(['authentication', 'reverse_dns', 'blocked', 'sender', 'rate', 'recipient_rules', 'content'] as const),
]);

const enhanced = /(?<![\d.])([245])[.](\d{1,3})[.](\d{1,3})(?![\d.])/;

/** The status behind the last reply code, which is the remote server's own; then the field's, then any other in the text. */
function statusOf(text: string, field: string): string | null {
  const replies = [...text.slice(0, 5_000).matchAll(/\b[245]\d\d[ -]+(?:#|\[)?([245]\.\d{1,3}\.\d{1,3})(?![\d.])/g)];
  const of_field = enhanced.exec(field)?.[0];
  const of_text = replies.at(-1)?.[1] ?? enhanced.exec(text)?.[0];
  if (of_text && !/^\d\.0\.0$/.test(of_text)) return of_text;
  return of_field ?? of_text ?? null;
}

function isTemporary(status: string | null, text: string): boolean {
  if (status) return status.startsWith('4') || status.startsWith('2');
  return /(?:^|[^\d.])4[0-5]\d[ -](?!\d{3}[ -]5)/.test(text) && !/(?:^|[^\d.])5[0-7]\d[ :-]/.test(text);
}

/**
 * "Unknown" is proof where the recipient was asked about: not after the server had accepted it and got
 * the text, which is how filters answer. A status that names another cause needs such proof, and 5.1.x needs none.
 */
function isProven(text: string, said: string, status: string | null): boolean {
  if (filtered.test(text)) return false;
  if (status?.startsWith('5.1.') && status !== '5.1.0') return true;
  if (aboutRecipient.test(said)) return true;
  return !afterData.test(said) && !/^5\.[27]\./.test(status ?? '');
}

/** The resolver's word that there is no such domain is final, also under the 4.0.0 that Google gives it. */
const no_domain = /nxdomain|dns error: domain name not found|find any host|the domain \S{1,255} couldn.t be found/i;
const beforeRecipient =
  /(?:after|in reply to|response to) (?:initial connection|(?:the )?(?:EHLO|HELO|MAIL|STARTTLS))/i;
/** Some providers answer `550 : User unknown`, without an address, to what they filter. */
const filtered = /\b5\d\d[: ]+: (?:unknown user|user unknown)/i;
const aboutRecipient =
  /RCPT|\(state 14\)|bad mailbox|does not like recipient|no valid recipients|Need RCPT|couldn.t find|mail exchanger|doesn.t have an? .{1,100} account|Destination|addresse?(?: d| destinataire)|host unknown|MX record/i;
const afterData =
  /(?:after|in reply to|response to) (?:the )?(?:end of )?(?:DATA|message body)|>>> DATA\b[^\n]{0,200}\n<<< 5|SMTP command\s+DATA\b|our (?:final )?DATA:|said after data|after I sent the message|\(state 1[5-8]\)/i;

/** 5.1.x but what speaks of the sender, unknown hosts and null MX. */
const isDead = (status: string | null): boolean =>
  status !== null &&
  (/^5\.1\.(?!(?:7|8|20)$)/.test(status) || ['5.4.4', '5.4.310', '5.7.27', '5.3.2'].includes(status));
