/** The people of the demo, who answer emails. */
import type { Email } from 'postal-mime';
import { type DemoPerson, demo_sites } from './sites.ts';

/**
 * The email that a person answers with. Undefined: nobody of the demo has this address, or they answer nothing, or they answered the first
 * email already.
 * @param raw the email that was sent
 */
export async function answerTo(raw: Buffer, inbox: string): Promise<string | undefined> {
  const { default: PostalMime } = await import('postal-mime');
  const mail = await PostalMime.parse(raw);
  const person = personOf(mail.to?.[0]?.address);
  if (!person?.answer || mail.inReplyTo !== undefined) return undefined;
  if (person.answer.kind === 'unsubscribe') return unsubscribe(mail);
  return person.answer.kind === 'bounce' ? bounce(person, mail, inbox) : reply(person, mail, inbox);
}

/** Returns the mail server's answer to a recipient whom it refuses. */
export function refusalOf(address: string): string | undefined {
  const { answer } = personOf(address) ?? {};
  return answer?.kind === 'refusal' ? answer.text : undefined;
}

/** RFC 8058. */
async function unsubscribe(mail: Email): Promise<undefined> {
  const header = mail.headers.find(({ key }) => key === 'list-unsubscribe')?.value ?? '';
  const [, url] = /<(https?:[^>]+)>/.exec(header) ?? [];
  if (url) await fetch(url, { method: 'POST', body: new URLSearchParams({ 'List-Unsubscribe': 'One-Click' }) });
}

const personOf = (address: string | undefined): DemoPerson | undefined =>
  demo_sites.map(({ person }) => person).find(({ email }) => email === address?.toLowerCase());

async function reply({ name, email, answer }: DemoPerson, mail: Email, inbox: string): Promise<string> {
  const is_automatic = answer?.kind === 'auto_reply';
  const quote = (mail.text ?? '').trimEnd().replace(/^/gm, '> ');
  const text = is_automatic
    ? answer.text
    : `${answer?.text}\n\nOn ${new Date().toUTCString()}, Grace wrote:\n${quote}\n`;
  return compose({
    ...{ from: { name, address: email }, to: inbox, inReplyTo: mail.messageId, references: mail.messageId, text },
    subject: is_automatic ? `Automatic reply: ${mail.subject}` : `Re: ${mail.subject}`,
    ...(is_automatic ? { headers: { 'Auto-Submitted': 'auto-replied' } } : {}),
  });
}

/** A delivery status notification: RFC 3464. */
function bounce({ email, answer }: DemoPerson, mail: Email, inbox: string): Promise<string> {
  const [, status = '5.1.1'] = /\b(\d\.\d\.\d)\b/.exec(answer?.text ?? '') ?? [];
  const report = [
    'Reporting-MTA: dns; mail-rail-demo.com',
    '',
    `Final-Recipient: rfc822; ${email}`,
    'Action: failed',
    `Status: ${status}`,
    `Diagnostic-Code: smtp; ${answer?.text}`,
    '',
  ].join('\r\n');
  return compose({
    ...{
      from: 'Mail Delivery System <mailer-daemon@mail-rail-demo.com>',
      to: inbox,
      subject: 'Undelivered Mail Returned to Sender',
    },
    ...{ headers: { 'Auto-Submitted': 'auto-replied' }, references: mail.messageId },
    text: `Your email to ${email} could not be delivered: ${answer?.text}`,
    attachments: [
      { contentType: 'message/delivery-status', content: report },
      { contentType: 'text/rfc822-headers', content: `Message-ID: ${mail.messageId}\r\nSubject: ${mail.subject}\r\n` },
    ],
  });
}

async function compose(mail: object): Promise<string> {
  const { default: MailComposer } = await import('nodemailer/lib/mail-composer');
  return (await new MailComposer(mail).compile().build()).toString('latin1');
}
