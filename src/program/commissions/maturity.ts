import sql, { empty } from 'sql-template-tag';
import { type Tx, together } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { event } from '../events/event.ts';
import type { Commission } from './commission.ts';
import { maturing_statuses } from './commission_state.ts';

/** The number of commissions that one transaction makes due: it is short, so that concurrent requests do not wait. */
const most_of_step = 500;

/** The last commission that matured, in their order. */
type Place = Pick<Commission, 'mature_at' | 'id'>;
const beginning: Place = { mature_at: '-infinity', id: '' };

/**
 * Makes an organization's mature commissions due, in many transactions: a run that is killed goes on where it was. Of many there are two at a time:
 * while the events of one step are written out here, Postgres is at the other.
 */
export async function matureAll(at: string, within: <T>(work: (tx: Tx) => Promise<T>) => Promise<T>): Promise<void> {
  const step = async (after: Place): Promise<Place | undefined> => {
    const matured = await within((tx) => matureCommissions(tx, at, most_of_step, { after }));
    return matured.length < most_of_step ? undefined : matured.at(-1);
  };
  const goOn = async (from: Place): Promise<void> => {
    for (let last: Place | undefined = from; last; last = await step(last));
  };
  const first = await step(beginning);
  if (first) await together([goOn(first), goOn(first)]);
}

/**
 * "`pending` or `approved` → `due` when mature", `commission.updated` each, oldest first, at most `most` of them.
 * Those that another transaction holds are left to the next run, unless this waits for them. Those of a deleted partner are to be voided.
 * @returns those that matured: fewer than `most` when none is left
 */
export async function matureCommissions(
  tx: Tx,
  at: string,
  most: number,
  { after = beginning, waits = false }: { after?: Place; waits?: boolean } = {},
): Promise<Place[]> {
  const matured = await tx.all<Matured>(sql`
    with ripe as (
      select t.id, t.status as previous_status
      from program.commission t
      where ${tenant(tx)} and t.status in ${maturing_statuses} and t.deleted_at is null and t.mature_at <= ${at}::timestamptz
        and (t.mature_at, t.id) > (${after.mature_at}::timestamptz, ${after.id})
        and ${ofLivePartner}
      order by t.mature_at, t.id
      limit ${most}
      for no key update ${waits ? empty : sql`skip locked`}
    ),
    matured as (
      update program.commission t
      set status = 'due', updated_at = ${tx.now}::timestamptz, changed_in = pg_current_xact_id()
      from ripe
      where ${tenant(tx)} and t.id = ripe.id
      returning 'commission' as object, t.id, t.program_id, t.partner_id, t.amount_minor, t.currency, t.status, t.mature_at, ripe.previous_status
    )
    select matured.* from matured order by mature_at, id`);
  for (const commission of matured) tx.emit(event('commission.updated', commission));
  return matured;
}

/** In words of which Postgres expects that most commissions are such: of "is null" it expects one in 200, and would read and sort all for a step. */
const ofLivePartner = sql`coalesce((
  select p.deleted_at is null from program.partner p where p.organization_id = t.organization_id and p.id = t.partner_id
), true)`;

/** The fields of a commission's event, and the place of its row. */
interface Matured
  extends Pick<
    Commission,
    'object' | 'id' | 'program_id' | 'partner_id' | 'amount_minor' | 'currency' | 'status' | 'mature_at'
  > {
  previous_status: string;
}
