import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { languageOf, likelyLanguages } from './language.ts';
import { decodeModel, type Label, labels, probabilities } from './model.ts';
import { findPhrases } from './phrases.ts';
import { read } from './words.ts';

export type ReplyKind = Exclude<Label, 'unsubscribe'>;
export interface Judgement {
  /** Of a text that only asks to be taken off the list: the kind that it would be as a reply. */
  kind: ReplyKind;
  /** From 0 to 1: how often a judgement like this is right. */
  confidence: number;
  /** ISO 639-1; null where the text does not tell. */
  language: string | null;
  /** The writer wishes to get no more mail. With any kind but `angry` the mail is no reply, but an unsubscribe. */
  unsubscribe: boolean;
}

const model = decodeModel(readFileSync(join(import.meta.dirname, 'weights.bin')));

/**
 * What the newly written text of a reply means. The subject is read where the text is empty, as in a mail whose subject says
 * "unsubscribe". Takes any string, never throws, and reads a bounded part of long ones.
 */
export function judgeReply(text: string, subject = ''): Judgement {
  const said = text.trim() === '' ? subject.replace(/^(?:\s*(?:re|aw|fwd?|wg|tr|sv|rv|res|r|i)\s*:)+/i, '') : text;
  const shares = probabilities(model, said);
  const first = highest(shares, labels);
  const kind = first === 'unsubscribe' ? 'negative' : first;
  return {
    kind,
    confidence: shares[first],
    language: languageOf(said),
    unsubscribe: first === 'unsubscribe' || (first === 'angry' && asksForRemoval(said)),
  };
}

function highest<Name extends Label>(shares: Record<Label, number>, names: readonly Name[]): Name {
  return names.reduce((most, name) => (shares[name] > shares[most] ? name : most));
}

/** Whether an angry text asks for no more mail, too. */
function asksForRemoval(text: string): boolean {
  const reading = read(text);
  const languages = likelyLanguages(reading);
  return reading.sentences.some(({ words }) =>
    findPhrases(
      words.map(({ word }) => word),
      languages,
    ).some(({ meaning }) => meaning === 'removal' || meaning === 'stop'),
  );
}
