import { scheduled } from '../../src/core/jobs/schedule.ts';
import { batchTask, most_at_once } from '../../src/core/jobs/task.ts';
import { purgeEvents } from '../../src/program/processors/overdue.ts';

/** Deletes what billing processors sent more than 90 days ago. */
export default batchTask({
  payload: scheduled,
  most: most_at_once,
  run: ({ tx, payload: { tick } }) => purgeEvents(tx, tick, most_at_once),
});
