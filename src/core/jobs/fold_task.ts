import { gauge } from '../metrics/registry.ts';
import type { Tx } from '../postgres/transaction.ts';
import { scheduled } from './schedule.ts';
import { batchTask, type Task } from './task.ts';

/** The times at which each task last left nothing to add, in seconds since 1970. */
const folded_at = new Map<string, number>();

gauge(
  'rail_folded_timestamp_seconds',
  {
    help: 'When this worker last brought the sums of a task up to date, in seconds since 1970. Until it has, it is left out.',
    row: 'Jobs',
    title: 'Lag of sums',
    draws: 'time() - max by (task) (rail_folded_timestamp_seconds)',
    alerts: [
      {
        name: 'RailSumsLate',
        expr: 'time() - max by (task) (rail_folded_timestamp_seconds) > 600',
        for: '5m',
        severity: 'warning',
        summary:
          'Sums were not brought up to date for ten minutes: reports and counters take longer and longer to read.',
        remedy: 'Look for jobs of {{ $labels.task }} that fail or run for long, and into the logs of the workers.',
      },
    ],
  },
  ['task'],
  (shown) => {
    for (const [task, at] of folded_at) shown.set({ task }, at);
  },
);

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
      if (folded < most) folded_at.set(identifier, Date.parse(tx.now) / 1_000);
      if (folded >= load) {
        const run_at = new Date(Date.parse(tx.now) + under_load_ms).toISOString();
        tx.enqueue(identifier, payload, { job_key: identifier, run_at });
      }
      return folded;
    },
  });
