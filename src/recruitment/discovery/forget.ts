/** Forgets what searches keep of persons who are erased: URLs that a search was given, and results that were skipped. */
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import type { Prospect } from '../prospects/prospect.ts';
import { updateRun } from '../runs/run.ts';
import { identify, sites } from './skip.ts';

type Person = Pick<Prospect, 'brand_id' | 'channel' | 'key'>;

/** The text in place of a URL. A list stays as long as it is, so that a search goes on where it stands. */
const forgotten_url = 'urn:rail:erased';

/** Results with a prospect go with it. */
export async function forgetInSearches(tx: Tx, persons: Person[]): Promise<void> {
  const names = new Set(persons.map(nameOf));
  const searches = await tx.all<{ id: string; brand_id: string; query: string; steps: string | null }>(sql`
    select t.id, t.brand_id, t.request ->> 'query' as query, t.steps::text as steps
    from recruitment.run t
    where t.organization_id = ${tx.organization_id} and t.brand_id = any(${persons.map(({ brand_id }) => brand_id)})
      and t.kind = 'search' and t.search_type = 'url_list'
    order by t.id
    for no key update`);
  for (const { id, brand_id, query, steps } of searches) {
    const named = query.split(/\s+/).filter((url) => isNamed(names, brand_id, url));
    if (named.length > 0) await forgetUrls(tx, id, new Set(named), query, steps);
  }
  await forgetSkipped(tx, persons);
}

/** A site is the same in each channel of sites. */
const nameOf = ({ brand_id, channel, key }: Person): string =>
  `${brand_id} ${sites.includes(channel) ? 'website' : channel} ${key}`;

function isNamed(names: Set<string>, brand_id: string, url: string): boolean {
  const who = identify({ url, title: '', description: '' });
  return who !== undefined && names.has(nameOf({ ...who, brand_id }));
}

async function forgetUrls(tx: Tx, id: string, urls: Set<string>, query: string, steps: string | null): Promise<void> {
  const left = query.replace(/\S+/g, (url) => (urls.has(url) ? forgotten_url : url));
  const asked = JSON.stringify(JSON.parse(steps ?? 'null'), (_, value) => (urls.has(value) ? forgotten_url : value));
  await updateRun(
    tx,
    id,
    sql`request = jsonb_set(t.request, '{query}', to_jsonb(${left}::text)),
      steps = case when t.steps is not null then ${asked}::jsonb end`,
  );
}

const forgetSkipped = (tx: Tx, persons: Person[]): Promise<object[]> =>
  tx.all(sql`
    update recruitment.run_result t
    set url = 'urn:rail:skipped:' || t.id, title = '', description = '', channel = null, key = null, skipped_because = 'not_a_prospect'
    from json_to_recordset(${JSON.stringify(persons)}::json) as p (brand_id text, channel text, key text)
    join recruitment.run r on r.organization_id = ${tx.organization_id} and r.brand_id = p.brand_id
    where t.organization_id = r.organization_id and t.run_id = r.id and t.outcome = 'skipped' and t.key = p.key
      and (t.channel = p.channel or (t.channel = any(${sites}) and p.channel = any(${sites})))`);
