import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import t from 'tap';
import { locksOf, modes } from '../../../src/core/postgres/locks.ts';
import { whatIsNotOnline } from '../../../src/core/postgres/online.ts';
import { planMigration } from '../../../src/core/postgres/plan.ts';
import { type Statement, statementsOf } from '../../../src/core/postgres/statements.ts';
import { cloneDatabase, serverUrl } from '../../postgres.ts';

const migrations = join(import.meta.dirname, '../../../sql/migrations');
/** The schema of 0.1.0: nobody uses what it makes. */
const baseline = 9;
const first = '-- Runs outside a transaction.\n\n';

const url = await cloneDatabase(await serverUrl(t));
const client = new pg.Client({ connectionString: url });
await client.connect();
t.teardown(() => client.end());
await client.query(`
  create schema lots;
  create table lots.lot (id integer primary key, body text, price integer, made_at timestamptz);
  create table lots.bid (id integer primary key, lot_id integer);
  create table lots.sold (id integer not null, day date not null) partition by range (day);
  create table lots.sold_old (id integer not null, day date not null);
  create view lots.seen as select l.id from lots.lot l;
  create index lot_by_body on lots.lot (body);
  alter table lots.lot add constraint price_known check (price is not null) not valid;
  insert into lots.lot select n, 'lot', n, now() from generate_series(1, 100) n;
  create function lots.noted() returns trigger language plpgsql as 'begin return new; end';
  create trigger noted after insert on lots.lot for each row execute function lots.noted();
  create policy own on lots.lot using (true);`);

/** Statements, and what they do to the table lots.lot while they hold its lock. */
const samples: [sql: string, work: 'none' | 'reads' | 'indexes' | 'writes'][] = [
  ['alter table lots.lot add column note text', 'none'],
  ["alter table lots.lot add column note text not null default 'none, and (so) on'", 'none'],
  ['alter table lots.lot add column noted_at timestamptz default now()', 'none'],
  ['alter table lots.lot add column key uuid default gen_random_uuid()', 'writes'],
  ['alter table lots.lot add column nth integer generated always as identity', 'writes'],
  ['alter table lots.lot add column twice integer generated always as (price * 2) stored', 'writes'],
  ['alter table lots.lot drop column body', 'none'],
  ['alter table lots.lot alter column price type bigint', 'writes'],
  ['alter table lots.lot alter column price set not null', 'reads'],
  ['alter table lots.lot alter column price drop not null, alter column body set default 7', 'none'],
  ['alter table lots.lot alter column price set statistics 500', 'none'],
  ['alter table lots.lot add constraint dear check (price > 0)', 'reads'],
  ['alter table lots.lot add constraint dear check (price > 0) not valid', 'none'],
  ['alter table lots.lot validate constraint price_known', 'reads'],
  ['alter table lots.lot add constraint one_body unique (id, body)', 'indexes'],
  ['alter table lots.lot add foreign key (price) references lots.lot (id) not valid', 'none'],
  ['alter table lots.bid add foreign key (lot_id) references lots.lot (id)', 'none'],
  ['create table lots.note (lot_id integer references lots.lot (id))', 'none'],
  ['alter table lots.lot rename column body to text', 'none'],
  ['alter table lots.lot enable row level security', 'none'],
  ['alter table lots.lot disable trigger noted', 'none'],
  ['alter table lots.lot set (fillfactor = 90)', 'none'],
  ['alter table lots.lot set unlogged', 'writes'],
  ['create index lot_by_price on lots.lot (price) where price > 0', 'indexes'],
  ['create unique index on only lots.lot (price)', 'indexes'],
  ['drop index lots.lot_by_body', 'none'],
  ['create trigger again before update of price on lots.lot for each row execute function lots.noted()', 'none'],
  ['create or replace trigger noted after insert on lots.lot for each row execute function lots.noted()', 'none'],
  ['drop trigger noted on lots.lot', 'none'],
  ['create policy two on lots.lot using (true)', 'none'],
  ['drop policy own on lots.lot', 'none'],
  ["comment on table lots.lot is 'What is sold; each once.'", 'none'],
  ["comment on column lots.lot.price is 'In cents.'", 'none'],
  ["insert into lots.lot values (1000, 'one', 1)", 'none'],
  ["update lots.lot set body = 'other'", 'writes'],
  ['delete from lots.lot where price < 10', 'writes'],
  ['truncate table lots.lot', 'none'],
  ['drop table lots.lot cascade', 'none'],
  ['create or replace view lots.seen as select l.id, l.body from lots.lot l', 'none'],
  ['create function lots.two() returns integer language sql as $$ select 1; select 2 $$', 'none'],
  ['grant select on lots.lot to rail_api', 'none'],
];

const only = (sql: string): Statement => {
  const [statement, ...more] = statementsOf(sql);
  if (!statement || more.length > 0) throw new Error(`Not one statement: ${sql}`);
  return statement;
};

