import { scheduled } from '../../src/core/jobs/schedule.ts';
import { task } from '../../src/core/jobs/task.ts';
import { daysToCompare } from '../../src/program/processors/compare.ts';

/** Has the day before, and those that still differ, compared with what each billing processor says that it moved. */
export default task({
  payload: scheduled,
  async run({ tx, payload: { tick } }) {
    for (const compared of await daysToCompare(tx, tick))
      tx.enqueue('program/compare_processor', { ...compared }, { job_key: `compare:${compared.id}:${compared.day}` });
  },
});
