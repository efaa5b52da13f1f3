/** Interprets the answer of a server to a login: pure functions. */
import { storable } from '../../core/values/texts/stored_text.ts';

/** RFC 5530, and what Gmail and Exchange add to it: the login is refused, whatever else is said. */
const refusals = [
  ...['AUTHENTICATIONFAILED', 'AUTHORIZATIONFAILED', 'EXPIRED', 'PRIVACYREQUIRED', 'CONTACTADMIN'],
  ...['NOPERM', 'WEBALERT'],
];
/** The login may be right: later the answer may be another one. */
const temporary_codes = ['UNAVAILABLE', 'LIMIT', 'INUSE', 'SERVERBUG', 'THROTTLED', 'OVERQUOTA', 'CORRUPTION'];

/** The same in words, for servers that give no code. */
const temporary_texts = new RegExp(
  [
    /temporar|unavailable|too many|throttl|overload|\bbusy\b|in use|maintenance|time(d|s)?[ -]?out|but not connected/,
    /(internal|server|system|backend|database) (error|failure)|(limit|quota|number of \w+)( \S+){0,4} (reached|exceeded)/,
    /try(ing)? (again )?later|again (later|in )/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'i',
);

/** Returns whether an IMAP server's NO says by its code that the login is wrong. Words, of whatever language, may mean something else. */
export const isCertainOfImap = (code: string | undefined): boolean => refusals.includes((code ?? '').toUpperCase());

/**
 * Returns whether an IMAP server's NO says that the login is wrong. A NO without a code or a reason does.
 * @param code of RFC 5530, without brackets
 */
export function isImapRefusal(code: string | undefined, text: string): boolean {
  if (isCertainOfImap(code)) return true;
  return !temporary_codes.includes((code ?? '').toUpperCase()) && !temporary_texts.test(text);
}

/** The same of an SMTP server's 5xx, whose text may have a status of RFC 3463. */
export const isSmtpRefusal = (text: string): boolean =>
  !/\b4\.\d{1,3}\.\d{1,3}\b/.test(text) && !temporary_texts.test(text);

const most_characters = 200;

/** Returns a server's response to a login on one line, without the secrets that it was sent. Undefined: it said nothing. */
export function wordsOf(parts: (string | undefined)[], shown: string[]): string | undefined {
  const text = parts
    .filter((part) => part)
    .join(' ')
    .replaceAll(/[\s\p{Cc}]+/gu, ' ')
    .trim();
  const secrets = shown.flatMap((each) => [each, Buffer.from(each).toString('base64')]).filter((each) => each !== '');
  const said = secrets.reduce((words, secret) => words.replaceAll(secret, '…'), text);
  return said === '' ? undefined : storable(said, most_characters);
}
