/** A thread that answers what it is asked, seen from the one that asks: it waits, and does nothing else. */
import { Worker } from 'node:worker_threads';

export interface ThreadOptions {
  name: string;
  /** Memory of the thread: what needs more ends it, and not the process. */
  most_heap_mib: number;
  /** The `workerData` of its module. */
  data?: unknown;
}

/** An error as it goes from one thread to another. */
export interface Failure {
  name?: string | undefined;
  message: string;
  code?: string | undefined;
  stack?: string | undefined;
}

export type Sent<Task> = { id: number; task: Task } | 'close';
export type Received<Answer> = 'ready' | { id: number; answer: Answer } | { id: number; failure: Failure };

export class Thread<Task, Answer> {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, PromiseWithResolvers<Answer>>();
  readonly #ready = Promise.withResolvers<void>();
  readonly #exit = Promise.withResolvers<void>();
  readonly #ended: (error: Error) => void;
  #error: Error | undefined;
  #next_id = 0;
  /** The time of its last answer, in milliseconds since 1970. */
  heard = now();

  /**
   * A process that ends does not wait for it.
   * @param module calls `answerTasks`
   * @param ended called once, when it has ended: whoever waited has failed with the same error
   */
  constructor(module: URL, { name, most_heap_mib, data }: ThreadOptions, ended: (error: Error) => void) {
    this.#worker = new Worker(module, {
      ...{ name, workerData: data, resourceLimits: { maxOldGenerationSizeMb: most_heap_mib } },
    });
    this.#ended = ended;
    this.#ready.promise.catch(() => {});
    this.#worker.on('message', (received: Received<Answer>) => this.#receive(received));
    this.#worker.on('error', (error: Error) => this.#fail(error));
    this.#worker.on('exit', () => {
      this.#fail(new Error(`The thread ${name} has ended.`));
      this.#exit.resolve();
    });
    this.#worker.unref();
  }

  get id(): number {
    return this.#worker.threadId;
  }

  /** True while somebody waits for an answer. */
  get is_asked(): boolean {
    return this.#waiting.size > 0;
  }

  /** Its module is loaded. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** The processor time that it has used, in milliseconds. */
  async processorTime(): Promise<number> {
    const { user, system } = await this.#worker.cpuUsage();
    return (user + system) / 1_000;
  }

  /** @throws what it failed with, or what the thread ended with */
  ask(task: Task): Promise<Answer> {
    if (this.#error) return Promise.reject(this.#error);
    const id = this.#next_id++;
    const answer = Promise.withResolvers<Answer>();
    this.#waiting.set(id, answer);
    this.#worker.postMessage({ id, task } satisfies Sent<Task>);
    return answer.promise;
  }

  #receive(received: Received<Answer>): void {
    this.heard = now();
    if (received === 'ready') {
      this.#ready.resolve();
      return;
    }
    const waiting = this.#waiting.get(received.id);
    this.#waiting.delete(received.id);
    if ('answer' in received) waiting?.resolve(received.answer);
    else waiting?.reject(errorOf(received.failure));
  }

  #fail(error: Error): void {
    if (this.#error) return;
    this.#error = error;
    this.#ready.reject(error);
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#ended(error);
  }

  /** Ends it at once, whatever it does: who waits fails with `error`. */
  end(error: Error): void {
    this.#fail(error);
    void this.#worker.terminate();
  }

  /** Lets it give back what it holds, but no longer than `most_ms`. */
  async close(most_ms: number): Promise<void> {
    this.#fail(new Error('The process closes its threads.'));
    this.#worker.postMessage('close' satisfies Sent<Task>);
    const timer = setTimeout(() => void this.#worker.terminate(), most_ms);
    await this.#exit.promise;
    clearTimeout(timer);
  }

  /** Sets whether the process waits for it before it exits. */
  hold(is_held: boolean): void {
    if (is_held) this.#worker.ref();
    else this.#worker.unref();
  }
}

/** It means the same in all threads. */
export const now = (): number => performance.timeOrigin + performance.now();

const errorOf = ({ message, ...rest }: Failure): Error => Object.assign(new Error(message), rest);
