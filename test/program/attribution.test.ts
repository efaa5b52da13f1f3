import t from 'tap';
import { type Credit, creditOf, earnsCredit, windowEnd } from '../../src/program/attribution.ts';

const ada = 'part_ada';
const grace = 'part_grace';
const later = '2026-12-01T00:00:00.000Z';
const earlier = '2026-10-01T00:00:00.000Z';
const click = { partner_id: ada, created_at: '2026-11-01T00:00:00.000Z' };

t.test('what a click does to the live referral of its visitor', (t) => {
  const referral = (partner_id: string, status: 'visit' | 'lead' | 'converted', expires_at = later) => ({
    partner_id,
    status,
    expires_at,
  });
  const cases: [what: string, live: Parameters<typeof creditOf>[0], last_click: Credit, first_click: Credit][] = [
    ['a first visit makes one', undefined, 'create', 'create'],
    ['a visit through the same partner renews it', referral(ada, 'visit'), 'renew', 'renew'],
    ['even after its window', referral(ada, 'visit', earlier), 'renew', 'renew'],
    [
      'a visit through another partner moves the credit under last_click alone',
      referral(grace, 'visit'),
      'move',
      'keep',
    ],
    ['a window that has passed protects nobody', referral(grace, 'visit', earlier), 'move', 'move'],
    ['nor one that ends with the click', referral(grace, 'visit', click.created_at), 'move', 'move'],
    ['a lead stays', referral(grace, 'lead'), 'keep', 'keep'],
    ['a lead stays, its window passed or not', referral(grace, 'lead', earlier), 'keep', 'keep'],
    ['a converted one stays', referral(grace, 'converted'), 'keep', 'keep'],
    ['and is not renewed by its own partner', referral(ada, 'converted'), 'keep', 'keep'],
  ];
  for (const [what, live, last_click, first_click] of cases) {
    t.equal(creditOf(live, click, 'last_click'), last_click, `${what} (last_click)`);
    t.equal(creditOf(live, click, 'first_click'), first_click, `${what} (first_click)`);
  }
  t.end();
});

t.test('robots, blocked countries and partners who are not active earn no credit', (t) => {
  const firefox = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';
  const visit = { country: 'DE', user_agent: firefox, partner_status: 'active' };
  const cases: [what: string, click: Parameters<typeof earnsCredit>[0], earns: boolean][] = [
    ['a visit', visit, true],
    ['a visit of which nothing is known', { ...visit, country: null, user_agent: null }, true],
    ['a blocked country', { ...visit, country: 'KP' }, false],
    ['a robot', { ...visit, user_agent: 'Googlebot/2.1 (+http://www.google.com/bot.html)' }, false],
    ['a suspended partner', { ...visit, partner_status: 'suspended' }, false],
    ['a deleted partner', { ...visit, partner_status: null }, false],
  ];
  for (const [what, given, earns] of cases) t.equal(earnsCredit(given, ['KP', 'IR']), earns, what);
  t.end();
});

t.test('the window ends whole days of 24 hours after the click', (t) => {
  t.equal(windowEnd('2026-01-31T10:30:00.250Z', 1), '2026-02-01T10:30:00.250Z');
  t.equal(windowEnd('2028-02-28T00:00:00.000Z', 2), '2028-03-01T00:00:00.000Z');
  t.equal(windowEnd('2026-03-01T00:00:00.000Z', 365), '2027-03-01T00:00:00.000Z');
  t.end();
});
