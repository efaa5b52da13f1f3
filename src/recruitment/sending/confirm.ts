/** Step 2 of an email: checked again before its end is sent. */
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { is_barred } from '../contact/suppression.ts';
import { holdSuppressions } from '../prospects/barred_site.ts';
import { isUnpaused } from '../sequences/sequence.ts';
import { cancel, planAgain } from './recover.ts';

/** A claim on a message: it holds as long as nobody has claimed it since. */
export interface Held {
  message_id: string;
  attempts: number;
}

/**
 * Confirms that messages may be ended: "suppression and campaign are checked again". After an unsubscribe or a mark has been answered none
 * is. Those that are refused are cancelled, unless others have claimed them since; what a person wrote waits for its inbox.
 * @returns the ids of those that may be sent, whose phase is `data` now
 */
export async function confirm(tx: Tx, held: Held[], worker_id: string): Promise<Set<string>> {
  const ids = held.map(({ message_id }) => message_id);
  const given = sql`json_to_recordset(${JSON.stringify(held)}::json) as g (message_id text, attempts integer)`;
  const is_ours = sql`t.id = g.message_id and t.attempts = g.attempts and t.state = 'sending' and t.phase = 'claimed' and t.claimed_by = ${worker_id}`;
  const [, , ended, refused] = await Promise.all([
    holdSuppressions(tx),
    tx.all(sql`
      select s.id
      from recruitment.message t
      join recruitment.sequence s on s.organization_id = t.organization_id and s.id = t.sequence_id
      where ${tenant(tx)} and t.id = any(${ids})
      order by s.id
      for no key update of s`),
    tx.all<{ id: string }>(sql`
      update recruitment.message t set phase = 'data', updated_at = ${tx.now}::timestamptz
      from ${given}
      where ${tenant(tx)} and ${is_ours}
        and exists (
          select from recruitment.inbox i
          where i.organization_id = t.organization_id and i.id = t.inbox_id and i.status = 'connected' and i.deleted_at is null
        )
        and (t.sequence_id is null or exists (
          select from recruitment.sequence s
          join recruitment.campaign c on c.organization_id = s.organization_id and c.id = s.campaign_id
          where s.organization_id = t.organization_id and s.id = t.sequence_id and s.open and ${isUnpaused(sql`s`, tx.now)}
            and c.state = 'sending'
          offset 0 -- looked up for each message: else Postgres reads all open sequences first
        ))
        and (t.recipient is not null or not ${is_barred})
      returning t.id`),
    tx.all<{ id: string; waits: boolean }>(sql`
      select t.id, t.sequence_id is null and (t.recipient is not null or not ${is_barred}) and exists (
        select from recruitment.inbox i where i.organization_id = t.organization_id and i.id = t.inbox_id and i.deleted_at is null
      ) as waits
      from recruitment.message t
      join ${given} on ${is_ours}
      where ${tenant(tx)}`),
  ]);
  const idsOf = (waiting: boolean) => refused.flatMap(({ id, waits }) => (waits === waiting ? [id] : []));
  await cancel(tx, idsOf(false));
  await planAgain(tx, idsOf(true));
  return new Set(ended.map(({ id }) => id));
}
