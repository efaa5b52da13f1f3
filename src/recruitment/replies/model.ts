import { type Features, featuresOfReading, places } from './features.ts';
import type { Reading } from './words.ts';

/** The labels of the model: the six kinds, and texts that only ask to be taken off the list. */
export const labels = ['positive', 'question', 'not_now', 'negative', 'wrong_person', 'angry', 'unsubscribe'] as const;
export type Label = (typeof labels)[number];

/**
 * A multinomial logistic regression: `weights[place * labels.length + label]`, whole numbers of `scale`,
 * and the temperature that makes its probabilities as often right as they say.
 */
export interface Model {
  weights: Int8Array;
  scale: number;
  temperature: number;
  /** The hash of the texts, the phrases and the features that it was trained with. */
  fingerprint: string;
}

const header_bytes = 48;

/** The file of a model: scale, temperature and fingerprint, then a byte a weight. */
export function encodeModel(model: Model): Buffer {
  const header = Buffer.alloc(header_bytes);
  header.writeDoubleLE(model.scale, 0);
  header.writeDoubleLE(model.temperature, 8);
  header.write(model.fingerprint, 16, 'hex');
  return Buffer.concat([header, Buffer.from(model.weights.buffer, model.weights.byteOffset, model.weights.length)]);
}

/** Throws where the file is of another version of the features. */
export function decodeModel(file: Buffer): Model {
  if (file.length !== header_bytes + places * labels.length) throw new Error('The weights are of another version.');
  const weights = new Int8Array(file.subarray(header_bytes));
  const fingerprint = file.toString('hex', 16, header_bytes);
  return { weights, scale: file.readDoubleLE(0), temperature: file.readDoubleLE(8), fingerprint };
}

/** The probability of each label. */
export function probabilities(model: Model, reading: Reading): Record<Label, number> {
  const scores = scoresOf(model.weights, featuresOfReading(reading)).map(
    (score) => (score * model.scale) / model.temperature,
  );
  const shares = softmax(scores);
  return Object.fromEntries(labels.map((label, index) => [label, shares[index]])) as Record<Label, number>;
}

export function scoresOf(weights: Int8Array | Float64Array, { at, values }: Features): number[] {
  const scores = labels.map(() => 0);
  for (let index = 0; index < at.length; index++) {
    const start = (at[index] as number) * labels.length;
    const value = values[index] as number;
    for (let label = 0; label < labels.length; label++) {
      scores[label] = (scores[label] as number) + value * (weights[start + label] as number);
    }
  }
  return scores;
}

export function softmax(scores: readonly number[]): number[] {
  const highest = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - highest));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}
