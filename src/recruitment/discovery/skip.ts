/** Decides which hits become results: pure but for what is known of prospects. */
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { canonicalKey, channelOf, registrableDomain } from '../pages/key.ts';
import type { Channel, Hit } from '../search_providers/provider.ts';

export const skip_reasons = {
  not_a_prospect: 'it can be no prospect, and nothing of it is kept',
  own_site: "it is the brand's own site, or a competitor's",
  other_channel: 'it is in a channel that was not asked for',
  homepage: 'it is a homepage (`skip_homepages`)',
  same_domain: 'another result is on its domain (`one_per_domain`)',
  contacted: 'the prospect was sent an email within the given number of days (`skip_contacted_days`)',
  unsubscribed: 'the prospect unsubscribed (`skip_unsubscribed`)',
  in_campaign: 'the prospect is in a campaign, or was sent an email and has not answered (`skip_in_campaigns`)',
} as const;
export type SkipReason = keyof typeof skip_reasons;

export interface Filters {
  one_per_domain: boolean;
  skip_contacted_days: number | null;
  skip_unsubscribed: boolean;
  skip_in_campaigns: boolean;
  skip_homepages: boolean;
}
export const no_filters: Filters = {
  ...{ one_per_domain: false, skip_contacted_days: null, skip_unsubscribed: false },
  ...{ skip_in_campaigns: false, skip_homepages: false },
};

/** A hit, and who it is: null where it names no prospect. */
export interface Identified extends Hit {
  channel: Channel;
  key: string;
}

/** Undefined where its URL names no prospect. */
export function identify(hit: Hit): Identified | undefined {
  const channel = hit.channel ?? channelOf(hit.url);
  const key = channel && (hit.key ?? canonicalKey(channel, hit.url));
  return channel && key ? { ...hit, channel, key } : undefined;
}

interface Rules {
  filters: Filters;
  channels: Channel[];
  /** Domains of the brand and of its competitors. */
  own_domains: Set<string>;
  /** Domains of the results so far; it grows. */
  domains: Set<string>;
}

export const sites: Channel[] = ['website', 'podcast', 'newsletter', 'other'];

/** The reason why a hit is no result, by itself and those before it. */
export function skippedBy({ url, channel, key }: Identified, rules: Rules): SkipReason | undefined {
  const { filters, channels, own_domains, domains } = rules;
  const domain = registrableDomain(url) ?? '';
  if (own_domains.has(domain)) return 'own_site';
  if (channels.length > 0 && !channels.includes(channel)) return 'other_channel';
  if (filters.skip_homepages && isHomepage(url)) return 'homepage';
  const place = placeOf(channel, key);
  if (filters.one_per_domain && domains.has(place)) return 'same_domain';
  domains.add(place);
  return undefined;
}

/** A site of many is not one place: each account there is. */
export const placeOf = (channel: Channel, key: string): string => (sites.includes(channel) ? key : `${channel} ${key}`);

const isHomepage = (url: string): boolean => {
  const parsed = URL.parse(url);
  return parsed !== null && parsed.search === '' && /^\/(?:index\.\w{3,5})?$/.test(parsed.pathname);
};

interface KnownRow {
  channel: Channel;
  key: string;
  reason: SkipReason;
}

/** The hits that are not to be found, because of what the organization knows of them, whichever of its brands they were found for. */
export async function skippedByHistory(
  tx: Tx,
  hits: Identified[],
  { skip_contacted_days, skip_unsubscribed, skip_in_campaigns }: Filters,
): Promise<Map<string, SkipReason>> {
  if (hits.length === 0) return new Map();
  const given = hits.map(({ channel, key }) => ({ channel, key }));
  const rows = await tx.all<KnownRow>(sql`
    select r.channel, r.key, (array_agg(k.reason order by k.rank))[1] as reason
    from (select distinct g.channel, g.key from json_to_recordset(${JSON.stringify(given)}::json) as g (channel text, key text)) as r
    join recruitment.brand b on b.organization_id = ${tx.organization_id}
    join recruitment.prospect p
      on p.organization_id = b.organization_id and p.brand_id = b.id and p.channel = r.channel and p.key = r.key
    cross join lateral (
      values
        (1, 'unsubscribed', ${skip_unsubscribed}::boolean and p.unsubscribed_at is not null),
        (2, 'contacted', p.last_sent_at > ${tx.now}::timestamptz - make_interval(days => ${skip_contacted_days}::integer)),
        (3, 'in_campaign', ${skip_in_campaigns}::boolean and (p.sent > 0 and p.stage = 'contacted' or exists (
          select from recruitment.sequence s
          where s.organization_id = p.organization_id and s.prospect_id = p.id and s.open)))
    ) as k (rank, reason, holds)
    where k.holds
    group by r.channel, r.key`);
  return new Map(rows.map(({ channel, key, reason }) => [`${channel} ${key}`, reason]));
}
