/** The sweep under the name that the version before enqueues it by, whose processes may run beside those of this one. */
export { default } from './enqueue_due_retries.ts';
