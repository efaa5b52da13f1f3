import t from 'tap';
import { startRail } from '../../harness.ts';
import { openShop } from '../../shop.ts';

const rail = await startRail();
const scopes = ['programs:read', 'programs:write', 'payouts:write'];

t.test('what decides whether money is sent by itself, and how much, takes the scope that moves money', async (t) => {
  const shop = await openShop(rail, {
    payout_approval_required: true,
    payout_limit_minor: 100,
    payout_limits: { EUR: 5 },
  });
  const writer = await rail.key(shop.merchant.organization_id, { scopes });
  const path = `/v1/programs/${shop.program_id}`;
  const changes = [
    { payout_approval_required: false },
    { auto_payouts_enabled: true },
    { payout_limit_minor: null },
    { payout_limits: {} },
  ];
  for (const change of changes) {
    t.match(await writer.request('PATCH', path, { name: 'Other', ...change }), {
      status: 403,
      body: { error: { code: 'insufficient_scope', param: 'payouts:send' } },
    });
  }
  t.match(await writer.get(path), shop.program);
  const sender = await rail.key(shop.merchant.organization_id, { scopes: [...scopes, 'payouts:send'] });
  for (const change of changes) t.match(await sender.patch(path, change), change);
});

t.test('the same values are no change', async (t) => {
  const shop = await openShop(rail, { payout_approval_required: true, payout_limits: { EUR: 5, GBP: 6 } });
  const writer = await rail.key(shop.merchant.organization_id, { scopes });
  const same = { payout_approval_required: true, payout_limit_minor: null, payout_limits: { GBP: 6, EUR: 5 } };
  t.match(await writer.patch(`/v1/programs/${shop.program_id}`, { ...same, name: 'Other' }), {
    ...same,
    name: 'Other',
  });
});

t.test('a new program that sends by itself takes it, too', async (t) => {
  const { organization_id } = await rail.organization();
  const writer = await rail.key(organization_id, { scopes });
  const program = { name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' };
  t.match(await writer.request('POST', '/v1/programs', { ...program, auto_payouts_enabled: true }), {
    status: 403,
    body: { error: { code: 'insufficient_scope', param: 'payouts:send' } },
  });
  t.match(await writer.post('/v1/programs', program), { auto_payouts_enabled: false });
});

t.test('amounts for other currencies refuse that of the program, which nothing would read', async (t) => {
  const shop = await openShop(rail, { currency: 'EUR', payout_limits: { USD: 5 }, min_payouts: { USD: 5 } });
  for (const [field, own] of [
    ['payout_limits', 'payout_limit_minor'],
    ['min_payouts', 'min_payout_minor'],
  ] as const) {
    const refusal = {
      status: 400,
      body: { error: { code: 'invalid_parameter', param: `${field}.EUR`, message: new RegExp(`'${own}'`) } },
    };
    const amounts = { [field]: { USD: 6, EUR: 7 } };
    t.match(await shop.merchant.request('PATCH', `/v1/programs/${shop.program_id}`, amounts), refusal);
    const program = { name: 'Second', website_url: 'https://acme.example.com', currency: 'EUR' };
    t.match(await shop.merchant.request('POST', '/v1/programs', { ...program, ...amounts }), refusal);
  }
  t.match(await shop.merchant.get(`/v1/programs/${shop.program_id}`), shop.program);
});
