/** Limits the GraphQL requests that a process serves at once: the rest of its connections are for the REST API. Others wait in a queue. */
export class ConcurrencyLimit {
  readonly #most: number;
  readonly #most_each: number;
  readonly #running = new Map<string, number>();
  readonly #waiting: { organization_id: string; begin: () => void }[] = [];
  #count = 0;

  /** @param most requests at once; one organization has half of them */
  constructor(most: number) {
    this.#most = Math.max(1, most);
    this.#most_each = Math.max(1, Math.ceil(most / 2));
  }

  /** Runs `work` once the limit allows it. */
  async run<T>(organization_id: string, work: () => Promise<T>): Promise<T> {
    if (!this.#mayBegin(organization_id)) {
      await new Promise<void>((begin) => this.#waiting.push({ organization_id, begin }));
    } else {
      this.#begin(organization_id);
    }
    try {
      return await work();
    } finally {
      this.#end(organization_id);
    }
  }

  #mayBegin = (organization_id: string): boolean =>
    this.#count < this.#most && (this.#running.get(organization_id) ?? 0) < this.#most_each;

  #begin(organization_id: string): void {
    this.#count++;
    this.#running.set(organization_id, (this.#running.get(organization_id) ?? 0) + 1);
  }

  #end(organization_id: string): void {
    this.#count--;
    const left = (this.#running.get(organization_id) ?? 1) - 1;
    if (left > 0) this.#running.set(organization_id, left);
    else this.#running.delete(organization_id);
    const next = this.#waiting.findIndex((one) => this.#mayBegin(one.organization_id));
    if (next < 0) return;
    const [one] = this.#waiting.splice(next, 1);
    this.#begin(one?.organization_id as string);
    one?.begin();
  }
}
