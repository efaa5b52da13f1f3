import { scheduled } from '../../src/core/jobs/schedule.ts';
import { taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { hasUncounted, rebuildReports } from '../../src/program/reports/sums/rebuild.ts';

/** Sums up the reports of programs that are not summed up: after the upgrade to the version that does, and where an operator asks for it. */
export default taskOutsideTransaction({
  payload: scheduled,
  async run({ store }) {
    if (await hasUncounted(store.database)) await rebuildReports(store.database);
  },
});
