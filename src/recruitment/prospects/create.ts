import sql from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { newId } from '../../core/values/id.ts';
import { type Actor, nobody } from '../brands/acting.ts';
import { event } from '../events/event.ts';
import { recordOfNew } from './activity.ts';
import { barsOfSites, type SiteBar } from './barred_site.ts';
import { keyedHash } from './keyed_hash.ts';
import type { Evidence, Prospect } from './prospect.ts';

type Source = Exclude<Prospect['source'], 'sample'>;

/** A prospect as something found it, or somebody adds it. Its key is canonical in its channel. */
export interface NewProspect extends Pick<Prospect, 'brand_id' | 'channel' | 'key'>, Partial<Described> {
  evidence?: Evidence[];
  /** `found` where whoever creates it adds a usable address in the same transaction: to say so later would index all its words again. */
  email_status?: 'none' | 'found';
}
export type Described = Pick<
  Prospect,
  'name' | 'url' | 'description' | 'country_code' | 'language_code' | 'timezone' | 'followers' | 'score' | 'custom'
>;

export interface Origin {
  source: Source;
  source_run_id?: string | null;
  /** Nobody where the API or the system does it. */
  by?: Actor;
}

/** The outcome of a row: a new or a known prospect, or none, because the person was erased. */
export type Created = { id: string; is_new: boolean } | undefined;

/**
 * Creates those that do not exist yet, in one statement whatever their number. A search or scan makes no one who was erased; by hand, via the
 * API or by an import they may be added. Tells `affiliate.added` for these, in the order of the rows, and `do_not_contact.added` for each site
 * whose domain is barred. To be called before rows of prospects are locked.
 * @returns what became of each row, in their order
 */
export async function createProspects(tx: Tx, vault: Vault, rows: NewProspect[], origin: Origin): Promise<Created[]> {
  const wanted = uniqueOf(isByHand(origin.source) ? rows : await withoutErased(tx, vault, rows));
  const bars = await barsOfSites(tx, vault, wanted);
  const inserted = await insertMissing(
    tx,
    wanted.map((row, nth) => ({ ...row, do_not_contact_reason: bars[nth]?.reason ?? null })),
    origin,
  );
  const existing = await existingOf(
    tx,
    wanted.filter((row) => !inserted.has(keyOf(row))),
  );
  emitAdded(tx, wanted, inserted, origin);
  emitBarred(tx, wanted, bars, inserted, origin);
  const seen = new Set<string>();
  return rows.map((row) => {
    const key = keyOf(row);
    const id = inserted.get(key) ?? existing.get(key);
    const is_new = inserted.has(key) && !seen.has(key);
    seen.add(key);
    return id === undefined ? undefined : { id, is_new };
  });
}

/** The first of each key. */
const uniqueOf = (rows: NewProspect[]): NewProspect[] => {
  const firsts = new Map<string, NewProspect>();
  for (const row of rows) if (!firsts.has(keyOf(row))) firsts.set(keyOf(row), row);
  return [...firsts.values()];
};

const isByHand = (source: Source): source is 'manual' | 'api' | 'csv_import' =>
  ['manual', 'api', 'csv_import'].includes(source);

type Key = Pick<Prospect, 'brand_id' | 'channel' | 'key'>;
const keyOf = ({ brand_id, channel, key }: Key): string => `${brand_id} ${channel} ${key}`;

/** The hash under which an erased prospect is remembered. */
export const tombstoneValue = ({ brand_id, channel, key }: Key): string => `prospect ${brand_id} ${channel} ${key}`;

/** Returns the rows that were not erased: a hash of the erased ones is remembered. */
export async function withoutErased<Row extends Key>(tx: Tx, vault: Vault, rows: Row[]): Promise<Row[]> {
  const hash = await keyedHash(tx, vault);
  const hashes = rows.map((row) => hash(tombstoneValue(row)));
  const erased = await tx.all<{ hmac: Buffer }>(sql`
    select t.hmac from recruitment.tombstone t
    where t.organization_id = ${tx.organization_id} and t.hmac = any(${hashes}::bytea[])`);
  return rows.filter((_, nth) => !erased.some(({ hmac }) => hmac.equals(hashes[nth] as Buffer)));
}

