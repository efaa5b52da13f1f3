/**
 * Classifies a mail: reads it, says what it is, what its words mean, and what it names. Runs in a thread, outside of the event loop: whoever knows an inbox's
 * address chooses what is read here.
 */
import { createHash } from 'node:crypto';
import { type Classification, classifyMessage, unclassified } from '../../mail/incoming/classify.ts';
import { type Authentication, readAuthentication } from '../../mail/incoming/message/authentication_results.ts';
import type { OwnServer } from '../../mail/incoming/message/authserv.ts';
import { type Message, plainMessage, type ReadMessage, readMessage } from '../../mail/incoming/message/message.ts';
import { classifyReply, type Classification as Meaning } from '../replies/classify.ts';

/** A mail that is to be classified. */
export interface Unclassified {
  /** A mail as it lies in the mailbox, or a text without a header. */
  mail: Uint8Array | { subject?: string; text: string };
  arrived_at: Date;
  own_addresses: string[];
  /** The server that wrote what it found out about the sender. */
  own_server: OwnServer;
  /** False: it is read alone, since classifying it is what failed. */
  is_classified?: boolean;
}

export interface Classified {
  message: ReadMessage;
  classification: Classification;
  /** The meaning of its words, where a person wrote them. */
  meaning: Meaning | undefined;
  /** The findings of the inbox's own server about its sender. */
  authentication: Authentication;
  /** Ids that a bounce names anywhere. */
  named_ids: string[];
  /** The hash of what it says, in hex: the same for each copy of it. */
  content_hash: string;
}

/** Reads and classifies a mail. It never throws; it may take long. */
export async function classify({
  mail,
  arrived_at,
  own_addresses,
  own_server,
  is_classified = true,
}: Unclassified): Promise<Classified> {
  const whole = mail instanceof Uint8Array ? await readMessage(mail) : plainMessage(mail);
  let meaning: Meaning | undefined;
  const context = {
    own_addresses,
    readMeaning(text: string, subject: string): Meaning {
      meaning = classifyReply(text, subject);
      return meaning;
    },
    now: arrived_at,
  };
  const classification = is_classified ? classifyMessage(whole, context) : unclassified(whole.text);
  const content_hash = hashOf(whole, classification.original_message_id);
  const authentication = readAuthentication(whole, own_server);
  const named_ids = classification.kind === 'bounce' ? idsWithin(whole) : [];
  const { fields: _, html: __, parts: ___, ...message } = whole;
  return { message, classification, meaning, authentication, named_ids, content_hash };
}

/** Hashes what a mail says: the same each time that it is read. Reports on several mails may have the same text. */
function hashOf({ from, subject, date, text, html, answers }: Message, original: string | null): string {
  const about = original ?? answers.join(' ');
  const parts = [from, subject, date?.toISOString() ?? '', text, html, about];
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}

const longest_report = 100_000;
const most_ids = 50;

/** Finds the ids in a report: it may name the email that it is about anywhere in the part that it returns, or among its words, with and without brackets. */
const idsWithin = ({ text, html, parts }: Message): string[] =>
  [text, html, ...parts.map((part) => part.text)]
    .flatMap((each) => namedIds(each.slice(0, longest_report)))
    .slice(0, most_ids);

const namedIds = (text: string): string[] =>
  [
    ...text.matchAll(
      /(?:message-id|x-rail-message)[^a-z0-9\n]{1,20}(?:lt;)?([a-z0-9][^\s<>"';,&@]{0,200}@[^\s<>"';,&@]{1,200})/gi,
    ),
  ].map(([, id]) => id as string);
