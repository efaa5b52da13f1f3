import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { type Features, featuresOf, places } from '../../src/recruitment/replies/features.ts';
import { type Label, labels, type Model, scoresOf, softmax } from '../../src/recruitment/replies/model.ts';
import { random, shuffle } from './random.ts';
import { variantsOf } from './variants.ts';

/** A labelled text. */
export interface Example {
  label: Label;
  language: string;
  text: string;
  /** The folder that it is in: texts of one folder resemble each other more than those of another. */
  source: string;
}
const epochs = 6;
const learning_rate = 0.1;
/** The strength with which weights are drawn to zero at each step. */
const decay = 0.0004;
/** The number of variants of each text that are learned beside it. */
const variants = 3;

/** The texts under `texts/`: a line is a label, a tab and the text, in which `\n` is a new line. The file's name is their language. */
export function readTexts(folder = join(import.meta.dirname, 'texts')): Example[] {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.tsv'));
  return files.sort().flatMap((name) =>
    readFileSync(join(folder, name), 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => exampleOf(line, basename(name, '.tsv'), dirname(name))),
  );
}

function exampleOf(line: string, language: string, source: string): Example {
  const [label = '', text = ''] = line.split('\t');
  if (!labels.includes(label as Label) || text === '') throw new Error(`Not a labelled text: ${line}`);
  return { label: label as Label, language, text: text.replaceAll('\\n', '\n'), source };
}

interface Row {
  features: Features;
  label: number;
}

/** Trains on the texts and their variants; the same texts give the same model. */
export function train(examples: readonly Example[]): Model {
  const next = random(20_261_122);
  const rows = examples.flatMap(({ text, label, language }): Row[] =>
    [text, ...variantsOf(text, language, variants, next)].map((one) => ({
      features: featuresOf(one),
      label: labels.indexOf(label),
    })),
  );
  return { ...quantized(descend(rows, next)), temperature: 1, fingerprint: '' };
}

/** Stochastic gradient descent with AdaGrad's steps. */
function descend(rows: readonly Row[], next: () => number): Float64Array {
  const weights = new Float64Array(places * labels.length);
  const squares = new Float64Array(places * labels.length).fill(1e-4);
  const order = rows.map((_, index) => index);
  for (let epoch = 0; epoch < epochs; epoch++) {
    shuffle(order, next);
    for (const index of order) step(weights, squares, rows[index] as Row);
  }
  return weights;
}

function step(weights: Float64Array, squares: Float64Array, { features, label }: Row): void {
  const shares = softmax(scoresOf(weights, features));
  const { at, values } = features;
  for (let index = 0; index < at.length; index++) {
    const start = (at[index] as number) * labels.length;
    for (let one = 0; one < labels.length; one++) {
      const error = (shares[one] as number) - (one === label ? 1 : 0);
      const weight = weights[start + one] as number;
      const gradient = error * (values[index] as number) + decay * weight;
      const square = (squares[start + one] as number) + gradient * gradient;
      squares[start + one] = square;
      weights[start + one] = weight - (learning_rate * gradient) / Math.sqrt(square);
    }
  }
}

function quantized(weights: Float64Array): Pick<Model, 'weights' | 'scale'> {
  const scale = weights.reduce((most, weight) => Math.max(most, Math.abs(weight)), 1e-9) / 127;
  return { weights: Int8Array.from(weights, (weight) => Math.round(weight / scale)), scale };
}

/** One of every this many texts stands for the others: its features tell whether the code that makes them has changed. */
const sampled = 25;

/** Returns the hash of the sources of the weights: the texts, the phrases around them, the phrases and the features. */
export function fingerprint(examples: readonly Example[]): string {
  const hash = createHash('sha256').update(JSON.stringify([examples, epochs, learning_rate, decay, variants]));
  hash.update(readFileSync(join(import.meta.dirname, 'texts', 'around.txt')));
  for (const { text } of examples.filter((_, index) => index % sampled === 0)) {
    hash.update(JSON.stringify(featuresOf(text)));
  }
  return hash.digest('hex');
}
