import { raw } from 'sql-template-tag';
import t from 'tap';
import { migrate, whyNotReady } from '../../../src/core/postgres/migrate.ts';
import { transaction } from '../../../src/core/postgres/transaction.ts';
import { countersOf, foldTallies, rowsOf } from '../../../src/program/programs/tally.ts';
import { eventually, type Json, sql, startRail } from '../../harness.ts';
import { fresh, openShop, type Shop } from '../../shop.ts';

const rail = await startRail();

const fold = (most = 1_000_000): Promise<number> =>
  transaction(rail.store, { organization_id: null, request_id: null }, (tx) => foldTallies(tx, most));
const notes = async (): Promise<number> =>
  (
    await rail.query<{ count: number }>(
      sql`select count(*) as count from program.fold f cross join lateral program.unfolded_counts(f.organization_id)`,
    )
  )[0]?.count as number;
const totalOf = async ({ merchant, program }: Shop, plural: string): Promise<number> =>
  (await merchant.get(`/v1/${plural}?program_id=${program.id}`)).total_count;
const statsOf = async ({ merchant }: Shop, path: string): Promise<Json> =>
  (await merchant.get(`/v1/${path}?include[]=stats`)).stats;

t.afterEach(async () => {
  const wrong = await rail.audit();
  if (wrong.length > 0) throw new Error(`The audit found ${JSON.stringify(wrong)}`);
});

t.test('counters follow creates, moves, refunds and deletions, before and after folding', async (t) => {
  const shop = await openShop(rail);
  const { merchant, program } = shop;
  await shop.rule();
  const [ada, grace, gone] = [await shop.partner(), await shop.partner(), await shop.partner()];
  const link = await shop.link(ada);
  const coupon = await shop.coupon({ partner_id: ada.id });
  await shop.click(ada, { value: link.value });
  const referred = await shop.referred(ada);
  const moved = await shop.customer({ partner_id: ada.id });
  await merchant.patch(`/v1/customers/${moved.id}`, { partner_id: grace.id });
  const bought = await shop.sale({ customer_id: referred.id });
  await shop.refund(bought, { amount_minor: 5_000 });
  await shop.refund(await shop.sale({ customer_id: referred.id }));
  const deleted = await shop.sale({ customer_id: referred.id });
  await merchant.delete(`/v1/sales/${deleted.id}`);
  const abroad = await shop.sale({ customer_id: referred.id, currency: 'EUR' });
  await shop.pay((await shop.sale({ partner_id: grace.id })).commissions[0]);
  await merchant.patch(`/v1/partners/${grace.id}`, { status: 'suspended' });
  const group = await merchant.post('/v1/groups', { program_id: program.id, name: fresh('group') });
  await merchant.patch(`/v1/partners/${ada.id}`, { group_id: group.id });
  await merchant.delete(`/v1/partners/${gone.id}`);
  await eventually(async () => (await totalOf(shop, 'referrals')) === 2, 'the referrals of both clicks');

  for (const state of ['noted', 'folded in part', 'folded']) {
    t.equal(await totalOf(shop, 'partners'), 2, state);
    t.equal(await totalOf(shop, 'clicks'), 2);
    t.equal(await totalOf(shop, 'customers'), 2);
    t.equal(await totalOf(shop, 'sales'), 4);
    t.equal(await totalOf(shop, 'commissions'), (await shop.list('commissions')).length);
    t.same(await statsOf(shop, `programs/${program.id}`), {
      partners: 2,
      active_partners: 1,
      clicks: 2,
      referrals: 2,
      customers: 2,
      sales_minor: 30_000,
      commissions_minor: 3_000,
    });
    t.same(await statsOf(shop, `partners/${ada.id}`), {
      clicks: 2,
      referrals: 2,
      customers: 1,
      commissions_minor: 1_000,
      paid_minor: 0,
      currency: 'USD',
    });
    t.match(await statsOf(shop, `partners/${grace.id}`), { customers: 1, commissions_minor: 2_000, paid_minor: 2_000 });
    t.same(await statsOf(shop, `links/${link.id}`), { clicks: 1, referrals: 1, customers: 0 });
    t.same(await statsOf(shop, `coupons/${coupon.id}`), { customers: 0 });
    t.same(await statsOf(shop, `groups/${group.id}`), { partners: 1 });
    t.equal(abroad.currency, 'EUR', 'other currencies are not added up');
    await fold(state === 'noted' ? 5 : undefined);
  }
  t.equal(await notes(), 0);
});

