/**
 * Classifies the answer of a mail server by what it means for the email: pure values.
 *
 * - A full mailbox of a recipient (x.2.2) is no quota. A refusal is a hard bounce, or a block that counts for `bounce_rate`, by the rule for a report of a
 *   server one; refused at the end of its content without a reason it is a block.
 * - A login that is withdrawn amid a connection (530, 534, 535, 538 to any command) counts as a refused login, and fails no email.
 * - A 4xx is tried again after 5 minutes, then three times as long each time, at most 4 hours.
 */
import { type Verdict as AddressVerdict, classifyRefusal, isBlock } from '../../mail/incoming/bounces/verdict.ts';
import type { BounceReason } from '../sequences/message.ts';
import type { Refusal } from '../sequences/sequence.ts';

/** An answer that is no success. */
export interface Answer {
  /** The reply code of RFC 5321. */
  code: number;
  text: string;
  /** The command that it answers; DATA also for the end of the data. */
  command: 'MAIL' | 'RCPT' | 'DATA' | 'other';
}

export type Verdict =
  /** Later it may be another answer. */
  | { is: 'later' }
  /** The provider lets the inbox send no more for now. */
  | { is: 'quota' }
  /** Never. It counts as a bounce where the address is dead, or the server blocks what is sent or who sends it. */
  | {
      is: 'refused';
      reason: Exclude<Refusal, 'quota' | 'timeout'>;
      bounce: Extract<BounceReason, 'dead' | 'blocked'> | null;
    };

/** "535: the way of a disconnect": the server wants another login than it has (RFC 4954). It says nothing of the email. */
export const isAboutLogin = ({ code }: Answer): boolean => [530, 534, 535, 538].includes(code);

/**
 * "5.1.x (but 5.1.7 and 5.1.8): a hard bounce. 5.4.5 and texts of quota: planned again. Another 5xx: failed; a 4xx: tried again." What a refusal says of the
 * address is read as the report of a server is: it is dead only where its words do not say another thing.
 */
export function classifyAnswer({ code, text, command }: Answer): Verdict {
  const status = enhancedStatus(text);
  if (status === '5.4.5' || quota_texts.test(text)) return { is: 'quota' };
  if (code < 500) return { is: 'later' };
  const verdict = classifyRefusal({ action: 'failed', status: '', text, context: `in reply to ${command}` });
  if (verdict.hard) return { is: 'refused', reason: 'recipient_refused', bounce: 'dead' };
  const is_block = isBlock(verdict) || (command === 'DATA' && refusesContent(verdict));
  const reason = reasonOf({ code, text, command }, status);
  return {
    is: 'refused',
    reason: is_block && reason === 'recipient_refused' ? 'content_refused' : reason,
    bounce: is_block && reason !== 'too_large' ? 'blocked' : null,
  };
}

/** Returns whether a refusal is for the content: one after it was read, without a word that says why. */
const refusesContent = ({ reason, status }: AddressVerdict): boolean =>
  reason === null && (status === null || /^5\.[067]\./.test(status));

/** Limits of the sender, as Gmail, Exchange and hosts of mail word them. A full mailbox of the recipient (x.2.2) is none of these. */
const quota_texts = new RegExp(
  [
    /(daily|hourly) (user )?(sending|message|email|mail|relay)s?( \w+)? (quota|limit)/,
    /(sending|submission|outbound|outgoing)( \w+)? (quota|limits?|rate)( \w+)? (has been )?(exceed|reached)/,
    /(exceed(ed|s)?|reached) (its |the |your |their )?((maximum|max|daily|hourly) )*(sending|submission|outbound|outgoing|message rate|messages? per|emails? per|rate) ?(limit|quota|day|hour)?/,
    /submissionquotaexceeded/,
    /too many (messages|emails|mails|recipients) (sent|today|this hour|in the last|per (day|hour))/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'i',
);

/** X.1.Y of RFC 3463: the first one after the reply code, if the server gives one. */
const enhancedStatus = (text: string): string | undefined => /\b([245]\.\d{1,3}\.\d{1,3})\b/.exec(text)?.[1];

const sender_statuses = ['5.1.7', '5.1.8'];
function reasonOf({ code, text, command }: Answer, status = ''): Exclude<Refusal, 'quota' | 'timeout'> {
  if (
    sender_statuses.includes(status) ||
    status === '5.7.60' ||
    /send ?as|sender (address )?(rejected|denied)/i.test(text)
  )
    return 'sender_refused';
  if (
    ['5.3.4', '5.2.3'].includes(status) ||
    (code === 552 && !status.startsWith('5.2.')) ||
    /too large|size limit/i.test(text)
  )
    return 'too_large';
  if (status.startsWith('5.2.')) return 'recipient_refused';
  if (status.startsWith('5.7.') || status.startsWith('5.6.'))
    return command === 'MAIL' ? 'sender_refused' : 'content_refused';
  return (
    { MAIL: 'sender_refused', RCPT: 'recipient_refused', DATA: 'content_refused', other: 'content_refused' } as const
  )[command];
}

const first_retry_s = 300;
const most_retry_s = 4 * 3_600;
/** "A 4xx: tried again for up to 24 hours." */
export const give_up_ms = 86_400_000;

/** The wait before the next attempt: greylisting ends after some minutes, a full mailbox after hours. @param attempts so far */
export const retryAfter = (attempts: number): number =>
  Math.min(first_retry_s * 3 ** (attempts - 1), most_retry_s) * 1_000;

const first_reconnect_s = 60;

/** The same for an email at which the connection was lost: the server may have been away for a moment alone. */
export const reconnectAfter = (attempts: number): number =>
  Math.min(first_reconnect_s * 2 ** (attempts - 1), most_retry_s) * 1_000;

const first_wait_s = 3_600;
const most_wait_s = 86_400;

/** "The inbox waits an hour, doubling." In seconds. @param before the wait before this one */
export const nextWait = (before: number | null): number =>
  Math.min(before === null ? first_wait_s : before * 2, most_wait_s);
