import type { AnyCheck } from './doctor/check.ts';
import type { EncryptedTable } from './encryption/re_encrypt.ts';
import type { Extension } from './jobs/extension.ts';
import type { Kept } from './jobs/retention.ts';
import type { Schedule } from './jobs/schedule.ts';
import type { Backlog } from './metrics/backlog.ts';

/** The additions of a part of the service (core, webhooks, each product) to the processes and commands that serve all of them. */
export interface Part {
  /** Scheduled tasks. Time lives in rows: a tick looks for what is due by then. */
  schedules: Schedule[];
  /** Every column with encrypted values: what `rail rotate-encryption-key` re-encrypts. A column that is missing here is lost with the old key. */
  encrypted: EncryptedTable[];
  /** SQL functions that return what must not be, as rows of (invariant, organization_id, subject_id, detail): what `rail audit` reads. */
  audits: string[];
  /** The figures of its backlog in the database, for `/metrics`. */
  backlog?: Backlog;
  /** The checks of `rail doctor` on it, in this order. */
  checks?: () => Promise<AnyCheck[]>;
  /** Its rows that are kept for a while. */
  kept?: Kept[];
  /** The extension of a worker besides its tasks. */
  extension?: Extension;
}
