import type { Classification } from '../../mail/incoming/classify.ts';

const widths = { kind: 12, detail: 26 };
const longest_text = 80;

const line = (kind: string, detail: string, name: string, text: string): string =>
  `${kind.padEnd(widths.kind)}${detail.padEnd(widths.detail)}${name}  ${text}`.trimEnd();

/** @param name what each mail is named by */
export const heading = (name: 'FILE' | 'ID'): string => line('KIND', 'DETAIL', name, 'TEXT');

/** A line of a table whose widths do not depend on what follows. Control characters of a mail do not reach the terminal. */
export function row(name: string, classification: Classification): string {
  const { kind, recipients, text } = classification;
  const shown = recipients.length > 0 ? recipients.map(shownRecipient).join(', ') : text;
  return line(kind, detailOf(classification), name, printable(shown).slice(0, longest_text));
}

function detailOf(classification: Classification): string {
  const review = classification.needs_review ? 'review' : '';
  return [findingOf(classification), review].filter((part) => part !== '').join(', ');
}

function findingOf({ kind, reply_kind, confidence, resumes_on, recipients, feedback_type }: Classification): string {
  if (kind === 'reply') return reply_kind === null ? '' : `${reply_kind} ${confidence?.toFixed(2)}`;
  if (kind === 'auto_reply') return resumes_on ? `until ${resumes_on}` : '';
  if (kind === 'bounce') return recipients.some(({ hard }) => hard) ? 'hard' : 'soft';
  return feedback_type ?? '';
}

const shownRecipient = ({ address, status }: Classification['recipients'][number]): string =>
  `${address ?? 'unknown'}${status ? ` ${status}` : ''}`;

const printable = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ').trim();
