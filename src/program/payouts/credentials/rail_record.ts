import sql, { type Sql } from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../../core/postgres/transaction.ts';
import { tenant } from '../../../core/resource/resource.ts';
import { id, objectName, text, timestamp } from '../../../core/values/fields.ts';
import { Problem } from '../../../core/values/problem.ts';
import { rail_modes } from '../rails/rail.ts';
import { isRailName } from '../rails/rails.ts';
import { type RailMethod, rail_methods } from './rail_method.ts';

export const mode = z
  .enum(rail_modes)
  .describe(
    "`live` pays partners. `test` uses the provider's sandbox, or files that no bank is to execute: such payouts have `livemode: false`, never count as paid, and free their commissions at their end.",
  );

/** The credentials of a rail as they are shown. */
export const RailRecord = z
  .object({
    id: id('rail').describe('The id of this version of the credentials.'),
    object: objectName('rail'),
    program_id: id('prg'),
    rail: z.enum(rail_methods).describe('The payout method that the credentials are for.'),
    mode,
    account: text.describe('The account at the provider, as the provider names it, or the name of the account holder.'),
    hint: text.describe('The last four characters of the IBAN, client id, profile id or secret key.'),
    warnings: z.array(text).describe('What the provider said that limits payouts or their confirmation.'),
    webhook_url: text
      .nullable()
      .describe("Where the provider's webhooks are to be sent. Null for `bank_transfer` and `wire`."),
    version: z.int().describe('Counts the changes. A payout keeps the version that it was sent with.'),
    created_at: timestamp,
    updated_at: timestamp,
  })
  .meta({ id: 'Rail', description: 'The credentials of a payout rail. They are encrypted and never returned.' });
export type RailRecord = z.infer<typeof RailRecord>;

/** @param base_url of the service */
export const columns = (base_url: string): Sql => sql`
  t.id, 'rail' as object, t.program_id, t.rail, t.mode, t.account, t.hint, t.warnings,
  case when t.rail = any(${rail_methods.filter(isRailName)}) then ${base_url}::text || '/rails/' || t.rail || '/' || t.program_id end as webhook_url,
  t.version, t.created_at, t.updated_at`;

/** All rails of a program that have credentials. */
export const railsOf = (tx: Tx, program_id: string, base_url: string): Promise<RailRecord[]> =>
  tx.all<RailRecord>(sql`
    select ${columns(base_url)}
    from program.rail t
    where ${tenant(tx)} and t.program_id = ${program_id} and t.deleted_at is null
    order by t.rail`);

/** @throws Problem resource_not_found when the program has no credentials for the rail */
export async function railOf(tx: Tx, program_id: string, rail: RailMethod, base_url: string): Promise<RailRecord> {
  const record = (await railsOf(tx, program_id, base_url)).find((each) => each.rail === rail);
  if (record) return record;
  throw new Problem(
    'resource_not_found',
    `The program has no credentials for ${rail}. Set them with PUT /v1/programs/{id}/rails/${rail}.`,
    { param: 'rail' },
  );
}
