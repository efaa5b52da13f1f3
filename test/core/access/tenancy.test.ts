import sql, { raw } from 'sql-template-tag';
import t from 'tap';
import { migrate } from '../../../src/core/postgres/migrate.ts';
import { type Tx, transaction } from '../../../src/core/postgres/transaction.ts';
import { operations } from '../../../src/operations.ts';
import { type Caller, startRail, startReceiver } from '../../harness.ts';
import { resources, World } from '../../samples.ts';

const rail = await startRail();
const receiver = await startReceiver();
const one = await rail.organization();
const other = await rail.organization();
for (const caller of [one, other]) {
  const world = new World(caller, receiver.url, caller, rail);
  for (const plural of ['webhook_endpoints', ...resources]) await world.fixture(plural);
  await caller.post('/v1/programs', acme(), { 'Idempotency-Key': 'kept' });
}
await receiver.until(1);

/** Tables that belong to organizations and that the API's role may not read at all. */
const out_of_reach = new Set(['core.outgoing_mail', 'core.data_login', 'core.organization', 'core.sign_in_link']);

const tables = await rail.query<{ name: string; partition: boolean; protected: boolean }>(sql`
  select n.nspname || '.' || c.relname as name, c.relispartition as partition, c.relrowsecurity as protected
  from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
  join pg_attribute a on a.attrelid = c.oid and not a.attisdropped
    and a.attname = case when c.oid = 'core.organization'::regclass then 'id' else 'organization_id' end
  where c.relkind in ('r', 'p') and n.nspname in ('core', 'webhooks', 'program', 'recruitment')
  order by 1`);
const own_tables = tables.filter(({ partition, name }) => !partition && !out_of_reach.has(name));

/** Work as the API does it: in its role, for one organization. */
const as = <T>({ organization_id }: Caller, work: (tx: Tx) => Promise<T>): Promise<T> =>
  transaction(rail.store, { organization_id, request_id: null }, work);

const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'allowed',
    (error) => error.code as string,
  );

const refused = '42501';

t.test('every table of an organization is protected by row-level security, and so is every partition', async (t) => {
  t.ok(own_tables.length > 15);
  t.ok(tables.some(({ partition }) => partition));
  for (const { name, protected: is_protected } of tables) t.ok(is_protected, name);
});

t.test('a role that may read every table, partition and view reads no row of an organization', async (t) => {
  const [row] = await rail.query<{ name: string }>(sql`select 'reader_of_' || current_database() as name`);
  const reader = (row as { name: string }).name;
  const in_schemas = 'in schema core, webhooks, program, recruitment';
  await rail.query(sql`create role ${raw(reader)}`);
  await rail.query(sql`grant usage on schema core, webhooks, program, recruitment to ${raw(reader)}`);
  await rail.query(sql`grant select on all tables ${raw(in_schemas)} to ${raw(reader)}`);
  await rail.query(sql`grant select on all tables ${raw(in_schemas)} to rail_api`);
  const views = await rail.query<{ name: string }>(sql`
    select format('%I.%I', a.table_schema, a.table_name) as name
    from information_schema.columns a
    join information_schema.views v using (table_schema, table_name)
    where a.column_name = 'organization_id' and a.table_schema in ('core', 'webhooks', 'program', 'recruitment')`);
  const columnOf = (name: string) => raw(name === 'core.organization' ? 'id' : 'organization_id');
  const foreignRows = (tx: Tx, name: string) =>
    tx.all(sql`select from ${raw(name)} where ${columnOf(name)} <> ${one.organization_id} limit 1`);
  const { organization_id } = one;
  for (const { name } of [...tables, ...views]) {
    t.same(await as(one, (tx) => foreignRows(tx, name)), [], `rail_api reads ${name}`);
    const rows = await transaction(rail.store, { organization_id: null, request_id: null }, async (tx) => {
      await tx.all(
        sql`select set_config('rail.organization_id', ${organization_id}, true), set_config('role', ${reader}, true)`,
      );
      return tx.all(sql`select from ${raw(name)} limit 1`);
    });
    t.same(rows, [], `a reader reads ${name}`);
  }
  await rail.query(sql`drop owned by ${raw(reader)}`);
  await rail.query(sql`drop role ${raw(reader)}`);
  await migrate(rail.url);
});

t.test('a partition that is made later is protected', async (t) => {
  await rail.query(
    sql`call core.ensure_weekly_partitions('program.click', 'clk', '2031-01-06T00:00:00Z', '2031-01-06T00:00:00Z')`,
  );
  t.same(
    await rail.query(
      sql`select relrowsecurity as protected from pg_class where oid = 'program.click_20310106'::regclass`,
    ),
    [{ protected: true }],
  );
});

t.test('the API may not read what has no business in a request', async (t) => {
  for (const name of out_of_reach) {
    t.equal(await codeOf(as(one, (tx) => tx.all(sql`select from ${raw(name)}`))), refused, name);
  }
});

t.test('partitions cannot be read past the table that they are parts of', async (t) => {
  const partitions = tables.filter(({ partition }) => partition);
  t.ok(partitions.length > 10);
  for (const { name } of partitions) {
    t.equal(await codeOf(as(one, (tx) => tx.all(sql`select from ${raw(name)}`))), refused, name);
  }
});

t.test('SQL in a transaction of one organization sees none of the rows of another', async (t) => {
  let seen = 0;
  for (const { name } of own_tables) {
    const count = await as(one, (tx) =>
      tx.one<{ own: number; foreign_rows: number }>(sql`
        select count(*) filter (where organization_id = ${one.organization_id}) as own,
          count(*) filter (where organization_id <> ${one.organization_id}) as foreign_rows
        from ${raw(name)}`),
    );
    t.equal(count.foreign_rows, 0, name);
    if (count.own > 0) seen++;
  }
  t.ok(seen > 12, 'and it sees its own');
});

