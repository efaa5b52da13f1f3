/**
 * Applies replies: of a person, automatic ones, and forged ones.
 *
 * - What is classified with a confidence under 0.55 (0 where no word can be read) is kept and emitted as a `question` with `needs_review`, and moves the
 *   prospect to `replied` at most. A text that may ask to be taken off, under that confidence or with a failed authentication, is such a reply too, and leaves
 *   the stage: the sequence ends, nobody is barred.
 * - Certain anger of 0.8 or more, or with a wish to be taken off, bars as an unsubscribe does, where the sender is proven: by a Message-ID of ours, or an
 *   aligned pass that the inbox's own server found.
 * - After an automatic reply of any kind follow-ups wait until the prospect is back, or somebody has looked. A return date that is over, or more than a year away,
 *   counts as none.
 * - What the inbox's own server found to be forged is kept for a person to look at, and changes nothing; follow-ups wait five days. With a Message-ID of ours, that
 *   is `dmarc=fail` alone.
 */
import sql, { type Sql } from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { least_confidence } from '../../mail/incoming/classify.ts';
import { isAuthentic, isForged } from '../../mail/incoming/message/authentication_results.ts';
import { type Actor, nobody } from '../brands/acting.ts';
import { finishCampaigns } from '../campaigns/end.ts';
import { suppress } from '../contact/mark.ts';
import { event } from '../events/event.ts';
import type { Stage } from '../events/fields.ts';
import { recordActivity } from '../prospects/activity.ts';
import { lockSuppressions } from '../prospects/barred_site.ts';
import type { Prospect } from '../prospects/prospect.ts';
import { moveStage } from '../prospects/stage.ts';
import type { Classification as Meaning } from '../replies/classify.ts';
import type { Message, ReplyKind } from '../sequences/message.ts';
import { endSequences } from '../sequences/stop.ts';
import { type Answer, type Answered, isKnown, keepInbound, lockedProspect, proveSent, targetsOf } from './inbound.ts';

/** "Angry replies mark do not contact (by_user_id null) at 0.8 or more." */
const least_for_mark = 0.8;

/**
 * Emits reply.received, affiliate.stage_changed and do_not_contact.added, in this order. Sequences of the prospect end as replied, and those of the
 * same company in the campaign are stopped. Nothing of a prospect who was erased is kept.
 */
export async function applyReply(tx: Tx, vault: Vault, answer: Answer): Promise<'reply' | 'known' | 'unrelated'> {
  const { answered, classification } = answer;
  const { kind, confidence, named } = meaningOf(answer);
  const bars = barsOf(answer);
  const is_unsure = isUncertainWish(answer) || (kind === 'angry' && !isFromThem(answer));
  if (bars.length > 0) await lockSuppressions(tx);
  const prospect = await lockedProspect(tx, answered);
  if (!prospect) return 'unrelated';
  if (await isKnown(tx, vault, answer)) return 'known';
  await proveSent(tx, answered);
  const end = sql`case when t.prospect_id = ${prospect.id} then 'replied' else 'stopped' end`;
  const ended = await endSequences(tx, await answeredSequences(tx, answered, prospect), end);
  const message_id = await keepInbound(tx, vault, answer, {
    ...{ purpose: 'reply', reply_kind: kind, confidence, named: named && { name: null, email: null, ...named } },
    ...{ needs_review: classification.needs_review || is_unsure, has_text: true },
  });
  await countReply(tx, prospect.id);
  const { brand_id, campaign_id, sequence_id, inbox_id } = answered;
  emitReply(tx, { id: message_id, brand_id, campaign_id, sequence_id, inbox_id }, prospect.id, kind, nobody);
  const to = is_unsure ? prospect.stage : stageAfterReply(prospect.stage, effectOf(kind, confidence));
  await moveStage(tx, prospect, { to, reason: 'reply_received', by: nobody });
  for (const reason of bars) await barAngry(tx, vault, answered, prospect, reason, message_id);
  if (ended.length > 0 && answered.campaign_id !== null) await finishCampaigns(tx, [answered.campaign_id]);
  return 'reply';
}

type Classified = Pick<Answer, 'classification' | 'meaning'>;

/** The meaning of a reply. One that is not understood with certainty is a question: neither anger nor a refusal is guessed. */
export function meaningOf({ classification, meaning }: Classified): Pick<Meaning, 'kind' | 'confidence' | 'named'> {
  const is_guess = classification.kind !== 'reply' || classification.reply_kind === null;
  const confidence = is_guess ? 0 : (meaning?.confidence ?? 0);
  if (!meaning || confidence < least_confidence) return { kind: 'question', confidence, named: null };
  return { ...meaning, confidence };
}

