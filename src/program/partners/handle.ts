import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { alreadyExists } from '../../core/values/problem.ts';
import { partners } from './partner.ts';

/** The longest handle. */
const max_length = 32;

export const handle = z
  .string()
  .regex(
    /^[a-z0-9][a-z0-9-]{0,30}[a-z0-9]$/,
    'must be 2 to 32 lowercase letters, digits or hyphens, and start and end with a letter or digit',
  );

/** @throws Problem resource_already_exists with the partner that holds the handle */
export async function refuseTakenHandle(tx: Tx, program_id: string, wanted: string): Promise<void> {
  const existing = await partners.find(
    tx,
    sql`${tenant(tx)} and t.program_id = ${program_id} and t.handle = ${wanted}`,
  );
  if (existing)
    throw alreadyExists('handle', `A partner with the handle '${wanted}' already exists in this program.`, existing);
}

/** "The email's local part, made to fit the pattern, with `-2`, `-3` … behind it when taken." */
export async function deriveHandle(tx: Tx, program_id: string, email: string): Promise<string> {
  const base = handleOf(email);
  const prefix = base.slice(0, 26);
  const rows = await tx.all<{ handle: string }>(sql`
    select t.handle from ${partners.from}
    where ${tenant(tx)} and t.program_id = ${program_id} and ${partners.alive}
      and t.handle >= ${prefix} and t.handle < ${`${prefix}~`}`);
  const taken = new Set(rows.map((row) => row.handle));
  let candidate = base;
  for (let number = 2; taken.has(candidate); number++) candidate = numbered(base, number);
  return candidate;
}

function handleOf(email: string): string {
  const local_part = email.slice(0, email.lastIndexOf('@')).toLowerCase();
  const allowed = local_part.replaceAll(/[^a-z0-9]+/g, '-').replaceAll(/^-+|-+$/g, '');
  return truncated(allowed.length >= 2 ? allowed : `${allowed}partner`, max_length);
}

function numbered(base: string, number: number): string {
  const suffix = `-${number}`;
  return truncated(base, max_length - suffix.length) + suffix;
}

const truncated = (text: string, length: number): string => text.slice(0, length).replace(/-+$/, '');
