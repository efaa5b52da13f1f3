/** Step 4 of an email that came back: its sequence ends as `bounced`. A dead address is barred, and all sequences to it end. */
import sql from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { nobody } from '../brands/acting.ts';
import { finishCampaigns } from '../campaigns/end.ts';
import { guardBounces } from '../campaigns/pause.ts';
import { suppress } from '../contact/mark.ts';
import { event } from '../events/event.ts';
import { recordActivity } from '../prospects/activity.ts';
import { lockSuppressions } from '../prospects/barred_site.ts';
import type { BounceReason } from '../sequences/message.ts';
import { endSequences } from '../sequences/stop.ts';
import { recordEnds } from './record_sent.ts';

interface Row {
  id: string;
  state: string;
  step_index: number | null;
  purpose: string;
  brand_id: string;
  prospect_id: string | null;
  campaign_id: string | null;
  sequence_id: string | null;
  inbox_id: string;
}

/**
 * Records that a sent email came back for good: emits `message.bounced` and ends its sequence as `bounced`. A dead address is barred, and all sequences to it end.
 * To be called before rows are locked.
 */
export async function markBounced(tx: Tx, vault: Vault, message_id: string, reason: BounceReason): Promise<void> {
  if (reason === 'dead') await lockSuppressions(tx);
  await lockCampaignOf(tx, message_id);
  await recordEnds(tx, [{ message_id, as: 'sent' }]);
  // An email that was proved just now is written with the commit: its row is sent by then.
  const row = await tx.maybe<Row>(sql`
    select t.id, t.state, t.step_index, t.purpose, t.brand_id, t.prospect_id, t.campaign_id, t.sequence_id, t.inbox_id
    from recruitment.message t
    where ${tenant(tx)} and t.id = ${message_id} and t.direction = 'outbound' and t.bounced_at is null
      and (t.state in ('sent', 'unknown', 'sending') or t.state = 'planned' and t.resends > 0)
    for no key update`);
  if (!row) return;
  tx.atCommit(sql`
    update recruitment.message t set
      state = 'bounced', sent_at = coalesce(t.sent_at, ${tx.now}::timestamptz), bounced_at = ${tx.now}::timestamptz, bounce_reason = ${reason}, look_up_at = null, updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = ${message_id}`);
  if (row.state === 'planned') stepForward(tx, row);
  emitBounced(tx, row);
  if (reason === 'dead') await barBounced(tx, vault, message_id);
  else if (row.sequence_id !== null) await endSequences(tx, sql`t.id = ${row.sequence_id}`, 'bounced');
  if (row.campaign_id === null || row.purpose !== 'sequence') return;
  if (reason !== 'undelivered') await guardBounces(tx, row.campaign_id, message_id);
  await finishCampaigns(tx, [row.campaign_id]);
}

/** Moves on a sequence whose email came back while it waited to be sent again: its step is done. */
const stepForward = (tx: Tx, { sequence_id, step_index }: Row): unknown =>
  sequence_id !== null &&
  step_index !== null &&
  tx.atCommit(sql`
    update recruitment.sequence t set next_step = greatest(t.next_step, ${step_index + 1}::integer)
    where ${tenant(tx)} and t.id = ${sequence_id}`);

/** Records that an email is on its way, or has arrived: it was sent, if nobody knew. */
export async function markReported(tx: Tx, message_id: string): Promise<void> {
  await lockCampaignOf(tx, message_id);
  await recordEnds(tx, [{ message_id, as: 'sent' }]);
}

const lockCampaignOf = (tx: Tx, message_id: string): Promise<object[]> =>
  tx.all(sql`
    select from recruitment.campaign c
    where c.organization_id = ${tx.organization_id}
      and c.id = (select t.campaign_id from recruitment.message t where ${tenant(tx)} and t.id = ${message_id})
    for no key update`);

function emitBounced(tx: Tx, { id: message_id, brand_id, prospect_id, campaign_id, sequence_id, inbox_id }: Row): void {
  if (prospect_id === null) return;
  if (campaign_id !== null && sequence_id !== null) {
    tx.emit(
      event('message.bounced', tx.organization_id, {
        ...{ brand_id, prospect_id, campaign_id, sequence_id, inbox_id, message_id },
        occurred_at: tx.now,
      }),
    );
  }
  recordActivity(tx, 'message_bounced', nobody, [{ prospect_id, data: { message_id } }]);
}

/** Bars the address of a message as a hard bounce, which ends all sequences to it. To be called with suppressions locked. */
export async function barBounced(tx: Tx, vault: Vault, message_id: string): Promise<void> {
  const found = await tx.maybe<{ address: Buffer | null; email_address_id: string; sequence_id: string | null }>(sql`
    select a.address, a.id as email_address_id, t.sequence_id
    from recruitment.message t
    left join recruitment.email_address a on a.organization_id = t.organization_id and a.id = t.email_address_id
    where ${tenant(tx)} and t.id = ${message_id}`);
  if (found?.address) {
    const email = vault.decrypt(found.address, found.email_address_id);
    await suppress(tx, vault, { kind: 'address', email }, 'hard_bounce', nobody);
  }
  if (found?.sequence_id) await endSequences(tx, sql`t.id = ${found.sequence_id}`, 'bounced');
}
