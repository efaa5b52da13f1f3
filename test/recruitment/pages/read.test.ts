import fc from 'fast-check';
import t from 'tap';
import { decodeText } from '../../../src/recruitment/pages/charset.ts';
import { countryOfHost, countryOfTag, languageOfTag, languageOfText } from '../../../src/recruitment/pages/language.ts';
import { readPage } from '../../../src/recruitment/pages/read.ts';

t.test('reads what a page says of itself, and where it leads', (t) => {
  const page = readPage(
    `<!doctype html><html lang="de-AT"><head><title>Kuchen &amp; mehr | Blog</title><title>Zweiter</title>
    <meta name="Description" content="Die besten\n Rezepte"><meta property="og:site_name" content="Kuchenblog"><meta name="twitter:site" content="@kuchen">
    <link rel="alternate" type="application/rss+xml" href="/feed" title="Feed"><base href="/x/"><style>.h{display:none} .a .b{display:none}</style>
    <script type="application/ld+json">{"@graph":[{"@type":"Person","sameAs":["https://instagram.com/kuchen"],"address":{"addressCountry":"CH"}}]}</script>
    <script>var hidden = "<p>nicht</p>"</script></head>
    <body><p>Hallo<p>Welt <span class="h">nicht</span><i style="display: none">nicht</i><template>nicht</template><!-- nicht --><b class="b">doch</b>
    <a href="../kontakt#x" rel="Nofollow me">Kon<b>takt</b></a><a href="/kontakt">Mail</a><a href="https://www.facebook.com/sharer.php?u=1">teilen</a>
    <a href="https://m.youtube.com/@kuchen"><img alt="YouTube"></a><a href="https://www.youtube.com/@Kuchen/videos">Videos</a>
    <a href="javascript:x">x</a><a href="mailto:a@b.at">y</a><a href="https://user:pw@b.at/">z</a>`,
    'https://www.kuchen.at/a/b',
  );
  t.same(page, {
    url: 'https://www.kuchen.at/a/b',
    title: 'Kuchen & mehr | Blog',
    site_name: 'Kuchenblog',
    description: 'Die besten Rezepte',
    language_code: 'de',
    country_code: 'CH',
    is_podcast: false,
    feeds: [{ url: 'https://www.kuchen.at/feed', title: 'Feed' }],
    social: [
      { channel: 'x', key: 'kuchen', url: 'https://x.com/kuchen' },
      { channel: 'instagram', key: 'kuchen', url: 'https://instagram.com/kuchen' },
      { channel: 'youtube', key: 'kuchen', url: 'https://m.youtube.com/@kuchen' },
    ],
    links: [
      { url: 'https://www.kuchen.at/kontakt', text: 'Kontakt', rel: ['nofollow', 'me'] },
      { url: 'https://www.facebook.com/sharer.php?u=1', text: 'teilen', rel: [] },
      { url: 'https://m.youtube.com/@kuchen', text: 'YouTube', rel: [] },
      { url: 'https://www.youtube.com/@Kuchen/videos', text: 'Videos', rel: [] },
    ],
    text: 'Hallo Welt doch KontaktMailteilen Videos xyz',
  });
  t.end();
});

t.test('reads a feed, and the notes of its episodes', (t) => {
  const feed = readPage(
    `<?xml version="1.0"?><rss xmlns:itunes="x"><channel><title>The Cast</title><image><title>Cover</title><link>https://cdn.com/</link></image>
    <link>https://thecast.com</link><description>All about bread</description><language>en-us</language>
    <item><title>One &amp; two</title><link>https://thecast.com/1</link><description><![CDATA[Get it <a href="https://amzn.to/x">here</a>]]></description>
    <enclosure url="x" type="audio/mpeg"/></item></channel></rss>`,
    'https://thecast.com/feed',
    'feed',
  );
  t.match(feed, {
    ...{
      url: 'https://thecast.com/feed',
      title: 'The Cast',
      description: 'All about bread',
      language_code: 'en',
      is_podcast: true,
    },
    links: [{ url: 'https://thecast.com/1' }, { url: 'https://amzn.to/x', text: 'here' }],
    text: 'All about bread One & two Get it here',
  });
  const atom = readPage(
    `<feed xmlns="http://www.w3.org/2005/Atom"><title>Notes</title><link href="https://notes.com/"/><link rel="self" href="https://notes.com/feed"/>
    <entry><title>A</title><link href="/a"/><content type="html">&lt;a href="https://shop.com/?a=1&amp;amp;b=2"&gt;x&lt;/a&gt;</content></entry></feed>`,
    'https://notes.com/feed',
    'feed',
  );
  t.match(atom, { title: 'Notes', is_podcast: false });
  t.same(
    atom.links.map(({ url }) => url),
    ['https://notes.com/', 'https://notes.com/a', 'https://shop.com/?a=1&b=2'],
  );
  t.end();
});

