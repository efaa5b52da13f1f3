import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beginsWithYes, certainLabel } from './certain/certain.ts';
import { type Plain, readPlain } from './certain/plain.ts';
import { shareKnown } from './known.ts';
import { foreignLanguage, isOtherScript, languageOf, resemblesKnown } from './language.ts';
import { decodeModel, type Label, labels, probabilities } from './model.ts';
import { type Named, namedIn } from './named.ts';
import { mayWishInAnyLanguage } from './wish.ts';
import { type Reading, read } from './words.ts';

export type ReplyKind = Exclude<Label, 'unsubscribe'>;
export interface Classification {
  /** The kind of the reply; of a text that only asks to be taken off the list: the kind that it would be as a reply. */
  kind: ReplyKind;
  /** From 0 to 1: how often a classification like this is right. Below 0.55 somebody should look at it. */
  confidence: number;
  /** ISO 639-1; null where the text does not show it. */
  language: string | null;
  /** The writer wishes to get no more mail. With any kind but `angry` the mail is no reply, but an unsubscribe. */
  unsubscribe: boolean;
  /** The person whom a `wrong_person` names instead: to be shown, never written to. */
  named: Named | null;
}

/** The confidence of a text that is a phrase of the lexicon and nothing else. */
const certain_confidence = 0.97;
/**
 * Factors of the labels' probabilities, applied before they are compared. Overrating interest costs more than overlooking it, since such
 * replies are read all the same; anger and requests to be taken off should not be overlooked.
 */
const lean: Record<Label, number> = {
  positive: 0.45,
  question: 1,
  not_now: 1,
  negative: 1,
  wrong_person: 1,
  angry: 1.25,
  unsubscribe: 1.5,
};
/** For anger and a wish to be taken off that its text does not consist of: a person looks at it. Both bar somebody for good. */
const most_for_doubted = 0.5;
/** In a language without a model one kind is as likely as another. */
const confidence_without_model = 0.15;
/** A text of whose words fewer are known to any one language with a model is in another language; up to the second, statistics decide. */
const [least_known, most_doubted] = [0.5, 0.6];
/** A text of whose words fewer are known may be in a neighbouring language: a person looks at it. */
const least_surely_known = 0.7;
const most_for_doubted_language = 0.5;

const model = decodeModel(readFileSync(join(import.meta.dirname, 'weights.bin')));

/**
 * Classifies the newly written text of a reply. The subject is read where the text is empty, as in a mail whose subject says "unsubscribe".
 * Takes any string, never throws, and reads a bounded part of long ones.
 */
export function classifyReply(text: string, subject = ''): Classification {
  const said = text.trim() === '' ? withoutPrefixes(subject) : text;
  const reading = read(said);
  const certain = certainLabel(reading);
  const plain = readPlain(said);
  const known = certain || plain ? 1 : isOtherScript(said) ? 0 : shareKnown(reading);
  if (known < least_known || (known < most_doubted && !resemblesKnown(said))) return unknown(said);
  const { label, confidence } = certain
    ? { label: certain, confidence: certain_confidence }
    : labelOf(said, reading, plain);
  const kind = label === 'unsubscribe' ? 'negative' : label;
  return {
    kind,
    confidence: known < least_surely_known ? Math.min(confidence, most_for_doubted_language) : confidence,
    language: languageOf(said),
    unsubscribe: label === 'unsubscribe' || (label === 'angry' && plain?.wishes === true),
    named: kind === 'wrong_person' ? namedIn(said) : null,
  };
}

/** A text in a language without a model: somebody has to read it. */
const unknown = (text: string): Classification => ({
  ...{ kind: 'question', confidence: confidence_without_model, language: foreignLanguage(text), named: null },
  unsubscribe: mayWishInAnyLanguage(text),
});

const withoutPrefixes = (subject: string): string =>
  subject.slice(0, 1_000).replace(/^(?:\s*(?:re|aw|antw|fwd?|wg|tr|sv|rv|res|enc|rif|r|i)\s*:)+/i, '');

function labelOf(text: string, reading: Reading, plain: Plain | undefined): { label: Label; confidence: number } {
  const shares = probabilities(model, reading);
  const label = labels.reduce((most, one) => (shares[one] * lean[one] > shares[most] * lean[most] ? one : most));
  if (plain?.wishes || (plain && label === 'angry'))
    return { label: label === 'angry' ? label : 'unsubscribe', confidence: certain_confidence };
  // Yes and a question is a yes.
  if (label === 'question' && beginsWithYes(text)) {
    return { label: 'positive', confidence: Math.min(shares.positive + shares.question, 1) };
  }
  const bars = label === 'unsubscribe' || label === 'angry';
  return { label, confidence: bars ? Math.min(shares[label], most_for_doubted) : shares[label] };
}
