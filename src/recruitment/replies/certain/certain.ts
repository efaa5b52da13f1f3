import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Label } from '../model.ts';
import type { Reading } from '../words.ts';

/** Texts that mean one thing wherever they stand alone, in their normal form. */
const certain = new Map<string, Label>();
for (const line of readFileSync(join(import.meta.dirname, '../phrases', 'certain.tsv'), 'utf8').split('\n')) {
  const [label, text] = line.split('\t');
  if (text !== undefined) certain.set(text, label as Label);
}

/** The label of a text that consists of an unmistakable phrase and nothing else. Shouted ones are left to the model. */
export function certainLabel({ sentences, exclamation_marks, question_marks }: Reading): Label | undefined {
  if (exclamation_marks > 1 || sentences.length > 2) return undefined;
  const said = sentences.flatMap(({ words }) => words.map(({ word }) => word)).join(' ');
  const label = certain.get(said === '' && question_marks > 0 ? '?' : said);
  // "Deal?", "Interested?": asked back, it is something else.
  return label !== 'question' && question_marks > 0 ? undefined : label;
}

/** A word of assent that a line begins with, and that nothing is asked or made a condition of. */
const assents = [
  "yes|yep|yeah|yup|sure|absolutely|gladly|deal|agreed|count (?:me|us) in|(?:i|we)[’']?(?:m|re) in|happy to",
  'ja|jo|gerne?|sehr gerne?|klar|na klar|einverstanden|bin dabei|wir sind dabei',
  "oui|avec plaisir|volontiers|d[’']accord|bien sûr|je suis partante?",
  'sí|claro|claro que sí|con (?:mucho )?gusto|de acuerdo|me apunto|acepto',
  'sì|certo|volentieri|con piacere|va bene|ci sto|accetto',
  'sim|claro que sim|com (?:muito )?gosto|com certeza|topo|aceito',
].join('|');
const begins_with_assent = new RegExp(
  String.raw`^[\s¡"“]{0,5}(?:${assents})(?:\s(?:please|bitte|por favor|grazie|merci|gerne?)){0,1}\s{0,2}(?:[,.!;:…–-]|and\s|but\s|und\s|aber\s|et\s|mais\s|y\s|pero\s|e\s|ma\s|mas\s)`,
  'imu',
);

/** Returns whether a text begins with a yes. A question beside it does not take it back. */
export function beginsWithYes(text: string): boolean {
  return begins_with_assent.test(text.slice(0, 1_000));
}
