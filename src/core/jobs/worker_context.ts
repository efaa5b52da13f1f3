import type { Logger } from 'pino';
import type { Store } from '../postgres/transaction.ts';
import type { Services } from '../resource/services.ts';

/** The services of a worker. */
export interface WorkerContext {
  store: Store;
  services: Services;
  log: Logger;
  /** This worker process: leases are taken in its name. */
  worker_id: string;
  /** Aborted when the worker has begun to stop: take up nothing new. */
  stopping: AbortSignal;
  /** Aborted when the worker must be gone: foreign calls are cut off. */
  cut_off: AbortSignal;
}

/** The services of a task. */
export interface TaskContext extends WorkerContext {
  /** A part of this worker that an extension contributes, by its class. @throws Error when none does */
  use: Use;
}

// biome-ignore lint/suspicious/noExplicitAny: a class, whatever its constructor takes
type Class<Part> = abstract new (...given: any[]) => Part;
export type Use = <Part>(part: Class<Part>) => Part;

/** Finds parts by their classes. */
export const partsByClass =
  (parts: object[]): Use =>
  <Part>(wanted: Class<Part>) => {
    const part = parts.find((one) => one instanceof wanted);
    if (!part) throw new Error(`No extension of the worker contributes a ${wanted.name}.`);
    return part as Part;
  };
