import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { z } from 'zod';
import type { Store } from '../postgres/transaction.ts';
import type { Services } from '../resource/services.ts';

/** What a task may use. */
export interface TaskContext {
  store: Store;
  services: Services;
  /** Sends webhooks: one a worker, because its turns share statements. */
  deliverer: { takeTurn(endpoint_id: string): Promise<void>; takeSlowTurn(endpoint_id: string): Promise<void> };
  /** Gives events their places: one a worker, because its runs are shared. */
  fan_out: { run(): Promise<void> };
  log: Logger;
  /** This worker process: leases are taken in its name. */
  worker_id: string;
  /** Aborted when the worker has begun to stop: take up nothing new. */
  stopping: AbortSignal;
  /** Aborted when the worker must be gone: foreign calls are cut off. */
  cut_off: AbortSignal;
}

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
