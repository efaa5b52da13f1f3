import { Thread, type ThreadOptions } from './thread.ts';

/** A piece of work needed more time than it may: its thread was ended. */
export class TookTooLong extends Error {
  override readonly name = 'TookTooLong';
  readonly code = 'took_too_long';
}

interface Options extends ThreadOptions {
  /** The processor time that one piece may take, in milliseconds. */
  most_ms: number;
}

const look_every_ms = 200;
const idle_ms = 60_000;
/** By the clock: where a machine gives the thread no processor. */
const most_by_clock = 10;

/** A thread that does one piece of work at a time, each within a time limit: whatever a stranger wrote, the rest of the process goes on. */
export class TimedThread<Task, Answer> {
  readonly #module: URL;
  readonly #options: Options;
  #thread: Thread<Task, Answer> | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #idle: NodeJS.Timeout | undefined;

  /** @param module calls `answerTasks`. It is started when it is first asked. */
  constructor(module: URL, options: Options) {
    this.#module = module;
    this.#options = options;
  }

  /** The id of the thread while it runs. */
  get id(): number | undefined {
    return this.#thread?.id;
  }

  /** Waits for its turn and for the answer. @throws TookTooLong, or what the work failed with */
  ask(task: Task): Promise<Answer> {
    const answer = this.#last.then(() => this.#ask(task));
    this.#last = answer.catch(() => {});
    return answer;
  }

  /** Ends the thread; whoever asks later gets another one. */
  close(): void {
    clearTimeout(this.#idle);
    this.#thread?.end(new Error('The thread is closed.'));
  }

  async #ask(task: Task): Promise<Answer> {
    clearTimeout(this.#idle);
    const thread = this.#running();
    thread.hold(true);
    try {
      await thread.ready;
      return await this.#within(thread, thread.ask(task));
    } finally {
      thread.hold(false);
      this.#idle = setTimeout(() => this.close(), idle_ms).unref();
    }
  }

  #running(): Thread<Task, Answer> {
    if (this.#thread) return this.#thread;
    const thread = new Thread<Task, Answer>(this.#module, this.#options, () => {
      if (this.#thread === thread) this.#thread = undefined;
    });
    this.#thread = thread;
    return thread;
  }

  /** Looks now and then what the thread has used: what is answered sooner costs no look. */
  async #within(thread: Thread<Task, Answer>, answer: Promise<Answer>): Promise<Answer> {
    const { name, most_ms } = this.#options;
    const late = performance.now() + most_ms * most_by_clock;
    const giveUp = () =>
      thread.end(new TookTooLong(`${name} took longer than ${most_ms / 1_000} s of processor time.`));
    let before: number | undefined;
    const look = async (): Promise<void> => {
      if (performance.now() >= late) return giveUp();
      const used = await thread.processorTime();
      before ??= used;
      if (used - before >= most_ms) giveUp();
    };
    // It may have ended meanwhile: then nothing is to be looked at.
    const timer = setInterval(() => void look().catch(() => {}), look_every_ms);
    try {
      return await answer;
    } finally {
      clearInterval(timer);
    }
  }
}
