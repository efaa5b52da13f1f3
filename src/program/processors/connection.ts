/** The connection of a program to a billing processor: what is shown of it, and its credentials for those who call. */

import sql, { type Sql } from 'sql-template-tag';
import { z } from 'zod';
import { declareUnique } from '../../core/postgres/errors.ts';
import { type Store, type TransactionOptions, type Tx, transaction } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import type { Services } from '../../core/resource/services.ts';
import { id, objectName, text, timestamp } from '../../core/values/fields.ts';
import { Problem } from '../../core/values/problem.ts';
import { inOneLine } from '../../core/values/texts/one_line.ts';
import { mailOwner } from '../programs/mail_owner.ts';
import { type Program, programs } from '../programs/program.ts';
import {
  type Account,
  type Credentials,
  KeyRefused,
  type ProcessorMode,
  type ProcessorName,
  processor_modes,
  processor_names,
} from './processor.ts';
import { billing, processorUrl } from './processors.ts';

declareUnique('processor', { processor_current: null });

export const processor_name = z.enum(processor_names).describe('The billing processor.');

export const mode = z
  .enum(processor_modes)
  .describe(
    '`live`: events of payments. `test`: events of the test mode of the processor, to try it: they become sales all the same, so use a program of its own.',
  );

/** How far the history of a processor is read. */
const BackfillProgress = z
  .object({
    since: timestamp.describe('The time from which on the history is read.'),
    dry_run: z.boolean().describe('Whether it only counts what would be taken in.'),
    status: z
      .enum(['running', 'done', 'failed'])
      .describe('`failed`: as `error` says. The same request goes on where it ended.'),
    read: z.int().describe('Events that were read so far.'),
    found: z.int().describe('Those of them that were not known: they are taken in, unless it is a dry run.'),
    error: text.nullable().describe('Why it failed. Null if it did not.'),
    updated_at: timestamp,
  })
  .meta({ id: 'ProcessorBackfill', description: 'How far the history of a billing processor is read.' });

/** A connection as it is shown. */
export const ProcessorRecord = z
  .object({
    id: id('prc').describe('The id of this connection. Each `PUT` makes a new one.'),
    object: objectName('processor'),
    program_id: id('prg'),
    processor: processor_name,
    mode,
    status: z
      .enum(['connected', 'disconnected'])
      .describe(
        '`connected`: its events are worked on. `disconnected`: the processor refuses the key, as `disconnected_reason` says. Set the credentials again: what came meanwhile is worked on then.',
      ),
    disconnected_reason: text.nullable().describe('Why it is disconnected. Null if it is connected.'),
    account: text.describe('The account at the processor, as the processor names it.'),
    hint: text.describe('The last four characters of the key.'),
    warnings: z.array(text).describe('What is to be corrected at the processor.'),
    webhook_url: text.describe('Where the processor sends its events.'),
    backfill: BackfillProgress.nullable().describe('The last backfill. Null: there was none.'),
    created_at: timestamp,
    updated_at: timestamp,
  })
  .meta({ id: 'Processor', description: 'The connection to a billing processor. Its credentials are never returned.' });
export type ProcessorRecord = z.infer<typeof ProcessorRecord>;

const columns = (base_url: string): Sql => sql`
  t.id, 'processor' as object, t.program_id, t.processor, t.mode, t.status, t.disconnected_reason, t.account, t.hint, t.warnings,
  ${base_url}::text || '/processors/' || t.processor || '/' || t.program_id as webhook_url, t.backfill - 'from' as backfill,
  t.created_at, t.updated_at`;

/** The connections of a program, by their names. */
export const connectionsOf = (tx: Tx, program_id: string, base_url: string): Promise<ProcessorRecord[]> =>
  tx.all<ProcessorRecord>(sql`
    select ${columns(base_url)}
    from program.processor t
    where ${tenant(tx)} and t.program_id = ${program_id} and t.deleted_at is null
    order by t.processor`);

/** @throws Problem resource_not_found when the program is not connected to the processor */
export async function connectionOf(
  tx: Tx,
  program_id: string,
  processor: ProcessorName,
  { base_url }: Pick<Services, 'base_url'>,
): Promise<ProcessorRecord> {
  const found = (await connectionsOf(tx, program_id, base_url)).find((one) => one.processor === processor);
  if (found) return found;
  throw new Problem(
    'resource_not_found',
    `The program is not connected to ${billing[processor].title}. Connect it with PUT /v1/programs/{id}/processors/${processor}.`,
    { param: 'processor' },
  );
}

/** A row of the table. */
export interface Connection {
  organization_id: string;
  id: string;
  program_id: string;
  processor: ProcessorName;
  mode: ProcessorMode;
  status: 'connected' | 'disconnected';
  endpoint_id: string | null;
  credentials: Buffer;
}

