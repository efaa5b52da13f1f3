import PostalMime, { addressParser, decodeWords, type Email } from 'postal-mime';
import { Fields, readFields } from './fields.ts';
import { withShortLines } from './short_lines.ts';
import { type Limits, limits, shorten } from './shorten.ts';

/** A mail as the rest of this folder reads it. */
export interface Message {
  fields: Fields;
  /** Lower case; empty where there is none, as in `From: MAILER-DAEMON`. */
  from: string;
  /** The name, or whatever stands in From instead of an address. */
  from_name: string;
  to: string[];
  subject: string;
  /** Null where the mail has no date that can be read. */
  date: Date | null;
  /** Without angle brackets, as all ids of messages here. */
  message_id: string | null;
  /** In-Reply-To and References, the nearest first. */
  answers: string[];
  /** The text that it shows; empty where it has HTML alone. */
  text: string;
  html: string;
  /** All parts that are not the text: reports, returned mails, attachments. */
  parts: Part[];
  /** False where something of it could not be read. */
  readable: boolean;
}

/** The fields of a mail that was classified elsewhere: its headers and parts stay there. */
export type ReadMessage = Omit<Message, 'fields' | 'html' | 'parts'>;

export interface Part {
  /** Lower case: `message/delivery-status`. */
  type: string;
  text: string;
}

const parser_limits = { maxNestingDepth: 50, maxHeadersSize: 1 << 20, maxRfc822NestingDepth: 0 };
const longest_text = 256 << 10;

/** Reads a mail. It never throws: what cannot be parsed is read as plain text, and `readable` is false. */
export async function readMessage(raw: Uint8Array, limit: Limits = limits): Promise<Message> {
  const { bytes, whole } = shorten(raw, limit);
  try {
    const email = await PostalMime.parse(bytes, { ...parser_limits, forceRfc822Attachments: true });
    const message = fromEmail(email);
    if (!isEmptyMultipart(message, bytes)) return { ...message, readable: message.readable && whole };
  } catch {
    // Too deep, too long a header, or broken in a way that the parser does not know: the plain reading follows.
  }
  return readPlainly(bytes);
}

/** A text without a header, classified as a mail would be. */
export function plainMessage(fields: { subject?: string; text: string }): Message {
  return { ...nothing(), subject: oneLine(fields.subject ?? ''), text: toLines(fields.text) };
}

const nothing = (): Message => ({
  fields: new Fields(),
  from: '',
  from_name: '',
  to: [],
  subject: '',
  date: null,
  message_id: null,
  answers: [],
  text: '',
  html: '',
  parts: [],
  readable: true,
});

function fromEmail({ headers, text = '', html = '', attachments }: Email): Message {
  const fields = new Fields(headers.map(({ key, value }) => [key, value]));
  return {
    ...fromFields(fields),
    text: toLines(text),
    html: html.slice(0, longest_text),
    parts: attachments.map(({ mimeType, content }) => ({ type: mimeType, text: textOf(mimeType, content) })),
    readable: text.length <= longest_text && html.length <= longest_text,
  };
}

function fromFields(fields: Fields): Message {
  const [sender] = addressesIn(fields.get('from'));
  const date = new Date(fields.get('date'));
  return {
    ...nothing(),
    fields,
    from: sender?.address ?? '',
    from_name: sender?.name || decoded(fields.get('from')),
    to: fields.all('to').flatMap((value) => addressesIn(value).map(({ address }) => address)),
    subject: oneLine(decoded(fields.get('subject'))),
    date: Number.isNaN(date.getTime()) ? null : date,
    message_id: idsIn(fields.get('message-id'))[0] ?? null,
    answers: [...new Set([...idsIn(fields.get('in-reply-to')), ...idsIn(fields.get('references')).reverse()])],
  };
}

/** A multipart whose boundary never comes has neither text nor parts, although its body may well say something. */
function isEmptyMultipart({ fields, text, html, parts }: Message, bytes: Uint8Array): boolean {
  const is_empty = text.trim() === '' && html === '' && parts.length === 0;
  return is_empty && /^multipart\//i.test(fields.get('content-type')) && bytes.length > 0;
}

function readPlainly(bytes: Uint8Array): Message {
  const raw = new TextDecoder().decode(bytes);
  const end = /\r?\n\r?\n/.exec(raw);
  const header = raw.slice(0, Math.min(end?.index ?? raw.length, longest_text));
  const body = end ? raw.slice(end.index) : '';
  return { ...fromFields(readFields(header)), text: toLines(body), readable: false };
}

/** Bodies of attachments are of no interest: reports, returned mails and texts are. */
function textOf(type: string, content: ArrayBuffer | Uint8Array | string): string {
  if (!/^(?:message\/|text\/|multipart\/|application\/ics$)/.test(type)) return '';
  if (typeof content === 'string') return toLines(content);
  return toLines(new TextDecoder().decode(new Uint8Array(content).subarray(0, longest_text)));
}

const toLines = (text: string): string =>
  withShortLines(text.slice(0, longest_text).replace(/\r\n?/g, '\n').replaceAll('\0', ''));
const oneLine = (text: string): string => text.slice(0, 1_000).replace(/\s+/g, ' ').trim();

function decoded(value: string): string {
  try {
    return decodeWords(value.slice(0, 10_000));
  } catch {
    return value.slice(0, 10_000);
  }
}

const address = /^[^\s<>()",;:]{1,64}@[^\s<>()",;:@]{1,253}$/;

/** The addresses of a header field, in lower case. */
export function addressesIn(value: string): { name: string; address: string }[] {
  try {
    return addressParser(value.slice(0, 10_000), { flatten: true }).flatMap((found) =>
      found.address && address.test(found.address) ? [{ name: found.name, address: found.address.toLowerCase() }] : [],
    );
  } catch {
    return [];
  }
}

/** The ids in `<a@b> <c@d>`, without brackets; the one of a broken field that has none is taken as it stands. */
export function idsIn(value: string): string[] {
  const found = [...value.slice(0, 20_000).matchAll(/<\s*([^<>\s]{1,500})\s*>/g)].map(([, id]) => id as string);
  if (found.length > 0) return found.slice(0, 100);
  const bare = value.trim();
  return /^[^\s<>]{1,500}@[^\s<>]{1,250}$/.test(bare) ? [bare] : [];
}