t.test('the rows of the other organization are there all the same', async (t) => {
  for (const name of ['program.partner', 'program.sale', 'webhooks.event', 'core.idempotency_key']) {
    const [row] = await rail.query<{ count: number }>(
      sql`select count(*) as count from ${raw(name)} where organization_id = ${other.organization_id}`,
    );
    t.ok((row?.count as number) > 0, name);
  }
});

/** The error of a table that accepts inserts alone. */
const append_only = 'P0001';

t.test('it can neither write a row for another organization nor move one there', async (t) => {
  let tried = 0;
  for (const { name } of own_tables) {
    const columns = await rail.query<{ name: string }>(sql`
      select a.attname as name from pg_attribute a
      where a.attrelid = ${name}::regclass and a.attnum > 0 and not a.attisdropped and a.attgenerated = '' and a.attidentity <> 'a'
        and has_column_privilege('rail_api', a.attrelid, a.attnum, 'insert')`);
    if (columns.length === 0) continue;
    const list = raw(columns.map((column) => column.name).join(', '));
    const values = raw(
      columns
        .map((column) => (column.name === 'organization_id' ? `'${other.organization_id}'` : column.name))
        .join(', '),
    );
    const [row] = await as(one, (tx) => tx.all(sql`select from ${raw(name)} limit 1`));
    if (!row) continue;
    tried++;
    const copy = sql`insert into ${raw(name)} (${list}) select ${values} from ${raw(name)} limit 1 returning 1 as written`;
    const move = sql`update ${raw(name)} set organization_id = ${other.organization_id} returning 1 as moved`;
    t.equal(await codeOf(as(one, (tx) => tx.all(copy))), refused, `insert into ${name}`);
    t.ok([refused, append_only].includes(await codeOf(as(one, (tx) => tx.all(move)))), `update ${name}`);
  }
  t.ok(tried > 12);
});

t.test('an update or a delete without a condition reaches its own rows alone', async (t) => {
  const rows_of_other = () =>
    rail.query(
      sql`select id, name, updated_at from program.program where organization_id = ${other.organization_id} order by id`,
    );
  const before = await rows_of_other();
  await as(one, (tx) => tx.all(sql`update program.program set name = 'Renamed' returning id`));
  await as(one, (tx) => tx.all(sql`delete from core.idempotency_key returning key`));
  t.same(await rows_of_other(), before);
  const [kept] = await rail.query(
    sql`select from core.idempotency_key where organization_id = ${other.organization_id}`,
  );
  t.ok(kept);
});

t.test("the job queue's tables cannot be read, and its functions not be called", async (t) => {
  const queue = await rail.query<{ name: string }>(
    sql`select relname as name from pg_class where relnamespace = 'graphile_worker'::regnamespace and relkind in ('r', 'v')`,
  );
  t.ok(queue.length > 3);
  for (const { name } of queue) {
    t.equal(await codeOf(as(one, (tx) => tx.all(sql`select from graphile_worker.${raw(name)}`))), refused, name);
  }
  const add = as(one, (tx) => tx.all(sql`select graphile_worker.add_job('webhooks/deliver')`));
  t.equal(await codeOf(add), refused);
});

t.test(
  'of keys it sees no hash, and cannot change whose they are, how often they may ask, or the secret',
  async (t) => {
    const forbidden = [
      sql`select secret_sha256 from core.api_key`,
      sql`select previous_secret_sha256 from core.api_key`,
      sql`update core.api_key set secret_sha256 = '' returning id`,
      sql`update core.api_key set user_id = null returning id`,
      sql`update core.api_key set rate_limit = 1000 returning id`,
      sql`delete from core.api_key returning id`,
      sql`insert into core.api_key (organization_id, id, previous_secret_sha256) values (${one.organization_id}, 'key_x', '') returning id`,
    ];
    for (const statement of forbidden)
      t.equal(await codeOf(as(one, (tx) => tx.all(statement))), refused, statement.text);
  },
);

t.test('a key of another organization keeps its secret', async (t) => {
  const [key] = await rail.query<{ id: string; secret: string }>(sql`
    select id, secret_sha256::text as secret from core.api_key where organization_id = ${other.organization_id} limit 1`);
  await as(one, (tx) => tx.all(sql`select core.rotate_key(${key?.id}, ${Buffer.alloc(32)}, now())`));
  t.same(await rail.query(sql`select id, secret_sha256::text as secret from core.api_key where id = ${key?.id}`), [
    key,
  ]);
});

t.test('without an organization the role sees nothing', async (t) => {
  const rows = await transaction(rail.store, { organization_id: '', request_id: null }, (tx) =>
    tx.all(sql`select from program.program`),
  );
  t.same(rows, []);
});

t.test('the organization of one request does not stay on the connection', async (t) => {
  await Promise.all(Array.from({ length: 40 }, (_, nth) => (nth % 2 === 0 ? one : other).get('/v1/programs')));
  const rows = await rail.query<{ tenant: string | null; role: string }>(
    sql`select nullif(current_setting('rail.organization_id', true), '') as tenant, current_user as role`,
  );
  t.equal(rows[0]?.tenant, null);
  t.not(rows[0]?.role, 'rail_api');
});

t.test('no operation is without a scope', (t) => {
  for (const { name, scope } of operations) t.match(scope, /^[a-z_]+:(read|write|send)$/, name);
  t.end();
});

function acme(): object {
  return { name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' };
}
