/** Changes of credentials. The owner is emailed of each: somebody who diverts money must be noticed. */
import sql from 'sql-template-tag';
import { callerLine } from '../../../core/access/api_key.ts';
import type { Tx } from '../../../core/postgres/transaction.ts';
import { insert } from '../../../core/postgres/write.ts';
import type { Caller } from '../../../core/resource/operation.ts';
import { tenant } from '../../../core/resource/resource.ts';
import type { Services } from '../../../core/resource/services.ts';
import { newId } from '../../../core/values/id.ts';
import { Problem } from '../../../core/values/problem.ts';
import { inOneLine } from '../../../core/values/texts/one_line.ts';
import { mailOwner } from '../../programs/mail_owner.ts';
import { type Program, programs } from '../../programs/program.ts';
import type { Credentials, RailMode } from '../rails/rail.ts';
import { type CheckedAccount, hintOf, type RailMethod, titleOf } from './rail_method.ts';
import { type RailRecord, railOf, railsOf } from './rail_record.ts';

export interface CheckedCredentials extends CheckedAccount {
  credentials: Credentials;
}

interface Change {
  rail: RailMethod;
  caller: Caller;
  services: Services;
}

/** Adds a version. Attempts in progress keep the one that they were sent with. */
export async function putRail(
  tx: Tx,
  program_id: string,
  mode: RailMode,
  { credentials, account, warnings }: CheckedCredentials,
  { rail, caller, services }: Change,
): Promise<RailRecord> {
  const program = await programs.get(tx, program_id, { lock: true });
  const before = await findRail(tx, program_id, rail, services);
  await endCurrent(tx, program_id, rail);
  const id = newId('rail');
  await insert(tx, 'program.rail', {
    ...{ id, program_id, rail, mode, account, warnings, version: await nextVersion(tx, program_id, rail) },
    ...{ hint: hintOf(rail, credentials), credentials: services.vault.encrypt(JSON.stringify(credentials), id) },
    ...{ created_at: tx.now, updated_at: tx.now },
  });
  const record = await railOf(tx, program_id, rail, services.base_url);
  await notifyOwner(tx, program, { rail, caller, before, after: record });
  return record;
}

/** @returns what was deleted  @throws Problem resource_not_found, payout_locked */
export async function deleteRail(tx: Tx, program_id: string, { rail, caller, services }: Change): Promise<RailRecord> {
  const program = await programs.get(tx, program_id, { lock: true });
  const before = await railOf(tx, program_id, rail, services.base_url);
  await lockAgainstSending(tx, program_id, rail);
  await refuseProcessing(tx, program_id, rail);
  await endCurrent(tx, program_id, rail);
  await notifyOwner(tx, program, { rail, caller, before, after: undefined });
  return before;
}

const findRail = async (tx: Tx, program_id: string, rail: RailMethod, { base_url }: Services) =>
  (await railsOf(tx, program_id, base_url)).find((each) => each.rail === rail);

const endCurrent = (tx: Tx, program_id: string, rail: RailMethod): Promise<object[]> =>
  tx.all(sql`
    update program.rail t
    set deleted_at = ${tx.now}::timestamptz, updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.program_id = ${program_id} and t.rail = ${rail} and t.deleted_at is null`);

/** Versions are never given twice, also after a deletion: attempts name them. */
const nextVersion = async (tx: Tx, program_id: string, rail: RailMethod): Promise<number> =>
  (
    await tx.one<{ version: number }>(sql`
      select coalesce(max(t.version), 0) + 1 as version
      from program.rail t
      where ${tenant(tx)} and t.program_id = ${program_id} and t.rail = ${rail}`)
  ).version;

/** Waits for transactions that have read the current version to send payouts with it: see `currentRail`. */
const lockAgainstSending = (tx: Tx, program_id: string, rail: RailMethod): Promise<object[]> =>
  tx.all(sql`
    select
    from program.rail t
    where ${tenant(tx)} and t.program_id = ${program_id} and t.rail = ${rail} and t.deleted_at is null
    for no key update of t`);

/** "Credentials with payouts in processing cannot be deleted (409)." */
async function refuseProcessing(tx: Tx, program_id: string, rail: RailMethod): Promise<void> {
  const processing = await tx.maybe<{ id: string }>(sql`
    select t.id
    from program.payout t
    left join program.payout_attempt a on a.organization_id = t.organization_id and a.payout_id = t.id and a.number = t.attempt
    where ${tenant(tx)} and t.program_id = ${program_id} and t.status = 'processing' and t.deleted_at is null
      and coalesce(a.rail, t.method) = ${rail}
    limit 1`);
  if (!processing) return;
  throw new Problem(
    'payout_locked',
    `Payouts by ${rail} are processing, such as ${processing.id}, and their outcome is asked for with these credentials. Wait until they are settled. PUT can replace the credentials meanwhile.`,
  );
}

interface RailChange {
  rail: RailMethod;
  caller: Caller;
  before: RailRecord | undefined;
  after: RailRecord | undefined;
}

/** Notifies the owner by a job, because tenants cannot write mail. */
async function notifyOwner(tx: Tx, program: Program, { rail, caller, before, after }: RailChange): Promise<void> {
  const verb = after ? (before ? 'changed' : 'set') : 'deleted';
  const lines = [
    `The credentials that ${inOneLine(program.name)} pays partners with by ${titleOf(rail)} were ${verb}.`,
    '',
    ...(before ? [`Before: ${shortTextOf(before)}`] : []),
    ...(after ? [`Now: ${shortTextOf(after)}`] : []),
    `Program: ${program.id}`,
    await callerLine(tx, caller),
    `Request: ${tx.request_id}`,
    `Time: ${tx.now}`,
    '',
    "If you did not expect this, revoke the API key with 'npx --no rail key revoke', and set the credentials again before payouts are sent.",
  ];
  mailOwner(tx, {
    organization_id: tx.organization_id,
    subject: inOneLine(`Credentials for ${titleOf(rail)} were ${verb}: ${program.name}`),
    text: `${lines.join('\n')}\n`,
  });
}

const shortTextOf = ({ mode, account, hint, version }: RailRecord): string =>
  `${inOneLine(account)} (ends in ${hint}), ${mode} mode, version ${version}`;
