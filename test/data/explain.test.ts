/** Checks that the estimates and counts of Postgres do not show a login which values other organizations have. */
import pg from 'pg';
import t from 'tap';
import { sql, startRail, startReceiver } from '../harness.ts';
import { connectAs, fillOrganization, newLogin, viewsOf } from './tenant.ts';

// Rows are copied past the triggers, so that reports and tallies do not know them.
const rail = await startRail({ audit: false });
const receiver = await startReceiver();
const other = await fillOrganization(rail, receiver.url);
/** The reader: an organization that has none of the values. */
const reader = await rail.organization();
await rail.query(sql`update core.organization set name = 'Reader' where id = ${reader.organization_id}`);
const psql = await connectAs(await newLogin(rail, reader));
const psql_of_other = await connectAs(await newLogin(rail, other.caller));

const loader = new pg.Client({ connectionString: rail.url });
await loader.connect();
t.teardown(() => loader.end());
await loader.query('set session_replication_role = replica');

/** Makes values of the other organization frequent, where an index does not keep them unique. */
async function makeFrequent(): Promise<void> {
  const { rows } = await loader.query<{ name: string; columns: string[]; unique: string[] }>(`
    select t.id::regclass::text as name, json_agg(a.attname) as columns,
      json_agg(a.attname) filter (
        where a.attname !~ '^(organization|program)_id$' and a.atttypid = 'text'::regtype
          and exists (select from pg_index i where i.indrelid = t.id and i.indisunique and a.attnum = any (i.indkey))
          and not exists (select from pg_constraint k where k.conrelid = t.id and k.contype = 'c' and k.conkey = array[a.attnum])
      ) as unique
    from (select distinct c.table_id as id from data.columns_read() c where c.table_id <> 'core.organization'::regclass) t
    join pg_attribute a on a.attrelid = t.id and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
    group by t.id`);
  for (const { name, columns, unique } of rows) {
    if (columns.includes('id'))
      await loader.query(`
        insert into ${name} (${columns}) overriding system value
        select ${columns.map((column) => `r.${column}`)}
        from ${name} s
        cross join generate_series(1, 40) as n
        cross join jsonb_populate_record(s, jsonb_build_object(${unique.map((column) => `'${column}', s.${column} || n`)})) as r
        where s.organization_id = '${other.caller.organization_id}'
        on conflict do nothing`);
    await loader.query(`analyze ${name}`);
  }
}

/** Columns whose values many know, or nobody can guess: these tell how frequent a value is in all organizations. */
const told = await rail.query<{ name: string }>(sql`
  select distinct a.attname::text as name
  from data.columns_read() c
  join pg_attribute a on a.attrelid = c.table_id and a.attname = c.column_name
  where not exists (
    select from data.columns_without_statistics() w where w.relation_id = c.table_id and w.column_name = c.column_name
  )`);
const tells = new Set(told.map(({ name }) => name));

/** The plans of a condition, with what they count, as a login sees them. */
async function explained(view: string, column: string, type: string, value: string): Promise<string[]> {
  const literal = `${pg.escapeLiteral(value)}::${type}`;
  const plans: string[] = [];
  const explain = 'explain (analyze, timing off, summary off, buffers off)';
  // The share of rows by another order is what is left of that by this one.
  for (const operator of ['=', '<'])
    try {
      const rows = await psql.query(`${explain} select * from ${view} where "${column}" ${operator} ${literal}`);
      plans.push(
        ...rows
          .map((row) => `${operator} ${row['QUERY PLAN']}`.replaceAll(pg.escapeLiteral(value), "'VALUE'"))
          // The memory of sorts and hashes differs from run to run.
          .filter((line) => !/Memory|Memoize|Cache|Buckets|Storage/.test(line)),
      );
    } catch (error) {
      // json has no order, and a type may have no such operator.
      plans.push(`${operator} ${(error as { code?: string }).code}`);
    }
  return plans;
}

/** A value of the same length that nobody has. */
const unknown = (value: string): string =>
  /^-?\d+$/.test(value) ? `${BigInt(value) + 1n}` : `${value.slice(0, -1)}${value.endsWith('~') ? '!' : '~'}`;

/** The row of a view: the same for everybody. */
tells.add('object');

t.test('tells the same of a value that another organization has and of one that nobody has', async (t) => {
  const sale = { program_id: other.program_id, amount_minor: 129_900, currency: 'USD', product_id: 'secret-project' };
  await other.caller.post('/v1/sales', { ...sale, external_charge_id: 'ch_secret' });
  await makeFrequent();
  const columns = await rail.query<{ view: string; column: string; type: string }>(sql`
    select format('data.%I', v.relname) as view, a.attname::text as column, format_type(a.atttypid, null) as type
    from pg_class v
    join pg_attribute a on a.attrelid = v.oid and a.attnum > 0
    where v.relnamespace = 'data'::regnamespace and v.relkind = 'v' and a.atttypid in ('text'::regtype, 'bigint'::regtype)
    order by 1, a.attnum`);
  t.equal(new Set(columns.map(({ view }) => view)).size, (await viewsOf(rail)).length);
  const compared: string[] = [];
  for (const { view, column, type } of columns.filter((one) => !tells.has(one.column))) {
    const [frequent] = await psql_of_other.query(`
      select "${column}"::text as value from ${view}
      where "${column}" is not null and "${column}"::text not in ('0', '')
      group by 1 order by count(*) desc, 1 limit 1`);
    if (!frequent) continue;
    compared.push(`${view}.${column}`);
    const { value } = frequent as { value: string };
    const [of_other, of_nobody] = [
      await explained(view, column, type, value),
      await explained(view, column, type, unknown(value)),
    ];
    t.same(of_other, of_nobody, `${view}.${column} of ${value}`);
  }
  for (const column of ['sale.product_id', 'sale.amount_minor', 'program.subdomain', 'link.short_slug', 'coupon.code'])
    t.ok(compared.includes(`data.${column}`), column);
});

t.test('has samples of no other values', async (t) => {
  t.same(
    await rail.query(sql`
      select distinct s.tablename, s.attname
      from pg_stats s
      join data.columns_without_statistics() c
        on c.relation_id = format('%I.%I', s.schemaname, s.tablename)::regclass and c.column_name = s.attname`),
    [],
  );
});

t.test('leads by no id to the rows of all organizations, which it would count', async (t) => {
  t.same(
    await rail.query(sql`
      select i.indexrelid::regclass::text as index
      from pg_index i
      join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0] and a.atttypid = 'text'::regtype
      join data.columns_read() c on c.table_id = a.attrelid and c.column_name = a.attname
      where a.attname <> 'organization_id' and i.indrelid <> 'core.organization'::regclass
        -- A view shows these as expressions.
        and not exists (
          select from data.columns_without_statistics() w where w.relation_id = c.table_id and w.column_name = c.column_name
        )
        -- No condition on a view implies that of an index on a column that no view reads.
        and not exists (
          select from pg_depend d
          join pg_attribute p on p.attrelid = d.refobjid and p.attnum = d.refobjsubid
          where d.classid = 'pg_class'::regclass and d.objid = i.indexrelid and d.refobjid = i.indrelid
            and (p.attrelid, p.attname) not in (select r.table_id, r.column_name from data.columns_read() r)
        )`),
    [],
  );
});
