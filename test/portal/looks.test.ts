/**
 * Every page of the portal in a real browser, light and dark, narrow and wide: no violation of WCAG 2.2 AA that axe finds, no error in the console, nothing
 * wider than the window. With RAIL_SHOTS it writes pictures to the directory that it names, to be looked at.
 */
import { join } from 'node:path';
import t from 'tap';
import { openTab } from '../browser.ts';
import { type Json, startRail } from '../harness.ts';
import { faultsOf } from '../pages/accessible.ts';
import { tellStory } from '../pages/story.ts';

const rail = await startRail();
const { shop, partners } = await tellStory(rail, {
  terms_url: 'https://acme.example.com/terms',
  questions: [
    { key: 'audience', label: 'Who reads you?', kind: 'long_text', required: true },
    { key: 'topics', label: 'What do you write about?', kind: 'choices', options: ['Coffee', 'Tea', 'Travel'] },
    { key: 'channel', label: 'Where?', kind: 'choice', options: ['Blog', 'Newsletter', 'Video'] },
  ],
});
const { merchant, program, program_id } = shop;
const [partner] = partners as [Json];
await merchant.patch(`/v1/programs/${program_id}`, { require_tax_forms: true });
await shop.coupon({ partner_id: partner.id, code: 'ADA10' });
const { id: endpoint_id } = await shop.endpoint('http://127.0.0.1:9/', { partner_id: partner.id, description: 'Mine' });
const [commission] = (await shop.list('commissions', `partner_id=${partner.id}`)) as [Json];
const [payout] = (await shop.list('payouts', `partner_id=${partner.id}`)) as [Json];
const [link] = (await shop.list('links', `partner_id=${partner.id}`)) as [Json];

const { RAIL_SHOTS: shots } = process.env;

const outside = [`/join/${program.subdomain}`, '/portal/sign_in', '/join/nobody-has-this'];
const inside = [
  ...[
    '',
    '/links',
    '/coupons',
    '/customers',
    '/commissions',
    '/payouts',
    '/payout_method',
    '/payout_method?method=bank_transfer',
  ],
  ...[
    '/tax_form',
    '/postbacks',
    '/missing_sale',
    '/notifications',
    '/terms',
    `/links/${link.id}`,
    `/commissions/${commission.id}`,
  ],
  ...[`/payouts/${payout.id}`, `/postbacks/${endpoint_id}`],
].map((path) => `/portal${path}`);

for (const { scheme, width, language } of [
  { scheme: 'light', width: 1440, language: 'en' },
  { scheme: 'dark', width: 390, language: 'de' },
] as const) {
  t.test(`the portal in ${scheme}, ${width} px wide`, async (t) => {
    await merchant.patch(`/v1/partners/${partner.id}`, { language_code: language });
    const { page, errors } = await openTab({ colorScheme: scheme, viewport: { width, height: 900 }, locale: language });
    for (const path of outside) await look(path);
    const { url } = await merchant.post(`/v1/partners/${partner.id}/magic_link`);
    await page.goto(`${rail.address}${new URL(url).pathname}${new URL(url).search}`);
    await page.locator('main button').click();
    await page.waitForURL(/\/portal$/);
    for (const path of inside) await look(path);
    // A form with all that can be wrong.
    await page.goto(`${rail.address}/portal/links`);
    await page.locator('#field-value').fill('!');
    await page.locator('main form button').click();
    await page.locator('#field-value-error').waitFor();
    t.same(await faultsOf(page), [], 'a form with an error');
    t.same(
      errors.filter((error) => !/ 40[04] /.test(error)),
      [],
    );

    async function look(path: string): Promise<void> {
      await page.goto(`${rail.address}${path}`);
      t.same(await faultsOf(page), [], path);
      const name = path.replaceAll(/[^a-z_]+/g, '-').replace(/^-/, '');
      if (shots) await page.screenshot({ path: join(shots, `${name}-${scheme}-${width}.png`), fullPage: true });
    }
  });
}

t.test('a link is copied, where scripts run', async (t) => {
  const { page, context } = await openTab();
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const { url } = await merchant.post(`/v1/partners/${partner.id}/magic_link`);
  await page.goto(`${rail.address}${new URL(url).pathname}${new URL(url).search}`);
  await page.locator('main button').click();
  await page.goto(`${rail.address}/portal/links/${link.id}`);
  await page.locator('[data-copy]').first().click();
  t.equal(await page.evaluate('navigator.clipboard.readText()'), link.url);
  t.ok(program_id);
});
