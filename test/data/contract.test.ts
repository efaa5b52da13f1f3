/**
 * The views are a contract: columns may be added, and none may go, change its type or its place. `contract.json` is the record; a column that
 * is added is added there, behind the others of its view.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { raw } from 'sql-template-tag';
import t from 'tap';
import { type Rail, sql, startRail } from '../harness.ts';

type Contract = Record<string, [column: string, type: string][]>;

const rail = await startRail({ worker: false });
const recorded: Contract = JSON.parse(await readFile(join(import.meta.dirname, 'contract.json'), 'utf8'));

async function columnsOfViews({ query }: Rail): Promise<Contract> {
  const columns = await query<{ view: string; column: string; type: string }>(sql`
    select v.relname as view, a.attname as column, format_type(a.atttypid, null) as type
    from pg_class v
    join pg_attribute a on a.attrelid = v.oid and a.attnum > 0 and not a.attisdropped
    where v.relnamespace = 'data'::regnamespace and v.relkind = 'v'
    order by v.relname collate "C", a.attnum`);
  const by_view = Map.groupBy(columns, ({ view }) => view);
  return Object.fromEntries([...by_view].map(([view, list]) => [view, list.map(({ column, type }) => [column, type])]));
}

t.test('keeps each view and column as it is recorded, and records each that is added', async (t) => {
  const actual = await columnsOfViews(rail);
  t.strictSame(Object.keys(actual), Object.keys(recorded), 'views');
  for (const [view, columns] of Object.entries(recorded)) t.strictSame(actual[view], columns, view);
});

t.test('documents every view and every column', async (t) => {
  const silent = await rail.query(sql`
    select v.relname, a.attname
    from pg_class v
    join pg_attribute a on a.attrelid = v.oid and a.attnum >= 0 and not a.attisdropped
    where v.relnamespace = 'data'::regnamespace and v.relkind = 'v' and col_description(v.oid, a.attnum) is null
    union all
    select v.relname, null from pg_class v
    where v.relnamespace = 'data'::regnamespace and v.relkind = 'v' and obj_description(v.oid, 'pg_class') is null`);
  t.strictSame(silent, []);
});

t.test('documents every table of the service', async (t) => {
  const silent = await rail.query(sql`
    select c.oid::regclass::text as name
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r', 'p') and not c.relispartition and obj_description(c.oid, 'pg_class') is null
      and (n.nspname in (select core.own_schemas()) or n.nspname = 'migration')`);
  t.strictSame(silent, []);
});

t.test('gives money a currency, and times as timestamptz', async (t) => {
  for (const [view, columns] of Object.entries(await columnsOfViews(rail))) {
    const names = columns.map(([name]) => name);
    const money = names.filter((name) => name.endsWith('_minor'));
    if (money.length > 0) t.ok(names.includes('currency'), `${view} has a currency beside ${money[0]}`);
    for (const [name, type] of columns) {
      if (name.endsWith('_minor')) t.match(type, /^(bigint|numeric)$/, `${view}.${name}`);
      if (name.endsWith('_at')) t.equal(type, 'timestamp with time zone', `${view}.${name}`);
    }
  }
});

/** Columns that no view may read: those that identify visitors, texts of emails and deals, and secrets by which others could act. */
const secret_columns = [
  ...[
    'ip_hash',
    'visitor_token',
    'mailbox',
    'subject',
    'body_text',
    'body_html',
    'steps',
    'text',
    'server_answer',
    'named',
  ],
  ...['invitation_token', 'rfc_message_id', 'reference_ids', 'in_reply_to'],
];

t.test('is read by the columns that it shows, and by a role that owns no table', async (t) => {
  t.strictSame(await rail.query(sql`select * from data.missing_privileges()`), []);
  const [role] = await rail.query(sql`
    select r.rolcanlogin, r.rolsuper, r.rolbypassrls, r.rolcreaterole,
      (select count(*) from pg_class c where c.relowner = r.oid and c.relkind <> 'v') as tables
    from pg_roles r where r.rolname = 'rail_data'`);
  t.strictSame(role, { rolcanlogin: false, rolsuper: false, rolbypassrls: false, rolcreaterole: false, tables: 0 });
  const secrets = await rail.query(sql`
    select c.oid::regclass::text as table, a.attname
    from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    where c.relkind in ('r', 'p') and (a.atttypid = 'bytea'::regtype or a.attname = any(${secret_columns}))
      and has_column_privilege('rail_data', c.oid, a.attname, 'select') and not pg_has_role('rail_data', c.relowner, 'usage')
      and c.relnamespace::regnamespace::text in (select core.own_schemas())`);
  t.strictSame(secrets, []);
});

t.test('publishes the columns that views show and the keys of their tables, and no others', async (t) => {
  const [{ statement } = { statement: '' }] = await rail.query<{ statement: string }>(
    sql`select data.publication_statement() as statement`,
  );
  await rail.query(sql`${raw(statement)}`);
  const published = await rail.query<{ name: string; column: string }>(sql`
    select format('%I.%I', p.schemaname, p.tablename) as name, unnest(p.attnames)::text as column
    from pg_publication_tables p
    where p.pubname = 'rail_data'`);
  const read = await rail.query<{ name: string; column: string; is_key: boolean }>(sql`
    select c.table_id::regclass::text as name, c.column_name as column from data.columns_read() c`);
  const shown = new Set(read.map(({ name, column }) => `${name}.${column}`));
  t.same(new Set(published.map(({ name }) => name)), new Set(read.map(({ name }) => name)), 'every table');
  const others = published.filter(({ name, column }) => !shown.has(`${name}.${column}`));
  const keys = await rail.query<{ name: string; column: string }>(sql`
    select i.indrelid::regclass::text as name, a.attname as column
    from pg_index i
    join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any(i.indkey)
    where i.indisprimary`);
  for (const { name, column } of others)
    t.ok(
      keys.some((key) => key.name === name && key.column === column),
      `${name}.${column}`,
    );
  await rail.query(sql`update program.program set name = name`);
});
