import type { Numbers } from './key_numbers.ts';

/** Which keys there are in each window, by their numbers. */
export class FoundKeys {
  readonly #windows = new Map<number, Uint8Array>();

  /** @param size how many numbers there are */
  add(w: number, { first, distances }: Numbers, size: number): void {
    const marks = this.#marks(w, size);
    for (let nth = 0; nth < distances.length; nth++) marks[first + (distances[nth] as number)] = 1;
  }

  /** 1 for each key that there is. It ends behind the last one that there may be. */
  in(w: number): Uint8Array {
    return this.#marks(w, 0);
  }

  #marks(w: number, size: number): Uint8Array {
    const known = this.#windows.get(w);
    if (known && known.length >= size) return known;
    const grown = new Uint8Array(Math.ceil(1.25 * size));
    grown.set(known ?? []);
    this.#windows.set(w, grown);
    return grown;
  }
}
