/** Limits the long reads (reports) that a process runs at once, so that its connections and Postgres are left for other requests. */
import { Problem } from '../values/problem.ts';

/** At once: each holds a connection to Postgres, and keeps a processor of it busy. */
export const most_of_organization = 2;
const pool_share = 0.25;

interface Waiting {
  organization_id: string;
  pool_size: number;
  begin(): void;
}

/** Limits the reads of a process. A read that waits holds no connection. Organizations alternate: one that asks often holds up itself alone. */
export class ReadingLimit {
  readonly #running = new Map<string, number>();
  /** In their order, by organization: the one that has waited longest comes first. */
  readonly #waiting = new Map<string, Waiting[]>();

  /**
   * Waits until the limit allows a read.
   * @param pool_size connections that the process may open  @param wait_ms at most
   * @returns the function that ends the read
   * @throws Problem rate_limit_exceeded, service_unavailable where none came in time
   */
  async claim(organization_id: string, pool_size: number, wait_ms: number): Promise<() => void> {
    if (this.#mayBegin({ organization_id, pool_size })) this.#begin(organization_id);
    else await this.#wait(organization_id, pool_size, wait_ms);
    return () => this.#end(organization_id);
  }

  #mayBegin({ organization_id, pool_size }: Pick<Waiting, 'organization_id' | 'pool_size'>): boolean {
    const all = this.#running.values().reduce((sum, count) => sum + count, 0);
    return (
      this.#runningOf(organization_id) < most_of_organization && all < Math.max(1, Math.floor(pool_size * pool_share))
    );
  }

  #runningOf = (organization_id: string): number => this.#running.get(organization_id) ?? 0;

  #begin(organization_id: string): void {
    this.#running.set(organization_id, this.#runningOf(organization_id) + 1);
  }

  #end(organization_id: string): void {
    const left = this.#runningOf(organization_id) - 1;
    if (left === 0) this.#running.delete(organization_id);
    else this.#running.set(organization_id, left);
    const [next] = this.#waiting.values().find(([first]) => first !== undefined && this.#mayBegin(first)) ?? [];
    if (!next) return;
    const others = this.#leave(next);
    // Behind the other organizations.
    if (others.length > 0) {
      this.#waiting.delete(next.organization_id);
      this.#waiting.set(next.organization_id, others);
    }
    this.#begin(next.organization_id);
    next.begin();
  }

  async #wait(organization_id: string, pool_size: number, wait_ms: number): Promise<void> {
    const admitted = Promise.withResolvers<void>();
    const waiting = { organization_id, pool_size, begin: admitted.resolve };
    this.#waiting.set(organization_id, [...(this.#waiting.get(organization_id) ?? []), waiting]);
    const timer = setTimeout(() => {
      this.#leave(waiting);
      admitted.reject(this.#tooLate(organization_id));
    }, wait_ms);
    await admitted.promise.finally(() => clearTimeout(timer));
  }

  /** @returns who of its organization still waits */
  #leave(waiting: Waiting): Waiting[] {
    const { organization_id } = waiting;
    const others = (this.#waiting.get(organization_id) ?? []).filter((one) => one !== waiting);
    if (others.length === 0) this.#waiting.delete(organization_id);
    else this.#waiting.set(organization_id, others);
    return others;
  }

  #tooLate(organization_id: string): Problem {
    const headers = { 'Retry-After': '5' };
    const own = this.#runningOf(organization_id);
    if (own >= most_of_organization) {
      return new Problem(
        'rate_limit_exceeded',
        `Your organization is already running ${own} reports, and others wait. Retry when they are complete.`,
        { headers },
      );
    }
    return new Problem(
      'service_unavailable',
      'The service is running as many reports as it can. Retry in a few seconds.',
      { headers },
    );
  }
}
