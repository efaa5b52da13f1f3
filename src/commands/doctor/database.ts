/** Checks of the database that need the settings. */
import pg from 'pg';
import sql from 'sql-template-tag';
import type { Config } from '../../config.ts';
import { ago } from '../../core/doctor/amounts.ts';
import { type AnyCheck, check, error, ok, rowOf, type Session, warning } from '../../core/doctor/check.ts';
import { storedKeyId } from '../../core/encryption/key_check.ts';
import { readRetention } from '../../core/jobs/retention.ts';
import { replicaLag } from '../../core/postgres/replica_lag.ts';
import { readVault } from '../../encryption_key.ts';
import { kept } from '../../products.ts';
import { replicaUrl, retentionOf } from '../../service.ts';

const late_s = 60;

export const databaseChecks = (config: Config): AnyCheck[] => [
  encryptionKey(config),
  retention(config),
  ...(config.DATABASE_READ_URL ? [readReplica(config.DATABASE_READ_URL)] : []),
];

const encryptionKey = (config: Config): AnyCheck =>
  check({
    name: 'service/encryption_key',
    read: async (on) => ({ key_id: await storedKeyId(on as pg.Client), key_ids: (await readVault(config)).key_ids }),
    assess({ key_id, key_ids }) {
      if (key_id === undefined) return ok('The database was not used with a key yet.');
      if (!key_ids.includes(key_id))
        return error(
          `The database holds values encrypted with the key ${key_id}; here there is ${key_ids.join(', ')}.`,
          'Set RAIL_ENCRYPTION_KEY to the key that this database was used with.',
        );
      if (key_ids.length > 1)
        return warning(
          `Several keys are set: ${key_ids.join(', ')}.`,
          "Finish the rotation: 'npx --no rail rotate-encryption-key --dry-run' says which can be removed.",
        );
      return ok(`The database is encrypted with the key ${key_id}.`);
    },
  });

const retention = (config: Config): AnyCheck =>
  check({
    name: 'service/retention',
    read: (on) => readRetention(on as pg.Pool, kept, retentionOf(config)),
    assess(kinds) {
      const behind = kinds.filter(({ behind_days }) => behind_days > 0);
      if (behind.length === 0) return ok(`${kinds.length} kinds of rows are deleted when their time is over.`);
      return warning(
        `Kept for longer than the settings say: ${behind.map(({ kind, behind_days }) => `${kind} (${behind_days} days)`).join(', ')}.`,
        "The hourly job that deletes them is behind or fails: 'npx --no rail runs list' shows it.",
      );
    },
  });

interface Replica {
  id: string;
  is_replica: boolean;
  late_s: number;
}

const primaryOf = rowOf<{ id: string; lsn: string | null }>(sql`
  select format('%s-%s', c.system_identifier, d.oid) as id,
    case when not pg_is_in_recovery() then pg_current_wal_insert_lsn()::text end as lsn
  from pg_control_system() c
  cross join pg_database d
  where d.datname = current_database()`);

/** @param lsn what the primary had written before */
const replicaOf = (lsn: string | null) =>
  rowOf<Replica>(sql`
    select format('%s-%s', c.system_identifier, d.oid) as id, pg_is_in_recovery() as is_replica,
      ${replicaLag(lsn)} as late_s
    from pg_control_system() c
    cross join pg_database d
    where d.datname = current_database()`);

const readReplica = (url: string): AnyCheck =>
  check({
    name: 'postgres/read_replica',
    async read(on) {
      const { id, lsn } = await primaryOf(on);
      return { id, replica: await ofReplica(url, lsn) };
    },
    assess({ id, replica }) {
      const remedy = 'Reports, data logins and GraphQL fail meanwhile: check DATABASE_READ_URL, or leave it unset.';
      if (typeof replica === 'string') return error(`DATABASE_READ_URL cannot be read: ${replica}.`, remedy);
      if (replica.id !== id) return error('DATABASE_READ_URL is another database than DATABASE_URL.', remedy);
      if (!replica.is_replica)
        return warning('DATABASE_READ_URL is the primary.', 'Set it to a replica, or leave it unset.');
      const text = `The replica of DATABASE_READ_URL is ${ago(replica.late_s)} behind.`;
      return replica.late_s > late_s ? warning(text, 'Look at its load and its network.') : ok(text);
    },
  });

/** @returns why it cannot be read, where it cannot */
async function ofReplica(url: string, lsn: string | null): Promise<Replica | string> {
  const client = new pg.Client({
    connectionString: await replicaUrl(url),
    application_name: 'rail doctor',
    connectionTimeoutMillis: 5_000,
    statement_timeout: 5_000,
  });
  client.on('error', () => {});
  try {
    await client.connect();
    return await replicaOf(lsn)(client as Session);
  } catch (failure) {
    const { message, code } = failure as { message?: string; code?: string };
    return message || code || 'it does not answer';
  } finally {
    await client.end().catch(() => {});
  }
}
