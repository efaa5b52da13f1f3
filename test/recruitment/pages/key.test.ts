import fc from 'fast-check';
import t from 'tap';
import { canonicalKey, channelOf, profileUrl, registrableDomain } from '../../../src/recruitment/pages/key.ts';
import type { Channel } from '../../../src/recruitment/pages/platforms/platforms.ts';

const id = 'UCabcdefghijklmnopqrst_-';

const cases: [Channel, string, string | undefined][] = [
  ['website', 'example.com', 'example.com'],
  ['website', ' HTTPS://WWW.Example.COM./a/b?c#d ', 'example.com'],
  ['website', 'http://shop.example.co.uk:8080', 'example.co.uk'],
  ['website', '//blog.example.de/x', 'example.de'],
  ['website', 'www2.example.com', 'example.com'],
  ['website', 'https://a.b.kawasaki.jp/', 'a.b.kawasaki.jp'],
  // Names in other scripts are written in ASCII, whichever way they came.
  ['website', 'https://www.bücher-müller.de', 'xn--bcher-mller-thbg.de'],
  ['website', 'XN--BCHER-MLLER-THBG.de', 'xn--bcher-mller-thbg.de'],
  ['website', 'https://例え.jp/', 'xn--r8jz45g.jp'],
  ['website', 'https://пример.рф', 'xn--e1afmkfd.xn--p1ai'],
  ['website', 'ｅｘａｍｐｌｅ.com', 'example.com'],
  // Many publishers share these domains.
  ['website', 'https://cooking.blogspot.com/2024/', 'cooking.blogspot.com'],
  ['website', 'https://cooking.blogspot.co.uk', 'cooking.blogspot.com'],
  ['website', 'http://www.cooking.blogspot.de/', 'cooking.blogspot.com'],
  ['website', 'https://jane.wordpress.com', 'jane.wordpress.com'],
  ['website', 'https://jane.github.io/blog', 'jane.github.io'],
  ['website', 'https://jane.medium.com/a-post', 'jane.medium.com'],
  ['website', 'https://medium.com/@Jane/a-post', 'jane.medium.com'],
  ['website', 'https://medium.com/better-programming/x', 'better-programming.medium.com'],
  ['website', 'https://medium.com/tag/food', undefined],
  ['website', 'medium.com', undefined],
  ['newsletter', 'https://www.jane.substack.com/p/one', 'jane.substack.com'],
  ['newsletter', 'https://open.substack.com/pub/jane/p/one', 'jane.substack.com'],
  ['newsletter', 'https://substack.com/@jane', 'jane.substack.com'],
  ['newsletter', 'jane.beehiiv.com', 'jane.beehiiv.com'],
  ['newsletter', 'https://buttondown.email/jane', 'jane.buttondown.com'],
  ['newsletter', 'https://news.example.com', 'example.com'],
  // Sites of many: the account is the key, and where none is named it is nobody.
  ...(
    [
      ['https://linktr.ee/ann', 'ann.linktr.ee'],
      ['https://linktr.ee/Ann.B?utm=x', 'ann.b.linktr.ee'],
      ['https://linktr.ee/', undefined],
      ['https://linktr.ee/login', undefined],
      ['linktr.ee/@bob', 'bob.linktr.ee'],
      ['https://beacons.ai/ann/shop', 'ann.beacons.ai'],
      ['https://www.amazon.com/shop/cid', 'cid.amazon.com'],
      ['https://www.amazon.de/shop/cid', 'cid.amazon.de'],
      ['https://www.amazon.com/stores/author/B001', 'b001.author.amazon.com'],
      ['https://www.amazon.com/dp/B000', undefined],
      ['https://www.shopltk.com/explore/eve', 'eve.shopltk.com'],
      ['https://www.etsy.com/de/shop/AnnBakes', 'annbakes.etsy.com'],
      ['https://www.etsy.com/people/annbakes', 'annbakes.people.etsy.com'],
      ['https://www.etsy.com/listing/1/cake', undefined],
      ['https://www.ebay.co.uk/usr/ann', 'ann.usr.ebay.co.uk'],
      ['https://www.patreon.com/ann', 'ann.patreon.com'],
      ['https://ko-fi.com/ann', 'ann.ko-fi.com'],
      ['https://ann.gumroad.com/l/book', 'ann.gumroad.com'],
      ['https://gumroad.com/ann', 'ann.gumroad.com'],
      ['https://www.tumblr.com/ann/123', 'ann.tumblr.com'],
      ['https://ann.carrd.co', 'ann.carrd.co'],
      ['https://ann.notion.site/Home', 'ann.notion.site'],
      ['https://ann.wordpress.com/2024', 'ann.wordpress.com'],
      ['https://wordpress.com/', undefined],
      ['https://www.facebook.com/profile.php?id=1000123', '1000123.id.facebook.com'],
      ['https://m.facebook.com/profile.php?ref=x&id=1000124', '1000124.id.facebook.com'],
      ['https://www.facebook.com/people/Ann-Lee/1000125/', '1000125.id.facebook.com'],
      ['https://www.facebook.com/profile.php?x=1', undefined],
      ['https://blog.github.com/post', undefined],
      ['https://www.behance.net/ann', 'ann.behance.net'],
      // The platform's own pages are of nobody.
      ['https://unsplash.com/photos/AbC', undefined],
      ['https://dribbble.com/shots/1-cake', undefined],
      ['https://www.kaggle.com/datasets/ann/cakes', undefined],
      ['https://letterboxd.com/film/cake/', undefined],
      ['https://letterboxd.com/ann/list/cakes/', 'ann.letterboxd.com'],
      ['https://www.artstation.com/artwork/AbC', undefined],
      ['https://www.thingiverse.com/thing:123', undefined],
      ['https://www.meetup.com/find/?keywords=cake', undefined],
      ['https://vimeo.com/123456', undefined],
      ['https://vimeo.com/123456?share=copy', undefined],
      ['https://vimeo.com/user123', 'user123.vimeo.com'],
      ['https://vimeo.com/channels/cakes', undefined],
      ['https://ok.ru/profile/123', '123.profile.ok.ru'],
      ['https://ok.ru/group/123', '123.group.ok.ru'],
      ['https://ok.ru/ann', 'ann.ok.ru'],
      // An account may be a name below the host of its platform.
      ['https://ann.contently.com', 'ann.contently.com'],
      ['https://ann.fourthwall.com/products/mug', 'ann.fourthwall.com'],
      ['https://ann.artstation.com/projects/AbC', 'ann.artstation.com'],
      ['https://www.artstation.com/ann', 'ann.artstation.com'],
      ['https://ann.sellfy.com/', 'ann.sellfy.com'],
      ['https://ann.hashnode.com/', 'ann.hashnode.com'],
      ['https://www.quora.com/profile/Ann-Lee', 'ann-lee.quora.com'],
      ['https://discord.gg/AbC', 'AbC.discord.gg'],
      ['https://space.bilibili.com/123/video', '123.space.bilibili.com'],
      ['https://weibo.com/u/123', '123.weibo.com'],
      ['https://weibo.com/ann', 'ann.weibo.com'],
      ['https://blog.naver.com/ann/22', 'ann.blog.naver.com'],
      ['https://naver.com', 'naver.com'],
      ['https://ameblo.jp/ann/entry-1.html', 'ann.ameblo.jp'],
      ['https://sites.google.com/view/ann', 'ann.sites.google.com'],
      // A path says by its form, at any host, that its site has many owners.
      ['https://social.example/@Ann', 'ann._at.social.example'],
      ['https://www.social.example/@ann/1123', 'ann._at.social.example'],
      ['https://social.example/%40ann', 'ann._at.social.example'],
      ['https://social.example/web/@ann', 'ann._at.social.example'],
      ['https://social.example/@ann@other.example', 'ann._at.other.example'],
      ['https://social.example/@support', 'support._at.social.example'],
      ['https://social.example/@ann@', undefined],
      ['https://social.example/@кухня', 'xn--j1agri5c._at.social.example'],
      ['https://social.example/about', 'social.example'],
      ['https://people.example.edu/~ann/papers/', 'ann._tilde.people.example.edu'],
      ['https://network.example/profile/Ann_X', 'ann_x._profile.network.example'],
      ['https://network.example/de/profiles/ann.x/web', 'ann.x._profiles.network.example'],
      ['https://forum.example.org/u/ann/summary', 'ann._u.forum.example.org'],
      ['https://forum.example.org/users/12/ann', '12._users.forum.example.org'],
      ['https://forum.example.org/user/ann', 'ann._user.forum.example.org'],
      ['https://forum.example.org/user/login', 'example.org'],
      ['https://forum.example.org/users/sign_in', 'example.org'],
      ['https://forum.example.org/members/ann.12/', 'ann.12._members.forum.example.org'],
      ['https://forum.example.org/c/bakers', 'bakers._c.forum.example.org'],
      ['https://forum.example.org/c/bakers/12', 'example.org'],
      ['https://network.example/in/ann/', 'ann._in.network.example'],
      ['https://shop.example/in/products', 'shop.example'],
      ['https://agency.example/people/ann-lee', 'ann-lee._people.agency.example'],
      ['https://news.example/people/2026/11/ann-lee', 'news.example'],
      ['ann._at.medium.com', 'ann.medium.com'],
      ['https://www.geocities.ws/annx/', 'annx.geocities.ws'],
      ['https://users.rcn.com/annx', 'annx.users.rcn.com'],
      // A copy in an archive is of whom the page is of that was copied.
      ['https://web.archive.org/web/2020/http://ann.example.com/x', 'example.com'],
      ['https://web.archive.org/web/20200102030405id_/https://social.example/@ann', 'ann._at.social.example'],
      ['https://web.archive.org/web/2020/www.example.com', 'example.com'],
      ['https://web.archive.org/web/*/https://linktr.ee/ann', 'ann.linktr.ee'],
      ['https://archive.example/wayback/2020/http:/example.com', 'example.com'],
      ['https://archive.example/2020.01.02-030405/https://www.facebook.com/profile.php?id=9', '9.id.facebook.com'],
      ['https://archive.org/', 'archive.org'],
      // Accounts of a channel of their own are no websites.
      ['https://www.instagram.com/ann', undefined],
      ['https://www.youtube.com/@ann', undefined],
    ] as const
  ).map(([text, key]): [Channel, string, string | undefined] => ['website', text, key]),
  ['podcast', 'https://thecast.buzzsprout.com/1/2', 'thecast.buzzsprout.com'],
  ['podcast', 'https://podcasts.apple.com/us/podcast/the-cast/id1234567?i=1', 'id1234567.podcasts.apple.com'],
  ['podcast', 'https://open.spotify.com/show/4rOoJ6Egrf8K2IrywzwOMk?si=1', '4rOoJ6Egrf8K2IrywzwOMk.open.spotify.com'],
  ['podcast', '4rOoJ6Egrf8K2IrywzwOMk.open.spotify.com', '4rOoJ6Egrf8K2IrywzwOMk.open.spotify.com'],
  ['podcast', 'https://thecast.com/feed.xml', 'thecast.com'],
  ['other', 'https://m.facebook.com/Jane.Doe?ref=1', 'jane.doe.facebook.com'],
  ['other', 'https://www.facebook.com/groups/bakers/', 'bakers.groups.facebook.com'],
  ['other', 'https://www.facebook.com/sharer/sharer.php?u=x', undefined],
  ['other', 'https://de.linkedin.com/in/jane-m%C3%BCller', 'xn--jane-mller-feb.in.linkedin.com'],
  ['other', 'https://t.me/s/deals', 'deals.t.me'],
  ['other', 'https://forum.example.org/t/1', 'example.org'],
  // Accounts
  ['youtube', `https://www.youtube.com/channel/${id}`, id],
  ['youtube', `https://m.youtube.com/channel/${id}/videos?x=1`, id],
  ['youtube', id, id],
  ['youtube', 'https://youtube.com/@JaneBakes', 'janebakes'],
  ['youtube', 'youtube.com/@JaneBakes/videos', 'janebakes'],
  ['youtube', '@JaneBakes', 'janebakes'],
  ['youtube', 'janebakes', 'janebakes'],
  ['youtube', 'https://www.youtube.com/c/JaneBakes/about', 'janebakes'],
  ['youtube', 'https://www.youtube.com/user/JaneBakes', 'janebakes'],
  ['youtube', 'https://www.youtube.com/JaneBakes', 'janebakes'],
  ['youtube', 'https://www.youtube.com/@%D0%BA%D1%83%D1%85%D0%BD%D1%8F', 'xn--j1agri5c'],
  ['youtube', 'https://www.youtube.com/@кухня', 'xn--j1agri5c'],
  ['youtube', 'https://www.youtube.com/@watch', 'watch'],
  ['youtube', 'https://www.youtube.com/watch?v=dQw4w9WgXcQ', undefined],
  ['youtube', 'https://youtu.be/dQw4w9WgXcQ', undefined],
  ['youtube', 'https://www.youtube.com/shorts/dQw4w9WgXcQ', undefined],
  ['youtube', 'https://www.youtube.com/', undefined],
  ['youtube', 'https://www.youtube.com.evil.com/@jane', undefined],
  ['instagram', 'https://www.instagram.com/Jane.Bakes/?hl=de', 'jane.bakes'],
  ['instagram', '@jane_bakes', 'jane_bakes'],
  ['instagram', 'https://instagram.com/stories/jane/123', 'jane'],
  ['instagram', 'https://www.instagram.com/p/Cabc123/', undefined],
  ['instagram', 'https://www.instagram.com/reel/Cabc123/', undefined],
  ['instagram', 'https://www.instagram.com/explore/tags/cake', undefined],
  ['instagram', 'this-is-no-handle', undefined],
  ['instagram', 'https://example.com/jane', undefined],
  ['tiktok', 'https://www.tiktok.com/@Jane.Bakes/video/1', 'jane.bakes'],
  ['tiktok', 'jane.bakes', 'jane.bakes'],
  ['tiktok', 'https://www.tiktok.com/tag/cake', undefined],
  ['tiktok', 'https://vm.tiktok.com/ZM1/', undefined],
  ['x', 'https://x.com/JaneBakes/status/1', 'janebakes'],
  ['x', 'https://mobile.twitter.com/janebakes', 'janebakes'],
  ['x', 'https://twitter.com/#!/janebakes', 'janebakes'],
  ['x', 'https://twitter.com/intent/tweet?text=x', undefined],
  ['x', 'https://x.com/home', undefined],
  ['x', 'a_name_of_sixteen', undefined],
  // Hostile, or no prospect
  ...(
    [
      '',
      ' ',
      '@',
      'jane@example.com',
      'mailto:jane@example.com',
      'https://jane@example.com/',
      'https://example.com@evil.com/',
      'https://a:b@example.com',
      'javascript:alert(1)',
      'data:text/html,x',
      'file:///etc/passwd',
      'ftp://example.com',
      '127.0.0.1',
      'http://[::1]/',
      'http://2130706433/',
      'localhost',
      'com',
      'co.uk',
      'a..com',
      '-a.com',
      'exa mple.com',
      'example.com\r\nHost: x',
      'example.com\u0000',
      'example\\.com',
      'https://',
      '%00.com',
      'xn--.com',
      `${'a'.repeat(64)}.com`,
      `${'a.'.repeat(200)}com`,
      `https://example.com/${'a'.repeat(2048)}`,
    ] as const
  ).map((text): [Channel, string, undefined] => ['website', text, undefined]),
  ...['jane@example.com', '@', '', '../x', 'a/b', 'jane%zz', 'https://', 'ja\u0000ne', '<script>'].flatMap((text) =>
    (['youtube', 'instagram', 'tiktok', 'x'] as const).map((channel): [Channel, string, undefined] => [
      channel,
      text,
      undefined,
    ]),
  ),
];

