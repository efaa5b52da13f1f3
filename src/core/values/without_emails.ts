const at = /[@＠﹫]|%(?:25)*40|&#0{0,8}64;|&#x0{0,8}40;|&commat;|[[({][ \t]{0,3}at[ \t]{0,3}[\])}]/i;
/** Other ways to write `@`. */
const written_at = /[＠﹫]|&#0{0,8}64;|&#x0{0,8}40;|&commat;|[ \t]{0,3}[[({][ \t]{0,3}at[ \t]{0,3}[\])}][ \t]{0,3}/gi;
/** `ada @ example.com`, but not `Berlin @ night`. */
const spaced_at = /[ \t]{0,3}@[ \t]{1,3}(?=[^ \t\n/?&=#:;,<>()"@.]{1,63}[.][^ \t\n/?&=#:;,<>()"@.])/g;
const quoted_local = /"[^"\n]{1,64}"@/g;
/** What stands between the separators of a URL or a sentence. */
const word = /[^\s/?&=#:;,<>()"]+/g;
const email = /^.+?(?:@|%(?:25)*40)./s;

/**
 * A text with each email address in it replaced by `hidden`, also in a URL, encoded or in a path, or written so that machines do not find it. It
 * takes time in proportion to the length of the text, which visitors choose. `data.without_emails` is the same in SQL.
 */
export const withoutEmails = (text: string): string =>
  at.test(text)
    ? text
        .replaceAll(written_at, '@')
        .replaceAll(spaced_at, '@')
        .replaceAll(quoted_local, 'quoted@')
        .replaceAll(word, (found) => (email.test(found) ? 'hidden' : found))
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
