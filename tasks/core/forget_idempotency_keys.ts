/** What core/purge_expired was called before: for jobs that the version before enqueued. To be deleted in the version after this one. */
export { default } from './purge_expired.ts';
