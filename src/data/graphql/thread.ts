/** The thread in which GraphQL is planned and answered, seen from the one that answers HTTP: it waits here, and does nothing else. */
import { Worker } from 'node:worker_threads';
import type { Database } from '../../core/postgres/database.ts';
import type { Asked } from './document.ts';
import { share_of_deadline, share_of_lateness } from './limits.ts';
import { quiet } from './load.ts';
import { QueryProblem } from './problem.ts';
import { Turns } from './turns.ts';

/** Memory of the thread: a request that needs more ends it, and not the process. */
const most_heap_mib = 512;
/** How long the thread has to give its connections back when the process ends. */
const closing_ms = 2_000;

export interface Question {
  asked: Asked[];
  /** Whether the results are answered as an array. */
  is_batch: boolean;
  organization_id: string;
  sees_personal: boolean;
  /** How long its request may take. */
  answer_ms: number;
}

export interface Answer {
  /** The results, as JSON. */
  body: Uint8Array;
  /** Of all operations together. */
  cost: number;
  /** Unexpected errors, to be logged with the request. */
  failures: Failure[];
}

/** An error as it goes from one thread to another. */
export interface Failure {
  message: string;
  code?: string | undefined;
  stack?: string | undefined;
}

export interface Opening {
  url: string;
  /** What Postgres shows its connections as. */
  name: string;
  connections: number;
}

/** To build the schema, or to answer until a deadline in milliseconds since 1970: they mean the same in all threads. */
export type Task = 'open' | (Question & { deadline: number });
export type Sent = { id: number; task: Task } | 'close';
export type Received = { id: number; answer: Answer | undefined } | { id: number; failure: Failure };

interface Running {
  worker: Worker;
  opened: Promise<unknown> | undefined;
  waiting: Map<number, PromiseWithResolvers<Answer | undefined>>;
  /** When it last answered anything. */
  heard: number;
}

export class GraphqlThread {
  readonly #database: Database;
  readonly #connections: number;
  readonly #turns: Turns;
  #running: Running | undefined;
  #next_id = 0;

  /** @param database whose connections it shares: it takes a quarter of them once it runs */
  constructor(database: Database) {
    this.#database = database;
    this.#connections = Math.max(1, Math.floor(database.options.max / 4));
    this.#turns = new Turns(this.#connections);
  }

  /** The id of the thread while it runs. */
  get id(): number | undefined {
    return this.#running?.worker.threadId;
  }

  /**
   * Waits for a turn and for the answer, but no longer than a request may take.
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
    const answer = this.#turns.take(question.organization_id, () => {
      if (now() > deadline) throw new QueryProblem('deadline_exceeded');
      return Promise.race([this.#send(running, { ...question, deadline }), late.promise]);
    });
    try {
      return (await Promise.race([answer, late.promise])) as Answer;
    } finally {
      clearTimeout(timer);
    }
  }

  async close(): Promise<void> {
    const running = this.#running;
    if (!running) return;
    this.#end(running, new Error('The API closes.'));
    const gone = new Promise((resolve) => running.worker.once('exit', resolve));
    running.worker.postMessage('close' satisfies Sent);
    const timer = setTimeout(() => void running.worker.terminate(), closing_ms);
    await gone;
    clearTimeout(timer);
  }

  /** What failed is tried again by the next request. */
  #open(running: Running): Promise<unknown> {
    running.opened ??= this.#send(running, 'open').catch((error) => {
      running.opened = undefined;
      throw error;
    });
    return running.opened;
  }

  #send(running: Running, task: Task): Promise<Answer | undefined> {
    const id = this.#next_id++;
    const answer = Promise.withResolvers<Answer | undefined>();
    running.waiting.set(id, answer);
    running.worker.postMessage({ id, task } satisfies Sent);
    return answer.promise;
  }

  /** Its connections are taken from those that the process may open, and given back when it ends. */
  #start(): Running {
    quiet();
    const { connectionString: url = '', application_name: name = '' } = this.#database.options;
    const workerData = { url, name, connections: this.#connections } satisfies Opening;
    const worker = new Worker(new URL('./worker.ts', import.meta.url), {
      ...{ name: 'graphql', workerData, resourceLimits: { maxOldGenerationSizeMb: most_heap_mib } },
    });
    const running: Running = { worker, opened: undefined, waiting: new Map(), heard: now() };
    this.#database.options.max -= this.#connections;
    worker.on('message', (received: Received) => this.#receive(running, received));
    worker.on('error', (error) => this.#end(running, error));
    worker.on('exit', () => this.#end(running, new Error('The GraphQL thread ended.')));
    // A process that ends does not wait for it.
    worker.unref();
    return running;
  }

  #receive(running: Running, received: Received): void {
    running.heard = now();
    const waiting = running.waiting.get(received.id);
    running.waiting.delete(received.id);
    if ('answer' in received) waiting?.resolve(received.answer);
    else waiting?.reject(errorOf(received.failure));
  }

  /** What still waits fails; the next request starts another thread. */
  #end(running: Running, error: Error): void {
    if (this.#running !== running) return;
    this.#running = undefined;
    this.#database.options.max += this.#connections;
    for (const { reject } of running.waiting.values()) reject(error);
  }

  /** A thread that has answered nothing at all for as long as a request may take is stuck. */
  #giveUp(running: Running, asked_at: number): QueryProblem {
    const problem = new QueryProblem('deadline_exceeded');
    if (running.waiting.size > 0 && running.heard < asked_at) {
      this.#end(running, problem);
      void running.worker.terminate();
    }
    return problem;
  }
}

const now = (): number => performance.timeOrigin + performance.now();

const errorOf = ({ message, ...rest }: Failure): Error => Object.assign(new Error(message), rest);
