import type { Part } from '../core/part.ts';

/** How long a session of a data team may do what it must not, such as to notify, for every commit that enqueues a job waits for it. */
const looks_every_ms = 5_000;

/** What schema data adds to the processes and commands. */
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
