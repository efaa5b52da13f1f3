/** The tables of triggers and indexes in sql/README.md are what Postgres has. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { sql, startRail } from '../../harness.ts';

const rail = await startRail({ worker: false });

t.test('sql/README.md names for each table what happens on insert, update and delete', async (t) => {
  const triggers = await rail.query<{ line: string }>(sql`
    select format('%s %s %s', t.tgrelid::regclass, e.event, t.tgname) as line
    from pg_trigger t
    join pg_class c on c.oid = t.tgrelid and not c.relispartition
    cross join lateral (values ('insert', 4), ('delete', 8), ('update', 16)) as e (event, bit)
    where not t.tgisinternal and t.tgtype & e.bit <> 0 and (t.tgfoid::regproc::text !~ '^graphile_worker')
    order by 1`);
  const readme = await readFile(join(import.meta.dirname, '../../../sql/README.md'), 'utf8');
  const told = [...readme.matchAll(/^\| `(\w+\.\w+)` \| (.*) \| (.*) \| (.*) \|$/gm)].flatMap(([, table, ...cells]) =>
    ['insert', 'update', 'delete'].flatMap((event, nth) =>
      [...(cells[nth] as string).matchAll(/`(\w+)`/g)].map(([, name]) => `${table} ${event} ${name}`),
    ),
  );
  t.same(told.sort(), triggers.map(({ line }) => line).sort());
});

t.test(
  'sql/README.md names each index of the tables that requests write most, with the query that needs it',
  async (t) => {
    const readme = await readFile(join(import.meta.dirname, '../../../sql/README.md'), 'utf8');
    const [, listed = ''] = readme.split('## Indexes');
    const lines = [...listed.matchAll(/^\| (?:`(\w+\.\w+)`)? ?\| `(\w+)` \| (.{10,}) \|$/gm)];
    const tables = lines.flatMap(([, table]) => table ?? []);
    t.ok(tables.includes('program.click') && tables.includes('program.commission'));
    const indexes = await rail.query<{ name: string }>(sql`
    select c.relname as name from pg_index i join pg_class c on c.oid = i.indexrelid where i.indrelid = any(${tables}::regclass[]) order by 1`);
    t.same(
      lines.map(([, , name]) => name).sort(),
      indexes.map(({ name }) => name),
    );
  },
);

t.test('no trigger enqueues a job or writes an event', async (t) => {
  const functions = await rail.query<{ name: string; text: string }>(sql`
    select distinct p.oid::regproc::text as name, p.prosrc as text
    from pg_trigger t
    join pg_proc p on p.oid = t.tgfoid
    where not t.tgisinternal and p.oid::regproc::text !~ '^graphile_worker'`);
  t.ok(functions.length > 10);
  for (const { name, text } of functions)
    t.notMatch(text, /add_job|core\.enqueue|write_events|webhooks\.event|pg_notify/, name);
});