t.test('tells a page in the encoding that it is written in, whatever it says', (t) => {
  const latin = Buffer.from('<p>caf\xe9</p>', 'latin1');
  const utf8 = Buffer.from('<p>café</p>');
  const shift_jis = Buffer.from([0x93, 0xfa, 0x96, 0x7b]);
  const cyrillic = Buffer.from([0xef, 0xf0, 0xe8, 0xe2, 0xe5, 0xf2]);
  const meta = (charset: string, text: Buffer) => Buffer.concat([Buffer.from(`<meta charset="${charset}">`), text]);
  const cases: [string, Buffer, string | undefined, RegExp][] = [
    ['header', latin, 'text/html; charset=ISO-8859-1', /café/],
    ['header in UTF-8, which it is not', latin, 'text/html; charset=utf-8', /café/],
    ['header in latin1, which it is not', utf8, 'text/html; charset=iso-8859-1', /café/],
    ['no word', latin, 'text/html', /café/],
    ['no word, in UTF-8', utf8, undefined, /café/],
    ['header before meta', meta('utf-8', cyrillic), 'text/html; charset="windows-1251"', /привет/],
    ['meta', meta('windows-1251', cyrillic), 'text/html', /привет/],
    ['meta where the header is wrong', meta('shift_jis', shift_jis), 'text/html; charset=utf-8', /日本/],
    [
      'old meta',
      Buffer.concat([
        Buffer.from('<meta http-equiv="Content-Type" content="text/html; charset=Shift_JIS">'),
        shift_jis,
      ]),
      'text/html',
      /日本/,
    ],
    [
      'XML',
      Buffer.concat([Buffer.from('<?xml version="1.0" encoding="windows-1251"?>'), cyrillic]),
      'application/xml',
      /привет/,
    ],
    [
      'mark',
      Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from('日本', 'utf16le')]),
      'text/html; charset=utf-8',
      /日本/,
    ],
    ['mark of UTF-8', Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), utf8]), 'text/html; charset=latin1', /^<p>café/],
    ['unknown', utf8, 'text/html; charset=x-nothing', /café/],
    ['UTF-16 that it cannot be in', meta('utf-16', utf8), 'text/html', /café/],
    ['cut within a character', utf8.subarray(0, 7), 'text/html; charset=utf-8', /caf/],
  ];
  for (const [name, bytes, header, text] of cases) t.match(decodeText(bytes, header), text, name);
  t.end();
});

t.test('knows languages and countries', (t) => {
  const tags = [
    ['de-AT', 'de'],
    ['EN_us', 'en'],
    ['deu', 'de'],
    ['nb-NO', 'no'],
    ['iw', 'he'],
    ['zh-Hant-TW', 'zh'],
    ['x', undefined],
    ['', undefined],
    ['klingon!', undefined],
  ];
  t.same(
    tags.map(([tag]) => [tag, languageOfTag(tag)]),
    tags,
  );
  const texts = [
    ['Die besten Rezepte für Kuchen und Torten aus unserer Küche', 'de'],
    ['The best recipes for cakes and cookies from our kitchen', 'en'],
    ['Les meilleures recettes de gâteaux de notre cuisine', 'fr'],
    ['Las mejores recetas de pasteles de nuestra cocina', 'es'],
    ['Le migliori ricette di torte della nostra cucina', 'it'],
    ['As melhores receitas de bolos da nossa cozinha', 'pt'],
    ['De beste recepten voor taart en koekjes uit onze keuken', 'nl'],
    ['Najlepsze przepisy na ciasta z naszej kuchni', 'pl'],
    ['Лучшие рецепты тортов и печенья с нашей кухни', 'ru'],
    ['おいしいケーキの作り方と毎日のレシピ', 'ja'],
    ['Привет, это мой блог о еде', 'ru'],
    ['Home Blog About me Contact Instagram YouTube. Привет, это мой блог о еде', 'ru'],
    ['Вітаємо на сайті про їжу. Home Shop', 'uk'],
    ['Καλώς ήρθατε στο blog μου', 'el'],
    ['Мой блог', undefined],
    ['ok', undefined],
    ['12345 67890 12345 67890 12345', undefined],
  ];
  t.same(
    texts.map(([text = '']) => [text, languageOfText(text)]),
    texts,
  );
  t.same(['a.de', 'b.co.uk', 'c.io', 'd.com', 'e.eu', 'f.xn--p1ai', '10.0.0.1'].map(countryOfHost), [
    'DE',
    'GB',
    undefined,
    undefined,
    undefined,
    'RU',
    undefined,
  ]);
  t.same(['de-AT', 'de', 'es-419', 'en_GB'].map(countryOfTag), ['AT', undefined, undefined, 'GB']);
  t.end();
});

