/** A step of an import: some rows in one transaction, which says how far the import is besides. */
import sql, { empty, type Sql } from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import type { Actor } from '../brands/acting.ts';
import { addToEach, knownOf } from '../contact/add_each.ts';
import { addToNew, type Intended, type OfNew } from '../contact/add_to_new.ts';
import { type Created, createProspects, type NewProspect } from '../prospects/create.ts';
import { prospects } from '../prospects/prospect.ts';
import { recordErrors } from './import_error.ts';
import type { Mapping } from './mapping.ts';
import { conflictsOf } from './one_site.ts';
import type { PreparedRow } from './row.ts';
import type { Fault } from './rows.ts';

/** An import as its steps see it. */
export interface Running {
  id: string;
  brand_id: string;
  format: 'csv' | 'ndjson';
  delimiter: string | null;
  mapping: Mapping;
  dry_run: boolean;
  update_existing: boolean;
  rows_read: number;
  interruptions: number;
  by_user_id: string | null;
  by_member_id: string | null;
}

/** The import. Undefined: it has ended, or its organization is gone. */
export const readImport = (tx: Tx, id: string, lock: Sql = empty): Promise<Running | undefined> =>
  tx.maybe<Running>(sql`
    select t.id, t.brand_id, t.format, t.delimiter, t.mapping, t.dry_run, t.update_existing, t.rows_read, t.interruptions,
      t.by_user_id, t.by_member_id
    from recruitment.import t
    where ${tenant(tx)} and t.id = ${id} and t.state in ('queued', 'running')
    ${lock}`);

/** The same, and nobody else changes it until the transaction ends. */
export const lockImport = (tx: Tx, id: string): Promise<Running | undefined> =>
  readImport(tx, id, sql`for no key update of t`);

type GoodRow = PreparedRow & { prospect: NewProspect };
/** The outcome of a valid row, or the reason why it is refused after all. */
type Outcome = 'created' | 'updated' | 'unchanged' | Fault;

export const isGood = (row: PreparedRow): row is GoodRow => row.prospect !== undefined;

interface Given {
  rows: PreparedRow[];
  /** The addresses that must not be written to. The caller holds suppressions. */
  barred: ReadonlySet<Intended>;
  /** The prospects of a dry run's file so far, which it would have created. */
  seen: ReadonlySet<string>;
}

/** Imports rows. @returns what became of each good one */
export function importRows(tx: Tx, vault: Vault, running: Running, { rows, barred, seen }: Given): Promise<Outcome[]> {
  const good = rows.filter(isGood);
  return running.dry_run ? foresee(tx, vault, running, good, seen) : write(tx, vault, running, good, barred);
}

/** Counts the rows behind those that were counted. */
export function countRows(tx: Tx, import_id: string, rows: PreparedRow[], outcomes: Outcome[]): void {
  const checked = rows.filter(isGood).map(({ line }, nth) => ({ line, fault: outcomes[nth] }));
  const conflicts = checked.flatMap(({ line, fault }) => (typeof fault === 'object' ? [{ line, fault }] : []));
  recordErrors(tx, import_id, [...rows, ...conflicts]);
  const counted = (wanted: Outcome & string) => outcomes.filter((outcome) => outcome === wanted).length;
  tx.send(sql`
    update recruitment.import t
    set rows_read = t.rows_read + ${rows.length}, refused = t.refused + ${rows.length - outcomes.length + conflicts.length}, interruptions = 0,
      created = t.created + ${counted('created')}, updated = t.updated + ${counted('updated')},
      unchanged = t.unchanged + ${counted('unchanged')}, updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = ${import_id}`);
}

async function write(
  tx: Tx,
  vault: Vault,
  running: Running,
  rows: GoodRow[],
  barred: ReadonlySet<Intended>,
): Promise<Outcome[]> {
  const by = { user_id: running.by_user_id, member_id: running.by_member_id };
  const found = (await createProspects(
    tx,
    vault,
    rows.map(({ prospect, address }) => ({
      ...prospect,
      email_status: address && !barred.has(address) ? 'found' : 'none',
    })),
    { source: 'csv_import', by },
  )) as NonNullable<Created>[];
  const known = rows.flatMap((row, nth) => {
    const { id, is_new } = found[nth] as NonNullable<Created>;
    return is_new ? [] : [{ id, row }];
  });
  const conflicts = await conflictsOf(tx, vault, known);
  const updated = running.update_existing ? await update(tx, without(conflicts, known)) : new Set<string>();
  const addresses = rows.flatMap((row, nth): Addressed[] => {
    const { address } = row;
    const { id, is_new } = found[nth] as NonNullable<Created>;
    if (!address || conflicts.has(row) || !(is_new || running.update_existing)) return [];
    return [{ prospect_id: id, is_new, address, is_barred: barred.has(address) }];
  });
  const reached = await addAddresses(tx, vault, addresses, by);
  for (const { id, is_new } of found) if (is_new) reached.delete(id);
  return found.map(({ id, is_new }, nth) => {
    if (is_new) return 'created';
    const conflict = conflicts.get(rows[nth] as GoodRow);
    if (conflict) return conflict;
    return updated.has(id) || reached.has(id) ? 'updated' : 'unchanged';
  });
}

const without = (conflicts: ReadonlyMap<PreparedRow, Fault>, known: Known[]): Known[] =>
  known.filter(({ row }) => !conflicts.has(row));

type Addressed = OfNew & { is_new: boolean };

