/**
 * Tries the attacks that a login of a data team was seen to make, or could: each statement is refused. Add what is found. Each runs in a session that
 * was made writable, with no limit of time.
 */

import { raw } from 'sql-template-tag';
import t from 'tap';
import { sql, startRail } from '../harness.ts';
import { connectAs, newLogin, viewsOf } from './tenant.ts';

const rail = await startRail({ worker: false });
const login = await newLogin(rail, await rail.organization());
const [service] = await rail.query<{ pid: number }>(sql`select pg_backend_pid() as pid`);
const views = await viewsOf(rail);

const attacks: Record<string, string[]> = {
  'writes to the views, and makes objects of its own': [
    ...views.map((view) => `delete from ${view}`),
    "update data.partner set handle = 'mine'",
    "insert into data.tag (id, program_id, color) values ('tag_x', 'prg_x', 'x')",
    'create table data.mine (id integer)',
    'create table public.mine (id integer)',
    'create temporary table mine (id integer)',
    'create temporary sequence mine',
    'create temporary view mine as select 1',
    'create function public.mine() returns integer language sql return 1',
    'create schema mine',
    'create database mine',
    'create role mine',
    'create extension hstore',
    "comment on view data.sale is 'mine'",
    'create policy mine on program.sale using (true)',
    'alter view data.sale owner to current_user',
    "alter system set work_mem = '1GB'",
  ],
  'fills the disk': [
    'select pg_export_snapshot()',
    'select pg_catalog.pg_export_snapshot() from generate_series(1, 100)',
    "select lo_from_bytea(0, 'x')",
    'select lo_creat(-1)',
    'select lo_create(0)',
    "select pg_logical_emit_message(false, 'x', repeat('x', 100))",
    "select pg_logical_emit_message(true, 'x', ''::bytea)",
    "select pg_create_restore_point('x')",
    'select pg_switch_wal()',
    "select pg_create_physical_replication_slot('x', true)",
    "copy (select 1) to '/tmp/x'",
    'set temp_file_limit = -1',
    "set log_min_messages = 'debug5'",
    "set log_statement = 'all'",
    'set log_min_duration_statement = 0',
    'set log_lock_waits = on',
    'set log_temp_files = 0',
  ],
  'holds up the service': [
    "select pg_notify('x', repeat('y', 7950))",
    'select pg_sleep(1)',
    "select pg_sleep_for('1 s')",
    "select pg_sleep_until('infinity')",
    'select pg_advisory_lock(1, 1)',
    'select pg_try_advisory_lock(1)',
    'select pg_try_advisory_xact_lock(1)',
    'select pg_advisory_xact_lock_shared(1)',
    'select pg_advisory_unlock_all()',
    'select txid_current()',
    'select pg_current_xact_id()',
    `select pg_cancel_backend(${service?.pid})`,
    `select pg_terminate_backend(${service?.pid})`,
    `select pg_blocking_pids(${service?.pid})`,
    'begin; lock table data.sale in access exclusive mode; commit',
    'begin; lock table pg_catalog.pg_class in share mode; commit',
    "do $$ begin raise log 'x'; end $$",
    'select pg_reload_conf()',
    'select pg_stat_reset()',
    "select gin_clean_pending_list('recruitment.prospect_by_search')",
    "select brin_summarize_new_values('program.sale_by_time')",
    "select pg_clear_relation_stats('program', 'sale')",
    "set session_replication_role = 'replica'",
    "set deadlock_timeout = '1ms'",
  ],
  'reads what is not its own': [
    'select * from program.sale',
    'select * from core.data_login',
    'select * from pg_authid',
    'select * from pg_shadow',
    'select * from pg_statistic',
    'select * from pg_stat_activity',
    'select * from pg_stat_get_activity(null)',
    'select * from pg_locks',
    'select * from pg_prepared_xacts',
    'select * from pg_stat_user_tables',
    'select * from pg_stat_all_indexes',
    'select * from pg_statio_user_tables',
    'select * from pg_stat_database',
    "select pg_stat_get_live_tuples('pg_class'::regclass)",
    "select pg_total_relation_size('program.sale')",
    "select pg_relation_size('program.sale')",
    'select pg_database_size(current_database())',
    "select pg_read_file('/etc/passwd')",
    "select pg_ls_dir('.')",
    "copy (select 1) to program 'true'",
    "copy public.x from '/etc/passwd'",
    'select pg_current_wal_lsn()',
    'select pg_last_committed_xact()',
    "select query_to_xml('select 1', true, true, '')",
    "select database_to_xml(true, true, '')",
    "select * from ts_stat('select null::tsvector')",
    'set row_security = off; select * from data.sale',
    `set session authorization ${new URL(rail.url).username}`,
    'set role rail_data',
    'set role rail_api',
    "create subscription mine connection 'host=x' publication x",
    'create server mine foreign data wrapper postgres_fdw',
  ],
};

const refused = /^(42501|42P01|42704|55000|0A000|55P02)$/;

for (const [what, statements] of Object.entries(attacks))
  t.test(`refuses a login that ${what}`, async (t) => {
    for (const statement of statements) {
      const client = await connectAs(login);
      await client.query('set default_transaction_read_only = off; set statement_timeout = 0');
      t.match(await client.codeOf(statement), refused, statement);
      await client.end();
    }
  });

t.test('lets nobody call what is new, until it is looked at', async (t) => {
  await rail.query(sql`create function public.of_an_extension() returns integer language sql volatile as 'select 1'`);
  const found = () =>
    rail.query(sql`select subject, missing from data.audit() a (invariant, organization_id, subject, missing)`);
  t.match(await found(), [{ subject: 'functions', missing: /everybody may call of_an_extension\(\)/ }]);
  const missing = await rail.query<{ statement: string }>(sql`select l.statement from data.lost_protection() l`);
  for (const { statement } of missing) await rail.query(raw(statement));
  t.same(await found(), []);
  t.equal(await (await connectAs(login)).codeOf('select public.of_an_extension()'), '42501');
  await rail.query(sql`drop function public.of_an_extension()`);
});

t.test('leaves what people and their tools need', async (t) => {
  const client = await connectAs(login);
  for (const statement of [
    'select now(), clock_timestamp(), random(), gen_random_uuid(), version(), current_database()',
    'select pg_backend_pid(), pg_is_in_recovery(), pg_postmaster_start_time(), current_setting($$TimeZone$$)',
    "select set_config('TimeZone', 'Europe/Berlin', false)",
    "select pg_get_viewdef('data.sale'::regclass), obj_description('data.sale'::regclass), pg_table_is_visible('data.sale'::regclass)",
    "select has_table_privilege('data.sale', 'select'), pg_get_userbyid(10), format_type(25, null)",
    'select * from pg_settings, pg_timezone_names limit 1',
    'select * from information_schema.tables',
    'select * from information_schema.columns',
    'select * from pg_tables, pg_views, pg_indexes limit 1',
    'select * from pg_prepared_statements, pg_cursors',
    'begin; declare c cursor for select * from data.sale; fetch 10 from c; commit',
    'explain select * from data.sale',
    'deallocate all',
    'discard all',
  ])
    t.equal(await client.codeOf(statement), 'allowed', statement);
});
