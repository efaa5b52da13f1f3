import { transaction } from '../../../../src/core/postgres/transaction.ts';
import { tenant } from '../../../../src/core/resource/resource.ts';
import { PayoutFiles } from '../../../../src/program/payouts/files/freeze.ts';
import type { FileMethod } from '../../../../src/program/payouts/files/frozen_transfer.ts';
import { type Payout, payouts } from '../../../../src/program/payouts/payout.ts';
import type { RailMode } from '../../../../src/program/payouts/rails/rail.ts';
import { type Json, type Rail, sql } from '../../../harness.ts';
import type { Shop } from '../../../shop.ts';

export const debtor = { name: 'Acme GmbH', iban: 'DE89370400440532013000', bic: 'COBADEFFXXX' };

let rows = 0;

/** The account that a program's bank files pay from. */
export async function setDebtor(
  rail: Rail,
  { merchant: { organization_id }, program_id }: Shop,
  { rail: name = 'bank_transfer', mode = 'live' as RailMode, account = debtor }: Json = {},
): Promise<void> {
  const id = `rail_${++rows}`;
  await rail.query(sql`
    update program.rail set deleted_at = now()
    where organization_id = ${organization_id} and program_id = ${program_id} and rail = ${name} and deleted_at is null`);
  await rail.query(sql`
    insert into program.rail (organization_id, program_id, id, rail, version, mode, credentials, created_at, updated_at)
    select ${organization_id}, ${program_id}, ${id}, ${name}, count(*) + 1, ${mode}, ${rail.services.vault.encrypt(JSON.stringify(account), id)}, now(), now()
    from program.rail where organization_id = ${organization_id} and program_id = ${program_id} and rail = ${name}`);
}

/** Sends all payouts of a batch and a method that can be sent. */
export const freezeAll = (
  rail: Rail,
  { merchant: { organization_id } }: Shop,
  batch_id: string,
  method: FileMethod = 'bank_transfer',
): Promise<void> =>
  transaction(rail.store, { organization_id, request_id: null }, async (tx) => {
    const locked = await tx.all<Payout>(sql`
      select ${payouts.columns}
      from ${payouts.from}
      where ${tenant(tx)} and t.batch_id = ${batch_id} and t.status in ('pending', 'failed') and t.method = ${method}
      order by t.id
      for no key update of t`);
    const files = new PayoutFiles(tx, rail.services);
    await files.add(batch_id, method, locked);
    await files.emitUpdates();
  });
