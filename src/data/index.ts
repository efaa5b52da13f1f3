import type { Part } from '../core/part.ts';

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
    open: async ({ store, log }) => {
      const { endSessions } = await import('./end_sessions.ts');
      return {
        parts: [],
        chores: [{ every_ms: looks_every_ms, run: () => endSessions(store, log) }],
        freeFromDead: async () => {},
        idle: async () => {},
        close: async () => {},
      };
    },
  },
};
