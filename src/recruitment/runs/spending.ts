/**
 * Money for pages of providers: reserved before a page is asked for, so that neither the ceiling of a run nor that of the plan is ever passed,
 * however many workers ask. Amounts are in millionths of a US dollar.
 */
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { monthOf } from '../plan/limits.ts';
import { type Run, updateRun } from './run.ts';

const micros_of_minor = 10_000;

/** Takes the price of a page from what the run and the month have left. The run is locked. @returns false where it does not fit */
export async function reserve(tx: Tx, run: Run, price_micros: number): Promise<boolean> {
  if (price_micros === 0) return true;
  const { ceiling_minor, spent_micros } = run;
  if (ceiling_minor !== null && spent_micros + price_micros > ceiling_minor * micros_of_minor) return false;
  if (!(await reserveInMonth(tx, price_micros))) return false;
  await updateRun(tx, run.id, sql`spent_micros = t.spent_micros + ${price_micros}`);
  return true;
}

/**
 * The row of the month is what all reservations of the organization wait for. The ceiling is compared as a value: of a row that was locked
 * meanwhile Postgres does not evaluate `not exists` again.
 */
async function reserveInMonth(tx: Tx, price_micros: number): Promise<boolean> {
  const month = monthOf(tx.now);
  await tx.all(sql`
    insert into recruitment.spending (organization_id, month, spent_micros)
    values (${tx.organization_id}, ${month}::date, 0) on conflict do nothing`);
  const taken = await tx.maybe(sql`
    update recruitment.spending t
    set spent_micros = t.spent_micros + ${price_micros}
    where t.organization_id = ${tx.organization_id} and t.month = ${month}::date
      and t.spent_micros + ${price_micros} <= coalesce((
        select p.spending_ceiling_minor * ${micros_of_minor}::numeric
        from recruitment.plan p
        where p.organization_id = t.organization_id
      ), 'infinity')
    returning t.month`);
  return taken !== undefined;
}

/** Gives back what a page was reserved with that was not billed. The run is locked. */
export async function release(tx: Tx, run: Pick<Run, 'id'>, price_micros: number, reserved_at: string): Promise<void> {
  if (price_micros === 0) return;
  await updateRun(tx, run.id, sql`spent_micros = t.spent_micros - ${price_micros}`);
  await tx.all(sql`
    update recruitment.spending t
    set spent_micros = t.spent_micros - ${price_micros}
    where t.organization_id = ${tx.organization_id} and t.month = ${monthOf(reserved_at)}::date`);
}

/** Returns whether the plan has spent all that it may this month. */
export async function isCeilingSpent(tx: Tx): Promise<boolean> {
  const spent = await tx.maybe(sql`
    select
    from recruitment.plan p
    left join recruitment.spending t on t.organization_id = p.organization_id and t.month = ${monthOf(tx.now)}::date
    where p.organization_id = ${tx.organization_id}
      and coalesce(t.spent_micros, 0) >= p.spending_ceiling_minor * ${micros_of_minor}::numeric`);
  return spent !== undefined;
}
