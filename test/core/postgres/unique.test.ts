import pg from 'pg';
import t from 'tap';
import { declaredUnique, translateError } from '../../../src/core/postgres/errors.ts';
import { sql, startRail } from '../../harness.ts';

const rail = await startRail({ worker: false });

/** Their fields are stored encrypted, in columns of other names, and are the same where their hashes are. */
const encrypted = ['email_address_unique'];

t.test('every unique constraint of a tenant table is declared, and stands for a column of it', async (t) => {
  const constraints = await rail.query<{ name: string; table: string; columns: string[] }>(sql`
    select i.relname as name, c.relname as table,
      array(select a.attname::text from pg_attribute a where a.attrelid = c.oid and a.attnum > 0) as columns
    from pg_index x
    join pg_class i on i.oid = x.indexrelid
    join pg_class c on c.oid = x.indrelid
    where x.indisunique and not x.indisprimary and not c.relispartition
      and c.relnamespace in ('core'::regnamespace, 'program'::regnamespace, 'recruitment'::regnamespace, 'webhooks'::regnamespace)
      and exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'organization_id')
    order by i.relname`);
  t.ok(constraints.length > 15, `${constraints.length} constraints`);
  for (const { name, table, columns } of constraints) {
    const unique = declaredUnique(name);
    t.ok(unique, `${name}: declare it with the option 'unique' of its resource, or with declareUnique()`);
    if (unique?.field && !encrypted.includes(name))
      t.ok(columns.includes(unique.field), `${name} stands for ${unique.field} of ${table}`);
  }
});

t.test('a violated constraint names the field that callers know', async (t) => {
  const problemOf = (constraint: string) =>
    translateError(
      Object.assign(new pg.DatabaseError('', 0, 'error'), { code: '23505', table: 'row_of_it', constraint }),
    );
  t.match(problemOf('customer_external_id_unique'), {
    code: 'resource_already_exists',
    message: 'Another customer with this external_customer_id exists. Use it, or send a different value.',
    details: { param: 'external_customer_id' },
  });
  t.match(problemOf('refund_external_id_unique'), { details: { param: 'external_refund_id' } });
  t.match(problemOf('sale_external_charge_unique'), { details: { param: 'external_charge_id' } });
  t.match(problemOf('row_of_it_pkey'), {
    message: 'Another row of it with these values exists. Use it, or send a different value.',
    details: { param: undefined },
  });
});
