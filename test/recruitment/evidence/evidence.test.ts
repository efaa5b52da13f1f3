import t from 'tap';
import { namesCoupons } from '../../../src/recruitment/evidence/coupon_words.ts';
import { type Brand, findEvidence, networkOf } from '../../../src/recruitment/evidence/evidence.ts';
import { assess, score } from '../../../src/recruitment/evidence/score.ts';
import { readPage } from '../../../src/recruitment/pages/read.ts';

const brand: Brand = {
  website_url: 'https://www.breadly.com',
  competitors: ['crumbs.com', 'https://www.loafers.co.uk/shop'],
  keywords: ['sourdough', 'Bäckerei'],
  languages: ['en', 'de'],
  countries: ['US'],
};
const page = (body: string, { url = 'https://baker.com/', title = 'A page', head = '' } = {}) =>
  readPage(`<html lang="en"><title>${title}</title>${head}<body>${body}`, url);
const found = (body: string, options = {}) =>
  findEvidence(page(body, options), brand).map(({ kind, url, text }) => `${kind} ${url} ${text}`);
const link = (url: string, rel = '') => `<a href="${url}" rel="${rel}">here</a>`;

t.test('knows the networks by their links', (t) => {
  const cases: [string, string | undefined][] = [
    ['https://www.awin1.com/cread.php?awinmid=1&awinaffid=2', 'Awin'],
    ['https://tidd.ly/abc', 'Awin'],
    ['http://www.anrdoezrs.net/click-1-2', 'CJ'],
    ['https://crumbs.sjv.io/c/1/2/3', 'Impact'],
    ['https://imp.i123456.net/abc', 'Impact'],
    ['https://grsm.io/x', 'PartnerStack'],
    ['https://www.shareasale.com/r.cfm?b=1&u=2', 'ShareASale'],
    ['https://www.shareasale.com/blog/', undefined],
    ['https://click.linksynergy.com/deeplink?id=1', 'Rakuten'],
    ['https://www.amazon.de/dp/B00/?tag=baker-21', 'Amazon Associates'],
    ['https://www.amazon.com/dp/B00/ref=x?th=1&tag=baker-20', 'Amazon Associates'],
    ['https://www.amazon.com/dp/B00/', undefined],
    ['https://amazon.evil.example.com/?tag=baker-20', undefined],
    ['https://amzn.to/abc', 'Amazon Associates'],
    ['https://www.digistore24.com/redir/123/baker/', 'Digistore24'],
    ['https://www.digistore24.com/', undefined],
    ['https://abc.vendor.hop.clickbank.net/?tid=x', 'ClickBank'],
    ['https://clk.tradedoubler.com/click?p=1&a=2', 'Tradedoubler'],
    ['https://prf.hn/click/camref:1', 'Partnerize'],
    ['https://go.skimresources.com/?id=1&url=x', 'Skimlinks'],
    ['https://redirect.viglink.com/?u=x', 'Sovrn'],
    ['https://app.tool.com/?fpr=baker', 'FirstPromoter'],
    ['https://tool.com/?via=baker', 'Rewardful, Tolt or Dub'],
    ['https://shop.com/?rfsn=123.ab', 'Refersion'],
    ['https://api.goaffpro.com/x', 'GoAffPro'],
    ['https://shop.com/?sca_ref=1.a', 'UpPromote'],
    ['https://tc.tradetracker.net/?c=1', 'TradeTracker'],
    ['https://px.a8.net/svt/ejp?a8mat=1', 'A8.net'],
    ['https://twitter.com/intent/tweet?via=baker', undefined],
    ['https://shop.com/?a=1&viable=1', undefined],
    ['https://example.com/awin1.com', undefined],
    ['https://notawin1.com/', undefined],
    ['not a url', undefined],
  ];
  t.same(
    cases.map(([url]) => [url, networkOf(url)]),
    cases,
  );
  t.end();
});

t.test('knows words for coupons in many languages, and vouchers that are presents', (t) => {
  const yes = [
    ...[
      'Coupons & deals',
      'PROMO CODE',
      'promo-code',
      'Top voucher codes',
      'Gutscheine',
      'Rabattcodes 2026',
      'Codes promo',
      'Bons de réduction',
    ],
    ...[
      'Cupones',
      'código de descuento',
      'Codici sconto',
      'Cupons de desconto',
      'Kortingscodes',
      'Kody rabatowe',
      'Rabattkoder',
      'rabatkoder',
    ],
    ...[
      'Slevové kódy',
      'İndirim kodu',
      'Coduri de reducere',
      'Промокоды',
      'お得なクーポン情報',
      '할인코드',
      '最新优惠券',
      'Alennuskoodit',
      'kuponkódok',
    ],
  ];
  const no = [
    'Cup on a table',
    'Gift vouchers',
    'Geschenkgutschein',
    'Bons cadeaux',
    'Discover codes',
    'Recipes',
    '',
    'scoupons',
    'промысел',
  ];
  t.same(
    yes.filter((text) => !namesCoupons(text)),
    [],
  );
  t.same(no.filter(namesCoupons), []);
  t.end();
});

