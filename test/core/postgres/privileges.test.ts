import pg from 'pg';
import t, { type Test } from 'tap';
import { buildApi } from '../../../src/api.ts';
import { createKey } from '../../../src/core/access/api_key.ts';
import { createOrganization } from '../../../src/core/access/organization.ts';
import { openDatabase } from '../../../src/core/postgres/database.ts';
import { migrate } from '../../../src/core/postgres/migrate.ts';
import { missingPrivileges } from '../../../src/core/postgres/privileges.ts';
import { writeEvents } from '../../../src/products.ts';
import { closeApi, encryption_key, log, patient_api, patient_database, services } from '../../harness.ts';
import { cloneDatabase, databaseUrl, emptyDatabase, startPostgresIn } from '../../postgres.ts';
import { spawnRail } from '../../rail_process.ts';
import { makeRunDirectory, removeRunDirectory } from '../../runner/run_directory.ts';

// A server of its own: roles belong to the whole server.
const server = await startServer(t);

/** Nothing but the template has the migrations and their privileges, so that what is dropped there is owned nowhere else. */
async function startServer(t: { teardown(work: () => unknown): void }): Promise<string> {
  const directory = await makeRunDirectory();
  t.teardown(() => removeRunDirectory(directory));
  const url = await startPostgresIn(directory, 'fast', process.env.RAIL_TEST_DATA_DIR);
  if (process.env.RAIL_TEST_DATA_DIR === undefined) return url;
  const client = new pg.Client({ connectionString: databaseUrl(url, 'postgres') });
  await client.connect();
  await client.query('drop database rail');
  await client.query('create database rail');
  await client.end();
  return url;
}

async function connect(t: Test, url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  t.teardown(() => client.end());
  return client;
}

/** Everything that names the role, and which tables are protected. */
async function privilegesIn(client: pg.Client): Promise<object[]> {
  const { rows } = await client.query(`
    with own (oid) as (select oid from pg_namespace where nspname in ('core', 'webhooks', 'program', 'recruitment'))
    select 'schema' as kind, n.nspname::text as name, (select array_agg(x::text order by x::text) from unnest(n.nspacl) as x where x::text not like 'rail=%') as acl, null as rest
    from pg_namespace n where n.oid in (select oid from own)
    union all
    select 'relation', c.oid::regclass::text, (select array_agg(x::text order by x::text) from unnest(c.relacl) as x where x::text not like 'rail=%'), c.relrowsecurity::text
    from pg_class c where c.relnamespace in (select oid from own) and c.relkind <> 'i'
    union all
    select 'column', a.attrelid::regclass || '.' || a.attname, (select array_agg(x::text order by x::text) from unnest(a.attacl) as x where x::text not like 'rail=%'), null
    from pg_attribute a join pg_class c on c.oid = a.attrelid
    where c.relnamespace in (select oid from own) and a.attacl is not null
    union all
    select 'function', p.oid::regprocedure::text, (select array_agg(x::text order by x::text) from unnest(p.proacl) as x where x::text not like 'rail=%'), p.prosecdef::text
    from pg_proc p where p.pronamespace in (select oid from own)
    union all
    select 'policy', p.tablename || '.' || p.policyname, p.roles::text[], p.qual || p.with_check
    from pg_policies p where p.schemaname in ('core', 'webhooks', 'program', 'recruitment')
    order by 1, 2`);
  return rows;
}

async function openApi(t: Test, url: string) {
  const database = openDatabase(url, { ...patient_database, size: 3, name: 'rail test' });
  const app = await buildApi({ store: { database, writeEvents }, services, log, limits: patient_api });
  t.teardown(async () => {
    await closeApi(app);
    await database.end();
  });
  const { id } = await createOrganization(database, { name: 'Test', owner_email: 'owner@example.com' });
  const { secret } = await createKey(database, {
    ...{ organization_id: id, name: 'test', mode: 'live', scopes: ['*'], rate_limit: 1_000 },
  });
  return {
    ready: () => app.inject('/readyz'),
    list: () => app.inject({ url: '/v1/programs', headers: { authorization: `Bearer ${secret}` } }),
  };
}

const as = (url: string, user: string): string => Object.assign(new URL(url), { username: user, password: user }).href;

