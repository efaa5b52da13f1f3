import sql, { raw } from 'sql-template-tag';
import t from 'tap';
import { transaction } from '../../../src/core/postgres/transaction.ts';
import { startRail, startReceiver } from '../../harness.ts';
import { resources, World } from '../../samples.ts';

const rail = await startRail();
const receiver = await startReceiver();
const merchant = await rail.organization();
const world = new World(merchant, receiver.url, merchant, rail);
for (const plural of ['webhook_endpoints', ...resources]) await world.fixture(plural);

const tables = await rail.query<{ name: string; has_partner: boolean; is_shared: boolean }>(sql`
  select r.name, exists (select from pg_attribute a where a.attrelid = r.id and a.attname = 'partner_id' and not a.attisdropped) as has_partner,
    r.name in (select core.shared_with_partners()) as is_shared
  from core.tenant_relations() r
  where r.kind <> 'v' and not r.is_partition
  order by 1`);
/** The tables that even the role of the API may not read, or not as a whole. */
const out_of_reach = new Set([
  'core.outgoing_mail',
  'core.data_login',
  'core.organization',
  'core.sign_in_link',
  'core.api_key',
  'core.user_account',
  'core.session',
]);

/** Whose a row is, of tables that belong to something of a partner's: as a partner's request sees it, so that a stranger's is null. */
const owners: Record<string, string> = {
  'program.payout_commission': 'select p.partner_id from program.payout p where p.id = t.payout_id',
  'program.refund': 'select s.partner_id from program.sale s where s.id = t.sale_id',
  'program.tally': 'select o.partner_id from owner_of_subject o where o.id = t.subject_id',
  'program.tally_note': 'select o.partner_id from owner_of_subject o where o.id = t.subject_id',
  'webhooks.delivery': 'select e.partner_id from webhooks.endpoint e where e.id = t.endpoint_id',
  'webhooks.attempt':
    'select e.partner_id from webhooks.delivery d join webhooks.endpoint e on e.id = d.endpoint_id where d.id = t.delivery_id',
};
const subjects = `with owner_of_subject (id, partner_id) as (
  select id, id from program.partner
  union all
  select id, partner_id from program.link
  union all
  select id, partner_id from program.coupon
)`;

const partner_ids = (
  await rail.query<{ id: string }>(
    sql`select id from program.partner where organization_id = ${merchant.organization_id}`,
  )
).map(({ id }) => id);

const as = <T>(partner_id: string, work: Parameters<typeof transaction<T>>[2]): Promise<T> =>
  transaction(rail.store, { organization_id: merchant.organization_id, partner_id, request_id: null }, work);

t.test(
  'a partner’s request sees the rows of that partner, what all partners share, and no other row of any table',
  async (t) => {
    t.ok(partner_ids.length > 1 && tables.length > 60);
    const seen = new Map<string, number>();
    for (const partner_id of [...partner_ids, 'part_of_nobody']) {
      await as(partner_id, async (tx) => {
        for (const { name, has_partner, is_shared } of tables) {
          if (out_of_reach.has(name) || is_shared) continue;
          const rows = await tx.all<{ row: Record<string, unknown>; owner: string | null }>(
            sql`${raw(subjects)} select to_jsonb(t) as row, ${raw(owners[name] ? `(${owners[name]})` : 'null::text')} as owner from ${raw(name)} t`,
          );
          seen.set(name, (seen.get(name) ?? 0) + rows.length);
          const owner = (row: Record<string, unknown>) => (name === 'program.partner' ? row.id : row.partner_id);
          if (has_partner || name === 'program.partner')
            t.ok(
              rows.every(({ row }) => owner(row) === partner_id),
              name,
            );
          else if (owners[name])
            t.ok(
              rows.every(({ owner }) => owner === partner_id),
              name,
            );
          else t.equal(rows.length, 0, name);
        }
      });
    }
    for (const name of [
      'program.partner',
      'program.link',
      'program.sale',
      'program.commission',
      'program.payout',
      'program.customer',
    ])
      t.ok((seen.get(name) as number) > 0, name);
  },
);

t.test('it changes and deletes no row of another, and adds none for another', async (t) => {
  const [one, other] = partner_ids as [string, string];
  const [link] = await rail.query<{ id: string }>(sql`select id from program.link limit 1`);
  await as(one, async (tx) => {
    const ids = (rows: object[]) => rows.map((row) => (row as { id: string }).id);
    t.same(ids(await tx.all(sql`update program.partner set first_name = 'Mallory' returning id`)), [one]);
    t.same(await tx.all(sql`delete from program.partner where id = ${other} returning id`), []);
  });
  const adding = as(one, (tx) =>
    tx.all(sql`
      insert into program.magic_link (organization_id, token_sha256, partner_id, expires_at)
      values (${merchant.organization_id}, '\\x00', ${other}, now())`),
  );
  await t.rejects(adding, { code: '42501' });
  t.ok(link);
});

t.test('each table of an organization has the policies, as `rail migrate` sets them', async (t) => {
  t.same(await rail.query(sql`select subject, missing from core.missing_privileges()`), []);
  const [policy] = await rail.query<{ name: string }>(
    sql`select polname as name from pg_policy where polrelid = 'program.sale'::regclass and polname like 'partner_select_%'`,
  );
  await rail.query(sql`drop policy ${raw(policy?.name ?? '')} on program.sale`);
  const missing = await rail.query<{ statement: string }>(
    sql`select subject, missing, statement from core.missing_privileges()`,
  );
  t.match(missing, [{ subject: 'program.sale', missing: /SELECT by the role rail_partner/ }]);
  for (const one of missing.flatMap(({ statement }) => statement.split('; '))) await rail.query(sql`${raw(one)}`);
  t.same(await rail.query(sql`select subject from core.missing_privileges()`), []);
});
