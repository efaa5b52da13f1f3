import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import t from 'tap';
import { eventually } from '../harness.ts';

export interface ReceivedMail {
  from: string;
  to: string[];
  /** Header fields by their names in lower case, unfolded. */
  headers: Record<string, string>;
  /** Decoded, lines ended by \n. */
  text: string;
  user: string | undefined;
  secure: boolean;
}

export interface SmtpReceiver {
  port: number;
  received: ReceivedMail[];
  /** Waits until at least so many have come. */
  until(count: number): Promise<ReceivedMail[]>;
  close(): Promise<void>;
}

/** A real SMTP server on loopback, without TLS unless the options say otherwise. It takes all mail that the options let pass. */
export async function startSmtpServer({
  port = 0,
  ...options
}: SMTPServerOptions & { port?: number } = {}): Promise<SmtpReceiver> {
  const received: ReceivedMail[] = [];
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    disableReverseLookup: true,
    async onData(stream, { envelope, user, secure }, callback) {
      const chunks: Buffer[] = [];
      for await (const chunk of stream) chunks.push(chunk);
      received.push({
        ...parse(Buffer.concat(chunks).toString('utf8')),
        from: envelope.mailFrom ? envelope.mailFrom.address : '',
        to: envelope.rcptTo.map(({ address }) => address),
        user: user as string | undefined,
        secure,
      });
      callback();
    },
    ...options,
  });
  server.on('error', () => {});
  const listening = server.listen(port, '127.0.0.1');
  if (!listening.listening) await once(listening, 'listening');
  const close = (): Promise<void> => new Promise((resolve) => server.close(() => resolve()));
  t.teardown(close);
  return {
    port: (listening.address() as AddressInfo).port,
    received,
    async until(count) {
      await eventually(() => received.length >= count, `${count} mails`);
      return received;
    },
    close,
  };
}

function parse(raw: string): Pick<ReceivedMail, 'headers' | 'text'> {
  const end = raw.indexOf('\r\n\r\n');
  const fields = raw
    .slice(0, end)
    .replaceAll(/\r\n[ \t]/g, ' ')
    .split('\r\n');
  const headers = Object.fromEntries(
    fields.map((field) => [field.slice(0, field.indexOf(':')).toLowerCase(), field.slice(field.indexOf(':') + 2)]),
  );
  // A mail of several parts is left as it is: each part has an encoding of its own.
  const decode = decoders[(headers['content-transfer-encoding'] ?? '7bit') as keyof typeof decoders];
  return { headers, text: decode(raw.slice(end + 4)).replaceAll('\r\n', '\n') };
}

const decoders = {
  '7bit': (body: string) => body,
  base64: (body: string) => Buffer.from(body, 'base64').toString('utf8'),
  'quoted-printable': (body: string) => unquote(body.replaceAll('=\r\n', '')),
};

/** A header field with the encoded words of RFC 2047, in UTF-8, decoded. */
export const decodeWords = (field: string): string =>
  field
    .replaceAll(/\?= +=\?/g, '?==?')
    .replaceAll(/=\?UTF-8\?B\?([^?]*)\?=/g, (_, word) => decoders.base64(word))
    .replaceAll(/=\?UTF-8\?Q\?([^?]*)\?=/g, (_, word) => unquote(word.replaceAll('_', ' ')));

const unquote = (text: string): string =>
  Buffer.from(
    text.replaceAll(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  ).toString('utf8');
