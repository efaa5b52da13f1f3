/** The pages that were fetched for an organization: kept with each visit, and searched by the provider `index`, full text. */
import sql from 'sql-template-tag';
import { type Store, type Tx, transaction } from '../../core/postgres/transaction.ts';
import { storable } from '../../core/values/texts/stored_text.ts';
import { registrableDomain } from '../pages/key.ts';
import type { Page } from '../pages/page.ts';
import type { FindPages, Hit } from '../search_providers/provider.ts';

const most_text = 50_000;
const most_domains = 200;

/** Keeps a page as it is now, for whom it was fetched. */
export async function storePageOf(tx: Tx, prospect_id: string, asked_url: string, page: Page): Promise<void> {
  const url = page.url.length <= 2_048 ? page.url : asked_url;
  const host = URL.parse(url)?.hostname ?? '';
  const domain = registrableDomain(url) ?? host;
  await tx.all(sql`
    insert into recruitment.page as t (
      organization_id, url, host, domain, title, description, text, language_code, linked_domains, fetched_at, channel, key
    )
    select
      ${tx.organization_id}, ${url}, ${host}, ${domain}, ${storable(page.title ?? '', 500)}, ${storable(page.description ?? '', 2_000)},
      ${storable(page.text, most_text)}, ${page.language_code}, ${linkedDomains(page, domain)}::text[], ${tx.now}::timestamptz, p.channel, p.key
    from recruitment.prospect p
    where p.organization_id = ${tx.organization_id} and p.id = ${prospect_id}
    on conflict (organization_id, url) do update
    set
      title = excluded.title, description = excluded.description, text = excluded.text, language_code = excluded.language_code,
      linked_domains = excluded.linked_domains, fetched_at = excluded.fetched_at`);
}

const linkedDomains = ({ links }: Page, own: string): string[] =>
  [...new Set(links.flatMap(({ url }) => registrableDomain(url) ?? []))]
    .filter((domain) => domain !== own)
    .slice(0, most_domains);

interface Found {
  url: string;
  title: string;
  description: string;
  language_code: string | null;
}

/** Finds pages by links where a domain is given, else by words, the best first. */
export const findPagesOf =
  (store: Store, organization_id: string): FindPages =>
  (asked, limit, after) =>
    transaction(store, { organization_id, request_id: null }, (tx) => findPages(tx, asked, limit, after));

export async function findPages(tx: Tx, ...[{ text, links_to, language }, limit, after]: Parameters<FindPages>) {
  const found = await tx.all<Found>(sql`
    select p.url, p.title, p.description, p.language_code
    from recruitment.find_pages(${text}, ${links_to ?? null}, ${language}, ${limit}, ${after}) as p`);
  return found.map(hitOf);
}

const hitOf = ({ language_code, ...page }: Found): Hit => (language_code === null ? page : { ...page, language_code });
