import { scheduled } from '../../src/core/jobs/schedule.ts';
import { taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { endSessions } from '../../src/data/end_sessions.ts';

/** Ends sessions of data teams that run too long, or whose login is revoked or has expired. */
export default taskOutsideTransaction({ payload: scheduled, run: ({ store, log }) => endSessions(store, log) });
