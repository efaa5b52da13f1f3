import { createHash } from 'node:crypto';

/**
 * The place of the variant that a seed gets, in proportion to the weights: the same seed always gets the same one.
 * @param weights not negative; 0 is never chosen, unless all are 0: then it is the first
 * @param seed the sequence and its step
 */
export function chooseVariant({ weights, seed }: { weights: readonly number[]; seed: string }): number {
  const sum = weights.reduce((total, weight) => total + weight, 0);
  const hash = createHash('sha256').update(seed).digest().readUIntBE(0, 6);
  let rest = (hash / 2 ** 48) * sum;
  for (const [place, weight] of weights.entries()) {
    if (rest < weight) return place;
    rest -= weight;
  }
  return Math.max(
    0,
    weights.findLastIndex((weight) => weight > 0),
  );
}
