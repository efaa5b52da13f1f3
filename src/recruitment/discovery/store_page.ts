/** A page of a provider becomes results and prospects, in one transaction with where the run goes on. */
import sql from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { newId } from '../../core/values/id.ts';
import { storable } from '../../core/values/texts/stored_text.ts';
import { contradicts, profileUrl, registrableDomain } from '../pages/key.ts';
import { createProspects, withoutErased } from '../prospects/create.ts';
import { type Run, updateRun } from '../runs/run.ts';
import type { Channel, Hit, SearchPage } from '../search_providers/provider.ts';
import { keepSteps, type ReservedPage, settlePage, stepsOf } from './next_page.ts';
import {
  type Filters,
  type Identified,
  identify,
  placeOf,
  type SkipReason,
  skippedBy,
  skippedByHistory,
} from './skip.ts';
import { afterPage } from './steps.ts';

/** The parts of a run's request that decide which hits become results. */
export interface Selection {
  filters: Filters;
  channels: Channel[];
  /** URLs or domains of the brand and of its competitors. */
  own_sites: string[];
  most_results: number;
}

interface Checked {
  hit: Hit;
  who: Identified | undefined;
  reason: SkipReason | undefined;
}

/** Stores a page that is reserved, of a run that is locked and open. */
export async function storePage(
  tx: Tx,
  vault: Vault,
  run: Run,
  { number, place, step }: ReservedPage,
  page: SearchPage,
  selection: Selection,
): Promise<void> {
  const checked = await checkHits(tx, run, usable(page.hits), selection);
  const counts = await insertResults(tx, vault, run, step.provider, checked);
  await settlePage(tx, run.id, number, 'stored', page.hits.length);
  await keepSteps(tx, run.id, afterPage((await stepsOf(tx, run.id)) ?? [], place, page.next));
  await updateRun(
    tx,
    run.id,
    sql`results = t.results + ${counts.results}, found = t.found + ${counts.found},
      state = 'running', started_at = coalesce(t.started_at, ${tx.now}::timestamptz)`,
  );
}

const most_url = 2_048;
/** Hits with an address on the web, each URL once, in the form in which it is kept. */
function usable(hits: Hit[]): Hit[] {
  const by_url = new Map<string, Hit>();
  for (const hit of hits) {
    const url = URL.parse(hit.url.trim());
    if (!url || !/^https?:$/.test(url.protocol) || url.href.length > most_url || by_url.has(url.href)) continue;
    url.hash = '';
    by_url.set(url.href, {
      ...hit,
      url: url.href,
      title: storable(hit.title.trim(), 500),
      description: storable(hit.description.trim(), 2_000),
    });
  }
  return [...by_url.values()];
}

async function checkHits(tx: Tx, run: Run, hits: Hit[], selection: Selection): Promise<Checked[]> {
  const fresh = await notYetSeen(tx, run.id, hits);
  const { filters, channels, own_sites } = selection;
  const own_domains = new Set(own_sites.flatMap((site) => registrableDomain(site) ?? []));
  const rules = { filters, channels, own_domains, domains: await domainsSoFar(tx, run.id, filters) };
  const identified = fresh.map((hit) => ({ hit, who: identify(hit) }));
  const known = await skippedByHistory(
    tx,
    identified.flatMap(({ who }) => who ?? []),
    filters,
  );
  const checked: Checked[] = [];
  let results = run.results;
  for (const { hit, who } of identified) {
    if (results >= selection.most_results) break;
    const reason = who ? (known.get(`${who.channel} ${who.key}`) ?? skippedBy(who, rules)) : 'not_a_prospect';
    if (reason === undefined) results++;
    checked.push({ hit, who, reason });
  }
  return checked;
}

async function notYetSeen(tx: Tx, run_id: string, hits: Hit[]): Promise<Hit[]> {
  const seen = await tx.all<{ url: string }>(sql`
    select t.url from recruitment.run_result t
    where t.organization_id = ${tx.organization_id} and t.run_id = ${run_id}
      and md5(t.url) = any(array(select md5(u) from unnest(${hits.map(({ url }) => url)}::text[]) as u))`);
  const urls = new Set(seen.map(({ url }) => url));
  return hits.filter(({ url }) => !urls.has(url));
}

