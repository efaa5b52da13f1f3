/** Paths that say by their form, at any host, that its site has many owners: `/@ann`, `/~ann`, `/profile/ann`. */
import { own_pages } from './account_pages.ts';

interface Form {
  /** The text before the name. */
  before: string;
  /** Nothing follows the name: of such a path it is as often a part of one owner's site. */
  is_whole?: boolean;
}

/** By what they are called in a key: `ann._at.mastodon.social`. No host has such a name. */
const forms: Record<string, Form> = {
  _at: { before: '@' },
  _tilde: { before: '~' },
  ...Object.fromEntries(['u', 'user', 'users', 'profile', 'profiles'].map((word) => [`_${word}`, formOf(word)])),
  ...Object.fromEntries(
    ['c', 'in', 'people', 'member', 'members'].map((word) => [`_${word}`, formOf(word, { is_whole: true })]),
  ),
};

function formOf(word: string, more: Partial<Form> = {}): Form {
  return { before: `${word}/`, ...more };
}

/** A language may stand before it, and what shows the account. */
const start = '^/(?:[a-z]{2}(?:-[a-z]{2})?/)?(?:(?:web|deck)/)?';
const no_account = `(?:${own_pages}|contact-us|about-us|sign_in|sign_up|password|me|new|edit|delete)`;
const patterns = Object.entries(forms).map(([form, { before, is_whole }]): [form: string, path: RegExp] => {
  const may_be_own = before.endsWith('/');
  const name = `${may_be_own ? `(?!${no_account}(?:/|$))` : ''}([^/]+)`;
  return [form, new RegExp(`${start}${before}${name}${is_whole ? '/?$' : '(?:/|$)'}`, 'i')];
});

/** The account that a path names by its form. */
export function accountOfForm(path: string): { form: string; name: string } | undefined {
  for (const [form, pattern] of patterns) {
    const name = pattern.exec(path)?.[1];
    if (name !== undefined) return { form, name };
  }
  return undefined;
}

const key_form = new RegExp(`^(.+)\\.(${Object.keys(forms).join('|')})\\.([^/]+)$`, 'i');

/** The address and the name of a key that names an account by such a form. */
export function templateOfForm(key: string): [template: string, name: string] | undefined {
  const [, name, form, host] = key_form.exec(key) ?? [];
  if (name === undefined || form === undefined || host === undefined) return undefined;
  return [`https://${host}/${(forms[form.toLowerCase()] as Form).before}{}`, name];
}
