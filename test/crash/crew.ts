import type { Process } from '../processes.ts';

/** Processes of one kind. One that is killed is started again at once, and nobody waits for it: the others run meanwhile. */
export class Crew {
  readonly #start: (nth: number) => Promise<Process>;
  readonly #processes: Process[];
  readonly #starting = new Map<number, Promise<unknown>>();

  private constructor(start: (nth: number) => Promise<Process>, processes: Process[]) {
    this.#start = start;
    this.#processes = processes;
  }

  static async start(count: number, start: (nth: number) => Promise<Process>): Promise<Crew> {
    return new Crew(start, await Promise.all(Array.from({ length: count }, (_, nth) => start(nth))));
  }

  /** Those that are not being started again. */
  get running(): Process[] {
    return this.#processes.filter((_, nth) => !this.#starting.has(nth));
  }

  async kill(nth: number): Promise<void> {
    await this.#starting.get(nth);
    await this.#processes[nth]?.end('SIGKILL');
    const started = this.#start(nth).then((process) => {
      this.#processes[nth] = process;
      this.#starting.delete(nth);
    });
    this.#starting.set(nth, started);
    // It fails where it is waited for.
    started.catch(() => {});
  }

  /** Returns one that runs; waits for one where none does. */
  async oneThatRuns(random: () => number): Promise<number> {
    if (this.#starting.size === this.#processes.length) await Promise.race(this.#starting.values());
    const running = this.#processes.map((_, nth) => nth).filter((nth) => !this.#starting.has(nth));
    return running[Math.floor(random() * running.length)] as number;
  }

  async allRun(): Promise<void> {
    await Promise.all(this.#starting.values());
  }

  async end(): Promise<void> {
    await this.allRun();
    await Promise.all(this.#processes.map((process) => process.end('SIGTERM')));
  }
}
