import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { knownWordsOf } from '../../src/recruitment/replies/known.ts';
import { encodeModel } from '../../src/recruitment/replies/model.ts';
import {
  type Classified,
  calibrated,
  crossSources,
  crossValidate,
  type Figures,
  figuresOf,
  likeliest,
} from './cross_validation.ts';
import { fingerprint, readTexts, train } from './training.ts';

/** Mails differ more from the texts than these from each other: that much less sure is the model of them than of texts that it has not learned. */
const strangeness = 1.4;

const replies = join(import.meta.dirname, '../../src/recruitment/replies');

if (import.meta.main) makeWeights();

/**
 * `npm run train`: prints the figures of a cross-validation and makes `weights.bin` and `known_words.gz` again. The same texts and phrases give the
 * same file.
 */
function makeWeights(): void {
  const examples = readTexts();
  const classified = crossValidate(examples);
  const unfamiliar = crossSources(examples);
  const temperature = calibrated(classified) * strangeness;
  print('all', classified);
  for (const language of new Set(examples.map((example) => example.language))) {
    print(
      language,
      classified.filter(({ example }) => example.language === language),
    );
  }
  for (const source of new Set(examples.map((example) => example.source))) {
    print(
      `${source} by a model of the other folders`,
      unfamiliar.filter(({ example }) => example.source === source),
    );
  }
  const file = encodeModel({ ...train(examples), temperature, fingerprint: fingerprint(examples) });
  writeFileSync(join(replies, 'weights.bin'), file);
  writeFileSync(join(replies, 'known_words.gz'), gzipSync(knownWordsOf(examples)));
  console.log(`weights.bin: ${file.length} bytes, temperature ${temperature.toFixed(2)}, ${examples.length} texts`);
}

function print(name: string, some: readonly Classified[]): void {
  const figures = figuresOf(some.map(({ example, shares }) => ({ label: example.label, answer: likeliest(shares) })));
  console.log(`${name}: ${summary(figures)}`);
  if (name !== 'all') return;
  for (const { label, count, precision, recall } of figures.by_label) {
    console.log(`  ${label.padEnd(12)} ${count} texts, precision ${precision.toFixed(3)}, recall ${recall.toFixed(3)}`);
  }
}

function summary({ count, accuracy, macro_f1 }: Figures): string {
  return `${count} texts, accuracy ${accuracy.toFixed(3)}, macro-F1 ${macro_f1.toFixed(3)}`;
}
