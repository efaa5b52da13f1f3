import { type Fields, readFields } from '../message/fields.ts';
import { addressesIn, idsIn, type Message } from '../message/message.ts';

/** The part of the original mail that a bounce returns. */
export interface ReturnedMail {
  /** Null where nothing of it came back. */
  fields: Fields | null;
  message_id: string | null;
  to: string[];
  /** The report's own words, without what it returns. */
  words: string;
}

const returned_types = /^(?:message\/(?:rfc822|global|partial)|(?:text|message)\/(?:rfc822|global)-headers?)$/;
const header_line =
  /^(?:Return-Path|Received|Delivered-To|Message-ID|From|To|Subject|Date|MIME-Version|X-[A-Za-z0-9-]+|DKIM-Signature|ARC-Seal|Reply-To|Content-[A-Za-z-]+|User-Agent|Sender|Cc)[ \t]*:/i;
const telling_line = /^(?:Return-Path|Received|Message-ID|From|To|Subject|Date)[ \t]*:/i;
const marker =
  /^\W{0,40}(?:(?:below this line|this|included|enclosed|attached|here) is (?:a |the )?(?:copy of |header of )?(?:the |your )?(?:original |returned )?(?:message|mail|header)|(?:the )?(?:original|returned|undelivered|unsent|bounced|rejected) (?:e-?)?(?:message|mail)(?: (?:headers?|follows?|info|body|text|below|is))*|message headers? follows?|(?:---.*)?the header of the original message.*|start of returned message|original message headers?)\b[^@]{0,80}$/i;

/** Separates a report's own words from the mail that it returns, which is a part of it or the end of its text. */
export function readReturnedMail({ parts, text }: Message): ReturnedMail {
  const lines = text.split('\n');
  const begin = beginOfReturned(lines);
  const words = lines.slice(0, begin).join('\n');
  const part =
    parts.find(({ type }) => returned_types.test(type)) ?? parts.find(({ text: body }) => looksLikeHeader(body));
  const fields = part ? readFields(part.text) : headerFrom(lines, begin);
  return {
    fields,
    message_id: fields ? (idsIn(fields.get('message-id'))[0] ?? null) : idInWords(text),
    to: fields?.all('to').flatMap((value) => addressesIn(value).map(({ address }) => address)) ?? [],
    words,
  };
}

/** The first line of what is returned: a line that announces it, or the begin of a header. */
function beginOfReturned(lines: string[]): number {
  const first_words = lines.findIndex((line) => /\p{L}{2}/u.test(line));
  if (first_words < 0) return lines.length;
  for (const [index, line] of lines.entries()) {
    if (index <= first_words) continue;
    if (line.length < 160 && marker.test(line) && restHasHeader(lines, index)) return index;
    if (header_line.test(line) && headerLinesFrom(lines, index) >= 3) return index;
  }
  return lines.length;
}

/** Returns whether a header, or nothing, follows an announcement: the header may be in a part of its own. */
function restHasHeader(lines: string[], from: number): boolean {
  const rest = lines.slice(from + 1, from + 12).filter((line) => line.trim() !== '');
  return rest.length === 0 || rest.slice(0, 4).some((line) => header_line.test(line.trim()));
}

function headerLinesFrom(lines: string[], from: number): number {
  let count = 0;
  for (const line of lines.slice(from, from + 60)) {
    if (header_line.test(line)) count += 1;
    else if (!/^[ \t]+\S/.test(line)) break;
  }
  return count;
}

function headerFrom(lines: string[], begin: number): Fields | null {
  const first = lines.findIndex((line, index) => index >= begin && header_line.test(line.trim()));
  return first < 0 ? null : readFields(lines.slice(first, first + 400).join('\n'));
}

const looksLikeHeader = (text: string): boolean =>
  text.split('\n', 30).filter((line) => telling_line.test(line)).length >= 3;

/** `Message-id: <…>` among the words, as Sun's and Oracle's servers write. */
function idInWords(text: string): string | null {
  const found = /^[^\S\n\r\u2028\u2029]*message-id\s*:\s*(<[^<>\s]{1,500}>)/im.exec(text);
  return found ? (idsIn(found[1] as string)[0] ?? null) : null;
}
