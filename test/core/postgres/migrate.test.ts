import { appendFile, cp, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import pg from 'pg';
import t from 'tap';
import { isMigrated, migrate, whyNotReady } from '../../../src/core/postgres/migrate.ts';
import { eventually } from '../../harness.ts';
import { cloneDatabase, databaseUrl, emptyDatabase, serverUrl } from '../../postgres.ts';

const server = await serverUrl(t);

type Work<T> = (url: string, client: pg.Client) => Promise<T>;

const withEmpty = async <T>(work: Work<T>) => withClient(databaseUrl(server, await emptyDatabase(server)), work);
/** A database that all migrations have run in. */
const withMigrated = async <T>(work: Work<T>) => withClient(await cloneDatabase(server), work);

async function withClient<T>(url: string, work: Work<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await work(url, client);
  } finally {
    await client.end();
  }
}

t.test('runs each migration once when replicas start together', (t) =>
  withEmpty(async (url, client) => {
    t.equal(await isMigrated(client), false, 'an empty one lacks migrations');
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
  withMigrated(async (url, client) => {
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

t.test('a process stays ready while the files of its checkout change', (t) =>
  withMigrated(async (_url, client) => {
    const checkout = await mkdtemp(join(tmpdir(), 'rail-checkout-'));
    const own = join(import.meta.dirname, '../../..');
    try {
      for (const name of ['package.json', 'src', 'sql'])
        await cp(join(own, name), join(checkout, name), { recursive: true });
      await symlink(join(own, 'node_modules'), join(checkout, 'node_modules'));
      const file = pathToFileURL(join(checkout, 'src/core/postgres/migrate.ts')).href;
      const process: typeof import('../../../src/core/postgres/migrate.ts') = await import(file);
      t.equal(await process.whyNotReady(client), undefined);
      await appendFile(join(checkout, 'sql/migrations/0001_core.sql'), '-- Edited.\n');
      await writeFile(join(checkout, 'sql/migrations/9001_new.sql'), 'select 1;');
      t.equal(await process.whyNotReady(client), undefined);
      await t.rejects(process.pendingFiles(client), 'a command that migrates reads them as they are');
    } finally {
      await rm(checkout, { recursive: true });
    }
  }),
);

t.test('runs a file of functions again when its text changed', (t) =>
  withMigrated(async (url, client) => {
    await client.query(`update migration.applied set sha256 = 'of an older text' where name = 'live/core/id.sql'`);
    t.same(await migrate(url), ['live/core/id.sql']);
    t.same(await migrate(url), []);
  }),
);

t.test('waits for a lock without keeping others waiting behind it, and says who holds it', (t) =>
  withMigrated(async (url, client) => {
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

const tables = `create schema notes;
create table notes.note (id integer generated always as identity, body text);
insert into notes.note (body) values ('one'), ('one');
`;
const index = `-- Runs outside a transaction: notes are written while the index is built.

do $$
begin
  raise warning 'notes of one body are told apart';
end
$$;

update notes.note set body = body || '-' || id where body = 'one';

create unique index concurrently if not exists note_by_body on notes.note (body)
  where body is not null;
`;

/** The service's files and those of a test. */
async function withFiles<T>(files: Record<string, string>, work: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'rail-migrations-'));
  try {
    await cp(join(import.meta.dirname, '../../../sql'), folder, { recursive: true });
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, 'migrations', name), text);
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

const isValid = async (client: pg.Client): Promise<boolean | undefined> => {
  const { rows } = await client.query(
    `select i.indisvalid as valid from pg_index i where i.indexrelid = to_regclass('notes.note_by_body')`,
  );
  return rows[0]?.valid;
};

t.test('a file that runs outside a transaction keeps nobody waiting, however many replicas start', (t) =>
  withFiles({ '9001_notes.sql': tables, '9002_index.sql': index, '9003_after.sql': 'select 1;' }, (folder) =>
    withMigrated(async (url, client) => {
      await withFiles({ '9001_notes.sql': tables }, (before) => migrate(url, undefined, before));
      const writer = new pg.Client({ connectionString: url });
      await writer.connect();
      await writer.query(`begin; insert into notes.note (body) values ('open')`);
      const told: string[] = [];
      const ran = Promise.all([1, 2, 3].map(() => migrate(url, (line) => told.push(line), folder)));
      await eventually(async () => {
        const { rows } = await client.query(
          `select from pg_stat_activity
            where datname = current_database() and query like 'create unique index concurrently%' and wait_event_type = 'Lock'`,
        );
        return rows.length === 1;
      }, 'the index to wait for the transaction that writes');
      await client.query(`set statement_timeout = '60s'; insert into notes.note (body) values ('meanwhile')`);
      await writer.query('commit');
      await writer.end();
      t.same((await ran).flat(), ['migrations/9002_index.sql', 'migrations/9003_after.sql']);
      t.same(told, ['notes of one body are told apart'], 'a warning is told');
      t.equal(await isValid(client), true);
      t.same(await migrate(url, undefined, folder), []);
    }),
  ),
);

t.test('what an unfinished index left behind is dropped, and the file runs again', (t) =>
  withFiles({ '9001_notes.sql': tables, '9002_index.sql': index }, (folder) =>
    withMigrated(async (url, client) => {
      await withFiles({ '9001_notes.sql': tables }, (before) => migrate(url, undefined, before));
      await t.rejects(client.query('create unique index concurrently note_by_body on notes.note (body)'), {
        code: '23505',
      });
      t.equal(await isValid(client), false);
      t.equal(await isMigrated(client), true, 'of the files of the service');
      t.same(await migrate(url, undefined, folder), ['migrations/9002_index.sql']);
      t.equal(await isValid(client), true);
    }),
  ),
);

const page_index = `-- Runs outside a transaction.

create index concurrently if not exists page_by_body on notes.page (organization_id, body)
  where body is not null;
`;
const pages = `create schema notes;
create table notes.page (organization_id text, id integer, body text) partition by range (id);
create table notes.page_1 partition of notes.page for values from (0) to (10);
create table notes.page_2 partition of notes.page for values from (10) to (20);
alter table notes.page_1 enable row level security;
alter table notes.page_2 enable row level security;
`;

t.test('an index of a partitioned table is built partition by partition, and goes on where it was left', (t) =>
  withFiles({ '9001_pages.sql': pages, '9002_index.sql': page_index }, (folder) =>
    withMigrated(async (url, client) => {
      await withFiles({ '9001_pages.sql': pages }, (before) => migrate(url, undefined, before));
      await client.query('create index page_by_body on only notes.page (organization_id, body) where body is not null');
      await client.query(
        'create index page_1_page_by_body on notes.page_1 (organization_id, body) where body is not null',
      );
      await client.query('alter index notes.page_by_body attach partition notes.page_1_page_by_body');
      t.same(await migrate(url, undefined, folder), ['migrations/9002_index.sql']);
      await client.query('create table notes.page_3 partition of notes.page for values from (20) to (30)');
      const { rows } = await client.query<{ name: string; valid: boolean }>(
        `select i.indexrelid::regclass::text as name, i.indisvalid as valid
        from pg_index i join pg_class c on c.oid = i.indrelid
        where c.relnamespace = 'notes'::regnamespace order by 1`,
      );
      t.match(rows, [
        { name: 'notes.page_1_page_by_body', valid: true },
        { name: 'notes.page_2_page_by_body', valid: true },
        { name: /^notes.page_3_/, valid: true },
        { name: 'notes.page_by_body', valid: true },
      ]);
    }),
  ),
);

t.test('an index that could not be built again is refused', (t) =>
  withFiles(
    { '9001_notes.sql': tables, '9002_index.sql': index.replace('concurrently if not exists', 'concurrently') },
    (folder) =>
      withMigrated(async (url) => {
        await t.rejects(migrate(url, undefined, folder), {
          message: /9002_index\.sql failed: the index note_by_body must be created with 'if not exists'/,
        });
      }),
  ),
);

t.test('refuses to go on when a migration was edited after it ran', (t) =>
  withMigrated(async (url, client) => {
    await client.query(`update migration.applied set sha256 = 'another' where name = 'migrations/0002_webhooks.sql'`);
    await t.rejects(migrate(url), { message: /migrations\/0002_webhooks\.sql was edited after it ran/ });
  }),
);

t.test('refuses a database of before 0.1.0', (t) =>
  withMigrated(async (url, client) => {
    await client.query(`update migration.applied set sha256 = 'another' where name = 'migrations/0001_core.sql'`);
    const message = /made by a version of Rail before 0\.1\.0, which cannot be upgraded/;
    await t.rejects(migrate(url), { message });
    await t.rejects(whyNotReady(client), { message });
  }),
);

t.test('runs files of functions that name each other in whatever order', (t) =>
  withFiles(
    {
      '../live/core/a_view.sql': 'create or replace view core.a_view as select core.b_one() as one',
      '../live/core/b_one.sql': 'create or replace function core.b_one() returns integer language sql return 1',
    },
    (folder) =>
      withMigrated(async (url, client) => {
        await migrate(url, undefined, folder);
        t.match(await client.query('select one from core.a_view'), { rows: [{ one: 1 }] });
        await t.rejects(
          withFiles({ '../live/core/c_none.sql': 'select core.none()' }, (other) => migrate(url, undefined, other)),
          /c_none\.sql failed: function core\.none\(\) does not exist/,
        );
      }),
  ),
);
