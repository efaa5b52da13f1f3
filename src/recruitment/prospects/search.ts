import sql, { join, type Sql } from 'sql-template-tag';
import { z } from 'zod';
import type { Filter, Finder } from '../../core/resource/list_query.ts';
import { country, id, language } from '../../core/values/fields.ts';
import { canonicalKey, channelOf } from '../pages/key.ts';

type Query = Record<string, unknown>;

/** The filters that stand among the words of the search column, so that full text with them is one look-up. */
const indexed = {
  ...{ brand_id: 'brand', stage: 'stage', channel: 'channel', source: 'source', country_code: 'country' },
  ...{ language_code: 'language', saved: 'saved', hidden: 'hidden', has_email: 'email' },
} as const;

const lexemesOf = (query: Query): string[] =>
  Object.entries(indexed).flatMap(([field, word]) => (query[field] === undefined ? [] : [`${word}=${query[field]}`]));

/** Full text: the words, quoted phrases, `or` and `-` of a search box, in the texts of the prospect. */
const q: Filter = {
  schema: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe(
      'Full-text search in key, name and description: all words, `"a phrase"`, `or`, and `-` before a word to exclude. Letter case and accents are ignored. A URL finds the prospect of its website or account.',
    ),
  where: (value: string, query: Query) =>
    sql`t.id = any(array(select recruitment.find_prospects(${lexemesOf(query)}::text[], ${withKeys(value)})))`,
};

const urls = /(?:https?:\/\/|\bwww\.)[^\s"]+|(?<![^\s"-])[\w-]+(?:\.[\w-]+)+\/[^\s"]*/giu;

/** A search text with the key of the prospect in place of each URL; a text that is a URL may stand in a description as well. */
export function withKeys(text: string): string {
  const keyed = text.replaceAll(urls, (url) => canonicalKey(channelOf(url) ?? 'website', url) ?? url);
  const is_url = keyed !== text && text.replace(urls, '') === '';
  return is_url ? `${keyed} or ${text}` : keyed;
}

/** A list that would skip more rows than this to fill a page uses the index of words for its filters. */
const most_passed_over = 20_000;

export const finder: Finder = {
  suits: (used, total, limit) =>
    used.includes('q') ||
    (total !== undefined &&
      used.length > 0 &&
      used.every((name) => name in indexed) &&
      (total.of / total.count) * limit > most_passed_over),
  page: ({ q: text, ...query }: Query, { beyond, ascending, most }) => sql`
    select f.count, f.ids
    from recruitment.prospect_page(
      ${lexemesOf(query)}::text[], ${typeof text === 'string' ? withKeys(text) : null}, ${JSON.stringify(query)}::jsonb, ${beyond}, ${ascending}, ${most}) f`,
};

const flag = (meaning: string, holds: Sql, does_not: Sql): Filter => ({
  schema: z.enum(['true', 'false']).optional().describe(meaning),
  where: (value: string) => (value === 'true' ? holds : does_not),
});
const known = (meaning: string, column: Sql): Filter =>
  flag(meaning, sql`${column} is not null`, sql`${column} is null`);

const at_least = (meaning: string, comparison: Sql): Filter => ({
  schema: z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER).optional().describe(meaning),
  where: (value: number) => join([sql`t.followers`, comparison, sql`${value}`], ' '),
});

const coded = (column: Sql, code: z.ZodType<string>, example: string): Filter => ({
  schema: code.optional().meta({ examples: [example] }),
  where: (value: string) => sql`${column} = ${value}`,
});

const run = (noun: string): Filter => ({
  schema: id('fsc').min(1).optional().describe(`Returns only prospects that this ${noun} found.`),
  where: (value: string) => sql`t.source_run_id = ${value}`,
});

export const filters: Record<string, Filter> = {
  q,
  country_code: coded(sql`t.country_code`, country, 'DE'),
  language_code: coded(sql`t.language_code`, language, 'de'),
  saved: flag('Whether they are saved.', sql`t.saved`, sql`not t.saved`),
  hidden: flag('Whether they are hidden. By default, hidden ones are listed too.', sql`t.hidden`, sql`not t.hidden`),
  list_id: {
    schema: id('fls').min(1).optional().describe('Returns only prospects in this list.'),
    where: (value: string) => sql`t.id in (
      select x.prospect_id from recruitment.list_prospect x
      where x.organization_id = t.organization_id and x.list_id = ${value})`,
  },
  assignee_member_id: {
    schema: id('tm').min(1).optional().describe('Returns only prospects of this assignee. `none`: those without one.'),
    where: (value: string) =>
      value === 'none' ? sql`t.assignee_member_id is null` : sql`t.assignee_member_id = ${value}`,
  },
  min_followers: at_least('Returns only prospects with at least so many followers.', sql`>=`),
  max_followers: at_least('Returns only prospects with at most so many followers.', sql`<=`),
  has_email: flag(
    'Whether a usable address is known.',
    sql`t.email_status in ('found', 'verified')`,
    sql`t.email_status in ('none', 'bounced')`,
  ),
  do_not_contact: known('Whether they are marked Do not contact.', sql`t.do_not_contact_reason`),
  unsubscribed: known('Whether they unsubscribed.', sql`t.unsubscribed_at`),
  invited: known('Whether they were invited.', sql`t.invited_at`),
  signed_up: known('Whether they signed up.', sql`t.signed_up_at`),
  search_id: run('search'),
  scan_id: run('scan'),
};
