import fc from 'fast-check';
import t from 'tap';
import { trackedUrl } from '../../../src/program/tracking/link.ts';
import { type Json, startRail } from '../../harness.ts';
import { openShop, types } from '../../shop.ts';

const rail = await startRail({ worker: false });

t.test('the tracking parameter is added, and every other byte of the destination stays', async (t) => {
  for (const [destination, expected] of [
    ['https://a.example.com', 'https://a.example.com?ref=ada'],
    ['https://a.example.com/', 'https://a.example.com/?ref=ada'],
    ['https://a.example.com/p?plan=pro#yearly', 'https://a.example.com/p?plan=pro&ref=ada#yearly'],
    ['https://a.example.com/p#a?b=c', 'https://a.example.com/p?ref=ada#a?b=c'],
    ['https://a.example.com/p?', 'https://a.example.com/p?ref=ada'],
    ['https://a.example.com/p?a=1&', 'https://a.example.com/p?a=1&ref=ada'],
    [
      "https://a.example.com/p?a=b%20c+d&x=%7e~('!*)&flag",
      "https://a.example.com/p?a=b%20c+d&x=%7e~('!*)&flag&ref=ada",
    ],
    [
      'https://a.example.com/p?a=1;b=2&sig=AbC%2Fd%3D%3d==',
      'https://a.example.com/p?a=1;b=2&sig=AbC%2Fd%3D%3d==&ref=ada',
    ],
    ['https://a.example.com/p?ref=bob&a=%41', 'https://a.example.com/p?ref=ada&a=%41'],
    ['https://a.example.com/p?a=1&r%65f=bob&b=2&ref', 'https://a.example.com/p?a=1&ref=ada&b=2'],
    ['https://a.example.com/p?refer=x&xref=y', 'https://a.example.com/p?refer=x&xref=y&ref=ada'],
    ['https://a.example.com/p?q=%F0%9F%8E%81&ü=ö#ä%20', 'https://a.example.com/p?q=%F0%9F%8E%81&ü=ö&ref=ada#ä%20'],
  ] as const) {
    t.equal(trackedUrl(destination, 'ref', 'ada'), expected);
  }
  t.equal(trackedUrl('https://a.example.com/', 'r f', 'a&b=c#d'), 'https://a.example.com/?r+f=a%26b%3Dc%23d');
});

t.test('in any query, the tracking parameter reads as it was set, and the others as before', async () => {
  const piece = fc.string({ unit: fc.constantFrom(...'aA1%2Ff=&+;~\'()"é '), maxLength: 20 });
  const name = fc.string({ unit: fc.constantFrom(...'rR%2&=+ f'), minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(piece, piece, name, name, (query, fragment, param, value) => {
      const tracked = trackedUrl(`https://a.example.com/p?${query}#${fragment}`, param, value);
      const { searchParams } = new URL(tracked);
      const rest = (of: URLSearchParams) => [...of].filter(([key]) => key !== param).join('\n');
      return (
        searchParams.getAll(param).join() === value &&
        searchParams.getAll(param).length === 1 &&
        rest(searchParams) === rest(new URL(`https://a.example.com/p?${query}#${fragment}`).searchParams) &&
        tracked.endsWith(`#${fragment}`) &&
        query.split('&').every((part) => new URLSearchParams(part).has(param) || tracked.includes(part))
      );
    }),
    { numRuns: 10_000 },
  );
});

t.test('a signed destination is not changed', async (t) => {
  const shop = await openShop(rail);
  const partner = await shop.partner({ handle: 'ada' });
  const destination_url = "https://acme.example.com/p?sig=a%2fB+c%20d'~&x=%41#top?a=b";
  const link = await shop.link(partner, { destination_url, value: 'ada' });
  t.equal(link.destination_url, destination_url);
  t.equal(link.url, "https://acme.example.com/p?sig=a%2fB+c%20d'~&x=%41&ref=ada#top?a=b");
  await shop.events();
  const changed = await shop.merchant.patch(`/v1/links/${link.id}`, {
    destination_url: 'https://acme.example.com/?a=%41',
  });
  t.equal(changed.url, 'https://acme.example.com/?a=%41&ref=ada');
  t.match(await shop.events(), [{ type: 'affiliate_link.updated', data: { url: changed.url } }]);
});

t.test('affiliate_link.updated is emitted for a new destination, label or short slug only', async (t) => {
  const shop = await openShop(rail);
  const link = await shop.link(await shop.partner());
  await shop.events();
  const told = async (changes: Json) => {
    await shop.merchant.patch(`/v1/links/${link.id}`, changes);
    return types(await shop.events());
  };
  for (const changes of [
    { destination_url: 'https://acme.example.com/b' },
    { label: 'Footer' },
    { short_slug: 'summer' },
  ]) {
    t.same(await told(changes), ['affiliate_link.updated'], JSON.stringify(changes));
    t.same(await told(changes), [], 'the second time nothing changes');
  }
  t.same(await told({ rate_override: { rate_type: 'percent', rate_value: 1 } }), []);
  t.same(await told({}), []);
});
