/**
 * Every page in a real browser, light and dark, narrow and wide: no violation of WCAG 2.2 AA that axe finds, no error in the console, nothing wider than
 * the window. With RAIL_SHOTS=1 it writes pictures of the main pages to test/pages/shots, to be looked at.
 */
import { join } from 'node:path';
import t from 'tap';
import { openTab } from '../browser.ts';
import { eventually, type Json, sql, startRail, startReceiver } from '../harness.ts';
import { mail, openOutreach, replyTo } from '../recruitment/outreach/mailed.ts';
import { faultsOf } from './accessible.ts';
import { tabTo, walk } from './keyboard.ts';
import { colleague } from './people.ts';
import { tellStory } from './story.ts';

const rail = await startRail();
const outreach = await openOutreach(rail);
const { shop, partners, batch } = await tellStory(rail, {}, outreach.caller);
const { merchant } = shop;
const mailed = await mail(rail, outreach);
await replyTo(rail, outreach, mailed, mailed.email, { needs_review: true });
Object.assign(rail.services, { operator_organization: outreach.caller.organization_id });
const receiver = await startReceiver();
const endpoint = await shop.endpoint(receiver.url);
const { id: delivery_id } = await merchant.post(`/v1/webhook_endpoints/${endpoint.id}/ping`);
await shop.referred(partners[0] as Json, { email: 'somebody@mailinator.com' });
await eventually(async () => (await shop.list('risk_flags')).length > 0, 'a flag');
const [partner] = partners as [{ id: string }];
const [sale] = await shop.list('sales');
const { user_id, link } = await colleague(rail, merchant);
await rail.query(sql`update core.user_account set name = 'Grace Hopper' where id = ${user_id}`);

const shots = join(import.meta.dirname, 'shots');

/** The pages of the dashboard: their paths, and of those of which pictures are kept, in which look. */
const dashboard: [path: string, shot?: string][] = [
  ['/dashboard', 'home-light'],
  ['/dashboard/review', 'review-dark'],
  ['/dashboard/partners'],
  [`/dashboard/partners/${partner.id}`, 'partner-light'],
  [`/dashboard/do/partners.update?id=${partner.id}`, 'form-dark'],
  ['/dashboard/do/rules.create'],
  ['/dashboard/sales'],
  [`/dashboard/sales/${sale?.id}`],
  ['/dashboard/commissions'],
  [`/dashboard/payout_batches/${batch.id}`],
  ['/dashboard/payout_run'],
  ['/dashboard/reports', 'reports-light'],
  ['/dashboard/reports?report=partners'],
  ['/dashboard/maturing', 'maturing-light'],
  ['/dashboard/risk', 'risk-dark'],
  ['/dashboard/webhooks'],
  [`/dashboard/webhook_endpoints/${endpoint.id}`, 'webhook_endpoint-light'],
  [`/dashboard/webhook_deliveries/${delivery_id}`],
  ['/dashboard/inbox'],
  [`/dashboard/threads/${mailed.thread_id}`, 'thread-dark'],
  [`/dashboard/campaigns/${outreach.campaign_id}`, 'campaign-light'],
  ['/dashboard/integrations'],
  ['/dashboard/board'],
  ['/dashboard/account'],
  ['/dashboard/service'],
  ['/dashboard/search?q=ada@partner.example.com'],
  ['/dashboard/nothing'],
];

interface Look {
  scheme: 'light' | 'dark';
  width: number;
}
const looks: Look[] = [
  { scheme: 'light', width: 1440 },
  { scheme: 'dark', width: 390 },
];

