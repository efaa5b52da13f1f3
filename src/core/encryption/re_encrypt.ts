/** Encrypts stored values with the first of the encryption keys: row locks, one short transaction a batch, any number of times. */
import sql, { join, raw, type Sql } from 'sql-template-tag';
import { type Database, run } from '../postgres/database.ts';
import { type Store, type Tx, transaction } from '../postgres/transaction.ts';
import { keyIdOf, type Vault } from './vault.ts';

/** A table that holds encrypted values. Its primary key is (organization_id, `id`), and `id` is the context that its values are encrypted for. */
export interface EncryptedTable {
  table: string;
  id: string;
  columns: string[];
  /** The most rows of a transaction, where the values are large. */
  most_rows?: number;
}

/** The number of values of a column that are encrypted with the same key. */
export interface EncryptedCount {
  table: string;
  column: string;
  key_id: string;
  values: number;
}

/** A value that none of the keys decrypts. It stays unchanged. */
export interface Unreadable {
  table: string;
  column: string;
  organization_id: string;
  id: string;
  key_id: string;
  reason: 'unknown_key' | 'damaged';
}

interface PrimaryKey {
  organization_id: string;
  id: string;
}

/** The id of the key of each encrypted column; null where there is no value. */
type KeyIds = PrimaryKey & Record<string, string | null>;

type EncryptedRow = PrimaryKey & { values: (Buffer | null)[] };

interface Outcome {
  re_encrypted: number;
  unreadable: Unreadable[];
}

/** Counts the encrypted values under each key, in steps of `batch` rows. */
export async function countEncrypted(
  database: Database,
  tables: EncryptedTable[],
  batch: number,
): Promise<EncryptedCount[]> {
  const counts = new Map<string, EncryptedCount>();
  for (const table of tables) {
    for await (const rows of keyIdsIn(database, table, batch)) {
      for (const value of rows.flatMap((row) => valuesIn(table, row))) {
        const name = Object.values(value).join(' ');
        const count = counts.get(name) ?? { ...value, values: 0 };
        counts.set(name, { ...count, values: count.values + 1 });
      }
    }
  }
  return [...counts.values()];
}

/**
 * Encrypts a table's values with the vault's first key, at most `batch` rows a transaction. Values that are under it already are not touched, so
 * that a run that was killed can be started again.
 * @returns how many, and which values could not be decrypted
 */
export async function reEncrypt(
  store: Store,
  vault: Vault,
  table: EncryptedTable,
  batch: number,
  progress: (looked_at: number, re_encrypted: number) => void,
): Promise<Outcome> {
  const total: Outcome = { re_encrypted: 0, unreadable: [] };
  let looked_at = 0;
  for await (const rows of keyIdsIn(store.database, table, Math.min(batch, table.most_rows ?? batch))) {
    const stale = rows.filter((row) => valuesIn(table, row).some(({ key_id }) => key_id !== vault.key_ids[0]));
    if (stale.length > 0) {
      const { re_encrypted, unreadable } = await transaction(store, { organization_id: null, request_id: null }, (tx) =>
        reEncryptRows(tx, vault, table, stale),
      );
      total.re_encrypted += re_encrypted;
      total.unreadable.push(...unreadable);
    }
    looked_at += rows.length;
    progress(looked_at, total.re_encrypted);
  }
  return total;
}

/** Under the rows' locks: a secret that is rotated meanwhile is either read after that, or written after this with a known key. */
async function reEncryptRows(tx: Tx, vault: Vault, table: EncryptedTable, keys: PrimaryKey[]): Promise<Outcome> {
  const outcome: Outcome = { re_encrypted: 0, unreadable: [] };
  const rows = await lockRows(tx, table, keys);
  const encrypted = rows.map(({ organization_id, id, ...row }) => ({
    organization_id,
    id,
    values: table.columns.map((column) => {
      const before = row[column] ?? null;
      if (before === null || keyIdOf(before) === vault.key_ids[0]) return before;
      const after = encryptAnew(vault, before, id);
      if (after) outcome.re_encrypted++;
      else outcome.unreadable.push({ organization_id, id, table: table.table, column, ...faultOf(vault, before) });
      return after ?? before;
    }),
  }));
  if (outcome.re_encrypted > 0) await write(tx, table, encrypted);
  return outcome;
}

const lockRows = (tx: Tx, table: EncryptedTable, keys: PrimaryKey[]) =>
  tx.all<PrimaryKey & Record<string, Buffer | null>>(sql`
    select t.organization_id, ${raw(`t.${table.id}`)} as id, ${join(table.columns.map((column) => raw(`t.${column}`)))}
    from ${raw(table.table)} as t
    where (t.organization_id, ${raw(`t.${table.id}`)}) in (select * from unnest(${arraysOf(keys)}))
    order by t.organization_id, ${raw(`t.${table.id}`)}
    for no key update`);

function encryptAnew(vault: Vault, encrypted: Buffer, context: string): Buffer | undefined {
  try {
    return vault.encrypt(vault.decrypt(encrypted, context), context);
  } catch {
    return undefined;
  }
}

function faultOf(vault: Vault, encrypted: Buffer): Pick<Unreadable, 'key_id' | 'reason'> {
  const key_id = keyIdOf(encrypted);
  return { key_id, reason: vault.key_ids.includes(key_id) ? 'damaged' : 'unknown_key' };
}

const write = (tx: Tx, table: EncryptedTable, rows: EncryptedRow[]): Promise<object[]> =>
  tx.all(sql`
    update ${raw(table.table)} as t
    set ${join(table.columns.map((column) => raw(`${column} = encrypted.${column}`)))}
    from unnest(${arraysOf(rows)}, ${join(table.columns.map((_, nth) => sql`${rows.map(({ values }) => values[nth])}::bytea[]`))})
      as encrypted (organization_id, id, ${raw(table.columns.join(', '))})
    where t.organization_id = encrypted.organization_id and ${raw(`t.${table.id}`)} = encrypted.id`);

const arraysOf = (keys: PrimaryKey[]): Sql =>
  sql`${keys.map(({ organization_id }) => organization_id)}::text[], ${keys.map(({ id }) => id)}::text[]`;

/** Goes through a table by its primary key: of each row the ids of its values' keys. No statement reads more than a batch. */
async function* keyIdsIn(database: Database, table: EncryptedTable, batch: number): AsyncGenerator<KeyIds[]> {
  let after: PrimaryKey = { organization_id: '', id: '' };
  for (;;) {
    const rows = await run<KeyIds>(
      database,
      sql`
        select t.organization_id, ${raw(`t.${table.id}`)} as id,
          ${join(table.columns.map((column) => raw(`encode(substring(t.${column} from 2 for 4), 'hex') as ${column}`)))}
        from ${raw(table.table)} as t
        where (t.organization_id, ${raw(`t.${table.id}`)}) > (${after.organization_id}, ${after.id})
        order by t.organization_id, ${raw(`t.${table.id}`)}
        limit ${batch}`,
    );
    if (rows.length > 0) yield rows;
    if (rows.length < batch) return;
    after = rows.at(-1) as KeyIds;
  }
}

const valuesIn = ({ table, columns }: EncryptedTable, row: KeyIds): Omit<EncryptedCount, 'values'>[] =>
  columns.flatMap((column) => {
    const key_id = row[column];
    return typeof key_id === 'string' ? [{ table, column, key_id }] : [];
  });
