import t from 'tap';
import { eventually, type Json, log, sql, startRail, startWorker } from '../../harness.ts';
import { fresh, openShop, type Shop, types } from '../../shop.ts';

const rail = await startRail({ worker: false });
const work = () => startWorker({ url: rail.url, store: rail.store, services: rail.services, concurrency: 4, log });

const attributed = ({ program }: Shop) =>
  eventually(async () => {
    const left = sql`select from program.click where program_id = ${program.id} and attributed_at is null`;
    return (await rail.query(left)).length === 0;
  }, 'all clicks to be attributed');

const jobs = ({ merchant }: Shop) =>
  rail.query(sql`
    select from graphile_worker._private_jobs where key = ${`program/attribute_clicks:${merchant.organization_id}`}`);

t.test('clicks that wait share a job, and each names the request that recorded it', async (t) => {
  const shop = await openShop(rail);
  const partners = [await shop.partner(), await shop.partner()];
  const visitors = Array.from({ length: 30 }, () => fresh('visitor'));
  await shop.events();
  const causes = new Map<string, string[]>();
  for (const partner of partners) {
    for (const visitor_token of visitors) {
      const body = { program_id: shop.program_id, value: partner.handle, landing_url: null, visitor_token };
      const { headers } = await shop.merchant.request('POST', '/v1/clicks', body);
      causes.set(visitor_token, [...(causes.get(visitor_token) ?? []), headers['rail-request-id'] as string]);
    }
  }
  t.equal((await jobs(shop)).length, 1);
  const worker = work();
  await attributed(shop);
  await worker.stop();

  const events = await rail.query<Json>(sql`
    select e.type, e.body, e.request_id, r.visitor_token
    from webhooks.event e
    join program.referral r on r.organization_id = e.organization_id and r.id = e.body::json -> 'data' ->> 'referral_id'
    where e.program_id = ${shop.program_id} and e.type like 'referral.%' order by e.position`);
  t.equal(events.length, 3 * visitors.length);
  for (const visitor_token of visitors) {
    const [first, last] = causes.get(visitor_token) as [string, string];
    const told = events.filter((event) => event.visitor_token === visitor_token);
    t.match(told, [
      { type: 'referral.created', request_id: first },
      { type: 'referral.deleted', request_id: last },
      { type: 'referral.created', request_id: last },
    ]);
    t.match(JSON.parse(told[0]?.body), { request: { id: first } });
  }
  const live = await shop.list('referrals', `partner_id=${partners[1]?.id}`);
  t.equal(live.length, visitors.length, 'the later click has the credit');
});

t.test('none is forgotten or counted twice while workers, clicks and sign-ups meet', async (t) => {
  const shop = await openShop(rail);
  const partners = [await shop.partner(), await shop.partner(), await shop.partner()];
  const visitors = Array.from({ length: 12 }, () => fresh('visitor'));
  await shop.events();
  const workers = [work(), work()];
  const customers: Json[] = [];
  const visit = async (visitor_token: string) => {
    for (const partner of partners) await shop.click(partner, { visitor_token });
    const { id: click_id } = await shop.click(partners[0] as Json, { visitor_token });
    customers.push(await shop.customer({ click_id }));
    for (const partner of partners) await shop.click(partner, { visitor_token });
  };
  await Promise.all(visitors.map(visit));
  await attributed(shop);
  await Promise.all(workers.map((worker) => worker.stop()));

  t.same([...new Set(customers.map(({ partner_id }) => partner_id))], [partners[0]?.id], 'of the last click before');
  const told = types(await shop.events()).filter((type) => type.startsWith('referral.'));
  const count = (type: string) => told.filter((one) => one === type).length;
  t.equal(count('referral.created'), 4 * visitors.length);
  t.equal(count('referral.deleted'), 3 * visitors.length);
  t.equal(count('referral.lead'), visitors.length);
  t.equal((await shop.list('referrals')).length, visitors.length);
});

t.test('clicks that a request has attributed are checked for fraud too', async (t) => {
  const shop = await openShop(rail);
  const partner = await shop.partner();
  const visitor_token = fresh('visitor');
  const paid = await shop.click(partner, { visitor_token, landing_url: 'https://acme.example.com/?gclid=a' });
  const { id: click_id } = await shop.click(partner, { visitor_token });
  await shop.customer({ click_id });
  const worker = work();
  const flags = () => shop.list('risk_flags', 'kind=paid_ad_traffic');
  await eventually(async () => (await flags()).length > 0, 'the flag');
  await worker.stop();
  t.match(await flags(), [{ partner_id: partner.id, evidence: { click_id: paid.id } }]);
});
