/** Compares the keys of a process with those of the database, by one known value that is encrypted in it. */
import sql from 'sql-template-tag';
import { type Database, run } from '../postgres/database.ts';
import type { EncryptedCount } from './re_encrypt.ts';
import { keyIdOf, type Vault } from './vault.ts';

const known = 'rail';
const context = 'core.encryption_check';

/**
 * The first process on a database stores the known value; every later one must be able to decrypt it.
 * @returns why this process must not run with its keys, as a sentence; undefined where it may
 */
export async function findWrongKey(database: Pick<Database, 'query'>, vault: Vault): Promise<string | undefined> {
  const stored = (await read(database)) ?? (await store(database, vault));
  const key_id = keyIdOf(stored);
  if (!vault.key_ids.includes(key_id))
    return `The database holds values encrypted with the key ${key_id}, and RAIL_ENCRYPTION_KEY has ${vault.key_ids.join(', ')}. Set it to the key that this database was used with.`;
  vault.decrypt(stored, context);
  return undefined;
}

/** Returns whether the database can be compared: one that lacks its migrations has nowhere to keep the value. */
export async function hasKeyCheck(database: Database): Promise<boolean> {
  const [row] = await run<{ found: boolean }>(
    database,
    sql`select to_regclass('core.encryption_check') is not null as found`,
  );
  return row?.found === true;
}

/** @returns the id of the key that the database was used with; undefined where it is new */
export async function storedKeyId(database: Pick<Database, 'query'>): Promise<string | undefined> {
  const stored = await read(database);
  return stored && keyIdOf(stored);
}

/** Brings the known value under the first key, as `reEncrypt` does all others; under a key that is not known it stays. */
export async function reEncryptCheck(database: Pick<Database, 'query'>, vault: Vault): Promise<void> {
  const stored = await read(database);
  if (!stored || !vault.key_ids.includes(keyIdOf(stored))) return;
  await run(database, sql`update core.encryption_check set value = ${vault.encrypt(known, context)}`);
}

/** It counts like every other value: its key must stay known. */
export async function countCheck(database: Pick<Database, 'query'>): Promise<EncryptedCount[]> {
  const key_id = await storedKeyId(database);
  return key_id === undefined ? [] : [{ table: 'core.encryption_check', column: 'value', key_id, values: 1 }];
}

async function read(database: Pick<Database, 'query'>): Promise<Buffer | undefined> {
  const [row] = await run<{ value: Buffer }>(database, sql`select c.value from core.encryption_check c`);
  return row?.value;
}

/** Stores the value. Of two processes that start at once, one stores it; the other compares its keys with that. */
async function store(database: Pick<Database, 'query'>, vault: Vault): Promise<Buffer> {
  await run(
    database,
    sql`insert into core.encryption_check (value) values (${vault.encrypt(known, context)}) on conflict do nothing`,
  );
  return (await read(database)) as Buffer;
}
