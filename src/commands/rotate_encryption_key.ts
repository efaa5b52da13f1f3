import sql from 'sql-template-tag';
import type { Config } from '../config.ts';
import { countCheck, reEncryptCheck } from '../core/encryption/key_check.ts';
import { countEncrypted, type EncryptedCount, reEncrypt, type Unreadable } from '../core/encryption/re_encrypt.ts';
import type { Vault } from '../core/encryption/vault.ts';
import { type Database, run } from '../core/postgres/database.ts';
import type { Store } from '../core/postgres/transaction.ts';
import { dropOldKeys, hasOwnKeys, putNewKeyInFront, readVault, requireSomeKey } from '../encryption_key.ts';
import { encrypted } from '../products.ts';
import { answer, UsageError, withStore } from './command.ts';
import { table } from './output/table.ts';

interface RotateOptions {
  dryRun?: boolean;
  newKey?: boolean;
  batch: number;
  json?: boolean;
}

interface Report {
  /** In the order in which they were given: the first encrypts. */
  key_ids: string[];
  re_encrypted: number;
  /** The number of values under each key. */
  counts: (EncryptedCount & { state: State })[];
  /** Values that could not be decrypted, and were left as they are. */
  unreadable: Unreadable[];
  dropped_key_ids: string[];
}

type State = 'current' | 'old' | 'unknown';

const progress_ms = 1_000;
const most_shown = 20;

/** `rail rotate-encryption-key`: encrypts every stored value with the first key. */
export const rotateEncryptionKey = ({ dryRun, newKey, batch, json }: RotateOptions): Promise<void> =>
  withStore(async ({ config, store }) => {
    requireSomeKey(config);
    if (newKey) await makeKey(config, store.database);
    const vault = await readVault(config);
    const done = dryRun ? { re_encrypted: 0, unreadable: [] } : await reEncryptAll(store, vault, batch);
    const counts = (await countAll(store.database, batch)).map((one) => ({
      ...one,
      state: stateOf(vault, one),
    }));
    const isDone = counts.every(({ state }) => state === 'current');
    const dropped_key_ids = !dryRun && isDone ? await dropOwn(config, vault, store.database) : [];
    const report: Report = { key_ids: vault.key_ids, ...done, counts, dropped_key_ids };
    answer(report, { json, lines: linesOf(report) });
    if (!isDone && (!dryRun || counts.some(({ state }) => state === 'unknown'))) process.exitCode = 1;
  });

/** @throws Error where a process runs that would not know the new key  @throws UsageError where the keys are not rail's own */
async function makeKey(config: Config, database: Database): Promise<void> {
  if (!hasOwnKeys(config)) {
    throw new UsageError(
      '--new-key replaces the key of the data directory only. Put a new key in front of the others in RAIL_ENCRYPTION_KEY instead: `openssl rand -base64 32`.',
    );
  }
  if (await isUsed(database)) {
    throw new Error('Another rail process runs on this data directory and would not know the new key. Stop it first.');
  }
  const isMade = await putNewKeyInFront(config);
  console.error(isMade ? 'Made a new key.' : 'Going on with the new key that was made before.');
}

const countAll = async (database: Database, batch: number): Promise<EncryptedCount[]> => [
  ...(await countEncrypted(database, encrypted, batch)),
  ...(await countCheck(database)),
];

async function reEncryptAll(store: Store, vault: Vault, batch: number) {
  const done: Pick<Report, 're_encrypted' | 'unreadable'> = { re_encrypted: 0, unreadable: [] };
  for (const of of encrypted) {
    const one = await reEncrypt(store, vault, of, batch, progressOf(of.table));
    done.re_encrypted += one.re_encrypted;
    done.unreadable.push(...one.unreadable);
    console.error(`${of.table}: ${one.re_encrypted} values re-encrypted`);
  }
  await reEncryptCheck(store.database, vault);
  return done;
}

function progressOf(name: string): (looked_at: number, re_encrypted: number) => void {
  let shown_at = performance.now();
  return (looked_at, re_encrypted) => {
    if (performance.now() - shown_at < progress_ms) return;
    shown_at = performance.now();
    console.error(`${name}: ${looked_at} rows read, ${re_encrypted} values re-encrypted so far`);
  };
}

/** Drops the data directory's old keys, unless a process runs that may still encrypt with one. @returns their ids */
async function dropOwn(config: Config, vault: Vault, database: Database): Promise<string[]> {
  const [, ...old] = vault.key_ids;
  if (old.length === 0 || !hasOwnKeys(config)) return [];
  if (await isUsed(database)) {
    console.error(
      'The old key is kept because another rail process uses this database. Stop it and run this again to remove the key.',
    );
    return [];
  }
  await dropOldKeys(config);
  return old;
}

/** Returns whether any process of rail but this one is connected. */
async function isUsed(database: Database): Promise<boolean> {
  const [sessions] = await run<{ count: number }>(
    database,
    sql`select count(*) as count from pg_stat_activity
      where datname = current_database() and starts_with(application_name, 'rail')`,
  );
  return (sessions?.count ?? 0) > database.totalCount;
}

function stateOf({ key_ids }: Vault, { key_id }: EncryptedCount): State {
  if (key_id === key_ids[0]) return 'current';
  return key_ids.includes(key_id) ? 'old' : 'unknown';
}

function linesOf({ key_ids, re_encrypted, counts, unreadable, dropped_key_ids }: Report): string[] {
  const columns = ['KEY', 'IT IS', 'VALUES', 'OF'];
  const rows = counts.map(({ key_id, state, values, table: of, column }) => [key_id, state, values, `${of}.${column}`]);
  const left = key_ids.slice(1).filter((key_id) => counts.some((count) => count.key_id === key_id));
  const free = key_ids.slice(1).filter((key_id) => !left.includes(key_id) && !dropped_key_ids.includes(key_id));
  return [
    ...table(columns, rows, 'Nothing is stored that is encrypted.'),
    '',
    `${re_encrypted} values re-encrypted.`,
    ...unreadable.slice(0, most_shown).map(unreadableLine),
    ...(unreadable.length > most_shown ? [`… and ${unreadable.length - most_shown} more; --json lists all.`] : []),
    ...left.map((key_id) => `${key_id} is still needed.`),
    ...free.map((key_id) => `${key_id} can be dropped once every process runs with ${key_ids[0]} in front.`),
    ...dropped_key_ids.map((key_id) => `${key_id} was dropped.`),
  ];
}

const unreadableLine = ({ table: of, column, organization_id, id, key_id, reason }: Unreadable): string =>
  `Left as it is: ${of}.${column} of ${organization_id} ${id}: ${reason === 'damaged' ? 'damaged' : `the key ${key_id} is not known`}.`;
