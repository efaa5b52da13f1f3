/** Lets so many pieces of work of a kind run at a time. The others wait, and go on in the order in which they came. */
export class Slots {
  readonly #most: number;
  readonly #kinds = new Map<string, { running: number; waiting: (() => void)[] }>();

  constructor(most: number) {
    this.#most = most;
  }

  async run<T>(kind: string, work: () => Promise<T>): Promise<T> {
    await this.#enter(kind);
    try {
      return await work();
    } finally {
      this.#leave(kind);
    }
  }

  async #enter(kind: string): Promise<void> {
    const slots = this.#kinds.get(kind) ?? { running: 0, waiting: [] };
    this.#kinds.set(kind, slots);
    if (slots.running < this.#most) slots.running++;
    else await new Promise<void>((resolve) => slots.waiting.push(resolve));
  }

  #leave(kind: string): void {
    const slots = this.#kinds.get(kind);
    if (!slots) return;
    const next = slots.waiting.shift();
    if (next) next();
    else if (--slots.running === 0) this.#kinds.delete(kind);
  }
}