t.test('sets everything right in a database that was restored without the role, and is not ready before', async (t) => {
  const template = databaseUrl(server, 'rail_template');
  const client = await connect(t, template);
  const api = await openApi(t, template);
  const before = await privilegesIn(client);
  t.equal((await api.list()).statusCode, 200);

  await client.query('drop owned by rail_api');
  await client.query('drop role rail_api');
  const answer = await api.ready();
  t.equal(answer.statusCode, 503);
  t.match(
    answer.json().error.message,
    /missing privileges \(rail_api: .* cannot become the role.*\)\. Run 'npx --no rail migrate'\./,
  );
  t.not((await migrate(template)).length, 0);
  t.same(await privilegesIn(client), before);
  t.same(await migrate(template), [], 'and finds nothing to do after that');
  t.equal((await api.ready()).statusCode, 200);
  t.equal((await api.list()).statusCode, 200);

  // As with pg_restore --no-privileges --no-owner, where the role was there.
  await client.query('drop owned by rail_api');
  await client.query('grant execute on function core.enqueue(json, boolean) to public');
  await client.query('grant select on core.user_account, core.api_key to rail_api');
  await client.query('alter table program.click_default disable row level security');
  t.equal((await api.ready()).statusCode, 503);
  await migrate(template);
  t.same(await privilegesIn(client), before);
  await client.end();
});

t.test('is not ready without any one of the privileges', async (t) => {
  const url = await cloneDatabase(server);
  const client = await connect(t, url);
  const api = await openApi(t, url);
  for (const statement of [
    'revoke usage on schema program from rail_api',
    'revoke update on program.sale from rail_api',
    'revoke usage on sequence webhooks.event_position from rail_api',
    'revoke execute on function core.enqueue(json, boolean) from rail_api',
    'revoke select (signature_required) on core.api_key from rail_api',
    'drop policy own_organization on program.partner',
  ]) {
    await client.query(statement);
    t.equal((await api.ready()).statusCode, 503, statement);
    t.equal((await migrate(url)).length, 1, statement);
    t.equal((await api.ready()).statusCode, 200, statement);
  }
});

t.test('sets right what opens more than it should', async (t) => {
  const url = await cloneDatabase(server);
  const client = await connect(t, url);
  const before = await privilegesIn(client);
  await client.query('create role outsider');
  for (const statement of [
    'alter policy own_organization on program.partner using (true) with check (true)',
    'alter policy own_organization on program.sale with check (true)',
    'alter policy own_organization on program.link to public',
    'alter policy data_of_organization on program.sale using (true)',
    'create policy open_all on program.sale to rail_api using (true) with check (true)',
    'create policy open_all on program.sale for select using (true)',
    `do $$ begin
      execute format('alter policy %I on program.payout using (true)', (
        select p.polname from pg_policy p where p.polrelid = 'program.payout'::regclass and p.polname like 'partner\\_select%'
      ));
    end $$`,
    'grant create on schema core to rail_api',
    'grant create on schema program to public',
    'alter role rail_api superuser createrole',
    'alter role rail_partner bypassrls',
    'alter role rail_data login',
    'grant outsider to rail_api',
  ]) {
    await client.query(statement);
    t.match(await missingPrivileges(client), [{ missing: String }], statement);
    t.equal((await migrate(url)).length, 1, statement);
  }
  t.same(await privilegesIn(client), before);
});

t.test('a worker waits for the privileges that its jobs need', async (t) => {
  const url = await cloneDatabase(server);
  await (await connect(t, url)).query('drop owned by rail_api');
  const worker = spawnRail(t, ['worker'], {
    DATABASE_URL: url,
    RAIL_ENCRYPTION_KEY: encryption_key.toString('base64'),
  });
  await worker.until(/missing privileges .* The worker starts after that/);
  await migrate(url);
  await worker.until(/worker ready/);
  await worker.stop();
});