t.test('finds evidence, and where it was seen', (t) => {
  const cases: [string, string[], string[]][] = [
    [
      'a link to a competitor',
      [link('https://shop.crumbs.com/x')],
      ['competitor_link https://shop.crumbs.com/x crumbs.com: here'],
    ],
    [
      'a competitor that the brand wrote as an address',
      [link('http://loafers.co.uk/')],
      ['competitor_link http://loafers.co.uk/ loafers.co.uk: here'],
    ],
    [
      'a deep link of a network to a competitor',
      [link('https://www.awin1.com/cread.php?ued=https%3A%2F%2Fwww.crumbs.com%2Fa')],
      [
        'competitor_link https://www.awin1.com/cread.php?ued=https%3A%2F%2Fwww.crumbs.com%2Fa crumbs.com: here',
        'affiliate_network https://www.awin1.com/cread.php?ued=https%3A%2F%2Fwww.crumbs.com%2Fa Awin: here',
      ],
    ],
    [
      'a link behind the page itself',
      [link('/go/mixer', 'nofollow sponsored')],
      ['affiliate_network https://baker.com/go/mixer Link of its own: here'],
    ],
    [
      'a page that only begins alike',
      [link('/go/mixer'), link('/good', 'sponsored'), link('/contact', 'nofollow')],
      [],
    ],
    ['a page of coupons', [link('/coupons/')], ['coupon_page https://baker.com/coupons/ here']],
    ['coupons of another site', [link('https://other.com/coupons/')], []],
    [
      'a keyword',
      ['<p>We bake SOURDOUGH daily</p>'],
      ['keyword https://baker.com/ sourdough: A page · We bake SOURDOUGH daily'],
    ],
    [
      'a keyword without its accents',
      ['<p>Die beste Backerei</p>'],
      ['keyword https://baker.com/ Bäckerei: A page · Die beste Backerei'],
    ],
    ['a part of a word', ['<p>sourdoughs unsourdough</p>'], []],
    [
      'a name that is only like a competitor',
      [link('https://crumbs.com.evil.com/'), link('https://mycrumbs.com/')],
      [],
    ],
    ['a hidden page', ['<div hidden>sourdough</div>'], []],
  ];
  for (const [name, body, expected] of cases) t.same(found(body.join(' ')), expected, name);
  t.same(found('', { title: 'Best coupons' }), ['coupon_page https://baker.com/ Best coupons']);
  t.same(found('', { url: 'https://baker.com/codes-promo/mode' }), [
    'coupon_page https://baker.com/codes-promo/mode A page',
  ]);
  t.same(found(`sourdough ${link('https://amzn.to/a')}`, { url: 'https://www.crumbs.com/blog' }), []);
  t.same(found(`sourdough ${link('https://crumbs.com')}`, { url: 'https://blog.breadly.com/' }), []);
  t.equal(found(Array.from({ length: 50 }, (_, nth) => link(`https://amzn.to/${nth}`)).join(' ')).length, 20);
  t.end();
});

t.test('scores what was found', (t) => {
  const feed = '<link rel="alternate" type="application/rss+xml" href="/feed">';
  const amazon = link('https://amzn.to/a');
  const crumbs = link('https://crumbs.com/?x=1');
  const many = [
    crumbs,
    link('https://loafers.co.uk'),
    amazon,
    link('https://tidd.ly/a'),
    link('https://prf.hn/a'),
    link('/coupons/'),
  ].join('');
  const cases: [string, ReturnType<typeof page>, number][] = [
    ['nothing', page('A quiet page'), 0],
    ['feeds and accounts alone', page(link('https://instagram.com/baker'), { head: feed }), 0],
    ['a keyword', page('sourdough'), 8 + 4],
    ['a keyword in the title', page('', { title: 'Sourdough for all' }), 8 + 6 + 4],
    ['a network', page(amazon), 20 + 4],
    ['the same network again', page(amazon + link('https://amzn.to/b')), 20 + 4],
    ['two networks', page(amazon + link('https://tidd.ly/a')), 24 + 4],
    ['a competitor', page(crumbs), 30 + 4],
    ['a competitor twice', page(crumbs + link('https://crumbs.com/?x=2')), 30 + 4],
    ['two competitors', page(crumbs + link('https://loafers.co.uk')), 38 + 4],
    ['a coupon page', page('', { title: 'Coupons' }), 8 + 4],
    [
      'the right country and an audience',
      page(crumbs + link('https://instagram.com/baker'), {
        head: `${feed}<meta property="og:locale" content="en_US">`,
      }),
      30 + 4 + 4 + 3 + 3,
    ],
    ['everything', page(`${many}sourdough`, { title: 'Sourdough', head: feed }), 38 + 28 + 8 + 8 + 6 + 4 + 3],
    ['another language', { ...page(crumbs), language_code: 'fr' }, Math.round(30 * 0.4)],
    ['an unknown language', { ...page(crumbs), language_code: null }, 30],
    ['a competitor itself', page(many, { url: 'https://crumbs.com/' }), 0],
    ['the brand itself', page(many, { url: 'https://breadly.com/' }), 0],
  ];
  t.same(
    cases.map(([name, each]) => [name, assess(each, brand).score]),
    cases.map(([name, , points]) => [name, points]),
  );
  const most = Array.from({ length: 20 }, (_, nth) => nth);
  const all = (['competitor_link', 'affiliate_network', 'coupon_page', 'keyword'] as const).flatMap((kind) =>
    most.map((nth) => ({ kind, url: `https://a.com/${nth}`, text: `name ${nth}: x` })),
  );
  t.equal(score(all, page('', { title: 'name 1', head: feed }), brand), 100);
  t.end();
});
