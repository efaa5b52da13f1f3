import t from 'tap';
import { transaction } from '../../../src/core/postgres/transaction.ts';
import { foldReports } from '../../../src/program/reports/fold.ts';
import { rebuildReports } from '../../../src/program/reports/rebuild.ts';
import { type Json, sql, startRail } from '../../harness.ts';
import { openShop } from '../../shop.ts';

const rail = await startRail();
const fold = (most = 1_000_000): Promise<number> =>
  transaction(rail.store, { organization_id: null, request_id: null }, (tx) => foldReports(tx, most));

t.test('counts what was just written, before and after it is folded', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  const ada = await shop.partner();
  const customer = await shop.referred(ada);
  const sale = await shop.sale({ customer_id: customer.id, product_id: 'pro' });
  await shop.refund(sale, { amount_minor: 2_500 });
  const now = Date.now();
  const window = `from=${new Date(now - 3_600_000).toISOString()}&to=${new Date(now + 3_600_000).toISOString()}`;
  const report = (name: string): Promise<Json> =>
    shop.merchant.get(`/v1/reports/${name}?program_id=${shop.program_id}&${window}`);
  for (const state of ['noted', 'folded in part', 'folded']) {
    const overview = await report('overview');
    t.match(
      overview.totals,
      {
        clicks: 1,
        referrals: 1,
        leads: 1,
        customers: 1,
        sales: 1,
        revenue_minor: 10_000,
        refunds_minor: 2_500,
        commissions_minor: 1_500,
      },
      state,
    );
    const partners = await report('partners');
    t.match(partners.rows, [
      { partner_id: ada.id, handle: ada.handle, clicks: 1, net_revenue_minor: 7_500, epc_minor: 1_500 },
    ]);
    t.match((await report('products')).rows, [{ product_id: 'pro', sales: 1 }]);
    t.same((await report('groups')).rows[0].group_id, ada.group_id);
    await fold(state === 'noted' ? 3 : undefined);
  }
});

t.test('counts what was there before anything was noted, while others write', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  const ada = await shop.partner();
  const sale = await shop.sale({ customer_id: (await shop.referred(ada)).id });
  await rail.query(sql`update program.program set reports_ready = false where id = ${shop.program_id}`);
  await rail.query(sql`delete from program.report_change where program_id = ${shop.program_id}`);
  await rail.query(sql`delete from program.report_total where program_id = ${shop.program_id}`);
  const now = Date.now();
  const window = `from=${new Date(now - 90 * 86_400_000).toISOString()}&to=${new Date(now + 3_600_000).toISOString()}`;
  const totals = async (): Promise<Json> =>
    (await shop.merchant.get(`/v1/reports/overview?program_id=${shop.program_id}&${window}`)).totals;
  t.match(await totals(), { clicks: 1, sales: 1, revenue_minor: 10_000, refunds_minor: 0 }, 'from the facts');
  const writing = Promise.all(Array.from({ length: 20 }, () => shop.click(ada)));
  await rebuildReports(rail.store.database);
  await writing;
  await shop.refund(sale, { amount_minor: 1_000 });
  t.same(await rail.query(sql`select from program.program where not reports_ready`), []);
  for (const state of ['noted', 'folded']) {
    t.match(await totals(), { clicks: 21, sales: 1, revenue_minor: 10_000, refunds_minor: 1_000 }, state);
    await fold();
  }
  t.same(await rail.audit(), []);
});