t.test('a count is exact at every moment during concurrent writes and folding', async (t) => {
  const shop = await openShop(rail);
  const partner = await shop.partner();
  let folding = true;
  const folder = (async () => {
    while (folding) await fold(7);
  })();
  const others = Array.from({ length: 4 }, async () => {
    for (let nth = 0; nth < 15; nth++) await shop.customer({ partner_id: partner.id });
  });
  let before = 0;
  for (let nth = 1; nth <= 25; nth++) {
    await shop.click(partner);
    t.equal(await totalOf(shop, 'clicks'), nth);
    const customers = await totalOf(shop, 'customers');
    t.ok(customers >= before && customers <= 60);
    before = customers;
  }
  await Promise.all(others);
  folding = false;
  await folder;
  t.equal(await totalOf(shop, 'customers'), 60);
});

t.test('rolled back writes are not counted', async (t) => {
  const shop = await openShop(rail);
  await shop.partner();
  const { organization_id } = shop.merchant;
  await t.rejects(
    transaction(rail.store, { organization_id, request_id: null }, async (tx) => {
      await tx.all(sql`update program.partner set deleted_at = now() where program_id = ${shop.program.id}`);
      throw new Error('changed my mind');
    }),
    { message: 'changed my mind' },
  );
  t.equal(await totalOf(shop, 'partners'), 1);
});

t.test('the schedule folds pending changes', async (t) => {
  const shop = await openShop(rail);
  await shop.partner();
  await rail.tick('program/fold_tallies', new Date().toISOString());
  await eventually(async () => (await notes()) === 0, 'the notes to be folded');
  t.equal(await totalOf(shop, 'partners'), 1);
});

t.test('under load it folds again before the next tick', async (t) => {
  const shop = await openShop(rail);
  const many = (count: number) =>
    rail.query(sql`
      insert into program.tally_note (organization_id, subject_id, noun, kind, rows, amount_minor, inserted_in)
      select ${shop.merchant.organization_id}, ${shop.program.id}, 'link', '', n % 2 * 2 - 1, 0, '3' from generate_series(1, ${count}) as n`);
  await fold();
  await many(1_000);
  await rail.tick('program/fold_tallies', new Date(Date.now() + 60_000).toISOString());
  await eventually(async () => (await notes()) === 0, 'the notes to be folded');
  await many(2);
  await eventually(async () => (await notes()) === 0, 'the notes to be folded again');
  t.equal(await totalOf(shop, 'links'), 0);
});

t.test('notes are found by their index, also by a statement that was planned when there were none', async (t) => {
  const shop = await openShop(rail);
  await fold();
  await rail.query(sql`vacuum (analyze) program.tally_note`);
  const { organization_id } = shop.merchant;
  const { before, after } = await transaction(rail.store, { organization_id, request_id: null }, async (tx) => {
    const scans = () =>
      tx.one<{ whole: number; by_index: number }>(sql`
        select sum(seq_scan)::integer as whole, sum(idx_scan)::integer as by_index
        from pg_stat_xact_user_tables where relname in ('tally', 'tally_note', 'fold', 'partner', 'sale', 'customer')`);
    const count = () => countersOf(tx, [{ id: shop.program.id }], { links: rowsOf('link') });
    for (let times = 0; times < 10; times++) await count();
    const before = await scans();
    await count();
    return { before, after: await scans() };
  });
  t.equal(after.whole, before.whole);
  t.ok(after.by_index > before.by_index);
});

t.test('a dump that is restored into another cluster counts on', async (t) => {
  const shop = await openShop(rail);
  const ada = await shop.partner();
  await fold();
  await shop.customer({ partner_id: ada.id });
  const deleted = await shop.partner();
  // As in a cluster that has come further: rows of before and after the snapshot, and a note.
  const tables = [
    'partner',
    'link',
    'coupon',
    'click',
    'referral',
    'customer',
    'sale',
    'refund',
    'commission',
    'tally_note',
    'report_note',
  ];
  await shop.merchant.delete(`/v1/partners/${deleted.id}`);
  for (const table of tables)
    await rail.query(sql`
      update program.${raw(table)} set inserted_in = (inserted_in::text::bigint + 1000000000000)::text::xid8`);
  await rail.query(sql`
    update program.fold set seen = format('%1$s:%1$s:', pg_snapshot_xmax(seen)::text::bigint + 1000000000000)::pg_snapshot where seen::text <> '1:1:'`);
  await rail.query(sql`update core.cluster set system_identifier = 1`);
  t.match(await whyNotReady(rail.store.database), 'was restored from a dump');
  await migrate(rail.url);
  t.equal(await whyNotReady(rail.store.database), undefined);
  for (const state of ['restored', 'folded']) {
    t.equal(await totalOf(shop, 'customers'), 1, state);
    t.equal(await totalOf(shop, 'partners'), 1);
    await fold();
  }
  await shop.customer({ partner_id: ada.id });
  t.equal(await totalOf(shop, 'customers'), 2);
});
