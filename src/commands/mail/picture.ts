import type { Judgement } from '../../mail/incoming/judge.ts';

const widths = { kind: 12, means: 26 };
const longest_text = 80;

const line = (kind: string, means: string, name: string, text: string): string =>
  `${kind.padEnd(widths.kind)}${means.padEnd(widths.means)}${name}  ${text}`.trimEnd();

export const heading = line('KIND', 'MEANS', 'NAME', 'TEXT');

/** A line of a table whose widths do not depend on what follows. Control characters of a mail do not reach the terminal. */
export function row(name: string, judgement: Judgement): string {
  const { kind, recipients, text } = judgement;
  const shown = recipients.length > 0 ? recipients.map(shownRecipient).join(', ') : text;
  return line(kind, meaning(judgement), name, printable(shown).slice(0, longest_text));
}

function meaning({
  kind,
  reply_kind,
  confidence,
  resumes_on,
  recipients,
  feedback_type,
  needs_review,
}: Judgement): string {
  const review = needs_review ? ', review' : '';
  if (kind === 'reply') return `${reply_kind} ${confidence?.toFixed(2)}${review}`;
  if (kind === 'auto_reply') return `${resumes_on ? `until ${resumes_on}` : ''}${review}`;
  if (kind === 'bounce') return `${recipients.some(({ hard }) => hard) ? 'hard' : 'soft'}${review}`;
  return `${feedback_type ?? ''}${review}`;
}

const shownRecipient = ({ address, status }: Judgement['recipients'][number]): string =>
  `${address ?? 'unknown'}${status ? ` ${status}` : ''}`;

const printable = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ').trim();
