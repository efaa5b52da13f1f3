/** The provider `index`: full text over the pages that were fetched for the organization. */
import sql from 'sql-template-tag';
import { type Store, transaction } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import type { FindPages, Hit } from '../search_providers/provider.ts';

interface Found {
  url: string;
  title: string;
  description: string;
  language_code: string | null;
}

/** By links where a domain is given, else by words, the best first. */
export const findPagesOf =
  (store: Store, organization_id: string): FindPages =>
  ({ text, links_to, language }, limit, after) =>
    transaction(store, { organization_id, request_id: null }, async (tx) => {
      const query = sql`recruitment.search_query(${text})`;
      const matches = links_to === undefined ? sql`t.search @@ ${query}` : sql`t.linked_domains @> array[${links_to}]`;
      const spoken = language === null ? sql`true` : sql`t.language_code = ${language}`;
      const rank = links_to === undefined ? sql`ts_rank(t.search, ${query}) desc,` : sql``;
      const found = await tx.all<Found>(sql`
        select t.url, t.title, t.description, t.language_code
        from recruitment.page t
        where ${tenant(tx)} and ${matches} and ${spoken}
        order by ${rank} t.url
        limit ${limit} offset ${after}`);
      return found.map(hitOf);
    });

const hitOf = ({ language_code, ...page }: Found): Hit => (language_code === null ? page : { ...page, language_code });
