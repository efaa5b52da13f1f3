import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { link, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from './config.ts';
import { findWrongKey, hasKeyCheck, storedKeyId } from './core/encryption/key_check.ts';
import { createVault, parseEncryptionKeys, type Vault } from './core/encryption/vault.ts';
import type { Database } from './core/postgres/database.ts';

/**
 * The encryption key of the environment; else that of the data directory, which is generated once, for a database that was never used.
 * A database that lacks its migrations is not compared: `/readyz` and the worker do that when it has them.
 * @throws Error when the database was used with another key, or its key is gone
 */
export async function openVault(config: Config, database: Database): Promise<Vault> {
  const is_compared = await hasKeyCheck(database);
  if (!config.RAIL_ENCRYPTION_KEY && !existsSync(keyFile(config))) {
    const key_id = is_compared ? await storedKeyId(database) : undefined;
    if (key_id !== undefined) throw new Error(keyIsGone(config, key_id));
    await generateKey(config);
  }
  const vault = await readVault(config);
  const reason = is_compared ? await findWrongKey(database, vault) : undefined;
  if (reason !== undefined) throw new Error(reason);
  return vault;
}

/** The keys as they are, whatever the database was used with: to see and change what it holds. */
export const readVault = async (config: Config): Promise<Vault> =>
  createVault(config.RAIL_ENCRYPTION_KEY ? parseEncryptionKeys(config.RAIL_ENCRYPTION_KEY) : await readKeys(config));

const keyIsGone = (config: Config, key_id: string): string =>
  `The database holds values encrypted with the key ${key_id}, and there is no ${keyFile(config)}. Restore that file, or set RAIL_ENCRYPTION_KEY to the key.`;

/** It is written completely, and synced to disk, before it gets its name, so that no process reads a part of it. */
async function generateKey(config: Config): Promise<void> {
  await mkdir(config.RAIL_DATA_DIR, { recursive: true, mode: 0o711 });
  const unnamed = await writeUnnamed(keyFile(config), [randomBytes(32)]);
  await link(unnamed, keyFile(config)).catch(ignore('EEXIST'));
  await rm(unnamed);
}

/** Returns whether the keys are those of the data directory, which rail generates. */
export const hasOwnKeys = (config: Config): boolean => !config.RAIL_ENCRYPTION_KEY && existsSync(keyFile(config));

/**
 * Puts a new key in front of those in the data directory, unless there are several already: that rotation must be finished first.
 * @returns whether a key was created
 */
export async function putNewKeyInFront(config: Config): Promise<boolean> {
  const keys = await readKeys(config);
  if (keys.length > 1) return false;
  await writeKeys(config, [randomBytes(32), ...keys]);
  return true;
}

/** Keeps only the first of the data directory's keys. Values under the other keys can no longer be decrypted. */
export async function dropOldKeys(config: Config): Promise<void> {
  await writeKeys(config, (await readKeys(config)).slice(0, 1));
}

const keyFile = (config: Config): string => join(config.RAIL_DATA_DIR, 'encryption_key');

/** @throws Error when the data directory has none */
async function readKeys(config: Config): Promise<Buffer[]> {
  if (existsSync(keyFile(config))) return parseEncryptionKeys(await readFile(keyFile(config), 'utf8'));
  throw new Error(`There is no encryption key: RAIL_ENCRYPTION_KEY is not set, and there is no ${keyFile(config)}.`);
}

const writeKeys = async (config: Config, keys: Buffer[]): Promise<void> =>
  rename(await writeUnnamed(keyFile(config), keys), keyFile(config));

async function writeUnnamed(file: string, keys: Buffer[]): Promise<string> {
  const unnamed = `${file}.${randomUUID()}`;
  const text = keys.map((key) => key.toString('base64')).join(',');
  await writeFile(unnamed, `${text}\n`, { mode: 0o600, flush: true });
  return unnamed;
}

/**
 * For processes that share a database with others, and so must share the key with them.
 * @throws Error when there is none in the environment
 */
export function requireSharedKey(config: Config): void {
  if (!config.DATABASE_URL || config.RAIL_ENCRYPTION_KEY) return;
  throw new Error(
    'RAIL_ENCRYPTION_KEY is not set. All processes on one DATABASE_URL need the same key: generate it once with `openssl rand -base64 32`.',
  );
}

/**
 * For commands that run beside the service: they may use the key of the data directory, and never generate one.
 * @throws Error when there is none
 */
export function requireSomeKey(config: Config): void {
  if (existsSync(keyFile(config))) return;
  requireSharedKey(config);
}

function ignore(expected: string): (error: NodeJS.ErrnoException) => void {
  return (error) => {
    if (error.code !== expected) throw error;
  };
}
