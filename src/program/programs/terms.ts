import type { Program } from './program.ts';

type Terms = Pick<Program, 'terms_url' | 'terms_version'>;

/**
 * Returns the terms of a program as a change leaves them. New terms are a new version, which partners are asked to accept: the version that is sent,
 * or else the date of the change, with `-2`, `-3` … for further ones of a day. Without terms there is no version, unless one is sent.
 * @param now ISO 8601, UTC
 */
export function termsAfter(
  before: Terms,
  changes: { [field in keyof Terms]?: Terms[field] | undefined },
  now: string,
): Terms {
  const { terms_url = before.terms_url, terms_version } = changes;
  if (typeof terms_version === 'string') return { terms_url, terms_version };
  if (terms_url === null) return { terms_url, terms_version: null };
  const is_kept = terms_url === before.terms_url && before.terms_version !== null && terms_version !== null;
  return { terms_url, terms_version: is_kept ? before.terms_version : dateOf(now, before.terms_version) };
}

function dateOf(now: string, before: string | null): string {
  const date = now.slice(0, 10);
  const [, of_day, nth] = /^(\d{4}-\d{2}-\d{2})(?:-(\d{1,6}))?$/.exec(before ?? '') ?? [];
  return of_day === date ? `${date}-${Number(nth ?? 1) + 1}` : date;
}