for (const [sql, work] of samples)
  t.test(`knows the lock that Postgres takes for: ${sql}`, async (t) => {
    const said = (locksOf(only(sql)) ?? []).filter(({ table }) => ['lots.lot', 'lots.lot_by_body'].includes(table));
    const [table] = (
      await client.query(`select oid, relfilenode as file from pg_class where oid = 'lots.lot'::regclass`)
    ).rows;
    await client.query('begin');
    t.teardown(() => client.query('rollback'));
    await client.query(sql);
    const { rows } = await client.query<{ mode: string }>(
      'select l.mode from pg_locks l where l.pid = pg_backend_pid() and l.relation = $1',
      [table.oid],
    );
    const [after] = (await client.query('select relfilenode as file from pg_class where oid = $1', [table.oid])).rows;
    const rewritten = after?.file !== table.file && !/^(truncate|drop)/.test(sql);
    const taken = rows.map(({ mode }) =>
      modes.findIndex((name) => `${name.replaceAll(' ', '').toLowerCase()}lock` === mode.toLowerCase()),
    );
    const strongest = Math.max(0, ...taken);
    t.equal(
      Math.max(0, ...said.map(({ mode }) => modes.indexOf(mode))),
      strongest,
      `Postgres took ${modes[strongest]}`,
    );
    t.equal(said.find((one) => one.work !== 'none')?.work ?? 'none', work);
    if (!/^(update|delete)/.test(sql)) t.equal(rewritten, work === 'writes');
  });

t.test('reads statements as Postgres does, whatever stands in them', async (t) => {
  const texts = [
    'create function a() returns integer language sql begin atomic select case when true then 1 end; select 2; end',
    "do $do$ begin raise notice ';'; end $do$",
    `comment on table "lots"."lot" is 'it''s; -- no comment'`,
    'select 1 /* ; */',
  ];
  const found = statementsOf(`-- One; two.\n${texts.join(';\n-- three;\n')};\n`);
  t.equal(found.length, texts.length);
  t.same(locksOf(found[2] as Statement), [{ table: 'lots.lot', mode: 'SHARE UPDATE EXCLUSIVE', work: 'none' }]);
  t.equal(locksOf(found[1] as Statement), undefined, 'nobody knows what a block does');
});

const faultsOf = (...texts: string[]) =>
  whatIsNotOnline(
    texts.map((text, nth) => ({ name: `migrations/001${nth}_lots.sql`, text })),
    (name) => ['lots.lot', 'lots.bid'].includes(name),
  );

for (const [text, fault] of [
  [
    'create index lot_by_price on lots.lot (price)',
    /keeps writers of lots\.lot waiting while it goes through lots\.lot\. Create the index 'concurrently'/,
  ],
  ['alter table lots.lot alter column price set not null', /Add a constraint 'not valid'/],
  ['alter table lots.lot alter column price type bigint', /Add a column/],
  ['alter table lots.bid add foreign key (lot_id) references lots.lot (id)', /goes through lots\.bid/],
  ['alter table lots.lot add column note text not null', /fails on a table with rows/],
  ["update lots.lot set body = ''", /locks the rows of lots\.lot/],
  ['do $$ begin perform 1; end $$', /does not say which tables it locks/],
  [
    'alter table lots.lot add column note text;\nalter table lots.bid validate constraint known',
    /keeps writers of lots\.lot waiting while it goes through lots\.bid/,
  ],
] as const)
  t.test(`refuses a migration that is not online: ${text.replaceAll('\n', ' ')}`, async (t) => {
    const faults = faultsOf(`create table lots.new (id integer);\n${text};`);
    t.equal(faults.length, 1);
    t.match(faults[0], fault);
  });

t.test('takes migrations that are online', async (t) => {
  t.same(
    faultsOf(`create table lots.new (id integer, lot_id integer references lots.lot (id)); create index on lots.new (id);
    update lots.new set id = 1; alter table lots.lot add column note text not null default '';`),
    [],
  );
  t.same(faultsOf(`${first}create index concurrently if not exists lot_by_price on lots.lot (price);`), []);
  t.same(
    faultsOf(
      'alter table lots.lot add constraint price_known check (price is not null) not valid;',
      `${first}alter table lots.lot validate constraint price_known;`,
      'alter table lots.lot alter column price set not null; alter table lots.lot drop constraint price_known;',
    ),
    [],
    'not null after a validated check',
  );
});

t.test('every migration since 0.1.0 is online', async (t) => {
  const names = (await readdir(migrations)).toSorted();
  const files = await Promise.all(
    names.map(async (name) => ({ name, text: await readFile(join(migrations, name), 'utf8') })),
  );
  const isOld = ({ name }: { name: string }) => Number(name.slice(0, 4)) <= baseline;
  const old = new Set(
    files
      .filter(isOld)
      .flatMap(({ text }) => statementsOf(text))
      .flatMap(({ words }) => words),
  );
  t.ok(old.has('program.sale'));
  t.same(
    whatIsNotOnline(
      files.filter((file) => !isOld(file)),
      (name) => old.has(name),
    ),
    [],
  );
});

t.test('rail migrate --plan tells the locks, the sizes and the order of what is pending', async (t) => {
  await client.query(`delete from migration.applied where name in ('live/program/tally.sql')`);
  const { is_new, steps, warnings } = await planMigration(client);
  t.same({ is_new, warnings }, { is_new: false, warnings: [] });
  t.same(
    steps.map(({ files, in_transaction }) => ({ files, in_transaction })),
    [{ files: ['live/program/tally.sql'], in_transaction: true }],
  );
  const sale = steps[0]?.tables.find(({ table }) => table === 'program.sale');
  t.match(sale, { lock: 'SHARE ROW EXCLUSIVE', work: 'none', keeps_waiting: 'writers', seconds: 1 });
  t.ok(sale && sale.bytes >= 0 && sale.rows === 0);
});
