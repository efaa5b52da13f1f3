/** The content of a file, read as it is written: memory does not grow with its payouts. */
import sql from 'sql-template-tag';
import type { Vault } from '../../../core/encryption/vault.ts';
import type { FileStream } from '../../../core/formats/row_stream.ts';
import type { Tx } from '../../../core/postgres/transaction.ts';
import { tenant } from '../../../core/resource/resource.ts';
import { type CryptoPayout, cryptoCsv } from '../bank/crypto_csv.ts';
import { type Debtor, type PaymentBlock, pain001 } from '../bank/pain001.ts';
import type { Creditor, Transfer } from '../bank/transfer.ts';
import type { RailMode } from '../rails/rail.ts';
import { type FileMethod, type FrozenTransfer, fromText } from './frozen_transfer.ts';

export interface StoredFile {
  id: string;
  batch_id: string;
  number: number;
  method: FileMethod;
  mode: RailMode;
  debtor: Buffer | null;
  created_at: string;
}

export type Block = Omit<PaymentBlock, 'method' | 'total_minor'> & { total_minor: string };

interface FrozenRow {
  id: string;
  request: Buffer;
}

export const file_types = { xml: 'application/xml', csv: 'text/csv' };

/** The file: the same bytes each time. */
export async function contentOf(tx: Tx, vault: Vault, file: StoredFile): Promise<FileStream> {
  const name = `${file.mode === 'test' ? 'test-' : ''}payouts-${file.batch_id}-${file.number}`;
  if (file.method === 'crypto') {
    const chunks = cryptoCsv(walletsOf(tx, vault, file.id));
    return { name: `${name}.csv`, media_type: `${file_types.csv}; charset=utf-8`, chunks: gathered(chunks) };
  }
  return { name: `${name}.xml`, media_type: file_types.xml, chunks: await paymentFile(tx, vault, file) };
}

async function paymentFile(tx: Tx, vault: Vault, file: StoredFile): Promise<AsyncGenerator<string>> {
  const { id: message_id, created_at, method } = file;
  const debtor = JSON.parse(vault.decrypt(file.debtor as Buffer, file.id)) as Debtor;
  const blocks = (await blocksOf(tx, file.id)).map((block) => ({
    ...block,
    method: method as PaymentBlock['method'],
    total_minor: BigInt(block.total_minor),
  }));
  return pain001({ message_id, created_at, debtor, blocks }, (block) => transfersOf(tx, vault, file.id, block));
}

/** The payment information blocks of a file, in their order: the report on one names it by its place. */
export const blocksOf = (tx: Tx, file_id: string): Promise<Block[]> =>
  tx.all(sql`
    select t.currency, t.state ->> 'execution_date' as execution_date, count(*) as transfer_count, sum(t.amount_minor)::text as total_minor
    from program.payout_attempt t
    where ${tenant(tx)} and t.file_id = ${file_id}
    group by 1, 2
    order by 1, 2`);

async function* transfersOf(
  tx: Tx,
  vault: Vault,
  file_id: string,
  { currency, execution_date }: PaymentBlock,
): AsyncGenerator<Transfer> {
  const frozen = tx.batches<FrozenRow>(sql`
    select t.id, t.request
    from program.payout_attempt t
    where ${tenant(tx)} and t.file_id = ${file_id} and t.currency = ${currency} and t.state ->> 'execution_date' = ${execution_date}
    order by t.id`);
  for await (const { amount_minor, destination, remittance, idempotency_key } of opened(vault, frozen))
    yield { key: idempotency_key, amount_minor, creditor: destination as unknown as Creditor, remittance };
}

async function* walletsOf(tx: Tx, vault: Vault, file_id: string): AsyncGenerator<CryptoPayout> {
  const frozen = tx.batches<FrozenRow>(sql`
    select t.id, t.request from program.payout_attempt t where ${tenant(tx)} and t.file_id = ${file_id} order by t.id`);
  for await (const { payout_id, partner_name, amount_minor, currency, destination, idempotency_key } of opened(
    vault,
    frozen,
  )) {
    const { network, address } = destination as { network: string; address: string };
    yield { payout_id, partner: partner_name, network, address, amount_minor, currency, reference: idempotency_key };
  }
}

async function* opened(vault: Vault, batches: AsyncIterable<FrozenRow[]>): AsyncGenerator<FrozenTransfer> {
  for await (const rows of batches) for (const { id, request } of rows) yield fromText(vault.decrypt(request, id));
}

const chunk_length = 32_768;

async function* gathered(lines: AsyncIterable<string>): AsyncGenerator<string> {
  let chunk = '';
  for await (const line of lines) {
    chunk += line;
    if (chunk.length < chunk_length) continue;
    yield chunk;
    chunk = '';
  }
  yield chunk;
}
