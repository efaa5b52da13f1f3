/** Replicas and the WAL that is kept for them. */
import sql from 'sql-template-tag';
import { ago, named, size } from './amounts.ts';
import { check, error, ok, rowOf, rowsOf, warning } from './check.ts';

const gigabyte = 1024 ** 3;
const lag_s = 60;

const walSettings = rowOf<{ may_look: boolean; most: number }>(sql`
  select has_function_privilege('pg_ls_waldir()', 'execute') as may_look, pg_size_bytes(current_setting('max_wal_size'))::float8 as most`);
const walSize = rowOf<{ bytes: number | null }>(sql`select sum(w.size)::float8 as bytes from pg_ls_waldir() w`);

export const replicationChecks = [
  check({
    name: 'postgres/replicas',
    read: rowsOf<{ name: string; state: string | null; bytes: number | null; seconds: number | null }>(sql`
      select coalesce(nullif(r.application_name, ''), host(r.client_addr), 'a replica') as name, r.state,
        pg_wal_lsn_diff(pg_current_wal_lsn(), r.replay_lsn)::float8 as bytes, extract(epoch from r.replay_lag)::float8 as seconds
      from pg_stat_replication r`),
    assess(found) {
      if (found.length === 0) return ok('No replica is connected.');
      const texts = found.map(({ name, state, bytes, seconds }) =>
        state === null
          ? `${name} (its lag is shown to members of pg_monitor alone)`
          : `${name} is ${state}, ${size(bytes ?? 0)} and ${ago(seconds ?? 0)} behind`,
      );
      const is_late = found.some(({ bytes, seconds }) => (seconds ?? 0) > lag_s || (bytes ?? 0) > gigabyte);
      const text = `${named(texts)}.`;
      return is_late ? warning(text, 'Look at the load and the network of the replica.') : ok(text);
    },
  }),
  check({
    name: 'postgres/slots',
    read: rowsOf<{ name: string; active: boolean; bytes: number | null; wal_status: string | null }>(sql`
      select s.slot_name as name, s.active, pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn)::float8 as bytes, s.wal_status
      from pg_replication_slots s
      order by 3 desc nulls last`),
    assess(found) {
      if (found.length === 0) return ok('There is no replication slot.');
      const texts = found.map(
        ({ name, active, bytes, wal_status }) =>
          `${name} (${active ? 'active' : 'inactive'}${wal_status === 'lost' ? ', lost' : ''}) keeps ${size(bytes ?? 0)} of WAL`,
      );
      const text = `${named(texts)}.`;
      const idle = found.filter(({ active, bytes }) => !active && (bytes ?? 0) > gigabyte);
      const drop = 'Start its reader again, or drop it: select pg_drop_replication_slot(name).';
      if (found.some(({ wal_status }) => wal_status === 'lost')) return error(text, drop);
      return idle.length > 0 ? warning(`${text} An inactive slot fills the disk.`, drop) : ok(text);
    },
  }),
  check({
    name: 'postgres/wal',
    // A statement that names the function is refused, whether or not it comes to call it.
    async read(on) {
      const { may_look, most } = await walSettings(on);
      return { most, bytes: may_look ? (await walSize(on)).bytes : null };
    },
    assess({ bytes, most }) {
      if (bytes === null) return ok(`max_wal_size is ${size(most)}. Members of pg_monitor see the size of the WAL.`);
      const text = `The WAL takes ${size(bytes)}; max_wal_size is ${size(most)}.`;
      if (bytes <= 3 * most) return ok(text);
      return warning(text, 'Look at postgres/slots, and whether archive_command fails.');
    },
  }),
];
