/** Counts what is done in each window of time, by name. A process counts for itself, and knows one window: the counts of those before are gone. */
export class WindowCounts {
  readonly #window_ms: number;
  #counts = new Map<string, number>();
  #window = 0;

  constructor(window_ms: number) {
    this.#window_ms = window_ms;
  }

  /** @returns how often it was done in the window of `now_ms` */
  of(name: string, now_ms = performance.now()): number {
    const window = Math.floor(now_ms / this.#window_ms);
    if (window !== this.#window) this.#counts = new Map();
    this.#window = window;
    return this.#counts.get(name) ?? 0;
  }

  /** Counts it once more. @returns how often it was done in the window, this time included */
  add(name: string, now_ms = performance.now()): number {
    const count = this.of(name, now_ms) + 1;
    this.#counts.set(name, count);
    return count;
  }
}