/** A guess moves a prospect as a reply does that decides nothing. */
export const effectOf = (kind: ReplyKind, confidence: number | null): ReplyKind =>
  confidence !== null && confidence < least_confidence ? 'not_now' : kind;

/**
 * Returns whether it asks to be taken off, but not surely: a text that was classified without certainty, or a mail whose sender is not proven.
 * Somebody should look at it.
 */
export const isUncertainWish = (answer: Answer): boolean =>
  answer.classification.kind === 'unsubscribe' &&
  (!isFromThem(answer) || (answer.classification.confidence !== null && isDoubted(answer)));

/** Returns whether the sender is proven: by a Message-ID of ours, the id in a mailto, or an aligned pass that the inbox's own server found. */
const isFromThem = ({ is_proven, authentication }: Answer): boolean => is_proven || isAuthentic(authentication);

const isDoubted = ({ classification, authentication }: Answer): boolean =>
  classification.needs_review || isForged(authentication);

/** Certain anger of a proven sender bars, and with a wish to be taken off for good, as an unsubscribe does. */
function barsOf(answer: Answer): ('angry_reply' | 'unsubscribed')[] {
  const { kind, confidence } = meaningOf(answer);
  if (kind !== 'angry' || !isFromThem(answer) || isDoubted(answer)) return [];
  if (answer.meaning?.unsubscribe) return ['angry_reply', 'unsubscribed'];
  return confidence >= least_for_mark ? ['angry_reply'] : [];
}

/** The sequences of the prospect, and with `stop_for_company` those of the campaign at the same company; providers of free mail are no company. */
async function answeredSequences(tx: Tx, { campaign_id, sequence_id }: Answered, prospect: Prospect): Promise<Sql> {
  const open = sql`s.organization_id = ${tx.organization_id} and s.open`;
  const company = await tx.maybe<{ company_hmac: Buffer }>(sql`
    select s.company_hmac
    from recruitment.sequence s
    join recruitment.campaign c on c.organization_id = s.organization_id and c.id = s.campaign_id
    where s.organization_id = ${tx.organization_id} and s.id = ${sequence_id} and c.stop_for_company and s.company_hmac is not null`);
  // `|| ''`: by the company, whatever statistics say: a campaign may have many open ones.
  if (!company) return sql`t.prospect_id = ${prospect.id}`;
  return sql`t.id = any(array(
    select s.id from recruitment.sequence s where ${open} and s.prospect_id = ${prospect.id}
    union all
    select s.id from recruitment.sequence s where ${open} and s.campaign_id || '' = ${campaign_id} and s.company_hmac = ${company.company_hmac}))`;
}

export const countReply = (tx: Tx, prospect_id: string): Promise<object[]> =>
  tx.all(sql`
    update recruitment.prospect t set replies = t.replies + 1
    where t.organization_id = ${tx.organization_id} and t.id = ${prospect_id}`);

type Emitted = Pick<Message, 'id' | 'brand_id' | 'campaign_id' | 'sequence_id' | 'inbox_id'>;

export function emitReply(tx: Tx, message: Emitted, prospect_id: string, reply_kind: ReplyKind, by: Actor): void {
  const { id: message_id, brand_id, campaign_id, sequence_id, inbox_id } = message;
  const data = { brand_id, prospect_id, campaign_id, sequence_id, inbox_id, message_id, reply_kind };
  tx.emit(event('reply.received', tx.organization_id, { ...data, occurred_at: tx.now }));
  recordActivity(tx, 'replied', by, [{ prospect_id, data: { message_id, reply_kind } }]);
}

/** Bars the address that was written to. A person can lift that. */
async function barAngry(
  tx: Tx,
  vault: Vault,
  answered: Answered,
  { id }: Prospect,
  reason: 'angry_reply' | 'unsubscribed',
  source_message_id: string,
): Promise<void> {
  const others = reason === 'unsubscribed' ? [id] : [];
  for (const target of await targetsOf(tx, vault, answered, id))
    await suppress(tx, vault, target, reason, nobody, { others, source_message_id });
}

const wins: ReplyKind[] = ['positive', 'question'];
const losses: ReplyKind[] = ['negative', 'angry'];

