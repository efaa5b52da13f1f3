import type { Part } from '../core/part.ts';

/** What schema data adds to the processes and commands. */
export const data: Part = {
  schedules: [{ name: 'data/end_sessions', cron: '* * * * *', missed: 'latest' }],
  encrypted: [],
  audits: ['data.audit'],
};
