import sql, { raw, type Sql } from 'sql-template-tag';
import type { Judgement } from '../../mail/incoming/judge.ts';
import type { Authentication } from '../../mail/incoming/message/authentication_results.ts';
import type { ReadMessage } from '../../mail/incoming/message/message.ts';
import type { Judgement as Meaning } from '../replies/judge.ts';

/** A mail of ours that somebody answers. */
export interface Answered {
  id: string;
  brand_id: string;
  /** Null once the prospect was erased. */
  prospect_id: string | null;
  thread_id: string | null;
  campaign_id: string | null;
  sequence_id: string | null;
  inbox_id: string;
  purpose: string;
  state: string;
  subject: string | null;
  address_hmac: Buffer | null;
  /** Null where nobody knows whether it was sent. */
  sent_at: string | null;
}

/** Of a message `t`. A person's answer is outside of campaigns; what answers it belongs to the campaign whose thread it is in. */
export const answered_columns = sql`
  t.id, t.brand_id, t.prospect_id, t.thread_id, coalesce(t.campaign_id, ${ofThread('campaign_id')}) as campaign_id,
  coalesce(t.sequence_id, ${ofThread('sequence_id')}) as sequence_id, t.inbox_id, t.purpose, t.state, t.subject, t.address_hmac, t.sent_at`;

function ofThread(column: 'campaign_id' | 'sequence_id'): Sql {
  return sql`(
    select ${raw(`h.${column}`)} from recruitment.thread h where h.organization_id = t.organization_id and h.id = t.thread_id
  )`;
}

/** A mail that came in, and the one that it answers. */
export interface Answer {
  message: ReadMessage;
  judgement: Judgement;
  /** What its words mean, where a person wrote them. */
  meaning: Meaning | undefined;
  answered: Answered;
  /** Ids that a bounce names anywhere. */
  named_ids: string[];
  /** What the inbox's own server found out about its sender. */
  authentication: Authentication;
  /** It names the Message-ID of `answered`, which nobody knows who did not receive that. Otherwise anybody can have written it who knows an address. */
  is_proven: boolean;
  /** Of what it says: the same for each copy of it. */
  content_hash: Buffer;
  /** Its Message-ID, without angle brackets, or one made of it where it has none. */
  rfc_message_id: string;
  /** In its place where that is the one of another mail. */
  spare_message_id: string;
  arrived_at: Date;
  /** The inbox that it came to. */
  inbox_id: string;
  /** Of the inbox's address, and its servers. */
  own_domains: readonly string[];
}
