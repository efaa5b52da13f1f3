import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from './config.ts';
import { createVault, parseEncryptionKeys, type Vault } from './core/secret.ts';

/**
 * The encryption key of the environment; else one that is made once and kept in the data directory. It is written whole, and to the disk,
 * before it has its name, so that nobody reads half of it.
 */
export async function openVault(config: Config): Promise<Vault> {
  if (config.RAIL_ENCRYPTION_KEY) return createVault(parseEncryptionKeys(config.RAIL_ENCRYPTION_KEY));
  const file = keyFile(config);
  if (!existsSync(file)) {
    await mkdir(config.RAIL_DATA_DIR, { recursive: true, mode: 0o711 });
    const unnamed = `${file}.${randomUUID()}`;
    await writeFile(unnamed, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600, flush: true });
    await link(unnamed, file).catch(ignore('EEXIST'));
    await rm(unnamed);
  }
  return createVault(parseEncryptionKeys(await readFile(file, 'utf8')));
}

const keyFile = (config: Config): string => join(config.RAIL_DATA_DIR, 'encryption_key');

/**
 * For processes that share a database with others, and so must share the key with them.
 * @throws Error when there is none in the environment
 */
export function requireSharedKey(config: Config): void {
  if (!config.DATABASE_URL || config.RAIL_ENCRYPTION_KEY) return;
  throw new Error(
    'RAIL_ENCRYPTION_KEY is not set: all processes on one DATABASE_URL need the same key. Make it once with `openssl rand -base64 32`.',
  );
}

/**
 * For what works beside a running service: it may use the key of the data directory, and never makes one.
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