const most_characters = 256 * 1024;
const times = (text: string) => text.repeat(most_characters / text.length);

/** Texts that take hours in a parser that looks through all open elements, or in a pattern that tries every way to match. */
const hostile = [
  ...[
    '<b>',
    '</i>',
    '<p>',
    '<a href=x>',
    '<',
    '&',
    '&lt',
    '<!--',
    '<![CDATA[',
    '<script>',
    '<svg>',
    '<svg><foreignObject>',
    ' ',
    'а',
    '\u0000',
  ],
  ...[
    '<style>.a{',
    '<style>.a ',
    '<style>direction:rtl',
    '<p style="direction:rtl ',
    '<base href="//',
    '<title>',
    '<meta name=x>',
    '<a rel="x ',
  ],
  ...[
    '<script type="application/ld+json">[',
    '<a href="https://facebook.com/',
    '<html lang="',
    '<item>',
    '<description><![CDATA[',
    '-',
    '.a,',
  ],
].map(times);

t.test('reads hostile pages in bounded time', (t) => {
  for (const text of [
    ...hostile,
    `<script type="application/ld+json">${'[{"a":'.repeat(30_000)}1${'}]'.repeat(30_000)}</script>`,
  ]) {
    for (const content of ['html', 'feed'] as const) {
      const page = readPage(text, 'https://a.com/', content);
      t.ok(page.text.length <= 200_000 && page.links.length <= 2_000);
    }
  }
  t.end();
});

t.test('looks at so much of a page and no more', (t) => {
  const times = (count: number, write: (nth: number) => string) =>
    Array.from({ length: count }, (_, nth) => write(nth)).join('');
  const many_links = readPage(
    times(28_000, (nth) => `<a href="https://s${nth}.com/?ref=a">x</a>`),
    'https://a.com/',
  );
  t.equal(many_links.links.length, 2_000);
  const account = (nth: number) => `{"sameAs":"https://www.instagram.com/ada${nth}"}`;
  const scripts = times(18_000, (nth) => `<script type="application/ld+json">${account(nth)}</script>`);
  t.equal(readPage(scripts, 'https://a.com/').social.length, 50);
  const alternates = times(18_000, (nth) => `<link rel="me" href="https://www.instagram.com/ada${nth}">`);
  t.equal(readPage(alternates, 'https://a.com/').social.length, 50);
  t.end();
});

t.test('never throws', (t) => {
  const pieces = fc.constantFrom(
    '<a href="',
    '">',
    '<',
    '</a>',
    '<rss>',
    '<item>',
    '<base href="',
    "'",
    '<script type="application/ld+json">',
    '{"sameAs":',
    '[',
    '</script>',
    '<html lang="',
    '\ud800',
    'http://[',
    '%',
    '//',
    '<meta name="twitter:site" content="',
  );
  const text = fc
    .array(fc.oneof(pieces, fc.string({ unit: 'binary', maxLength: 10 })), { maxLength: 40 })
    .map((all) => all.join(''));
  fc.assert(
    fc.property(text, fc.constantFrom('html' as const, 'feed' as const), (text, content) => {
      readPage(text, 'https://a.com/', content);
    }),
    { numRuns: 500 },
  );
  fc.assert(
    fc.property(fc.uint8Array(), fc.string(), (bytes, header) => void decodeText(Buffer.from(bytes), header)),
    { numRuns: 200 },
  );
  t.end();
});
