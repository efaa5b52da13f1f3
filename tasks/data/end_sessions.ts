import { scheduled } from '../../src/core/jobs/schedule.ts';
import { task } from '../../src/core/jobs/task.ts';
import { endSessions } from '../../src/data/end_sessions.ts';

/** Ends sessions of data teams that run too long, or whose login is revoked or has expired. */
export default task({ payload: scheduled, run: ({ tx, log }) => endSessions(tx, log) });