t.test('gives the canonical key of what a person or a page wrote', async (t) => {
  t.same(
    cases.map(([channel, text]) => [channel, text, canonicalKey(channel, text)]),
    cases,
  );
});

t.test('gives a canonical key again for itself, and for the address of its profile', async (t) => {
  const keys = cases.flatMap(([channel, , key]) => (key === undefined ? [] : [[channel, key] as const]));
  t.same(
    keys.map(([channel, key]) => [channel, canonicalKey(channel, key)]),
    keys,
  );
  t.same(
    keys.map(([channel, key]) => [channel, canonicalKey(channel, profileUrl(channel, key))]),
    keys,
  );
});

t.test('never throws, holds an @, or changes a key that it gave', async () => {
  const channel = fc.constantFrom(
    ...(['website', 'youtube', 'podcast', 'newsletter', 'instagram', 'tiktok', 'x', 'other'] as const),
  );
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.webUrl(),
    fc.domain(),
    fc.emailAddress(),
    fc
      .tuple(fc.constantFrom(...cases.map(([, each]) => each)), fc.string(), fc.nat(60))
      .map(([base, more, at]) => base.slice(0, at) + more + base.slice(at)),
  );
  fc.assert(
    fc.property(channel, text, (channel, text) => {
      channelOf(text);
      const key = canonicalKey(channel, text);
      if (key === undefined) return true;
      return /^[A-Za-z0-9._-]{1,255}$/.test(key) && canonicalKey(channel, key) === key;
    }),
    { numRuns: 3000 },
  );
});

