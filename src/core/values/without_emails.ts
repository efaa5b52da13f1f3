/**
 * A text with each email address in it replaced by `hidden`, also in a URL, encoded or in a path. `data.without_emails` is the same in SQL.
 */
export const withoutEmails = (text: string): string =>
  text.replaceAll(/[^\s/?&=#:;,<>()"']+(?:@|%(?:25)*40)[^\s/?&=#:;,<>()"']+/g, 'hidden');