t.test('lets requests go on while a table that it protects is in use', async (t) => {
  const url = await cloneDatabase(server);
  const [client, busy] = [await connect(t, url), await connect(t, url)];
  await client.query('alter table program.click_default disable row level security');
  await busy.query('begin');
  await busy.query('select from program.click_default');
  const migrated = migrate(url);
  await client.query(`do $$ begin
    while not exists (select from pg_locks where not granted and relation = 'program.click_default'::regclass) loop perform pg_sleep(0.01); end loop;
    while exists (select from pg_locks where not granted and relation = 'program.click_default'::regclass) loop perform pg_sleep(0.01); end loop;
  end $$`);
  await client.query('select from program.click_default');
  await busy.query('commit');
  t.same(await migrated, ['alter table program.click_default enable row level security']);
});

t.test("says which statement to run, and as whom, where the role is not the owner's to grant", async (t) => {
  const superuser = await connect(t, server);
  await superuser.query(`create role second login createrole password 'second'`);
  const name = await emptyDatabase(server);
  await superuser.query(`alter database ${name} owner to second`);
  const url = as(databaseUrl(server, name), 'second');
  const statement = 'grant rail_api, rail_partner, rail_data, rail_data_reader to second with admin option;';
  await t.rejects(migrate(url), {
    message: new RegExp(
      `^The database user second may not become the roles rail_api, rail_partner, rail_data, rail_data_reader, which another user of this server created\\. As a superuser, or as a role with ADMIN OPTION on rail_api, rail_partner, rail_data, rail_data_reader, run: ${statement} `,
    ),
  });
  await superuser.query(statement);
  t.ok((await migrate(url)).includes('migrations/0001_core.sql'));
  const api = await openApi(t, url);
  t.equal((await api.list()).statusCode, 200);
  const session = await connect(t, url);
  await session.query('begin');
  await session.query(`select core.open_request('org_none', null)`);
  t.match(await session.query('select current_user as role'), { rows: [{ role: 'rail_api' }] });
  await session.query('rollback');

  await superuser.query('revoke admin option for rail_api from second cascade');
  const inside = await connect(t, databaseUrl(server, name));
  await inside.query('drop owned by rail_api');
  t.equal((await api.ready()).statusCode, 503);
  t.not((await migrate(url)).length, 0, 'a mere member sets it right');
  t.equal((await api.list()).statusCode, 200);

  await inside.query(`create table program.of_another (organization_id text not null)`);
  await t.rejects(migrate(url), {
    message:
      /program\.of_another: it belongs to rail, and second is subject to its row-level security.* as the owner or a superuser run: alter table program\.of_another owner to second;/,
  });
});

t.test('says how to make the role where the owner may not', async (t) => {
  const other = await startServer(t);
  const superuser = await connect(t, databaseUrl(other, 'rail_template'));
  await superuser.query('drop owned by rail_api, rail_partner, rail_data, rail_data_reader cascade');
  await superuser.query('drop role rail_api, rail_partner, rail_data, rail_data_reader');
  await superuser.query(`create role plain login password 'plain'`);
  const name = await emptyDatabase(other);
  await superuser.query(`alter database ${name} owner to plain`);
  const url = as(databaseUrl(other, name), 'plain');
  await t.rejects(migrate(url), {
    message: /^The database user plain may not create the role rail_api: .* run: alter role plain createrole; Then run/,
  });
  await superuser.query('alter role plain createrole');
  t.ok((await migrate(url)).includes('migrations/0001_core.sql'));

  // On a server where another database has made all of the roles, one statement is named too.
  await superuser.query(`create role simple login password 'simple'`);
  const second = await emptyDatabase(other);
  await superuser.query(`alter database ${second} owner to simple`);
  const second_url = as(databaseUrl(other, second), 'simple');
  const granted = 'grant rail_api, rail_partner, rail_data, rail_data_reader to simple with admin option;';
  await t.rejects(migrate(second_url), {
    message: new RegExp(`run: alter role simple createrole; ${granted} Then run`),
  });
  // Then it may do what the role `second` may above.
});

t.test('says how to restore a database that another user has restored', async (t) => {
  const url = await cloneDatabase(server);
  const superuser = await connect(t, server);
  await superuser.query(`create role third login createrole password 'third'`);
  await superuser.query(`alter database ${new URL(url).pathname.slice(1)} owner to third`);
  await t.rejects(migrate(as(url, 'third')), {
    message:
      /belongs to rail, and the database user is third\. Restore the backup as third, with pg_restore --no-owner,/,
  });
});
