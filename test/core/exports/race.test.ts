import pg from 'pg';
import t from 'tap';
import { newId } from '../../../src/core/values/id.ts';
import { type Json, startRail } from '../../harness.ts';

const rail = await startRail({ worker: false, audit: false });
const merchant = await rail.organization();
const { organization_id } = merchant;
const { id: program_id } = await merchant.post('/v1/programs', {
  ...{ name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' },
});
const writers = 16;
const transactions = 40;

/** A warehouse's copy of the tags, kept by the change feed alone. */
class Replica {
  readonly rows = new Map<string, Json>();
  position: string | undefined;

  async poll(): Promise<void> {
    const since = this.position === undefined ? '' : `?since=${this.position}`;
    const { data } = await merchant.get(`/v1/exports/tags${since}`);
    const { position } = data.pop();
    for (const row of data) {
      if (row.deleted) this.rows.delete(row.id);
      else this.rows.set(row.id, row);
    }
    this.position = position;
  }
}

async function connected<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: rail.url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

const insert = (client: pg.Client, id: string) =>
  client.query(
    `insert into program.tag (organization_id, id, program_id, name, color) values ($1, $2, $3, $2, '#336699')`,
    [organization_id, id, program_id],
  );
const change = (client: pg.Client, id: string) =>
  client.query(`update program.tag set name = $2 || ' ' || gen_random_uuid() where organization_id = $1 and id = $2`, [
    ...[organization_id, id],
  ]);
const remove = (client: pg.Client, id: string) =>
  client.query(
    `with deleted as (delete from program.tag where organization_id = $1 and id = $2 returning id, program_id)
    insert into core.deleted_object (organization_id, id, parent_id, object, deleted_at)
    select $1, id, program_id, 'tag', now() from deleted`,
    [organization_id, id],
  );

/** Transactions of some statements on rows of its own and on those of others; every sixth is rolled back, also in part. */
async function write(client: pg.Client, nth: number, shared: string[]): Promise<void> {
  const own: string[] = [];
  for (let turn = 0; turn < transactions; turn++) {
    await client.query('begin');
    const id = newId('tag');
    await insert(client, id);
    if (turn % 3 === 0) await change(client, shared[(nth * 7 + turn) % shared.length] as string);
    await client.query('savepoint part');
    if (own.length > 0) await change(client, own[turn % own.length] as string);
    if (turn % 5 === 0) await client.query('rollback to part');
    const oldest = turn % 4 === 0 ? own.shift() : undefined;
    if (oldest !== undefined) await remove(client, oldest);
    const is_kept = turn % 6 !== 5;
    await client.query(is_kept ? 'commit' : 'rollback');
    if (is_kept) own.push(id);
    else if (oldest !== undefined) own.unshift(oldest);
  }
}

t.test('a copy that polls beside 16 writers has missed nothing, also of transactions that commit late', async (t) => {
  const shared = Array.from({ length: 5 }, () => newId('tag'));
  await connected(async (client) => {
    for (const id of shared) await insert(client, id);
  });
  const late = await Promise.all(
    [0, 1].map(async (nth) => {
      const client = new pg.Client({ connectionString: rail.url });
      await client.connect();
      await client.query('begin');
      await insert(client, `tag_late_${nth}`);
      return client;
    }),
  );
  const replica = new Replica();
  await replica.poll();
  let is_writing = true;
  const work = Promise.all(
    Array.from({ length: writers }, (_, nth) => connected((client) => write(client, nth, shared))),
  ).finally(() => {
    is_writing = false;
  });
  for (let polls = 1; is_writing || polls <= 3; polls++) {
    await replica.poll();
    if (polls === 3) await late[0]?.query('commit');
  }
  await work;
  await replica.poll();
  t.notOk(replica.rows.has('tag_late_1'));
  await late[1]?.query('commit');
  await replica.poll();
  for (const client of late) await client.end();

  const { data } = await merchant.get('/v1/exports/tags');
  data.pop();
  t.ok(replica.rows.has('tag_late_0') && replica.rows.has('tag_late_1'));
  const sorted = (rows: Iterable<Json>) => [...rows].sort((one, other) => (one.id < other.id ? -1 : 1));
  t.equal(replica.rows.size, data.length);
  t.same(sorted(replica.rows.values()), sorted(data), 'the copy is the table');
});
