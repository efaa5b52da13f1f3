import pg from 'pg';
import t from 'tap';
import { isMigrated, migrate } from '../../../src/core/postgres/migrate.ts';
import { databaseUrl, emptyDatabase, serverUrl } from '../../postgres.ts';

const server = await serverUrl(t);

async function withDatabase<T>(work: (url: string, client: pg.Client) => Promise<T>): Promise<T> {
  const url = databaseUrl(server, await emptyDatabase(server));
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await work(url, client);
  } finally {
    await client.end();
  }
}

t.test('runs each migration once when replicas start together', (t) =>
  withDatabase(async (url, client) => {
    const ran = await Promise.all([migrate(url), migrate(url), migrate(url)]);
    const { rows } = await client.query<{ name: string }>('select name from migration.applied order by name');
    t.same(
      ran
        .flat()
        .filter((name) => name.endsWith('.sql'))
        .toSorted(),
      rows.map(({ name }) => name),
      'nothing twice, nothing left out',
    );
    t.equal(await isMigrated(client), true);
  }),
);

t.test('knows a database that lacks migrations', (t) =>
  withDatabase(async (url, client) => {
    t.equal(await isMigrated(client), false, 'an empty one');
    await migrate(url);
    await client.query(`delete from migration.applied where name = 'live/core/id.sql'`);
    t.equal(await isMigrated(client), false, 'one that an older version left');
    await migrate(url);
    await client.query(`update migration.applied set sha256 = 'of a newer text' where name = 'live/core/id.sql'`);
    t.equal(
      await isMigrated(client),
      true,
      'functions of another version do not count, so that a rolling deploy stays ready',
    );
  }),
);

t.test('runs a file of functions again when its text changed', (t) =>
  withDatabase(async (url, client) => {
    await migrate(url);
    await client.query(`update migration.applied set sha256 = 'of an older text' where name = 'live/core/id.sql'`);
    t.same(await migrate(url), ['live/core/id.sql']);
    t.same(await migrate(url), []);
  }),
);

t.test('waits for a lock without keeping others waiting behind it, and says who holds it', (t) =>
  withDatabase(async (url, client) => {
    await migrate(url);
    await client.query(`update migration.applied set sha256 = 'of an older text' where name = 'live/core/id.sql'`);
    await client.query(`set application_name = 'report'; begin; lock table migration.applied in share mode`);
    const told: string[] = [];
    const ran = await migrate(url, (line) => {
      told.push(line);
      client.query('commit');
    });
    t.same(ran, ['live/core/id.sql']);
    t.equal(told.length, 1);
    t.match(
      told[0],
      /^The migrations wait for a lock that pid \d+ \(report, idle in transaction\) holds\. Trying again in 1 s\.$/,
    );
  }),
);

t.test('refuses to go on when a migration was edited after it ran', (t) =>
  withDatabase(async (url, client) => {
    await migrate(url);
    await client.query(`update migration.applied set sha256 = 'another' where name = 'migrations/0001_core.sql'`);
    await t.rejects(migrate(url), { message: /migrations\/0001_core\.sql was edited after it ran/ });
  }),
);

t.test('runs as an owner who is no superuser', (t) =>
  withDatabase(async (url, client) => {
    const name = new URL(url).pathname.slice(1);
    await client.query(`create role owner_of_${name} login createrole password 'owner'`);
    // Members of the role that another database of this server made may hand it on; here that is the superuser's to do.
    await client.query(`grant rail_api, rail_data, rail_data_reader to owner_of_${name} with admin option`);
    await client.query(`alter database ${name} owner to owner_of_${name}`);
    const owner = Object.assign(new URL(url), { username: `owner_of_${name}`, password: 'owner' }).href;
    t.ok((await migrate(owner)).includes('migrations/0001_core.sql'));
    const session = new pg.Client({ connectionString: owner });
    await session.connect();
    await session.query('begin');
    await session.query(`select core.open_request('org_none', null)`);
    t.equal((await session.query('select current_user as role')).rows[0].role, 'rail_api');
    await session.end();
  }),
);
