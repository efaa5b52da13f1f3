/** Tests a service whose user is no superuser: it prints the statements that it may not run, and a superuser who runs them makes the same login. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import sql from 'sql-template-tag';
import t from 'tap';
import { createOrganization } from '../../src/core/access/organization.ts';
import { openDatabase, run } from '../../src/core/postgres/database.ts';
import { migrate } from '../../src/core/postgres/migrate.ts';
import { transaction } from '../../src/core/postgres/transaction.ts';
import { createLogin, listLogins, revokeLogin } from '../../src/data/login.ts';
import { writeEvents } from '../../src/products.ts';
import { databaseUrl, emptyDatabase, startPostgresIn } from '../postgres.ts';
import { makeRunDirectory, removeRunDirectory } from '../runner/run_directory.ts';
import { connectAs } from './tenant.ts';

// Roles are of a whole server: what this test opens, the audits of all tests on the same one would find.
const directory = await makeRunDirectory();
t.teardown(() => removeRunDirectory(directory));
const server = await startPostgresIn(directory, 'fast', process.env.RAIL_TEST_DATA_DIR);
const name = await emptyDatabase(server);
const superuser = new pg.Client({ connectionString: databaseUrl(server, name) });
await superuser.connect();
t.teardown(() => superuser.end());
const owner = `owner_of_${name}`;
await superuser.query(`create role ${owner} login createrole password 'owner'`);
await superuser.query(`grant rail_api, rail_partner, rail_data, rail_data_reader to ${owner} with admin option`);
await superuser.query(`alter database ${name} owner to ${owner}`);
const url = Object.assign(new URL(databaseUrl(server, name)), { username: owner, password: 'owner' }).href;
await migrate(url);
const database = openDatabase(url, { size: 2, name: 'rail test' });
t.teardown(() => database.end());
const store = { database, writeEvents };

const { id: organization_id } = await createOrganization(database, { name: 'Test', owner_email: 'owner@example.com' });
const terms = {
  ...{ organization_id, name: 'Metabase', personal_data: false, expires_at: null },
  ...{ statement_timeout_ms: 60_000, connection_limit: 5 },
};

t.test('prints the SQL, which makes the login', async (t) => {
  const login = await createLogin(store, url, terms);
  t.not(login.sql.length, 0);
  t.notOk(login.sql.join().includes(new URL(login.url).password), 'the password is not in it');
  await t.rejects(connectAs(login), { code: '28P01' });
  t.match(await listLogins(database, organization_id), [{ user: login.user, state: 'not_created' }]);
  t.same(await run(database, sql`select * from data.audit()`), []);

  for (const statement of login.sql) await superuser.query(statement);
  const client = await connectAs(login);
  t.same(await client.query('select id from data.organization'), [{ id: organization_id }]);
  t.equal(await client.codeOf('select pg_advisory_lock(1)'), '42501');
  t.match(await listLogins(database, organization_id), [{ user: login.user, state: 'active' }]);
  t.same(await run(database, sql`select * from data.audit()`), []);
  t.same(await migrate(url), [], 'nothing is left to do');
});

t.test('makes the next one by itself, and ends its sessions', async (t) => {
  const login = await createLogin(store, url, terms);
  t.same(login.sql, []);
  const client = await connectAs(login);
  t.match(await revokeLogin(store, login.user), { sql: [] });
  t.not(await client.codeOf('select 1'), 'allowed');
});

t.test('goes on serving requests, which need advisory locks', async (t) => {
  const options = { organization_id, request_id: null, idempotency_key: 'key' };
  t.match(await transaction(store, options, async (tx) => tx.stored), { in_flight: false });
});

t.test('prints what drops a login that a superuser made', async (t) => {
  const logins = await listLogins(database, organization_id);
  const { user } = logins.find(({ state }) => state === 'active') as { user: string };
  const revoked = await revokeLogin(store, user);
  t.match(revoked, {
    role: 'open',
    reason: /permission denied/,
    sql: [`alter role "${user}" nologin password null`, `drop owned by "${user}"`, `drop role "${user}"`],
  });
  const state = async () => (await listLogins(database, organization_id)).find((login) => login.user === user)?.state;
  t.equal(await state(), 'not_closed');
  t.match(await run(database, sql`select * from data.audit()`), [{ subject_id: user, detail: /can still log in/ }]);
  for (const statement of revoked?.sql ?? []) await superuser.query(statement);
  t.equal(await state(), 'revoked');
});

t.test('leaves nothing in the log of Postgres, whatever it sets', async (t) => {
  const login = await createLogin(store, url, terms);
  const client = await connectAs(login);
  await client.query('set debug_print_plan = on; set debug_print_parse = on; set trace_sort = on');
  await client.query('select id as read_by_a_login from data.organization order by id');
  t.equal(await client.codeOf('select wrong_of_a_login'), '42703');
  await superuser.query('select wrong_of_the_superuser').catch(() => {});
  const [data_dir] = (await readdir(directory)).filter((entry) => entry.startsWith('fast-'));
  const log = await readFile(join(directory, data_dir as string, 'postgres.log'), 'utf8');
  t.match(log, /wrong_of_the_superuser/);
  t.notMatch(log, /by_a_login|wrong_of_a_login|QUERY PLAN|PlannedStmt/i);
});

t.test('rail migrate takes from everybody what a restored database has given back, as far as it may', async (t) => {
  await createLogin(store, url, terms);
  await superuser.query(`grant temporary on database ${name} to public`);
  t.match(await migrate(url), [/^grant temporary/, `revoke temporary on database ${name} from public`]);
  t.same(await migrate(url), []);

  await superuser.query('grant execute on function pg_sleep(double precision) to public');
  const told: string[] = [];
  t.same(await migrate(url, (line) => told.push(line)), []);
  t.match(
    told.at(-1),
    /functions: everybody may call pg_sleep\(double precision\)\). As a superuser, run: revoke execute .* from public;/,
  );
  await superuser.query('revoke execute on function pg_sleep(double precision) from public');
  t.same(await run(database, sql`select * from data.audit()`), []);
});

t.test('the audit tells what opens schema data', async (t) => {
  const login = await createLogin(store, url, terms);
  const found = async () =>
    (await run<{ subject_id: string }>(database, sql`select * from data.audit()`)).map(({ subject_id }) => subject_id);
  // Privileges without a statement of their own are restored by `rail migrate`.
  const breaks: [subject: string, breaks: string, mends: string][] = [
    ['data.sale', `alter view data.sale owner to ${owner}`, 'alter view data.sale owner to rail_data'],
    [
      'data.sale',
      'alter view data.sale set (security_barrier = false)',
      'alter view data.sale set (security_barrier = true)',
    ],
    ['program.sale', 'drop policy data_of_organization on program.sale', ''],
    ['program.payout_method', 'grant select on program.payout_method to rail_data', ''],
    [
      'program.partner',
      'grant select (mailbox) on program.partner to rail_data',
      'revoke select (mailbox) on program.partner from rail_data',
    ],
    ['data.sale', 'grant select on data.sale to public', 'revoke select on data.sale from public'],
    ['rail_data', 'alter role rail_data login', 'alter role rail_data nologin'],
    [
      login.user,
      `grant select on program.sale to "${login.user}"`,
      `revoke select on program.sale from "${login.user}"`,
    ],
    [login.user, `grant pg_read_all_data to "${login.user}"`, `revoke pg_read_all_data from "${login.user}"`],
    [login.user, `alter role "${login.user}" bypassrls`, `alter role "${login.user}" nobypassrls`],
    [
      'functions',
      'grant execute on function pg_sleep(double precision) to public',
      'revoke execute on function pg_sleep(double precision) from public',
    ],
    [
      'database postgres',
      'grant connect on database postgres to public',
      'revoke connect on database postgres from public',
    ],
    ['language plpgsql', 'grant usage on language plpgsql to public', 'revoke usage on language plpgsql from public'],
    [
      login.user,
      `alter role "${login.user}" reset log_min_messages`,
      `alter role "${login.user}" set log_min_messages = 'fatal'`,
    ],
  ];
  for (const [subject, statement, mends] of breaks) {
    await superuser.query(statement);
    t.ok((await found()).includes(subject), statement);
    if (mends === '') await migrate(url);
    else await superuser.query(mends);
    t.same(await found(), [], `${statement}, mended`);
  }
});
