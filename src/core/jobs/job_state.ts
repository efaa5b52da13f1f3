/** The states of a job, as `core.jobs()` has them. */
export const job_states = ['ready', 'running', 'later', 'retrying', 'failed', 'cancelled'] as const;
export type JobState = (typeof job_states)[number];
