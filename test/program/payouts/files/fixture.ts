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
    with earlier as (
      update program.rail set deleted_at = now()
      where organization_id = ${organization_id} and program_id = ${program_id} and rail = ${name} and deleted_at is null
    )
    insert into program.rail (organization_id, program_id, id, rail, version, mode, credentials, created_at, updated_at)
    select ${organization_id}, ${program_id}, ${id}, ${name}, count(*) + 1, ${mode}, ${rail.services.vault.encrypt(JSON.stringify(account), id)}, now(), now()
    from program.rail where organization_id = ${organization_id} and program_id = ${program_id} and rail = ${name}`);
}