const raw_columns = sql`t.organization_id, t.id, t.program_id, t.processor, t.mode, t.status, t.endpoint_id, t.credentials`;

/** The current connection, with its credentials. */
export const currentConnection = (
  tx: Tx,
  program_id: string,
  processor: ProcessorName,
): Promise<Connection | undefined> =>
  tx.maybe<Connection>(sql`
    select ${raw_columns}
    from program.processor t
    where ${tenant(tx)} and t.program_id = ${program_id} and t.processor = ${processor} and t.deleted_at is null`);

/** A connection by its id, also one that was replaced. */
export const connectionById = (tx: Tx, connection_id: string): Promise<Connection | undefined> =>
  tx.maybe<Connection>(
    sql`select ${raw_columns} from program.processor t where ${tenant(tx)} and t.id = ${connection_id}`,
  );

/**
 * Those that a webhook may be signed by: the current one, and those of its mode and its account that it replaced within a day. Ids of programs are
 * unique over all organizations.
 */
export const signingConnections = (program_id: string, processor: ProcessorName): Sql => sql`
  select ${raw_columns}
  from program.processor t
  where t.program_id = ${program_id} and t.processor = ${processor} and t.hint <> ''
    and (
      t.deleted_at is null
      or t.deleted_at > now() - interval '1 day' and exists (
        select
        from program.processor c
        where c.organization_id = t.organization_id and c.program_id = t.program_id and c.processor = t.processor and c.deleted_at is null
          and c.mode = t.mode and (c.account = t.account or not (c.account like 'acct\\_%' and t.account like 'acct\\_%'))
      )
    )
  order by t.deleted_at desc nulls first
  limit 5`;

export const secretsOf = (
  { vault }: Pick<Services, 'vault'>,
  { id, credentials }: Pick<Connection, 'id' | 'credentials'>,
) => JSON.parse(vault.decrypt(credentials, id)) as Credentials;

export function accountOf(services: Services, connection: Connection, cut_off: AbortSignal): Account {
  const { mode, processor } = connection;
  // Only the account of the demo says where it is: no caller can send that.
  const { url = processorUrl(processor, mode, services), ...credentials } = secretsOf(services, connection);
  return { mode, credentials, url, cut_off };
}

/** Marks a connection as disconnected, and emails the owner. Does so once. */
export async function disconnected(tx: Tx, connection_id: string, reason: string): Promise<void> {
  const ended = await tx.maybe<{ program_id: string; processor: ProcessorName }>(sql`
    update program.processor t
    set status = 'disconnected', disconnected_reason = ${reason}, updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = ${connection_id} and t.status = 'connected' and t.deleted_at is null
    returning t.program_id, t.processor`);
  if (!ended) return;
  const program = await programs.get(tx, ended.program_id);
  const { title } = billing[ended.processor];
  const lines = [
    `${inOneLine(program.name)} is no longer connected to ${title}: payments do not become sales.`,
    '',
    `Reason: ${inOneLine(reason)}`,
    `Program: ${program.id}`,
    `Time: ${tx.now}`,
    '',
    `Set the credentials again with PUT /v1/programs/${program.id}/processors/${ended.processor}. What came meanwhile is worked on then.`,
  ];
  mailOwner(tx, {
    organization_id: tx.organization_id,
    subject: inOneLine(`${title} was disconnected: ${program.name}`),
    text: `${lines.join('\n')}\n`,
  });
}

/** Emails the owner of a change of credentials. */
export function mailChange(
  tx: Tx,
  program: Program,
  verb: string,
  { processor, account, hint, mode }: ProcessorRecord,
  by: string,
): void {
  const { title } = billing[processor];
  const lines = [
    `The connection of ${inOneLine(program.name)} to ${title} was ${verb}.`,
    '',
    `Account: ${inOneLine(account)} (the key ends in ${hint}), ${mode} mode`,
    `Program: ${program.id}`,
    by,
    `Request: ${tx.request_id}`,
    `Time: ${tx.now}`,
  ];
  mailOwner(tx, {
    organization_id: tx.organization_id,
    subject: inOneLine(`Connection to ${title} was ${verb}: ${program.name}`),
    text: `${lines.join('\n')}\n`,
  });
}

/**
 * Does work for which a processor is asked. Where it refuses the key, the connection is disconnected.
 * @param opening of the transaction that says so
 * @returns whether the work is done
 */
export async function whileKeyHolds(
  store: Store,
  opening: Pick<TransactionOptions, 'organization_id' | 'request_id'>,
  connection_id: string,
  work: () => Promise<unknown>,
): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    if (!(error instanceof KeyRefused)) throw error;
    await transaction(store, opening, (tx) => disconnected(tx, connection_id, error.message));
    return false;
  }
}
