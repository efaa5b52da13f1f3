export type AutoReplyKind = 'absence' | 'receipt' | 'challenge' | 'invitation' | 'reaction' | 'other';

export interface AutoReply {
  kind: AutoReplyKind;
  /** Somebody waits for an answer, or wrote something that is not in the mail. */
  needs_review: boolean;
}
