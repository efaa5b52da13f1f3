import t from 'tap';
import { eventually, type Json, sql, startRail } from '../../harness.ts';
import { openShop, type Shop } from '../../shop.ts';

const rail = await startRail();

/** Two partners whose clicks, customers and sales went every way that stats could count wrongly. */
async function lively(): Promise<Shop> {
  const shop = await openShop(rail);
  const { merchant, program } = shop;
  await shop.rule();
  const group = await merchant.post('/v1/groups', { program_id: program.id, name: 'Press' });
  const [ada, bob] = [await shop.partner(), await shop.partner({ group_id: group.id })];
  await shop.partner({ status: 'pending' });
  await merchant.delete(`/v1/partners/${(await shop.partner({ group_id: group.id })).id}`);
  const [link, coupon] = [await shop.link(ada), await shop.coupon({ partner_id: bob.id })];
  const clicks: Json[] = [];
  for (const partner of [ada, ada, bob]) clicks.push(await shop.click(partner));
  for (let nth = 0; nth < 3; nth++)
    clicks.push(await shop.click(ada, { value: link.value, visitor_token: `visitor-again-${nth % 2}` }));
  await shop.click(bob, { user_agent: 'curl/8.0' });
  const customer = await shop.customer({ click_id: clicks.at(-1)?.id });
  const moved = await shop.customer({ partner_id: ada.id });
  await merchant.patch(`/v1/customers/${moved.id}`, { partner_id: bob.id });
  await shop.sale({ coupon_external_id: coupon.external_id, customer: { external_customer_id: 'cus_coupon' } });

  const [partly, paid, voided, rejected, gone] = await Promise.all(
    Array.from({ length: 5 }, () => shop.sale({ customer_id: customer.id })),
  );
  await shop.refund(partly as Json, { amount_minor: 2_500 });
  await shop.pay(paid?.commissions[0]);
  await shop.refund(paid as Json, { amount_minor: 1_000 });
  await merchant.post(`/v1/commissions/${voided?.commissions[0].id}/void`);
  await merchant.post(`/v1/commissions/${rejected?.commissions[0].id}/reject`);
  await merchant.delete(`/v1/sales/${gone?.id}`);
  await shop.sale({ customer_id: customer.id, currency: 'EUR' });
  await shop.sale({ external_customer_id: 'nobody' });
  await merchant.post('/v1/commissions', { program_id: program.id, partner_id: bob.id, amount_minor: 777 });
  await eventually(async () => {
    const [left] = await rail.query<{ clicks: number }>(
      sql`select count(*) as clicks from program.click where program_id = ${program.id} and attributed_at is null`,
    );
    return left?.clicks === 0;
  }, 'all clicks to be attributed');
  await merchant.delete(`/v1/referrals/${(await shop.list('referrals', `partner_id=${bob.id}`))[0]?.id}`);
  return shop;
}

const shop = await lively();
const kept: Record<string, Json[]> = {};
for (const plural of ['partners', 'clicks', 'referrals', 'customers', 'sales', 'commissions']) {
  kept[plural] = await shop.list(plural);
}
const of = (plural: string, field: string, id: string): Json[] =>
  (kept[plural] as Json[]).filter((record) => record[field] === id);
const sum = (some: Json[]): number => some.reduce((total, { amount_minor }) => total + amount_minor, 0);
const inUsd = ({ currency }: Json): boolean => currency === 'USD';
const counts = ({ status }: Json): boolean => !['voided', 'rejected'].includes(status);

/** Recounts the stats of a record from the records that the API lists. */
const recounted: Record<string, (record: Json) => Json> = {
  programs: () => ({
    partners: kept.partners?.length,
    active_partners: of('partners', 'status', 'active').length,
    clicks: kept.clicks?.length,
    referrals: kept.referrals?.length,
    customers: kept.customers?.length,
    sales_minor: sum((kept.sales as Json[]).filter(inUsd)),
    commissions_minor: sum((kept.commissions as Json[]).filter(inUsd).filter(counts)),
  }),
  partners: ({ id, currency }) => {
    const earned = of('commissions', 'partner_id', id).filter(inUsd).filter(counts);
    return {
      clicks: of('clicks', 'partner_id', id).length,
      referrals: of('referrals', 'partner_id', id).length,
      customers: of('customers', 'partner_id', id).length,
      commissions_minor: sum(earned),
      paid_minor: sum(earned.filter(({ status }) => status === 'paid')),
      currency,
    };
  },
  groups: ({ id }) => ({ partners: of('partners', 'group_id', id).length }),
  links: ({ id }) => ({
    clicks: of('clicks', 'link_id', id).length,
    referrals: of('referrals', 'link_id', id).length,
    customers: of('customers', 'link_id', id).length,
  }),
  coupons: ({ id }) => ({ customers: of('customers', 'coupon_id', id).length }),
};

for (const [plural, recount] of Object.entries(recounted)) {
  t.test(`the stats of ${plural} are what the records come to`, async (t) => {
    const { data } =
      plural === 'programs'
        ? await shop.merchant.get('/v1/programs?include[]=stats')
        : { data: await shop.list(plural, 'include[]=stats') };
    t.ok(data.length > 0);
    for (const { stats, ...record } of data as Json[]) {
      t.same(stats, recount(record), record.id);
      t.same((await shop.merchant.get(`/v1/${plural}/${record.id}?include[]=stats`)).stats, stats);
    }
    const somewhere = Object.keys(data[0].stats).filter((field) =>
      (data as Json[]).some(({ stats }) => stats[field] !== 0),
    );
    t.same(somewhere, Object.keys(data[0].stats), 'each of them is more than 0 somewhere');
  });
}

t.test('stats are included only on request', async (t) => {
  for (const plural of Object.keys(recounted).slice(1)) {
    for (const record of await shop.list(plural)) t.notOk('stats' in record);
  }
});