/** The domains of results of other pages of the run. */
async function domainsSoFar(tx: Tx, run_id: string, { one_per_domain }: Filters): Promise<Set<string>> {
  if (!one_per_domain) return new Set();
  const rows = await tx.all<Identified>(sql`
    select t.channel, t.key
    from recruitment.run_result t
    where t.organization_id = ${tx.organization_id} and t.run_id = ${run_id} and t.outcome <> 'skipped'`);
  return new Set(rows.map(({ channel, key }) => placeOf(channel, key)));
}

async function insertResults(tx: Tx, vault: Vault, run: Run, provider: string, checked: Checked[]) {
  const wanted = checked.flatMap(({ who, reason }) => (who && reason === undefined ? [who] : []));
  const created = await createProspects(
    tx,
    vault,
    wanted.map((who) => rowOf(run, who)),
    { source: run.kind, source_run_id: run.id },
  );
  const by_hit = new Map(wanted.map((who, nth) => [who.url, created[nth]]));
  const named = await withoutErased(
    tx,
    vault,
    checked.flatMap(({ who }) =>
      who ? [{ brand_id: run.brand_id, channel: who.channel, key: who.key, url: who.url }] : [],
    ),
  );
  const may_be_named = new Set(named.map(({ url }) => url));
  const rows = checked.map(({ hit, who, reason }) =>
    resultOf(hit, who && may_be_named.has(who.url) ? who : undefined, reason, by_hit.get(hit.url)),
  );
  if (rows.length > 0) {
    await tx.all(sql`
      insert into recruitment.run_result (
        organization_id, id, run_id, provider, url, title, description, channel, key, prospect_id, outcome, skipped_because, created_at
      )
      select
        ${tx.organization_id}, r.id, ${run.id}, ${provider}, r.url, r.title, r.description, r.channel, r.key, r.prospect_id, r.outcome,
        r.skipped_because, ${tx.now}::timestamptz
      from json_to_recordset(${JSON.stringify(rows)}::json) as r (
        id text, url text, title text, description text, channel text, key text, prospect_id text, outcome text, skipped_because text
      )`);
  }
  return {
    results: rows.filter(({ outcome }) => outcome !== 'skipped').length,
    found: rows.filter(({ outcome }) => outcome === 'new').length,
  };
}

const rowOf = (run: Run, { channel, key, url, title, description, ...rest }: Identified) => ({
  ...{ brand_id: run.brand_id, channel, key },
  ...{ name: title === '' ? null : storable(title.trim(), 200), description: description === '' ? null : description },
  ...{ url: homeOf(channel, key, url), followers: rest.followers ?? null },
  ...{ country_code: rest.country_code ?? null, language_code: rest.language_code ?? null },
});

/** The address of a prospect: of a site the home page, as it was found: with its scheme and port. Of an account its profile. */
function homeOf(channel: Channel, key: string, url: string): string {
  const home = registrableDomain(url) === key ? `${new URL(url).origin}/` : undefined;
  return home === undefined || contradicts(channel, key, home) ? profileUrl(channel, key) : home;
}

/** Keeps nothing of what names no prospect: who was erased looks the same. */
function resultOf(
  { url, title, description }: Hit,
  who: Identified | undefined,
  reason: SkipReason | undefined,
  created: { id: string; is_new: boolean } | undefined,
) {
  const id = newId('fsr');
  const named = { channel: who?.channel ?? null, key: who?.key ?? null };
  if (reason !== undefined && who) return { id, url, title, description, ...named, ...skipped(reason) };
  if (!created) return { id, ...withheld, url: `urn:rail:skipped:${id}`, ...skipped('not_a_prospect') };
  const outcome = created.is_new ? 'new' : 'known';
  return { id, url, title, description, ...named, prospect_id: created.id, outcome, skipped_because: null };
}

const withheld = { title: '', description: '', channel: null, key: null };
const skipped = (reason: SkipReason) => ({ prospect_id: null, outcome: 'skipped', skipped_because: reason });
