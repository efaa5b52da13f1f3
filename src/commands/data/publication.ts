/** `rail data publication`: the SQL that publishes the rows of all organizations for logical replication. It is printed, and not run. */
import sql from 'sql-template-tag';
import { type Database, run } from '../../core/postgres/database.ts';
import { exported } from '../../products.ts';
import { answer, withStore } from '../command.ts';

interface PublicationOptions {
  name: string;
  json?: boolean;
}

export const printPublication = ({ name, json }: PublicationOptions): Promise<void> =>
  withStore(async ({ store }) => {
    const statements = await publicationStatements(store.database, name);
    const lines = statements.flatMap(({ why, statement }) => [...why.map((line) => `-- ${line}`), `${statement};`, '']);
    answer(statements, { json, lines });
  });

interface Step {
  why: string[];
  statement: string;
}

/** What to run, in order, each with its reason. Nothing in it is secret but the password, which whoever runs it chooses. */
export async function publicationStatements(database: Database, name: string): Promise<Step[]> {
  const tables = await publishedTables(database);
  const role = `${name}_reader`;
  const granted = tables.map(({ table, columns }) => `grant select (${columns}) on ${table} to ${role}`);
  return [
    {
      why: [
        'Logical replication ignores row-level security: whoever reads the publication reads the rows of every organization.',
        'Give it to nobody but those who run this service. Needs Postgres to be restarted; run it as a superuser.',
      ],
      statement: 'alter system set wal_level = logical',
    },
    {
      why: [
        'A slot that nobody reads keeps all that is written since, until the disk is full. This is the most it may keep; a slot that',
        'falls further behind is lost, and its reader has to copy everything anew. Takes effect on reload.',
      ],
      statement: `alter system set max_slot_wal_keep_size = '10GB'`,
    },
    {
      why: ['What the API shows of each resource, without what it keeps to itself. Partitions arrive as their table.'],
      statement: `create publication ${name} for table\n  ${tables
        .map(({ table, columns }) => `${table} (${columns})`)
        .join(',\n  ')}\n  with (publish_via_partition_root = true)`,
    },
    {
      why: ['The reader: it replicates, and reads the same columns for the first copy, of every organization.'],
      statement: [
        `create role ${role} login replication bypassrls connection limit 4 password '…'`,
        `grant usage on schema program to ${role}`,
        ...granted,
      ].join(';\n'),
    },
    {
      why: ['Look at this often, and alert on it: how much each slot holds back, and whether it was lost.'],
      statement:
        'select slot_name, active, wal_status, pg_size_pretty(pg_current_wal_lsn() - restart_lsn) as kept from pg_replication_slots',
    },
  ];
}

interface Published {
  table: string;
  columns: string;
}

/** Of each resource the columns that its record is made of, and those that say whose it is and whether it is deleted. */
async function publishedTables(database: Database): Promise<Published[]> {
  const tables = await Promise.all(
    exported.map(({ table, fields }) =>
      run<Published>(
        database,
        sql`select ${table}::text as table, string_agg(quote_ident(a.attname), ', ' order by a.attnum) as columns
          from pg_attribute a
          where a.attrelid = ${table}::text::regclass and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
            and a.attname = any(${[...Object.keys(fields), 'organization_id', 'deleted_at']})`,
      ),
    ),
  );
  return tables.flat();
}
