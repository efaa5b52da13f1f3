/** What the answer to a login says of the login: pure values. */

/** RFC 5530, and what Gmail and Exchange add to it: the login is refused, whatever else is said. */
const refusals = [
  ...['AUTHENTICATIONFAILED', 'AUTHORIZATIONFAILED', 'EXPIRED', 'PRIVACYREQUIRED', 'CONTACTADMIN'],
  ...['NOPERM', 'WEBALERT'],
];
/** The login may be right: later the answer may be another one. */
const hindrances = ['UNAVAILABLE', 'LIMIT', 'INUSE', 'SERVERBUG', 'THROTTLED', 'OVERQUOTA', 'CORRUPTION'];

/** The same in words, for servers that give no code. */
const hindrance_texts = new RegExp(
  [
    /temporar|unavailable|too many|throttl|overload|\bbusy\b|in use|maintenance|time(d|s)?[ -]?out|but not connected/,
    /(internal|server|system|backend|database) (error|failure)|(limit|quota|number of \w+)( \S+){0,4} (reached|exceeded)/,
    /try(ing)? (again )?later|again (later|in )/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'i',
);

/** Whether an IMAP server's NO says that the login is wrong. A NO without a code or a reason does. @param code of RFC 5530, without brackets */
export function isImapRefusal(code: string | undefined, text: string): boolean {
  const given = (code ?? '').toUpperCase();
  if (refusals.includes(given)) return true;
  return !hindrances.includes(given) && !hindrance_texts.test(text);
}

/** The same of an SMTP server's 5xx, whose text may have a status of RFC 3463. */
export const isSmtpRefusal = (text: string): boolean =>
  !/\b4\.\d{1,3}\.\d{1,3}\b/.test(text) && !hindrance_texts.test(text);
