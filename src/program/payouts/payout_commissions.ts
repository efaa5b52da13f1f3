/** The commissions of payouts, changed as a whole, each with its event: a payout may hold some, or hundreds of thousands. */
import sql, { type Sql } from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { type Commission, commissions } from '../commissions/commission.ts';

/** The most commissions that a statement changes, and that a request settles: each writes entries, counts and reports, and is an event. */
export const most_commissions = 2_000;

/**
 * Commissions, called `t`, that are noted for payouts. They are looked up one by one: by a join, a payout of thousands whose table has no
 * statistics yet, or not of this organization, is read once for each of its commissions.
 */
export const notedFor = (tx: Tx, noted: Sql): Sql => sql`t.id = any(array(
  select l.commission_id from program.payout_commission l where l.organization_id = ${tx.organization_id} and ${noted}))`;

/**
 * Changes all commissions of a payout, which the caller has locked, and emits an event for each. Many events are emitted when all of them are locked, a page at a time:
 * memory does not grow with the payout.
 * @param set of `program.commission`; they stay in their payout
 */
export async function changeCommissions(
  tx: Tx,
  payout_id: string,
  set: Sql,
  emit: (commission: Commission) => void,
): Promise<void> {
  const changed = await changeInPages(tx, payout_id, set, (page, at) => {
    if (at === 0 && page.length < most_commissions) page.forEach(emit);
  });
  if (changed < most_commissions) return;
  for await (const page of pagesOf(tx, payout_id)) {
    page.forEach(emit);
    await tx.writeEmitted();
  }
}

/**
 * Changes all commissions of a payout, which the caller has locked, a page at a time.
 * @returns how many there were
 */
export async function changeInPages(
  tx: Tx,
  payout_id: string,
  set: Sql,
  done: (page: Commission[], at: number) => unknown,
): Promise<number> {
  let changed = 0;
  for (let after: string | undefined = ''; after !== undefined; ) {
    const page = await changeNext(tx, payout_id, set, after);
    await done(page, changed);
    changed += page.length;
    after = page.at(most_commissions - 1)?.id;
  }
  return changed;
}

/** Changes the commissions after an id, in the order of their ids. */
const changeNext = (tx: Tx, payout_id: string, set: Sql, after: string): Promise<Commission[]> =>
  tx.all<Commission>(sql`
    with changed as (
      update program.commission t
      set ${set}, updated_at = ${tx.now}::timestamptz
      where ${tenant(tx)} and t.payout_id = ${payout_id} and ${notedFor(tx, nextNoted(payout_id, after))}
      returning ${commissions.columns}
    )
    select changed.* from changed order by id`);

const nextNoted = (payout_id: string, after: string): Sql => sql`
  l.payout_id = ${payout_id} and l.commission_id > ${after} order by l.commission_id limit ${most_commissions}`;

async function* pagesOf(tx: Tx, payout_id: string): AsyncGenerator<Commission[]> {
  for (let after: string | undefined = ''; after !== undefined; ) {
    const page: Commission[] = await tx.all(sql`
      select ${commissions.columns}
      from ${commissions.from}
      where ${tenant(tx)} and t.payout_id = ${payout_id} and ${notedFor(tx, nextNoted(payout_id, after))}
      order by t.id`);
    yield page;
    after = page.at(most_commissions - 1)?.id;
  }
}
