import { createHash } from 'node:crypto';
import { type Judgement, judgeMessage, unjudged } from '../../mail/incoming/judge.ts';
import { type Authentication, readAuthentication } from '../../mail/incoming/message/authentication_results.ts';
import type { OwnServer } from '../../mail/incoming/message/authserv.ts';
import { type Message, plainMessage, type ReadMessage, readMessage } from '../../mail/incoming/message/message.ts';
import { judgeReply, type Judgement as Meaning } from '../replies/judge.ts';
import { idsWithin } from './named_ids.ts';

/** What is to be judged. */
export interface Unjudged {
  /** A mail as it lies in the mailbox, or a text without a header. */
  mail: Uint8Array | { subject?: string; text: string };
  arrived_at: Date;
  own_addresses: string[];
  /** That wrote what it found out about the sender. */
  own_server: OwnServer;
  /** False: it is read alone, for judging is what failed. */
  is_judged?: boolean;
}

export interface Judged {
  message: ReadMessage;
  judgement: Judgement;
  /** What its words mean, where a person wrote them. */
  meaning: Meaning | undefined;
  /** What the inbox's own server found out about its sender. */
  authentication: Authentication;
  /** Ids that a bounce names anywhere. */
  named_ids: string[];
  /** Of what it says, in hex: the same for each copy of it. */
  content_hash: string;
}

/** Reads and judges a mail. It never throws; it may take long. */
export async function judge({
  mail,
  arrived_at,
  own_addresses,
  own_server,
  is_judged = true,
}: Unjudged): Promise<Judged> {
  const whole = mail instanceof Uint8Array ? await readMessage(mail) : plainMessage(mail);
  let meaning: Meaning | undefined;
  const asker = {
    own_addresses,
    readMeaning(text: string, subject: string): Meaning {
      meaning = judgeReply(text, subject);
      return meaning;
    },
    now: arrived_at,
  };
  const judgement = is_judged ? judgeMessage(whole, asker) : unjudged(whole.text);
  const content_hash = hashOf(whole, judgement.original_message_id);
  const authentication = readAuthentication(whole, own_server);
  const named_ids = judgement.kind === 'bounce' ? idsWithin(whole) : [];
  const { fields: _, html: __, parts: ___, ...message } = whole;
  return { message, judgement, meaning, authentication, named_ids, content_hash };
}

/** The same each time that a mail is read. Reports on several mails may have the same text. */
function hashOf({ from, subject, date, text, html, answers }: Message, original: string | null): string {
  const about = original ?? answers.join(' ');
  const parts = [from, subject, date?.toISOString() ?? '', text, html, about];
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}
