/** Changes that were left to a worker and never come about. */
import sql from 'sql-template-tag';
import type { Tx } from '../../../core/postgres/transaction.ts';
import { mailOwner } from '../../programs/mail_owner.ts';
import { type ChangeByHand, in_words, keyOfChange } from '../payout_state.ts';

interface GivenUp {
  organization_id: string;
  id: string;
  action: ChangeByHand;
}

/**
 * Payouts whose change a job has failed to make for good, or has no job any more, can be changed again: they are as they were before the
 * request. Their owners are emailed. Reads across tenants: for the scheduled task alone.
 */
export async function giveUpChanges(tx: Tx, most: number): Promise<GivenUp[]> {
  const given_up = await tx.all<GivenUp>(sql`
    with stuck as (
      select t.organization_id, t.id, t.in_progress
      from program.payout t
      where t.in_progress is not null and t.updated_at < now() - interval '1 minute' and not exists (
        select from graphile_worker.jobs j
        where j.key = ${keyOfChange('')} || t.id and (j.attempts < j.max_attempts or j.locked_at is not null)
      )
      order by t.id
      limit ${most}
      for no key update of t skip locked
    )
    update program.payout t
    set in_progress = null, updated_at = ${tx.now}::timestamptz
    from stuck s
    where t.organization_id = s.organization_id and t.id = s.id
    returning t.organization_id, t.id, s.in_progress as action`);
  for (const one of given_up) mailOwner(tx, mailOf(one));
  return given_up;
}

const mailOf = ({ organization_id, id, action }: GivenUp) => ({
  organization_id,
  subject: `Payout ${id} could not be ${in_words[action]}`,
  text: `You requested that the payout ${id} be ${in_words[action]}. The worker tried several times and failed, so nothing was changed. Request it again. If it fails again, ask whoever operates the service: the log has the reason.\n`,
});