/**
 * Moves a stage by a reply: "reply → replied (not_now, wrong_person too), positive or question → interested, also out of lost; negative, angry
 * or an unsubscribe → lost"; forward alone, and never out of agreed or active.
 */
export function stageAfterReply(stage: Stage, reply_kind: ReplyKind): Stage {
  if (stage === 'agreed' || stage === 'active') return stage;
  if (losses.includes(reply_kind)) return 'lost';
  if (wins.includes(reply_kind)) return stage === 'negotiating' ? stage : 'interested';
  return stage === 'found' || stage === 'contacted' ? 'replied' : stage;
}

const day_ms = 86_400_000;
const usual_days = 5;
/** A date further away is a mistake of somebody. */
const most_days = 366;

/** Applies an automatic reply: no event. */
export async function applyAutoReply(
  tx: Tx,
  vault: Vault,
  answer: Answer,
): Promise<'auto_reply' | 'known' | 'unrelated'> {
  const prospect = await lockedProspect(tx, answer.answered);
  if (!prospect) return 'unrelated';
  if (await isKnown(tx, vault, answer)) return 'known';
  await proveSent(tx, answer.answered);
  const paused_until = pausedUntil(answer.classification.resumes_on, tx.now);
  await pauseFollowUps(tx, prospect.id, paused_until);
  const { auto_reply_kind } = answer.classification;
  const message_id = await keepInbound(tx, vault, answer, { purpose: 'auto_reply', auto_reply_kind, has_text: true });
  const data = { message_id, auto_reply_kind, paused_until };
  recordActivity(tx, 'auto_replied', nobody, [{ prospect_id: prospect.id, data }]);
  return 'auto_reply';
}

export const pauseFollowUps = (tx: Tx, prospect_id: string, paused_until: string): Promise<object[]> =>
  tx.all(sql`
    with open as materialized (
      select t.id from recruitment.sequence t
      where ${tenant(tx)} and t.prospect_id = ${prospect_id} and t.open
      order by t.id
      for no key update
    )
    update recruitment.sequence t
    set paused_until = greatest(t.paused_until, ${paused_until}::timestamptz), updated_at = ${tx.now}::timestamptz
    from open where ${tenant(tx)} and t.id = open.id`);

/** "Pauses follow-ups to the date it names + 1 day, else 5 days." A date that is over names no absence. */
export function pausedUntil(resumes_on: string | null, now: string): string {
  const named = resumes_on === null ? Number.NaN : Date.parse(resumes_on) + day_ms;
  const from_now = named - Date.parse(now);
  const is_named = from_now > 0 && from_now <= most_days * day_ms;
  return new Date(is_named ? named : Date.parse(now) + usual_days * day_ms).toISOString();
}

/**
 * Returns whether a mail of a person or a program is forged, as the own server found. A mail that names a Message-ID of ours is set aside where DMARC
 * failed, as forwarded mail fails SPF; an automatic reply only pauses, and a mailto names the email by its id. A report of a server is checked by
 * what it proves of itself.
 */
export function isForgery({ classification: { kind, unsubscribe_id }, is_proven, authentication }: Answer): boolean {
  if (!is_proven) return ['reply', 'auto_reply', 'unsubscribe'].includes(kind) && isForged(authentication);
  const is_of_person = kind === 'reply' || (kind === 'unsubscribe' && unsubscribe_id === null);
  return is_of_person && authentication.dmarc === 'fail';
}

/**
 * Keeps a forged mail for a person to look at: no event, no stage, nobody is barred, no sequence ends. Follow-ups wait some days after what may be a person's
 * words: it may refuse them. The day that an automatic reply names counts for nothing.
 */
export async function keepForged(tx: Tx, vault: Vault, answer: Answer): Promise<'forged' | 'known' | 'unrelated'> {
  const prospect = await lockedProspect(tx, answer.answered);
  if (!prospect) return 'unrelated';
  if (await isKnown(tx, vault, answer)) return 'known';
  const { kind, auto_reply_kind } = answer.classification;
  const is_automatic = kind === 'auto_reply';
  if (!is_automatic) await pauseFollowUps(tx, prospect.id, pausedUntil(null, tx.now));
  await keepInbound(tx, vault, answer, {
    ...(is_automatic
      ? { purpose: 'auto_reply', auto_reply_kind }
      : { purpose: 'reply', reply_kind: 'question', confidence: 0 }),
    ...{ needs_review: true, has_text: true },
  });
  return 'forged';
}
