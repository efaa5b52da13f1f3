import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { link, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from './config.ts';
import { createVault, parseEncryptionKeys, type Vault } from './core/encryption/vault.ts';

/**
 * The encryption key of the environment; else one that is generated once and kept in the data directory. It is written completely, and
 * synced to disk, before it gets its name, so that no process reads a part of it.
 */
export async function openVault(config: Config): Promise<Vault> {
  if (config.RAIL_ENCRYPTION_KEY) return createVault(parseEncryptionKeys(config.RAIL_ENCRYPTION_KEY));
  const file = keyFile(config);
  if (!existsSync(file)) {
    await mkdir(config.RAIL_DATA_DIR, { recursive: true, mode: 0o711 });
    const unnamed = await writeUnnamed(file, [randomBytes(32)]);
    await link(unnamed, file).catch(ignore('EEXIST'));
    await rm(unnamed);
  }
  return createVault(await readKeys(config));
}

/** Whether the keys are those of the data directory, which rail generates. */
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

const readKeys = async (config: Config): Promise<Buffer[]> =>
  parseEncryptionKeys(await readFile(keyFile(config), 'utf8'));

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
