/**
 * A text with each email address in it replaced, also in a URL, encoded or in a path, or written so that machines do not find it. It takes time in
 * proportion to the length of the text, which visitors choose. `data.without_emails` is the same in SQL.
 */

/** A quick test for texts that may hold an address: most do not. */
const sign =
  /[@＠﹫]|%(?:25)*40|%(?:25)*EF%(?:25)*B(?:C%(?:25)*A0|9%(?:25)*AB)|#0{0,8}64;|#x0{0,8}40;|&commat;|[\s[({<_]at[\s\])}>_]/i;
/** Other ways to write `@`. In a URL, a parameter may have come between `&` and `#64;`. */
const written_at =
  /[＠﹫]|%(?:25)*EF%(?:25)*B(?:C%(?:25)*A0|9%(?:25)*AB)|(?:&|(?<=[a-z0-9]))#(?:0{0,8}64|x0{0,8}40);(?=[a-z0-9])|&commat;|\s{0,3}[[({<]\s{0,3}at\s{0,3}[\])}>]\s{0,3}/gi;
/** `ada_at_example.com`, but not `photo_at_night.jpg`. */
const joined_at =
  /_at_(?=[^\s/?&=#:;,<>()"@._]{1,63}[.](?!(?:html?|php|aspx?|jpe?g|png|gif|webp|svg|pdf|css|js)(?![a-z0-9.-]))[a-z])/gi;
/** `ada AT example.com`, but not `BUY AT EXAMPLE.COM`; `ada at example dot com`, but not `meet at noon. Bring it`. */
const upper_at = /(?<=[a-z0-9])\s{1,3}AT\s{1,3}(?=[^\s/?&=#:;,<>()"@.]{1,63}[.][a-z])/g;
const spelt_at = /\s{1,3}at\s{1,3}(?!(?:the|an?|this|that)\s)([^\s/?&=#:;,<>()"@.]{1,63})\s{1,3}dot\s{1,3}(?=[a-z])/gi;
/** `ada @ example.com` and `ada @ example . com`, but neither `Berlin @ night` nor `2 @ 3.50`. */
const spaced_dot = /(@\s{0,3}[^\s/?&=#:;,<>()"@.]{1,63})[ \t]{1,3}[.][ \t]{1,3}(?=[^\s/?&=#:;,<>()"@.])/g;
const spaced_at = /\s{0,3}@\s{1,3}(?=[^\s/?&=#:;,<>()"@.]{1,63}[.][^\s\d/?&=#:;,<>()"@.])/g;
const at_of_line = /\s{1,3}@(?=[^\s/?&=#:;,<>()"@.]{1,63}[.][a-z])/gi;
const quoted_local = /"[^"\n]{1,64}"@/g;
/** A run of text between the separators of a URL or a sentence. */
const word = /[^\s/?&=#:;,<>()"]+/g;
const email = /^.+?(?:@|%(?:25)*40)./s;

/** @param by what each address is replaced by */
export const withoutEmails = (text: string, by = 'hidden'): string =>
  sign.test(text)
    ? text
        .replaceAll(written_at, '@')
        .replaceAll(joined_at, '@')
        .replaceAll(upper_at, '@')
        .replaceAll(spelt_at, '@$1.')
        .replaceAll(spaced_dot, '$1.')
        .replaceAll(spaced_at, '@')
        .replaceAll(at_of_line, '@')
        .replaceAll(quoted_local, 'quoted@')
        .replaceAll(word, (found) => (email.test(found) ? by : found))
    : text;

/** The same of a text, or of an array or object of texts. */
export function withoutEmailsIn(value: unknown): unknown {
  if (typeof value === 'string') return withoutEmails(value);
  if (Array.isArray(value)) return value.map(withoutEmailsIn);
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [withoutEmails(name), withoutEmailsIn(inner)]),
  );
}
