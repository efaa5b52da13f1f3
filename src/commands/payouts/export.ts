import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import sql from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import { type Database, run } from '../../core/postgres/database.ts';
import { reading } from '../../core/postgres/reading.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { openVault, requireSomeKey } from '../../encryption_key.ts';
import { fileOf } from '../../program/payouts/files/export.ts';
import { contentOf } from '../../program/payouts/files/file_content.ts';
import { withStore } from '../command.ts';

interface ExportOptions {
  batch: string;
  file?: number;
  out?: string;
}

/** `rail payouts export`: the file for the bank, as the API gives it. */
export const exportPayouts = (options: ExportOptions): Promise<void> =>
  withStore(async ({ store, config }) => {
    requireSomeKey(config);
    const vault = await openVault(config);
    const organization_id = await organizationOf(store.database, options.batch);
    const chunks = reading(store, { organization_id, request_id: null }, (tx) => chunksOf(tx, vault, options));
    if (options.out === undefined) await pipeline(Readable.from(chunks), process.stdout, { end: false });
    else await writeWhole(options.out, chunks);
  });

/** @throws Error when there is no such batch */
async function organizationOf(database: Database, batch_id: string): Promise<string> {
  const [batch] = await run<{ organization_id: string }>(
    database,
    sql`select organization_id from program.payout_batch where id = ${batch_id} and deleted_at is null`,
  );
  if (!batch) throw new Error(`There is no batch '${batch_id}'.`);
  return batch.organization_id;
}

async function* chunksOf(tx: Tx, vault: Vault, { batch, file }: ExportOptions): AsyncGenerator<string | Uint8Array> {
  const { chunks } = await contentOf(tx, vault, await fileOf(tx, batch, file));
  yield* chunks;
}

/** A file that is there is whole: a bank must not be given half of it. Nobody else can read the account numbers. */
async function writeWhole(path: string, chunks: AsyncIterable<string | Uint8Array>): Promise<void> {
  const unfinished = `${path}.${randomUUID()}`;
  try {
    await pipeline(Readable.from(chunks), createWriteStream(unfinished, { mode: 0o600, flush: true }));
    await rename(unfinished, path);
  } catch (error) {
    await rm(unfinished, { force: true });
    throw error;
  }
}
