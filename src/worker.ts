import { superviseWorker, type Worker, type WorkerOptions } from './core/jobs/supervisor.ts';
import { extensions, schedules } from './products.ts';

/** Runs jobs until it is stopped: ten times as many deliveries at a time as other jobs, and twice as many to slow endpoints. */
export const startWorker = (options: WorkerOptions): Worker => superviseWorker({ ...options, schedules, extensions });