/** In the order of their keys, so that two who add the same people at a time wait for one another in one order. @returns new ids by key */
async function insertMissing(
  tx: Tx,
  rows: (NewProspect & { do_not_contact_reason: string | null })[],
  { source, source_run_id = null }: Origin,
): Promise<Map<string, string>> {
  if (rows.length === 0) return new Map();
  const given = rows
    .map((row) => ({ row: asInserted(row), at: keyOf(row) }))
    .sort((one, other) => (one.at < other.at ? -1 : 1));
  const inserted = await tx.all<{ id: string }>(sql`
    insert into recruitment.prospect as t (
      organization_id, id, brand_id, channel, key, name, url, description, country_code, language_code, timezone, followers, score,
      evidence, custom, source, source_run_id, email_status, do_not_contact_reason, do_not_contact_since, created_at, updated_at
    )
    select
      ${tx.organization_id}, r.id, r.brand_id, r.channel, r.key, r.name, r.url, r.description, r.country_code, r.language_code, r.timezone,
      r.followers, r.score, r.evidence, r.custom, ${source}, ${source_run_id}, r.email_status, r.do_not_contact_reason,
      case when r.do_not_contact_reason is not null then ${tx.now}::timestamptz end, ${tx.now}::timestamptz, ${tx.now}::timestamptz
    from json_to_recordset(${JSON.stringify(given.map(({ row }) => row))}::json) as r (
      id text, brand_id text, channel text, key text, name text, url text, description text, country_code text, language_code text,
      timezone text, followers bigint, score integer, evidence jsonb, custom jsonb, email_status text, do_not_contact_reason text
    )
    on conflict (organization_id, brand_id, channel, key) do nothing
    returning t.id`);
  const keys = new Map(given.map(({ row, at }) => [row.id, at]));
  return new Map(inserted.map(({ id }) => [keys.get(id) as string, id]));
}

const asInserted = (row: NewProspect) => ({
  ...row,
  ...{
    id: newId('fdi'),
    evidence: row.evidence ?? [],
    custom: row.custom ?? {},
    email_status: row.email_status ?? 'none',
  },
});

async function existingOf(tx: Tx, rows: Key[]): Promise<Map<string, string>> {
  if (rows.length === 0) return new Map();
  const existing = await tx.all<Key & { id: string }>(sql`
    select t.id, t.brand_id, t.channel, t.key
    from json_to_recordset(${JSON.stringify(rows)}::json) as r (brand_id text, channel text, key text)
    join recruitment.prospect t
      on t.organization_id = ${tx.organization_id} and t.brand_id = r.brand_id and t.channel = r.channel and t.key = r.key`);
  return new Map(existing.map((row) => [keyOf(row), row.id]));
}

function emitAdded(tx: Tx, rows: NewProspect[], inserted: Map<string, string>, { source, by = nobody }: Origin): void {
  const added = rows.flatMap((row) => {
    const prospect_id = inserted.get(keyOf(row));
    return prospect_id === undefined ? [] : [{ prospect_id, channel: row.channel }];
  });
  recordOfNew(
    tx,
    'added',
    by,
    added.map(({ prospect_id }) => ({ prospect_id, data: { source } })),
  );
  if (!isByHand(source)) return;
  for (const { prospect_id, channel } of added) {
    tx.emit(event('affiliate.added', tx.organization_id, { prospect_id, channel, source }));
  }
}

/** Emits the events of barred prospects, as if the entry on the domain were made now. */
function emitBarred(
  tx: Tx,
  rows: NewProspect[],
  bars: (SiteBar | undefined)[],
  inserted: Map<string, string>,
  { by = nobody }: Origin,
): void {
  const barred = rows.flatMap((row, nth) => {
    const prospect_id = inserted.get(keyOf(row));
    const bar = bars[nth];
    return prospect_id === undefined || bar === undefined ? [] : [{ prospect_id, bar }];
  });
  for (const { prospect_id, bar } of barred) {
    const data = { prospect_id, reason: bar.reason, by_user_id: by.user_id };
    tx.emit(event('do_not_contact.added', tx.organization_id, data));
  }
  recordOfNew(
    tx,
    'do_not_contact_added',
    by,
    barred.map(({ prospect_id, bar }) => ({ prospect_id, data: { reason: bar.reason, do_not_contact_id: bar.id } })),
  );
}