/** @returns the prospects with several addresses, or that existed before, whose address is new */
async function addAddresses(tx: Tx, vault: Vault, addresses: Addressed[], by: Actor): Promise<Set<string>> {
  const of_prospect = Map.groupBy(addresses, ({ prospect_id }) => prospect_id);
  const isOnly = ({ prospect_id, is_new }: Addressed) => is_new && of_prospect.get(prospect_id)?.length === 1;
  await addToNew(tx, vault, addresses.filter(isOnly), by);
  const others = addresses
    .filter((one) => !isOnly(one))
    .map(({ prospect_id, address: { email } }) => ({ prospect_id, email }));
  return addToEach(tx, vault, others, by);
}

interface Known {
  id: string;
  row: GoodRow;
}

/** Sets what the rows say of prospects that exist. @returns those that it changed */
async function update(tx: Tx, known: Known[]): Promise<Set<string>> {
  if (known.length === 0) return new Set();
  await prospects.lockMany(tx, [...new Set(known.map(({ id }) => id))]);
  const changed = await tx.all<{ id: string }>(sql`
    update recruitment.prospect t
    set name = coalesce(r.name, t.name), url = coalesce(r.url, t.url), description = coalesce(r.description, t.description),
      country_code = coalesce(r.country_code, t.country_code), language_code = coalesce(r.language_code, t.language_code),
      timezone = coalesce(r.timezone, t.timezone), followers = coalesce(r.followers, t.followers), custom = t.custom || coalesce(r.custom, '{}'),
      updated_at = ${tx.now}::timestamptz
    from ${given(known)}
    where ${tenant(tx)} and t.id = r.id and ${differs}
    returning t.id`);
  return new Set(changed.map(({ id }) => id));
}

/** Returns the rows that `update` would change. */
async function changedBy(tx: Tx, known: Known[]): Promise<Set<string>> {
  const changed = await tx.all<{ id: string }>(sql`
    select t.id from recruitment.prospect t join ${given(known)} on t.id = r.id
    where ${tenant(tx)} and ${differs}`);
  return new Set(changed.map(({ id }) => id));
}

/** Merges several rows of a prospect: the last one wins for each field. */
function given(known: Known[]): Sql {
  const merged = new Map<string, Record<string, unknown>>();
  for (const { id, row } of known) {
    const before = merged.get(id);
    const custom = { ...(before?.custom as object | undefined), ...row.prospect.custom };
    const url = row.has_url ? row.prospect.url : before?.url;
    merged.set(id, { ...before, ...row.prospect, id, url, custom });
  }
  return sql`json_to_recordset(${JSON.stringify([...merged.values()])}::json) as r (
    id text, name text, url text, description text, country_code text, language_code text, timezone text, followers bigint, custom jsonb)`;
}

const differs = sql`(
  coalesce(r.name, t.name), coalesce(r.url, t.url), coalesce(r.description, t.description), coalesce(r.country_code, t.country_code),
  coalesce(r.language_code, t.language_code), coalesce(r.timezone, t.timezone), coalesce(r.followers, t.followers),
  t.custom || coalesce(r.custom, '{}')
) is distinct from (t.name, t.url, t.description, t.country_code, t.language_code, t.timezone, t.followers, t.custom)`;

/** Returns the outcomes that `write` would have. */
async function foresee(
  tx: Tx,
  vault: Vault,
  running: Running,
  rows: GoodRow[],
  seen: ReadonlySet<string>,
): Promise<Outcome[]> {
  const existing = await existingOf(tx, rows);
  const known = rows.flatMap((row) => {
    const id = existing.get(keyOf(row));
    return id === undefined ? [] : [{ id, row }];
  });
  const conflicts = await conflictsOf(tx, vault, known);
  const changed = running.update_existing
    ? await changedBeforehand(tx, vault, without(conflicts, known))
    : new Set<string>();
  const own = new Set<string>();
  return rows.map((row) => {
    const key = keyOf(row);
    const id = existing.get(key);
    const conflict = conflicts.get(row);
    if (conflict) return conflict;
    if (id !== undefined) return changed.has(id) ? 'updated' : 'unchanged';
    if (seen.has(key) || own.has(key)) return 'unchanged';
    own.add(key);
    return 'created';
  });
}

async function changedBeforehand(tx: Tx, vault: Vault, known: Known[]): Promise<Set<string>> {
  const addresses = known.flatMap(({ id: prospect_id, row: { email } }) =>
    email === undefined ? [] : [{ prospect_id, email }],
  );
  const is_known = await knownOf(tx, vault, addresses);
  const reached = addresses.filter((_, nth) => !is_known[nth]).map(({ prospect_id }) => prospect_id);
  return new Set([...(await changedBy(tx, known)), ...reached]);
}

export const keyOf = ({ prospect: { channel, key } }: GoodRow): string => `${channel} ${key}`;

async function existingOf(tx: Tx, rows: GoodRow[]): Promise<Map<string, string>> {
  const wanted = rows.map(({ prospect: { brand_id, channel, key } }) => ({ brand_id, channel, key }));
  const existing = await tx.all<{ id: string; channel: string; key: string }>(sql`
    select t.id, t.channel, t.key
    from json_to_recordset(${JSON.stringify(wanted)}::json) as r (brand_id text, channel text, key text)
    join recruitment.prospect t
      on t.organization_id = ${tx.organization_id} and t.brand_id = r.brand_id and t.channel = r.channel and t.key = r.key`);
  return new Map(existing.map(({ id, channel, key }) => [`${channel} ${key}`, id]));
}
