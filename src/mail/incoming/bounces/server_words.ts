/** The recipients in reports that servers write for people, each with what is said of it. */
export interface Mention {
  address: string;
  text: string;
}

const mailbox = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?";
const quoted_mailbox = `"[^"\\s@]{1,64}"@[A-Za-z0-9.-]{1,253}`;
const address = `(?:${mailbox}|${quoted_mailbox})`;
/** `<a@b>:`, `  a@b`, `* a@b`, `>>> a@b <a@b>`, `"a@b":` … at the begin of a line. */
const first_on_line = new RegExp(`^[\\s>*•·-]{0,12}["'<(\\[]{0,3}(${address})(?![A-Za-z0-9@])`);
/** `Recipient address: a@b`, `Could not be delivered to: <a@b>`, `Address: <a@b>`, `Unknown user: a@b`. */
const after_name = new RegExp(
  `(?:recipient|address(?:es|ees?)?|delivered to|deliver(?:ing)?[^:@]{0,30} to|user(?:id)?|addressed to|message to|mail(?:box)?|empf[aä]nger|destinataire|destinatario|destinat[aá]rio|получател\\S*|宛先|RCPT(?: TO)?)[^:@<]{0,20}[:<]\\s*["'<]{0,2}(${address})`,
  'i',
);
/** `550 <a@b>... User unknown` in the transcript of a session. */
const after_code = new RegExp(`^\\s*(?:<<< ?)?[45]\\d\\d[ -](?:[45]\\.\\d{1,3}\\.\\d{1,3} )?<(${address})>`);
const not_recipient = /^(?:mailer-daemon|postmaster|abuse|support|help|noreply|no-reply|mailmaster)@/i;
const of_sender = /(?:MAIL FROM|envelope-from|sent by|from:|sender|>>> MAIL)/i;

/** The address in `rfc822; a@b`, `<a@b>` or `a@b`, in lower case. */
export function addressIn(value: string): string | null {
  const found = new RegExp(`(?:^|[\\s<;:"'])(${address})(?![A-Za-z0-9@])`).exec(value.slice(0, 2_000));
  return found ? (found[1] as string).toLowerCase() : null;
}

/** Each recipient that a text names, with the lines up to the next one. `senders` are never recipients. */
export function mentionsIn(words: string, senders: readonly string[]): Mention[] {
  const mentions = new Map<string, string[]>();
  let current: string[] | undefined;
  for (const line of words.split('\n', 3_000)) {
    const found = mentioned(line.slice(0, 2_000), senders);
    if (found) {
      current = mentions.get(found) ?? [];
      mentions.set(found, current);
    }
    current?.push(line);
  }
  return [...mentions].slice(0, 500).map(([of, lines]) => ({ address: of, text: lines.join('\n') }));
}

function mentioned(line: string, senders: readonly string[]): string | null {
  const strict = first_on_line.exec(line) ?? after_code.exec(line);
  const found = strict ?? (of_sender.test(line) ? null : after_name.exec(line));
  const name = found?.[1]?.toLowerCase();
  return name && !senders.includes(name) && (strict || !not_recipient.test(name)) ? name : null;
}

/** Every address in a text, for reports that name the recipient in a sentence. */
export function allAddressesIn(words: string): string[] {
  const found = words.slice(0, 20_000).matchAll(new RegExp(`(?<![A-Za-z0-9.@_-])${address}(?![A-Za-z0-9@])`, 'g'));
  return [...new Set([...found].map(([name]) => name.toLowerCase()))].filter((name) => !not_recipient.test(name));
}
