import type { Tx } from '../postgres/transaction.ts';
import { scheduled } from './schedule.ts';
import { batchTask, type Task } from './task.ts';

const most = 10_000;
/** So many notes since the last run are a load, under which a minute of notes would be long to add up for each read. */
const load = 1_000;
const under_load_ms = 5_000;

/**
 * A scheduled task that adds the notes of what was written to the sums that are read; under load again in some seconds.
 * @param identifier the task's own
 * @param fold adds up at most so many notes, and says how many it did
 */
export const foldTask = (identifier: string, fold: (tx: Tx, most: number) => Promise<number>): Task =>
  batchTask({
    payload: scheduled,
    most,
    async run({ tx, payload }) {
      const folded = await fold(tx, most);
      if (folded >= load) {
        const run_at = new Date(Date.parse(tx.now) + under_load_ms).toISOString();
        tx.enqueue(identifier, payload, { job_key: identifier, run_at });
      }
      return folded;
    },
  });