for (const { scheme, width } of looks) {
  t.test(`the dashboard in ${scheme}, ${width} px wide`, async (t) => {
    const { page, errors } = await openTab({ colorScheme: scheme, viewport: { width, height: 900 } });
    await page.goto(`${rail.address}${await link()}`);
    t.same(await faultsOf(page), [], 'the page to sign in');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.waitForURL(/\/dashboard$/);
    for (const [path, shot] of dashboard) {
      const answer = await page.goto(`${rail.address}${path}`);
      t.equal(answer?.status(), path === '/dashboard/nothing' ? 404 : 200, path);
      t.same(await faultsOf(page), [], path);
      if (shot?.endsWith(scheme) && process.env.RAIL_SHOTS) await page.screenshot({ path: join(shots, `${shot}.png`) });
    }
    t.same(
      errors.filter((error) => !error.includes('404')),
      [],
    );
  });
}

t.test('work that takes a while is followed until it is done', async (t) => {
  const { page } = await openTab();
  await page.goto(`${rail.address}${await link()}`);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForURL(/\/dashboard$/);
  const setStage = (stage: string) =>
    rail.query(sql`update program.payout_batch set stage = ${stage} where id = ${batch.id}`);
  await setStage('generating');
  await page.goto(`${rail.address}/dashboard/payout_batches/${batch.id}`);
  const under_way = page.getByText('This is being worked on.');
  await under_way.waitFor();
  await setStage('ready');
  await under_way.waitFor({ state: 'detached' });
  t.match(await page.locator('main').textContent(), /Next: Send it/);
});

t.test('everything is done by the keyboard alone', async (t) => {
  const { page } = await openTab({ viewport: { width: 1440, height: 900 } });
  await page.goto(`${rail.address}${await link()}`);
  await tabTo(page, 'main button');
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/dashboard$/);

  for (const path of [
    '/dashboard',
    '/dashboard/review',
    '/dashboard/risk',
    `/dashboard/webhook_endpoints/${endpoint.id}`,
    `/dashboard/threads/${mailed.thread_id}`,
    '/dashboard/do/rules.create',
  ]) {
    await page.goto(`${rail.address}${path}`);
    const { places, count, unseen } = await walk(page);
    t.same(places, [...Array(count).keys()], `${path}: Tab leads to all, in their order`);
    t.same(unseen, [], `${path}: the focus is seen`);
  }

  // Past the menu at once.
  await page.goto(`${rail.address}/dashboard/review`);
  await page.keyboard.press('Tab');
  t.equal(await page.evaluate('document.activeElement.className'), 'skip');
  await page.keyboard.press('Enter');
  await page.keyboard.press('Tab');
  t.ok(await page.evaluate("document.querySelector('main').contains(document.activeElement)"));

  await tabTo(page, 'form[action$="applications.approve"] button');
  await page.keyboard.press('Enter');
  await page.waitForURL(/done=applications\.approve/);
  t.equal((await shop.list('applications', 'status=approved')).length, 1);
  await page.goto(`${rail.address}/dashboard/risk`);
  await tabTo(page, '#note');
  await page.keyboard.type('A real person.');
  await tabTo(page, 'button[value="dismissed"]');
  await page.keyboard.press('Space');
  await page.waitForURL(/done=risk_flags\.resolve/);
  t.match(await shop.list('risk_flags'), [{ status: 'dismissed', note: 'A real person.' }]);
  await page.goto(`${rail.address}/dashboard/partners`);
  await tabTo(page, 'summary');
  await page.keyboard.press('Enter');
  await tabTo(page, '#filter-email');
  await page.keyboard.type('ada@partner.example.com');
  await page.keyboard.press('Enter');
  await page.waitForURL(/email=ada/);
  await page.goto(`${rail.address}/dashboard/do/rules.create`);
  await tabTo(page, '#field-name');
  await page.keyboard.type('By keyboard');
  await tabTo(page, '#field-rate_type');
  await page.keyboard.type('Fixed');
  await tabTo(page, '#field-rate_value');
  await page.keyboard.type('12.50');
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/dashboard\/rules\//);
  t.match((await shop.list('rules'))[0], { name: 'By keyboard', rate_type: 'fixed', rate_value: 1_250 });
});
