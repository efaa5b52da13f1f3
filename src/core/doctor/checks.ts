/** The checks of the core, and those of migrations and privileges. */
import sql from 'sql-template-tag';
import { whatIsMigrated } from '../postgres/migrate.ts';
import { lostProtection, missingPrivileges } from '../postgres/privileges.ts';
import { counted, named } from './amounts.ts';
import { check, error, ok, rowOf, warning } from './check.ts';
import { keyChecks } from './keys.ts';
import { processChecks } from './process.ts';
import { queueChecks } from './queue.ts';
import { replicationChecks } from './replication.ts';
import { serverChecks } from './server.ts';
import { sessionChecks } from './sessions.ts';
import { tableChecks } from './tables.ts';

const migrate = "Run 'npx --no rail migrate'.";

/** The condition of all other checks: without it, they mean little. */
const migrationCheck = check({
  name: 'postgres/migrations',
  read: whatIsMigrated,
  assess({ missing, differing, unknown }) {
    if (missing.length > 0) return error(`${counted(missing.length, 'file')} missing: ${named(missing, 2)}.`, migrate);
    if (unknown.length > 0)
      return warning(
        `The database was migrated by a later version (${named(unknown)}).`,
        'Run that version of Rail everywhere.',
      );
    if (differing.length > 0) return warning(`Functions of another version: ${named(differing, 2)}.`, migrate);
    return ok('All migrations are in.');
  },
});

const schemaChecks = [
  check({
    name: 'postgres/restored',
    read: rowOf<{ is_here: boolean }>(
      sql`select exists (select from core.cluster c join pg_control_system() s using (system_identifier)) as is_here`,
    ),
    assess: ({ is_here }) =>
      is_here
        ? ok('The database is in the cluster that it was made in, or was migrated since.')
        : error('The database was restored from a dump, and not migrated since.', migrate),
  }),
  check({
    name: 'postgres/privileges',
    read: missingPrivileges,
    assess(missing) {
      const [first] = missing;
      if (!first)
        return ok('The role rail_api may do what it must, and no more. All tables of organizations are protected.');
      return error(
        `${counted(missing.length, 'privilege or policy is', 'privileges or policies are')} wrong: ${first.subject}: ${first.missing}.`,
        migrate,
      );
    },
  }),
  check({
    name: 'postgres/data_logins',
    read: lostProtection,
    assess: (lost) =>
      lost[0]
        ? warning(
            `Data logins may do too much: ${lost[0].subject}: ${lost[0].missing}.`,
            `As a superuser, run: ${lost[0].statement};`,
          )
        : ok('Data logins may do what they must, and no more.'),
  }),
];

/** The checks of the core, in the order in which they are shown. */
export const checks = [
  migrationCheck,
  ...schemaChecks,
  ...serverChecks,
  ...sessionChecks,
  ...replicationChecks,
  ...tableChecks,
  ...processChecks,
  ...queueChecks,
  ...keyChecks,
];
