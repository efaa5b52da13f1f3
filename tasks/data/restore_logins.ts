import { scheduled } from '../../src/core/jobs/schedule.ts';
import { taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { restoreLogins } from '../../src/data/restore_logins.ts';

/** Undoes what logins of data teams changed of their own roles. */
export default taskOutsideTransaction({ payload: scheduled, run: ({ store, log }) => restoreLogins(store, log) });
