import sql from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import { type Database, run } from '../../core/postgres/database.ts';
import { reading } from '../../core/postgres/reading.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { openVault, requireSomeKey } from '../../encryption_key.ts';
import { fileOf } from '../../program/payouts/files/export.ts';
import { contentOf } from '../../program/payouts/files/file_content.ts';
import { withStore } from '../command.ts';
import { writeOut } from '../output/whole_file.ts';

interface ExportOptions {
  batch: string;
  file?: number;
  out?: string;
}

/** `rail payouts export`: the file for the bank, as the API gives it. */
export const exportPayouts = (options: ExportOptions): Promise<void> =>
  withStore(async ({ store, config }) => {
    requireSomeKey(config);
    const vault = await openVault(config, store.database);
    const organization_id = await organizationOf(store.database, options.batch);
    const chunks = reading(store, { organization_id, request_id: null }, (tx) => chunksOf(tx, vault, options));
    await writeOut(options.out, chunks);
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
