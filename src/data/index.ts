import type { Logger } from 'pino';
import sql from 'sql-template-tag';
import type { Part } from '../core/part.ts';
import { run } from '../core/postgres/database.ts';
import type { Store } from '../core/postgres/transaction.ts';

/**
 * The interval at which sessions of data teams are checked. A session that does what it must not, such as to notify, delays every commit that
 * enqueues a job.
 */
const looks_every_ms = 5_000;

/** The schedules, audits and commands of schema data. */
export const data: Part = {
  schedules: [{ name: 'data/restore_logins', cron: '* * * * *', missed: 'latest' }],
  encrypted: [],
  audits: ['data.audit'],
  extension: {
    slots: {},
    open: async ({ store, log }) => ({
      parts: [],
      chores: [{ every_ms: looks_every_ms, run: () => endSessions(store, log) }],
      freeFromDead: async () => {},
      idle: async () => {},
      close: async () => {},
    }),
  },
};

interface EndedSession {
  pid: number;
  role_name: string;
  reason: string;
}

/** Ends sessions of data teams that run too long, or whose login is revoked or has expired, on the replica too, and logs each. */
async function endSessions({ database, replica }: Store, log: Logger): Promise<void> {
  for (const on of replica ? [database, replica] : [database]) {
    const ended = await run<EndedSession>(on, sql`select e.pid, e.role_name, e.reason from data.end_sessions() e`);
    for (const session of ended) log.warn(session, 'ended a session of a data team');
  }
}
