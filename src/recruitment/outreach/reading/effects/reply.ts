/** What a person's reply changes. */
import sql, { type Sql } from 'sql-template-tag';
import type { Vault } from '../../../../core/encryption/vault.ts';
import type { Tx } from '../../../../core/postgres/transaction.ts';
import { nobody } from '../../../brands/acting.ts';
import { suppress } from '../../../contact/mark.ts';
import { event } from '../../../events/event.ts';
import { recordActivity } from '../../../prospects/activity.ts';
import { lockSuppressions } from '../../../prospects/barred_site.ts';
import type { Prospect } from '../../../prospects/prospect.ts';
import { moveStage } from '../../../prospects/stage.ts';
import type { ReplyKind } from '../../../sequences/message.ts';
import { endSequences } from '../../../sequences/stop.ts';
import { finishCampaigns } from '../../campaigns/ending/finish.ts';
import type { Answer, Answered } from './answer.ts';
import { isKnown, keepInbound } from './inbound.ts';
import { proveSent } from './proof.ts';
import { lockedProspect, targetsOf } from './prospect.ts';
import { stageAfterReply } from './stage_after_reply.ts';

/** "Angry replies mark do not contact (by_user_id null) at 0.8 or more." */
const least_for_mark = 0.8;
const unsure = { kind: 'question', confidence: 0, named: null, unsubscribe: false } as const;

/**
 * Tells reply.received, affiliate.stage_changed and do_not_contact.added, in this order. Sequences of the prospect end as replied, and those of the
 * same company in the campaign are stopped. Nothing of a prospect who was erased is kept.
 */
export async function takeReply(tx: Tx, vault: Vault, answer: Answer): Promise<'reply' | 'known' | 'unrelated'> {
  const { answered, judgement } = answer;
  const { kind, confidence, named, unsubscribe } = meaningOf(answer);
  const bars = kind === 'angry' && (confidence >= least_for_mark || unsubscribe);
  if (bars) await lockSuppressions(tx);
  const prospect = await lockedProspect(tx, answered);
  if (!prospect) return 'unrelated';
  if (await isKnown(tx, vault, answer)) return 'known';
  await proveSent(tx, answered);
  const end = sql`case when t.prospect_id = ${prospect.id} then 'replied' else 'stopped' end`;
  const ended = await endSequences(tx, await answeredSequences(tx, answered, prospect), end);
  const message_id = await keepInbound(tx, vault, answer, {
    ...{ purpose: 'reply', reply_kind: kind, confidence, named: named && { name: null, email: null, ...named } },
    ...{ needs_review: judgement.needs_review, has_text: true },
  });
  await countReply(tx, prospect.id);
  tellReply(tx, answer, prospect, message_id, kind);
  await moveStage(tx, prospect, { to: stageAfterReply(prospect.stage, kind), reason: 'reply_received', by: nobody });
  if (bars) await barAngry(tx, vault, answered, prospect, unsubscribe);
  if (ended.length > 0 && answered.campaign_id !== null) await finishCampaigns(tx, [answered.campaign_id]);
  return 'reply';
}

/** Of a mail without a word that can be read nothing is guessed: neither anger nor a refusal. */
export const meaningOf = ({ judgement, meaning }: Pick<Answer, 'judgement' | 'meaning'>) =>
  (judgement.kind === 'reply' && judgement.reply_kind === null ? undefined : meaning) ?? unsure;

/** Those of the prospect, and with `stop_for_company` those of the campaign at the same company; providers of free mail are no company. */
async function answeredSequences(tx: Tx, { campaign_id, sequence_id }: Answered, prospect: Prospect): Promise<Sql> {
  const own = sql`t.prospect_id = ${prospect.id}`;
  const company = await tx.maybe<{ company_hmac: Buffer }>(sql`
    select s.company_hmac
    from recruitment.sequence s
    join recruitment.campaign c on c.organization_id = s.organization_id and c.id = s.campaign_id
    where s.organization_id = ${tx.organization_id} and s.id = ${sequence_id} and c.stop_for_company and s.company_hmac is not null`);
  if (!company) return own;
  return sql`(${own} or t.campaign_id = ${campaign_id} and t.company_hmac = ${company.company_hmac})`;
}

const countReply = (tx: Tx, prospect_id: string): Promise<object[]> =>
  tx.all(sql`
    update recruitment.prospect t set replies = t.replies + 1
    where t.organization_id = ${tx.organization_id} and t.id = ${prospect_id}`);

function tellReply(tx: Tx, { answered }: Answer, prospect: Prospect, message_id: string, reply_kind: ReplyKind): void {
  const { brand_id, campaign_id, sequence_id, inbox_id } = answered;
  const data = { brand_id, prospect_id: prospect.id, campaign_id, sequence_id, inbox_id, message_id, reply_kind };
  tx.emit(event('reply.received', tx.organization_id, { ...data, occurred_at: tx.now }));
  recordActivity(tx, 'replied', nobody, [{ prospect_id: prospect.id, data: { message_id, reply_kind } }]);
}

/** The address that was written to. With a wish to be taken off it stays barred when the mark is lifted. */
async function barAngry(
  tx: Tx,
  vault: Vault,
  answered: Answered,
  { id: prospect_id }: Prospect,
  wishes_to_be_removed: boolean,
): Promise<void> {
  for (const target of await targetsOf(tx, vault, answered, prospect_id)) {
    await suppress(tx, vault, target, 'angry_reply', nobody);
    if (wishes_to_be_removed) await suppress(tx, vault, target, 'unsubscribed', nobody, [prospect_id]);
  }
}
