import { type Label, labels, probabilities } from '../../src/recruitment/replies/model.ts';
import { read } from '../../src/recruitment/replies/words.ts';
import { random, shuffle } from './random.ts';
import { type Example, train } from './training.ts';

/** The answer of a model about a text that it has not learned. */
export interface Classified {
  example: Example;
  shares: Record<Label, number>;
}
export interface Figures {
  count: number;
  accuracy: number;
  macro_f1: number;
  by_label: { label: string; count: number; precision: number; recall: number }[];
}

/** Classifies each text by a model of the other folds. Variants are made within a fold, so that no text is learned and classified. */
export function crossValidate(examples: readonly Example[], folds = 5): Classified[] {
  const order = examples.map((_, index) => index);
  shuffle(order, random(1));
  const inFold = (fold: number, kept: boolean) =>
    order.filter((_, place) => (place % folds !== fold) === kept).map((index) => examples[index] as Example);
  return Array.from({ length: folds }, (_, fold) => {
    const model = train(inFold(fold, true));
    return inFold(fold, false).map((example) => ({ example, shares: probabilities(model, read(example.text)) }));
  }).flat();
}

/** Classifies the texts of each folder by a model of the others: they are by other hands, as mails are. */
export function crossSources(examples: readonly Example[]): Classified[] {
  return [...new Set(examples.map(({ source }) => source))].flatMap((source) => {
    const model = train(examples.filter((example) => example.source !== source));
    const own = examples.filter((example) => example.source === source);
    return own.map((example) => ({ example, shares: probabilities(model, read(example.text)) }));
  });
}

export function likeliest(shares: Record<Label, number>): Label {
  return labels.reduce((most, label) => (shares[label] > shares[most] ? label : most));
}

/** Accuracy, macro-F1, and precision and recall of each label that occurs. */
export function figuresOf(pairs: readonly { label: string; answer: string }[]): Figures {
  const by_label = [...new Set(pairs.map(({ label }) => label))].sort().map((label) => {
    const count = pairs.filter((pair) => pair.label === label).length;
    const answered = pairs.filter(({ answer }) => answer === label).length;
    const right = pairs.filter((pair) => pair.label === label && pair.answer === label).length;
    return { label, count, precision: answered === 0 ? 0 : right / answered, recall: right / count };
  });
  const f1s = by_label.map(({ precision, recall }) => (2 * precision * recall) / Math.max(precision + recall, 1e-9));
  return {
    count: pairs.length,
    accuracy: pairs.filter(({ label, answer }) => label === answer).length / Math.max(pairs.length, 1),
    macro_f1: f1s.reduce((sum, f1) => sum + f1, 0) / Math.max(f1s.length, 1),
    by_label,
  };
}

/** The temperature at which probabilities of unseen texts fit best how often they are right. */
export function calibrated(classified: readonly Classified[]): number {
  const temperatures = Array.from({ length: 60 }, (_, step) => 0.5 + step * 0.05);
  return temperatures.reduce((best, one) => (loss(classified, one) < loss(classified, best) ? one : best));
}

/** The mean logarithmic loss of the classifications at a temperature. */
function loss(classified: readonly Classified[], temperature: number): number {
  const losses = classified.map(({ example, shares }) => {
    const powers = labels.map((label) => Math.max(shares[label], 1e-12) ** (1 / temperature));
    const sum = powers.reduce((total, power) => total + power, 0);
    return -Math.log(Math.max(shares[example.label], 1e-12) ** (1 / temperature) / sum);
  });
  return losses.reduce((sum, one) => sum + one, 0) / losses.length;
}
