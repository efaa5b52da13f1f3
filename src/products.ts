import { core } from './core/index.ts';
import { jobBacklog } from './core/jobs/backlog.ts';
import { postgresBacklog, replicaBacklog } from './core/metrics/postgres.ts';
import type { Part } from './core/part.ts';
import { data } from './data/index.ts';
import { program } from './program/index.ts';
import { recruitment } from './recruitment/index.ts';
import { eventWriter } from './webhooks/events/event.ts';
import { webhooks } from './webhooks/index.ts';
import type { Products } from './webhooks/product.ts';
import type { RetryTimes } from './webhooks/queue/due_retries.ts';

/** The products of this service: one line each. */
export const products: Products = [program, recruitment];

const parts: Part[] = [core, webhooks, data, ...products];

export const schedules = parts.flatMap((part) => part.schedules);
export const encrypted = parts.flatMap((part) => part.encrypted);
/** The figures of the database in `/metrics`. */
export const backlogs = [
  jobBacklog(schedules),
  postgresBacklog,
  replicaBacklog,
  ...parts.flatMap((part) => part.backlog ?? []),
];
export const extensions = parts.flatMap((part) => part.extension ?? []);
/** The checks of `rail doctor` on the database. */
export const loadChecks = async () => [
  ...(await Promise.all(parts.map(({ checks }) => checks?.() ?? []))).flat(),
  (await import('./core/doctor/queue.ts')).scheduleCheck(schedules),
];
/** All rows that are kept for a while: see `readRetention`. */
export const kept = parts.flatMap((part) => part.kept ?? []);
export const audits = parts.flatMap((part) => part.audits);
/** The delivery prefixes of products whose retries are sent at these times. */
export const deliveryPrefixes = (times: RetryTimes): string[] =>
  products.flatMap(({ events }) => (events.retries === times ? [events.delivery_prefix] : []));
export const writeEvents = eventWriter(products.map(({ events }) => events));
