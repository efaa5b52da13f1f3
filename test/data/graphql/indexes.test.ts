/** Rows are filtered and ordered by columns that an index of their table leads to: behind the organization, and mostly behind the program. */
import { raw } from 'sql-template-tag';
import t from 'tap';
import { tags } from '../../../src/data/graphql/schema/tags.ts';
import { sql, startRail } from '../../harness.ts';

const rail = await startRail({ worker: false });

interface Index {
  view: string;
  method: string;
  keys: string[];
}

/** The indexes of the tables that each view reads. */
const indexes = await rail.query<Index>(sql`
  select distinct v.relname::text as view, m.amname::text as method, index.keys
  from pg_class v
  join pg_rewrite r on r.ev_class = v.oid
  join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid and d.refclassid = 'pg_class'::regclass
  join pg_index i on i.indrelid = d.refobjid
  join pg_class c on c.oid = i.indexrelid
  join pg_am m on m.oid = c.relam
  cross join lateral (
    select array(select replace(pg_get_indexdef(i.indexrelid, n::integer, true), '"', '') from generate_series(1, i.indnkeyatts) as n) as keys
  ) as index
  where v.relnamespace = 'data'::regnamespace and v.relkind = 'v'`);

const leading = ['organization_id', 'program_id'];

function leadsTo({ method, keys }: Index, column: string): boolean {
  if (method === 'brin') return keys.includes(column);
  if (leading.includes(column)) return keys.slice(0, 2).includes(column);
  const [next = ''] = keys.filter((key) => !leading.includes(key));
  return next === column || (/^[(\s]*(COALESCE\(|CASE)/.test(next) && next.includes(column));
}

/** Rollups are computed from the rows that their conditions leave, and are left out here. */
const is_rollup = (view: string): boolean => tags[view]?.list === view;

for (const [view, { equals, between = [], orders = [] }] of Object.entries(tags)) {
  if (is_rollup(view)) continue;
  const own = indexes.filter((index) => index.view === view);
  t.test(`finds and orders ${view} by indexes`, async (t) => {
    for (const column of [...equals, ...between])
      t.ok(
        own.some((index) => leadsTo(index, column)),
        column,
      );
    for (const column of orders)
      t.ok(
        own.some((index) => index.method === 'btree' && leadsTo(index, column)),
        `order by ${column}`,
      );
  });
}

t.test('refers to other records by columns that an index leads to', async (t) => {
  for (const [view, { refers = [] }] of Object.entries(tags)) {
    if (is_rollup(view)) continue;
    const own = indexes.filter((index) => index.view === view);
    for (const { by, back } of refers.filter(({ back }) => back !== undefined))
      t.ok(
        own.some((index) => leadsTo(index, by)),
        `${view}.${by}, for ${back}`,
      );
  }
});

t.test('computes the newest days of a rollup without the others', async (t) => {
  for (const [view, { key }] of Object.entries(tags).filter(
    ([
      ,
      {
        key: [first],
      },
    ]) => first === 'day',
  )) {
    const [{ definition } = { definition: '' }] = await rail.query<{ definition: string }>(
      sql`select rtrim(pg_get_viewdef(${`data.${view}`}::regclass), '; ') as definition`,
    );
    const order = key.map((column) => `x.${column} desc`).join(', ');
    const plan = await rail.query(raw(`explain select * from (${definition}) as x order by ${order} limit 20`));
    t.match(JSON.stringify(plan), /Incremental Sort.*Presorted Key: d\w*\.day/, view);
  }
});
