/** The thread in which GraphQL is planned and answered, seen from the one that answers HTTP: it waits here, and does nothing else. */
import type { Database } from '../../core/postgres/database.ts';
import { type Failure, now, Thread } from '../../core/threads/thread.ts';
import { ConcurrencyLimit } from './concurrency.ts';
import type { Asked } from './document.ts';
import { share_of_deadline, share_of_lateness } from './limits.ts';
import { quiet } from './load.ts';
import { QueryProblem } from './problem.ts';

/** Memory of the thread: a request that needs more ends it, and not the process. */
const most_heap_mib = 512;
/** The time that the thread has to close its connections when the process ends. */
const closing_ms = 2_000;

export interface Question {
  asked: Asked[];
  /** True if the results are answered as an array. */
  is_batch: boolean;
  organization_id: string;
  sees_personal: boolean;
  /** The time limit of its request. */
  answer_ms: number;
}

export interface Answer {
  /** The results, as JSON. */
  body: Uint8Array;
  /** The cost of all operations together. */
  cost: number;
  /** Unexpected errors, to be logged with the request. */
  failures: Failure[];
}

export interface Opening {
  url: string;
  /** The application name of its connections in Postgres. */
  name: string;
  connections: number;
}

/** To build the schema, or to answer until a deadline in milliseconds since 1970: they mean the same in all threads. */
export type Task = 'open' | (Question & { deadline: number });

interface Running {
  thread: Thread<Task, Answer | undefined>;
  opened: Promise<unknown> | undefined;
}

export class GraphqlThread {
  readonly #database: Database;
  #limit = new ConcurrencyLimit(1);
  #running: Running | undefined;

  /** @param database whose connections it shares: it takes a quarter of them once it runs */
  constructor(database: Database) {
    this.#database = database;
  }

  /** The id of the thread while it runs. */
  get id(): number | undefined {
    return this.#running?.thread.id;
  }

  /**
   * Waits for the limit and for the answer, but no longer than a request may take.
   * @throws QueryProblem deadline_exceeded; Error with Postgres' code where the database cannot be reached
   */
  async answer(question: Question): Promise<Answer> {
    this.#running ??= this.#start();
    const running = this.#running;
    await this.#open(running);
    const asked_at = now();
    const deadline = asked_at + question.answer_ms * share_of_deadline;
    const late = Promise.withResolvers<never>();
    const giveUp = (): void => late.reject(this.#giveUp(running, asked_at));
    const timer = setTimeout(giveUp, question.answer_ms * share_of_lateness);
    const answer = this.#limit.run(question.organization_id, () => {
      if (now() > deadline) throw new QueryProblem('deadline_exceeded');
      return Promise.race([running.thread.ask({ ...question, deadline }), late.promise]);
    });
    try {
      return (await Promise.race([answer, late.promise])) as Answer;
    } finally {
      clearTimeout(timer);
    }
  }

  async close(): Promise<void> {
    await this.#running?.thread.close(closing_ms);
  }

  /** A failed start is tried again by the next request. */
  #open(running: Running): Promise<unknown> {
    running.opened ??= running.thread.ask('open').catch((error) => {
      running.opened = undefined;
      throw error;
    });
    return running.opened;
  }

  /** Its connections are taken from those that the process may open, and given back when it ends. */
  #start(): Running {
    quiet();
    const { connectionString: url = '', application_name: name = '', max } = this.#database.options;
    const connections = Math.max(1, Math.floor(max / 4));
    const data = { url, name, connections } satisfies Opening;
    const options = { name: 'graphql', most_heap_mib, data };
    const thread = new Thread<Task, Answer | undefined>(new URL('./worker.ts', import.meta.url), options, () => {
      this.#running = undefined;
      this.#database.options.max += connections;
    });
    this.#database.options.max -= connections;
    this.#limit = new ConcurrencyLimit(connections);
    return { thread, opened: undefined };
  }

  /** A thread that has answered nothing at all for as long as a request may take is stuck. */
  #giveUp({ thread }: Running, asked_at: number): QueryProblem {
    const problem = new QueryProblem('deadline_exceeded');
    if (thread.is_asked && thread.heard < asked_at) thread.end(problem);
    return problem;
  }
}
