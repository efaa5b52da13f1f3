import { mayBeAutomatic, readAutoReply } from './automatic/auto_reply.ts';
import type { AutoReplyKind } from './automatic/kinds.ts';
import { readReturnDate } from './automatic/return_date.ts';
import { type Bounced, readBounce } from './bounces/bounce.ts';
import { readFeedbackReport } from './bounces/feedback_report.ts';
import { type Message, readMessage } from './message/message.ts';
import { readHtml } from './writing/html.ts';
import { readWritten } from './writing/written_text.ts';

/** The classification of an incoming mail. */
export interface Classification {
  kind: 'own' | 'complaint' | 'bounce' | 'auto_reply' | 'unsubscribe' | 'reply';
  /** The addresses that a bounce or a complaint is about. */
  recipients: Bounced[];
  /** The newly written text; empty for mail that no person wrote. */
  text: string;
  language: string | null;
  /** The meaning of a person's words, as a kind of the caller; null for all others, and where neither text nor subject shows it. */
  reply_kind: string | null;
  /** The confidence in the kind, from 0 to 1; null where it was not classified. */
  confidence: number | null;
  /** The kind of an automatic reply. */
  auto_reply_kind: AutoReplyKind | null;
  /** ISO date that an automatic reply names. */
  resumes_on: string | null;
  /** Nobody should rely on this before a person has looked. */
  needs_review: boolean;
  /** The Message-ID of the mail that a bounce or a complaint is about. */
  original_message_id: string | null;
  /** The type of a complaint: `abuse`, `auth-failure`, … */
  feedback_type: string | null;
  /** The id in the subject or the address of a mail to a List-Unsubscribe address. */
  unsubscribe_id: string | null;
}

export interface Meaning {
  kind: string;
  confidence: number;
  language: string | null;
  unsubscribe: boolean;
}

/** The facts that only the caller knows. */
export interface MailContext {
  /** Addresses whose mail is a copy of what was sent. */
  own_addresses: readonly string[];
  /** Returns the meaning of a person's words; the subject's, where there are none. */
  readMeaning(text: string, subject: string): Meaning;
  /** Takes the place of the Date that a mail lacks. */
  now: Date;
}

/** Below it, the meaning of a text is a guess. */
export const least_confidence = 0.55;

/** Classifies a mail as it stands in the mailbox. It never throws. */
export async function classifyMail(raw: Uint8Array, context: MailContext): Promise<Classification> {
  return classifyMessage(await readMessage(raw), context);
}

/**
 * Classifies in this order: own copy, feedback report, bounce, automatic reply, unsubscribe, person. Bounces come before automatic replies, since
 * many of them say that they are Auto-Submitted.
 */
export function classifyMessage(message: Message, context: MailContext): Classification {
  const unread = { needs_review: !message.readable };
  if (isOwn(message, context)) return { ...classification('own'), ...unread };
  const report = readFeedbackReport(message);
  if (report)
    return { ...classification('complaint'), ...report, recipients: report.recipients.map(complained), ...unread };
  const bounce = readBounce(withText(message));
  if (bounce) return { ...classification('bounce'), ...bounce, ...unread };
  return classifyWritten(message, context);
}

/** Some servers write their reports in HTML alone. */
const withText = (message: Message): Message =>
  message.text.trim() === '' && message.html !== '' ? { ...message, text: readHtml(message.html) } : message;

function classifyWritten(message: Message, { readMeaning, now }: MailContext): Classification {
  const { text, own_words, is_footer, from_help_desk } = readWritten(message);
  const asked = unsubscribeId(message);
  const request = { text, unsubscribe_id: asked ?? null, needs_review: !message.readable };
  if (asked !== undefined) return { ...classification('unsubscribe'), ...request };
  const automatic = readAutoReply(message, text, from_help_desk);
  if (automatic) {
    const is_note = automatic.kind === 'absence' || automatic.kind === 'other';
    return {
      ...{ ...classification('auto_reply'), ...request, auto_reply_kind: automatic.kind },
      language: readMeaning(own_words, '').language,
      resumes_on: is_note ? readReturnDate(`${message.subject}\n${text}`, message.date ?? now) : null,
      needs_review: automatic.needs_review || !message.readable,
    };
  }
  const meaning = readMeaning(own_words, message.subject);
  const is_persons = from_help_desk || !mayBeAutomatic(message, text);
  const sure = message.readable && is_persons && meaning.confidence >= least_confidence;
  const classified = { ...request, language: meaning.language, confidence: meaning.confidence, needs_review: !sure };
  if (meaning.unsubscribe && meaning.kind !== 'angry') return { ...classification('unsubscribe'), ...classified };
  if (is_footer)
    return {
      ...classification('auto_reply'),
      ...request,
      auto_reply_kind: 'other',
      language: meaning.language,
      needs_review: true,
    };
  if (own_words === '' && !sure)
    return { ...classification('reply'), ...request, language: meaning.language, needs_review: true };
  return {
    ...classification('reply'),
    ...classified,
    reply_kind: meaning.kind,
    needs_review: !sure || own_words === '',
  };
}

/** Returns the classification of a mail that could not be classified: its text, for a person to look at. */
export const unclassified = (text: string): Classification => ({
  ...classification('reply'),
  text,
  needs_review: true,
});

const classification = (kind: Classification['kind']): Classification => ({
  kind,
  recipients: [],
  text: '',
  language: null,
  reply_kind: null,
  confidence: null,
  auto_reply_kind: null,
  resumes_on: null,
  needs_review: false,
  original_message_id: null,
  feedback_type: null,
  unsubscribe_id: null,
});

const complained = (address: string): Bounced => ({
  address,
  status: null,
  hard: false,
  action: 'complained',
  reason: null,
});

/** A server's report may name the inbox as its sender: it is no copy. */
function isOwn({ from, fields }: Message, { own_addresses }: MailContext): boolean {
  const is_report =
    /^multipart\/report/i.test(fields.get('content-type')) || fields.has('auto-submitted', 'x-failed-recipients');
  return from !== '' && !is_report && own_addresses.some((address) => address.toLowerCase() === from);
}

const subject_request = /^\s*(?:re\s*:\s*)?unsubscribe(?:\s+([A-Za-z][A-Za-z0-9_-]{0,99}))?\s*$/i;

/** A mail that List-Unsubscribe's mailto makes: `unsubscribe`, and the id of the message; undefined for any other. */
function unsubscribeId({ subject, fields, text }: Message): string | null | undefined {
  const found = subject_request.exec(subject);
  if (found?.[1]) return found[1];
  if (/^true$/i.test(fields.get('x-apple-unsubscribe'))) return null;
  const in_text = /^\s*unsubscribe\s+([a-z]{2,5}_[A-Za-z0-9]{8,64})\s*$/i.exec(text.slice(0, 200));
  if (in_text) return in_text[1] as string;
  return found && text.trim().length < 40 && !/[?]/.test(text) ? null : undefined;
}
