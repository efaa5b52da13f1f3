/** Sends mail through an SMTP server. */
import type { SendMailOptions } from 'nodemailer';
import type { Attachment, Mailer } from '../core/resource/services.ts';

/** The message may hold what the server said of the recipient, and never what SMTP_URL holds. */
export class MailNotSent extends Error {
  override readonly name = 'MailNotSent';
  /** The server will never take this mail. */
  readonly permanent: boolean;
  constructor(message: string, permanent = false) {
    super(message);
    this.permanent = permanent;
  }
}

/** The server's answers come within seconds, or not at all: a job must not hang. */
const limits = { connectionTimeout: 10_000, greetingTimeout: 10_000, socketTimeout: 30_000, dnsTimeout: 10_000 };

/**
 * Sends over SMTP, a connection a mail. TLS from the start with `smtps:`; with `smtp:` by STARTTLS where the server offers it.
 * @param from one address, with or without a name
 */
export async function createMailer({ smtp_url, from }: { smtp_url: string; from: string }): Promise<Mailer> {
  const { createTransport } = await import('nodemailer');
  const transport = createTransport({ url: smtp_url, ...limits, disableFileAccess: true, disableUrlAccess: true });
  const domain = from.replace(/^.*@|>$/g, '');
  return async ({ id, recipient, subject, text, html, attachment, created_at }, cut_off) => {
    const message: SendMailOptions & { baseBoundary: string } = {
      from,
      to: { name: '', address: recipient },
      subject,
      text,
      ...(html === null ? {} : { html }),
      attachments: attachment ? [attached(attachment)] : [],
      // The boundary between the parts follows from the id too, so that a mail which is sent twice is the same.
      baseBoundary: id,
      date: created_at,
      messageId: `<${id}@${domain}>`,
      headers: { 'Auto-Submitted': 'auto-generated' },
      signal: cut_off,
    };
    await transport.sendMail(message).catch((error) => {
      throw notSent(error);
    });
  };
}

const attached = ({ name, media_type, content }: Attachment) => ({ filename: name, contentType: media_type, content });

interface SmtpError extends Error {
  code?: string;
  /** The command that the server refused. */
  command?: string;
  response?: string;
  responseCode?: number;
}

/**
 * Returns the error for a mail that was not sent. The server's response to a login is not repeated. A permanent refusal (5xx) of the recipient or of
 * the message stays one; one of the login or of the sender is a fault of the settings, which may be corrected while the job retries.
 */
function notSent({ code, command, response, responseCode = 0, message }: SmtpError): MailNotSent {
  if (/AUTH/.test(code ?? '')) return new MailNotSent('The SMTP server did not accept the login in SMTP_URL.');
  if (!response) return new MailNotSent(`The mail could not be handed to the SMTP server: ${message}`);
  const permanent = responseCode >= 500 && (command === 'RCPT TO' || command === 'DATA');
  return new MailNotSent(`The SMTP server answered ${command} with: ${response}`, permanent);
}
