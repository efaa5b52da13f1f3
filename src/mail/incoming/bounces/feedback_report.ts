import { readFields } from '../message/fields.ts';
import type { Message } from '../message/message.ts';
import { readJsonNotice } from './json_notice.ts';
import { readReturnedMail } from './returned_mail.ts';
import { addressIn } from './server_words.ts';

/** A provider's report that somebody complained (ARF, RFC 5965). */
export interface FeedbackReport {
  /** `abuse`, `fraud`, `virus`, `not-spam`, `opt-out`, `auth-failure`, … in lower case; null where the report does not say. */
  feedback_type: string | null;
  /** The recipients who complained, as far as the provider says. */
  recipients: string[];
  original_message_id: string | null;
}

/** Reads a feedback report; undefined where the mail is none. */
export function readFeedbackReport(message: Message): FeedbackReport | undefined {
  const notice = readJsonNotice(message);
  if (notice?.complaint) return fromNotice(notice.complaint.complainedRecipients, notice.mail?.headers ?? []);
  const report = message.parts.find(({ type }) => type === 'message/feedback-report')?.text ?? unnamedReport(message);
  if (report === undefined) return undefined;
  const fields = readFields(report);
  const returned = readReturnedMail(message);
  const named = [
    ...fields.all('original-rcpt-to'),
    ...fields.all('removal-recipient'),
    returned.fields?.get('x-hmxmroriginalrecipient') ?? '',
  ].flatMap((value) => addressIn(value) ?? []);
  return {
    feedback_type: /^[a-z-]+/.exec(fields.get('feedback-type').toLowerCase())?.[0] ?? null,
    recipients: [...new Set(named.length > 0 ? named : returned.to)],
    original_message_id: returned.message_id,
  };
}

const of_abuse =
  /^(?:e-?mail )?feedback report for ip|^this is an? (?:e-?mail )?(?:abuse|spam) report for an? (?:e-?mail )?message/im;

/** Reports without their part: broken ones, and those of Hotmail, which returns the mail with a field of its own. */
function unnamedReport({ fields, parts, subject, text }: Message): string | undefined {
  const returned = parts.find(({ type }) => type === 'message/rfc822');
  if (returned && /^X-HmXmrOriginalRecipient:/im.test(returned.text)) return '';
  if (returned && of_abuse.test(`${subject}\n${text.slice(0, 2_000)}`)) return '';
  if (/report-type\s*=\s*"?feedback-report/i.test(fields.get('content-type'))) return sectionOf(text);
  return /^Feedback-Type:\s*[a-z-]+\s*$/im.test(text) && /^User-Agent:/im.test(text) ? sectionOf(text) : undefined;
}

const sectionOf = (text: string): string => text.slice(Math.max(0, text.search(/^Feedback-Type:/im)));

function fromNotice(
  recipients: { emailAddress: string }[],
  headers: { name: string; value: string }[],
): FeedbackReport {
  const id = headers.find(({ name }) => name.toLowerCase() === 'message-id')?.value ?? '';
  return {
    feedback_type: 'abuse',
    recipients: recipients.flatMap(({ emailAddress }) => addressIn(emailAddress) ?? []),
    original_message_id: /<([^<>\s]+)>/.exec(id)?.[1] ?? null,
  };
}
