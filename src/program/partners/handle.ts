import sql, { type Sql } from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { alreadyExists, type Problem } from '../../core/values/problem.ts';
import { programs } from '../programs/program.ts';
import { links } from './link.ts';
import { type Partner, partners } from './partner.ts';

/** The longest handle. */
const max_length = 32;

export const handle = z
  .string()
  .regex(
    /^[a-z0-9][a-z0-9-]{0,30}[a-z0-9]$/,
    'must be 2 to 32 lowercase letters, digits or hyphens, and start and end with a letter or digit',
  );

/** The record through which another partner holds a value: the link, or else the partner by the handle. */
interface Holder {
  partner_id: string;
  link_id: string | null;
}

/**
 * Claims a value for a handle or a link until the transaction ends: of those who claim it at the same time, one goes on, and the others
 * find it taken. The program's `url_params` stay as they are meanwhile.
 * @param conflicts a condition on the values `t`: which of them the claim must not meet
 * @returns who holds the value in the program, if anybody
 */
export async function claimValue(
  tx: Tx,
  program_id: string,
  value: string,
  conflicts: Sql = sql`true`,
): Promise<Holder | undefined> {
  const key = value.toLowerCase();
  const [, holder] = await Promise.all([
    tx.all(sql`
      select pg_advisory_xact_lock_shared(hashtextextended(${program_id}, 5)),
        pg_advisory_xact_lock(hashtextextended(${`${program_id} ${key}`}, 4))`),
    tx.maybe<Holder>(sql`
      select t.partner_id, t.link_id
      from program.tracking_value t
      where ${tenant(tx)} and t.program_id = ${program_id} and t.value = ${key} and ${conflicts}
      order by t.link_id nulls first
      limit 1`),
  ]);
  return holder;
}

/** Waits for those who claim values in the program, and lets nobody claim one until the transaction ends. */
export const lockValues = (tx: Tx, program_id: string) =>
  tx.all(sql`select pg_advisory_xact_lock(hashtextextended(${program_id}, 5))`);

/**
 * Claims a handle.
 * @param partner_id whose handle it becomes; undefined for a new partner
 * @throws Problem resource_already_exists with the partner or the link that holds the value
 */
export async function claimHandle(tx: Tx, program_id: string, wanted: string, partner_id?: string): Promise<void> {
  const others = partner_id === undefined ? sql`true` : sql`t.partner_id <> ${partner_id}`;
  const holder = await claimValue(tx, program_id, wanted, others);
  if (!holder) return;
  if (holder.link_id === null) throw heldHandle('handle', wanted, await partners.get(tx, holder.partner_id));
  throw alreadyExists(
    'handle',
    `Another partner's link has the value '${wanted}' in this program. Use a different handle.`,
    await links.get(tx, holder.link_id),
  );
}

/** The problem of a value that is the handle of a partner, or was until recently. */
export const heldHandle = (param: 'handle' | 'value', value: string, existing: Partner): Problem =>
  alreadyExists(
    param,
    existing.handle === value.toLowerCase()
      ? `A partner with the handle '${value}' already exists in this program. Use a different ${param}.`
      : `A partner of this program had the handle '${value}' until recently, and clicks by it still count for that partner. Use a different ${param}.`,
    existing,
  );

/**
 * Claims a partner's new handle, and keeps the old one as an alias: "A changed handle stays an alias of its partner for as long as cookies
 * live (`cookie_days`), and nobody else may take it meanwhile." The caller writes the new handle.
 * @throws Problem resource_already_exists with the partner or the link that holds the value
 */
export async function changeHandle(tx: Tx, { id, program_id, handle }: Partner, wanted: string): Promise<void> {
  if (wanted === handle) return;
  await claimHandle(tx, program_id, wanted, id);
  const { cookie_days } = await programs.get(tx, program_id);
  await tx.all(sql`
    delete from program.handle_alias t
    where ${tenant(tx)} and t.partner_id = ${id} and t.expires_at <= ${tx.now}::timestamptz`);
  await tx.all(sql`
    insert into program.handle_alias as t (organization_id, program_id, handle, partner_id, expires_at)
    values (${tx.organization_id}, ${program_id}, ${handle}, ${id}, ${tx.now}::timestamptz + ${`${cookie_days} days`}::interval)
    on conflict (organization_id, program_id, handle)
      do update set partner_id = excluded.partner_id, expires_at = excluded.expires_at`);
}

/** Former handles of a deleted partner are free at once. */
export const dropAliases = (tx: Tx, partner_id: string) =>
  tx.all(sql`delete from program.handle_alias t where ${tenant(tx)} and t.partner_id = ${partner_id}`);

/**
 * "The email's local part, made to fit the pattern, with `-2`, `-3` … behind it when taken." A value that a link has is taken too.
 * @returns the handle, claimed
 */
export async function deriveHandle(tx: Tx, program_id: string, email: string): Promise<string> {
  const base = handleOf(email);
  for (;;) {
    const candidate = await freeHandle(tx, program_id, base);
    if (!(await claimValue(tx, program_id, candidate))) return candidate;
  }
}

async function freeHandle(tx: Tx, program_id: string, base: string): Promise<string> {
  const prefix = base.slice(0, 26);
  const rows = await tx.all<{ value: string }>(sql`
    select t.value from program.tracking_value t
    where ${tenant(tx)} and t.program_id = ${program_id} and t.value >= ${prefix} and t.value < ${`${prefix}~`}`);
  const taken = new Set(rows.map(({ value }) => value));
  let candidate = base;
  for (let number = 2; taken.has(candidate); number++) candidate = numbered(base, number);
  return candidate;
}

function handleOf(email: string): string {
  const local_part = email.slice(0, email.lastIndexOf('@')).toLowerCase();
  const allowed = local_part.replaceAll(/[^a-z0-9]+/g, '-').replaceAll(/^-|-$/g, '');
  return truncated(allowed.length >= 2 ? allowed : `${allowed}partner`, max_length);
}

function numbered(base: string, number: number): string {
  const suffix = `-${number}`;
  return truncated(base, max_length - suffix.length) + suffix;
}

const truncated = (text: string, length: number): string => text.slice(0, length).replace(/-$/, '');
