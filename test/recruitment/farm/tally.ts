import type { Test } from 'tap';

/** The least shares, of 1. */
const least_precision = 0.98;
const least_recall = 0.98;

/** Counts the findings against the expected ones. */
export class Tally {
  #right = 0;
  #found = 0;
  #expected = 0;
  readonly #differences: string[] = [];

  compare(host: string, found: string[], expected: string[]): void {
    const [all, wanted] = [new Set(found), new Set(expected)];
    this.#right += all.intersection(wanted).size;
    this.#found += all.size;
    this.#expected += wanted.size;
    for (const each of all.difference(wanted)) this.#differences.push(`${host} has not: ${each}`);
    for (const each of wanted.difference(all)) this.#differences.push(`${host} has: ${each}`);
  }

  check(t: Test, what: string): void {
    const precision = this.#right / this.#found;
    const recall = this.#right / this.#expected;
    t.comment(`${what}: precision ${precision.toFixed(3)}, recall ${recall.toFixed(3)} of ${this.#expected}`);
    for (const difference of this.#differences) t.comment(difference);
    t.ok(precision >= least_precision && recall >= least_recall, `${what} ${precision} ${recall}`, {
      differences: this.#differences,
    });
  }
}