t.test('gives the address of a site with its host as URLs are kept', async (t) => {
  t.equal(profileUrl('website', 'xn--mller-kva.de'), 'https://xn--mller-kva.de/');
  t.equal(profileUrl('other', 'xn--mller-kva.blogspot.com'), 'https://xn--mller-kva.blogspot.com/');
  t.equal(URL.parse(profileUrl('youtube', 'xn--j1agri5c'))?.pathname, '/@%D0%BA%D1%83%D1%85%D0%BD%D1%8F');
});

t.test('knows the channel of an address by its host', async (t) => {
  const expected: [string, Channel | undefined][] = [
    ['https://example.com/', 'website'],
    ['https://m.youtube.com/@jane', 'youtube'],
    ['https://youtu.be/x', 'youtube'],
    ['https://www.instagram.com/jane', 'instagram'],
    ['https://vm.tiktok.com/x', 'tiktok'],
    ['https://twitter.com/jane', 'x'],
    ['https://x.com/jane', 'x'],
    ['https://netflix.com/', 'website'],
    ['https://jane.substack.com', 'newsletter'],
    ['https://thecast.buzzsprout.com', 'podcast'],
    ['https://podcasts.apple.com/us/podcast/x/id1', 'podcast'],
    ['https://www.facebook.com/jane', 'other'],
    ['https://jane.medium.com', 'website'],
    ['https://web.archive.org/web/2020/https://www.instagram.com/jane', 'instagram'],
    ['jane@example.com', undefined],
    ['http://127.0.0.1/', undefined],
    ['mailto:jane@example.com', undefined],
  ];
  t.same(
    expected.map(([url]) => [url, channelOf(url)]),
    expected,
  );
});

t.test('gives the registrable domain of a host or a URL', async (t) => {
  t.equal(registrableDomain('www.shop.example.co.uk'), 'example.co.uk');
  t.equal(registrableDomain('https://jane.github.io/x'), 'jane.github.io');
  t.equal(registrableDomain('github.io'), 'github.io');
  t.equal(registrableDomain('10.0.0.1'), undefined);
});
