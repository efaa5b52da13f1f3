/** Brings what is sealed in the database under the first of the encryption keys: row locks, one short transaction a batch, any number of times. */
import sql, { join, raw, type Sql } from 'sql-template-tag';
import { type Database, run } from '../postgres/database.ts';
import { type Store, type Tx, transaction } from '../postgres/transaction.ts';
import type { Vault } from './vault.ts';

/** A table that holds sealed values. Its primary key is (organization_id, `id`), and its values are sealed for what stands in `id`. */
export interface EncryptedTable {
  table: string;
  id: string;
  columns: string[];
}

/** Values of a column that lie under the same key. */
export interface EncryptedCount {
  table: string;
  column: string;
  key_id: string;
  values: number;
}

/** A value that none of the keys opens. It is left as it is. */
export interface Unreadable {
  table: string;
  column: string;
  organization_id: string;
  id: string;
  key_id: string;
  reason: 'unknown_key' | 'damaged';
}

interface Place {
  organization_id: string;
  id: string;
}

type Row = Place & Record<string, string | null>;

/** Counts the sealed values under each key, in steps of `batch` rows. */
export async function countEncrypted(
  database: Database,
  tables: EncryptedTable[],
  batch: number,
): Promise<EncryptedCount[]> {
  const counts = new Map<string, EncryptedCount>();
  for (const of of tables) {
    for await (const rows of keyIdsOf(database, of, batch)) {
      for (const { table, column, key_id } of rows.flatMap((row) => sealedIn(of, row))) {
        const name = `${table} ${column} ${key_id}`;
        const count = counts.get(name) ?? { table, column, key_id, values: 0 };
        counts.set(name, { ...count, values: count.values + 1 });
      }
    }
  }
  return [...counts.values()];
}

/**
 * Seals a table's values anew that are not under the vault's first key, at most `batch` rows a transaction. What is under it already is
 * not touched, so that a run which was killed is simply begun again.
 * @returns how many, and what could not be opened
 */
export async function reEncrypt(
  store: Store,
  vault: Vault,
  of: EncryptedTable,
  batch: number,
  progress: (looked_at: number, resealed: number) => void,
): Promise<{ resealed: number; unreadable: Unreadable[] }> {
  const unreadable: Unreadable[] = [];
  let looked_at = 0;
  let resealed = 0;
  for await (const rows of keyIdsOf(store.database, of, batch)) {
    const stale = rows.filter((row) => sealedIn(of, row).some(({ key_id }) => key_id !== vault.key_ids[0]));
    if (stale.length > 0) {
      const done = await transaction(store, { organization_id: null, request_id: null }, (tx) =>
        resealRows(tx, vault, of, stale),
      );
      resealed += done.resealed;
      unreadable.push(...done.unreadable);
    }
    looked_at += rows.length;
    progress(looked_at, resealed);
  }
  return { resealed, unreadable };
}

/** Under the rows' locks, so that a secret which is rotated meanwhile is either seen as it is then, or comes after and finds the new seal. */
async function resealRows(tx: Tx, vault: Vault, of: EncryptedTable, places: Place[]) {
  const rows = await tx.all<Place & Record<string, Buffer | null>>(sql`
    select t.organization_id, ${raw(`t.${of.id}`)} as id, ${join(of.columns.map((column) => raw(`t.${column}`)))}
    from ${raw(of.table)} as t
    where ${isAmong(of, places)}
    order by t.organization_id, ${raw(`t.${of.id}`)}
    for no key update`);
  const unreadable: Unreadable[] = [];
  let resealed = 0;
  const settled = rows.map(({ organization_id, id, ...row }) => {
    const place = { organization_id, id };
    const values = of.columns.map((column) => {
      const before = row[column] ?? null;
      if (before === null || vault.keyIdOf(before) === vault.key_ids[0]) return before;
      const after = sealedAnew(vault, before, id);
      if (after) resealed++;
      else unreadable.push({ ...place, table: of.table, column, ...faultOf(vault, before) });
      return after ?? before;
    });
    return { ...place, values };
  });
  if (resealed > 0) await write(tx, of, settled);
  return { resealed, unreadable };
}

function sealedAnew(vault: Vault, sealed: Buffer, context: string): Buffer | undefined {
  try {
    return vault.encrypt(vault.decrypt(sealed, context), context);
  } catch {
    return undefined;
  }
}

function faultOf(vault: Vault, sealed: Buffer): Pick<Unreadable, 'key_id' | 'reason'> {
  const key_id = vault.keyIdOf(sealed);
  return { key_id, reason: vault.key_ids.includes(key_id) ? 'damaged' : 'unknown_key' };
}

const write = (tx: Tx, of: EncryptedTable, rows: (Place & { values: (Buffer | null)[] })[]): Promise<object[]> =>
  tx.all(sql`
    update ${raw(of.table)} as t
    set ${join(of.columns.map((column) => raw(`${column} = sealed.${column}`)))}
    from unnest(${placesOf(rows)}, ${join(of.columns.map((_, nth) => sql`${rows.map(({ values }) => values[nth])}::bytea[]`))})
      as sealed (organization_id, id, ${raw(of.columns.join(', '))})
    where t.organization_id = sealed.organization_id and ${raw(`t.${of.id}`)} = sealed.id`);

const placesOf = (places: Place[]): Sql =>
  sql`${places.map(({ organization_id }) => organization_id)}::text[], ${places.map(({ id }) => id)}::text[]`;

const isAmong = (of: EncryptedTable, places: Place[]): Sql =>
  sql`(t.organization_id, ${raw(`t.${of.id}`)}) in (select * from unnest(${placesOf(places)}))`;

/** Goes through a table by its primary key: of each row the ids of the keys that its values lie under. No statement reads more than a batch. */
async function* keyIdsOf(database: Database, of: EncryptedTable, batch: number): AsyncGenerator<Row[]> {
  let after: Place = { organization_id: '', id: '' };
  for (;;) {
    const rows = await run<Row>(
      database,
      sql`
        select t.organization_id, ${raw(`t.${of.id}`)} as id,
          ${join(of.columns.map((column) => raw(`encode(substring(t.${column} from 2 for 4), 'hex') as ${column}`)))}
        from ${raw(of.table)} as t
        where (t.organization_id, ${raw(`t.${of.id}`)}) > (${after.organization_id}, ${after.id})
        order by t.organization_id, ${raw(`t.${of.id}`)}
        limit ${batch}`,
    );
    if (rows.length > 0) yield rows;
    if (rows.length < batch) return;
    after = rows.at(-1) as Row;
  }
}

const sealedIn = ({ table, columns }: EncryptedTable, row: Row) =>
  columns
    .map((column) => ({ table, column, key_id: row[column] }))
    .filter((one): one is typeof one & { key_id: string } => one.key_id !== null);
