import type { Vault } from '../../core/encryption/vault.ts';
import { reading } from '../../core/postgres/reading.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { openVault, requireSomeKey } from '../../encryption_key.ts';
import { fileOf } from '../../program/payouts/files/export.ts';
import { contentOf } from '../../program/payouts/files/file_content.ts';
import { withStore } from '../command.ts';
import { writeOut } from '../output/whole_file.ts';
import { organizationOf } from './batch.ts';

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
    const organization_id = await organizationOf(store.database, { batch: options.batch });
    const chunks = reading(store, { organization_id, request_id: null }, (tx) => chunksOf(tx, vault, options));
    await writeOut(options.out, chunks);
  });

async function* chunksOf(tx: Tx, vault: Vault, { batch, file }: ExportOptions): AsyncGenerator<string | Uint8Array> {
  const { chunks } = await contentOf(tx, vault, await fileOf(tx, batch, file));
  yield* chunks;
}
