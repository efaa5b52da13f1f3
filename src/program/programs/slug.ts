import { withoutEmails } from '../../core/values/texts/without_emails.ts';

/**
 * The name in lowercase letters without diacritics, digits and single hyphens. Of an email address in it, which who sees no personal data is
 * not shown, nothing.
 */
export const slugOf = (name: string): string =>
  withoutEmails(name, ' ')
    .normalize('NFKD')
    .replaceAll(/\p{M}+/gu, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
    .slice(0, 48)
    .replace(/-$/, '');
