import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { z } from 'zod';
import type { Store } from '../postgres/transaction.ts';
import type { Services } from '../resource/services.ts';

/** What everything in a worker may use. */
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

/** What a task may use. */
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

export interface Task<Payload extends z.ZodType = z.ZodType> {
  payload: Payload;
  run: (payload: z.output<Payload>, context: TaskContext) => Promise<void>;
}

/** A job's code: parses the payload, opens transactions, calls src. Throws to be retried, returns when it is done. */
export const task = <Payload extends z.ZodType>(definition: Task<Payload>): Task<Payload> => definition;

const tasks_dir = join(import.meta.dirname, '../../../tasks');

/** All tasks: a file's path under tasks/ is its identifier. */
export async function loadTasks(): Promise<Record<string, Task>> {
  const files = (await readdir(tasks_dir, { recursive: true })).filter((file) => file.endsWith('.ts')).sort();
  const loaded = files.map(async (file) => {
    const module = (await import(join(tasks_dir, file))) as { default: Task };
    return [file.replace(/\.ts$/, '').replaceAll('\\', '/'), module.default] as const;
  });
  return Object.fromEntries(await Promise.all(loaded));
}
