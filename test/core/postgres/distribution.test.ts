/** The tables of an organization could be distributed by it: /docs/operations names all that stands in the way. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { sql, startRail } from '../../harness.ts';

const rail = await startRail({ worker: false });
const guide =
  readFileSync(join(import.meta.dirname, '../../../src/guides/operations.md'), 'utf8').split(
    '## Past one Postgres',
  )[1] ?? '';

const of_organizations = sql`
  select c.oid, n.nspname || '.' || c.relname as name, a.attnum
  from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
  join pg_attribute a on a.attrelid = c.oid and a.attname = 'organization_id'
  where c.relkind in ('r', 'p') and not c.relispartition and n.nspname in ('core', 'program', 'recruitment', 'webhooks')`;

const namesOf = async (statement: ReturnType<typeof sql>): Promise<string[]> =>
  (await rail.query<{ name: string }>(statement)).map(({ name }) => name);

t.test('every foreign key between tables of organizations holds the organization', async (t) => {
  const without = await namesOf(sql`
    with ours as (${of_organizations})
    select o.name || ': ' || k.conname as name
    from ours o
    join pg_constraint k on k.conrelid = o.oid and k.contype = 'f' and k.confrelid in (select oid from ours) and o.attnum <> all(k.conkey)`);
  t.strictSame(without, []);
  t.ok((await namesOf(of_organizations)).length > 90);
});

t.test(
  'the guide names each unique key without the organization, each sequence, and how many triggers there are',
  async (t) => {
    const unique = await namesOf(sql`
    with ours as (${of_organizations})
    select distinct o.name from ours o join pg_index i on i.indrelid = o.oid and i.indisunique and o.attnum <> all(i.indkey::int2[])`);
    const sequences = await namesOf(sql`
    select n.nspname || '.' || c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relkind = 'S' and n.nspname in ('program', 'recruitment', 'webhooks')`);
    t.ok(unique.length > 5 && sequences.length > 3);
    for (const name of [...unique, ...sequences]) t.ok(guide.includes(`\`${name}\``), name);
    const triggered = await namesOf(sql`
    select distinct t.tgrelid::regclass::text as name
    from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_namespace n on n.oid = c.relnamespace
    where not t.tgisinternal and not c.relispartition and n.nspname in ('core', 'program', 'recruitment', 'webhooks', 'graphile_worker')`);
    t.ok(guide.includes(`| ${triggered.length} tables:`), `${triggered.length} tables have triggers`);
  },
);
