import sql from 'sql-template-tag';
import type { Opening } from '../../../core/jobs/task.ts';
import type { TaskContext } from '../../../core/jobs/worker_context.ts';
import { type Tx, transaction } from '../../../core/postgres/transaction.ts';
import { tenant } from '../../../core/resource/resource.ts';
import type { Services } from '../../../core/resource/services.ts';
import { event } from '../../events/event.ts';
import { type Program, programs } from '../../programs/program.ts';
import { type Payout, payouts } from '../payout.ts';
import { due_not_emitted, of_partner } from './find_due.ts';
import { hold } from './hold.ts';
import { notPayable, payeesOf } from './payee.ts';

/** The number of payouts for which a transaction emits events. */
const most = 500;

/** Emits `payout.due` for an organization's payouts whose `due_at` has come, once each. */
export async function emitDue(
  { organization_id, run_id, tick }: { organization_id: string; run_id: string; tick: string },
  { store, services }: Pick<TaskContext, 'store' | 'services'>,
): Promise<void> {
  const opening: Opening = { organization_id, request_id: run_id };
  for (let after: string | undefined = ''; after !== undefined; ) {
    const from: string = after;
    after = await transaction(store, opening, (tx) => emitNextDue(tx, services, tick, from));
  }
}

/** @returns the last of the payouts that were looked at; undefined where there are no more */
async function emitNextDue(
  tx: Tx,
  services: Pick<Services, 'vault'>,
  at: string,
  after: string,
): Promise<string | undefined> {
  const due = await tx.all<Payout>(sql`
    select ${payouts.columns}
    from ${payouts.from}
    where ${tenant(tx)} and ${due_not_emitted(at)} and t.id > ${after}
    order by t.id
    limit ${most}
    for no key update of t skip locked`);
  const payable = await payableOf(tx, services, due);
  for (const payout of await noteDueEmitted(tx, payable)) tx.emit(event('payout.due', payout));
  return due.length < most ? undefined : due.at(-1)?.id;
}

/** Returns the payouts that could be sent now, as far as it is a matter of the partner; holds the others. */
async function payableOf(tx: Tx, services: Pick<Services, 'vault'>, due: Payout[]): Promise<string[]> {
  const payees = await payeesOf(tx, due);
  const programs_by_id = new Map<string, Program>();
  const payable: string[] = [];
  for (const payout of due) {
    const { program_id } = payout;
    const program = programs_by_id.get(program_id) ?? (await programs.get(tx, program_id));
    programs_by_id.set(program_id, program);
    const payee = payees.get(payout.partner_id);
    const reason = payee && notPayable(services, program, payout, payee);
    if (reason) await hold(tx, payout, reason);
    else payable.push(payout.id);
  }
  return payable;
}

const noteDueEmitted = (tx: Tx, ids: string[]): Promise<Payout[]> =>
  tx.all<Payout>(sql`
    with updated as (
      update program.payout t
      set due_emitted_at = ${tx.now}::timestamptz, held_until = case when ${of_partner} then null else t.held_until end,
        held_reason = case when ${of_partner} then null else t.held_reason end
      where ${tenant(tx)} and t.id = any(${ids})
      returning ${payouts.columns}
    )
    select updated.* from updated order by id`);
