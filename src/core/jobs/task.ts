import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { z } from 'zod';
import { type TransactionOptions, type Tx, transaction } from '../postgres/transaction.ts';
import { once } from '../values/once.ts';
import { limitConcurrency } from './concurrency.ts';
import type { TaskContext } from './worker_context.ts';

/** A job's code. Throws to be retried, returns when it is done. */
export interface Task {
  payload: z.ZodType;
  run(payload: unknown, context: TaskContext): Promise<void>;
}

export type Opening = Pick<TransactionOptions, 'organization_id' | 'request_id'>;
/** The opening of the service's own work, which no request caused. */
export const service_opening: Opening = { organization_id: null, request_id: null };

/** A payload that names a tenant or a scheduled run says how its transaction opens; for any other one the task says it. */
type Opened<Payload> = Payload extends { organization_id: string } | { run_id: string }
  ? { opening?: never }
  : { opening: Opening };

type Transacted<Payload extends z.ZodType> = Pick<TaskContext, 'services' | 'log'> & {
  tx: Tx;
  payload: z.output<Payload>;
};

type TaskOptions<Payload extends z.ZodType, Result> = Opened<z.output<Payload>> & {
  payload: Payload;
  run(given: Transacted<Payload>): Promise<Result>;
};

/** A task that is one transaction. `run` must touch nothing but its `tx`: it may be run again. */
export const task = <Payload extends z.ZodType>(options: TaskOptions<Payload, unknown>): Task => ({
  payload: options.payload,
  async run(payload, context) {
    await transacted(options, payload, context);
  },
});

/**
 * A task of many transactions: `run` does at most `most`, and says how many it did.
 * @param most of a batch; the task ends with the first that is not full
 */
export const batchTask = <Payload extends z.ZodType>(
  options: TaskOptions<Payload, number> & { most: number },
): Task => ({
  payload: options.payload,
  run: (payload, context) => inBatches(options.most, () => transacted(options, payload, context)),
});

/** A task that opens no transaction, or its own ones: because it calls others, or because something must happen after a commit. */
export const taskOutsideTransaction = <Payload extends z.ZodType>({
  payload,
  run,
}: {
  payload: Payload;
  run(given: TaskContext & { payload: z.output<Payload> }): Promise<void>;
}): Task => ({
  payload,
  run: (given, context) => run({ ...context, payload: given as z.output<Payload> }),
});

/** The number of rows that a request changes besides its own, and each transaction of a job that changes the others: each may be an event. */
export const most_at_once = 500;

/** Repeats a batch, which says how many it did, until one is not full. */
export async function inBatches(most: number, batch: () => Promise<number>): Promise<void> {
  while ((await batch()) >= most);
}

function transacted<Payload extends z.ZodType, Result>(
  { opening, run }: TaskOptions<Payload, Result>,
  payload: unknown,
  { store, services, log }: TaskContext,
): Promise<Result> {
  const given = payload as z.output<Payload>;
  const work = () =>
    transaction(store, opening ?? openingOf(given as Partial<Cause>), (tx) =>
      run({ tx, payload: given, services, log }),
    );
  return isScheduled(given as Partial<Cause>) ? limited(work) : work();
}

/** Many schedules tick at the same moment: their transactions share a few connections, which stay open, instead of opening one each. */
const limited = limitConcurrency(2);
const isScheduled = ({ organization_id, run_id }: Partial<Cause>): boolean =>
  organization_id === undefined && run_id !== undefined;

interface Cause {
  organization_id: string;
  request_id: string | null;
  run_id: string;
}

const openingOf = ({ organization_id, request_id, run_id }: Partial<Cause>): Opening => ({
  organization_id: organization_id ?? null,
  request_id: request_id ?? run_id ?? null,
});

const tasks_dir = join(import.meta.dirname, '../../../tasks');

/** Gives a task, whose code its first job loads. */
export type LoadTask = () => Promise<Task>;

/** All tasks: a file's path under tasks/ is its identifier. */
export async function findTasks(): Promise<Record<string, LoadTask>> {
  const files = (await readdir(tasks_dir, { recursive: true })).filter((file) => file.endsWith('.ts')).sort();
  return Object.fromEntries(
    files.map((file) => [
      file.replace(/\.ts$/, '').replaceAll('\\', '/'),
      once(async () => ((await import(join(tasks_dir, file))) as { default: Task }).default),
    ]),
  );
}
