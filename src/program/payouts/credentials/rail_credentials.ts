/** The credentials of a program's rails, as those who send payouts read them. */
import sql from 'sql-template-tag';
import type { Vault } from '../../../core/encryption/vault.ts';
import { declareUnique } from '../../../core/postgres/errors.ts';
import type { Tx } from '../../../core/postgres/transaction.ts';
import { tenant } from '../../../core/resource/resource.ts';
import type { Credentials, RailMode } from '../rails/rail.ts';
import type { RailMethod } from './rail_method.ts';

declareUnique('rail', { rail_current: null, rail_version: null });

/**
 * The version that a new attempt is sent with: it stays the current one until the transaction ends. Undefined: the program has no credentials for
 * the rail.
 */
export const currentRail = (
  tx: Tx,
  program_id: string,
  rail: RailMethod,
): Promise<{ id: string; version: number; mode: RailMode } | undefined> =>
  tx.maybe(sql`
    select t.id, t.version, t.mode
    from program.rail t
    where ${tenant(tx)} and t.program_id = ${program_id} and t.rail = ${rail} and t.deleted_at is null
    for share of t`);

/**
 * A version of the credentials, which may have been replaced since: an attempt is looked up with those that it was sent with. For
 * `bank_transfer` and `wire` they are the debtor.
 */
export async function credentialsOf(
  tx: Tx,
  vault: Vault,
  program_id: string,
  rail: RailMethod,
  version: number,
): Promise<{ mode: RailMode; credentials: Credentials }> {
  const { id, mode, credentials } = await tx.one<{ id: string; mode: RailMode; credentials: Buffer }>(sql`
    select t.id, t.mode, t.credentials
    from program.rail t
    where ${tenant(tx)} and t.program_id = ${program_id} and t.rail = ${rail} and t.version = ${version}`);
  return { mode, credentials: JSON.parse(vault.decrypt(credentials, id)) as Credentials };
}
