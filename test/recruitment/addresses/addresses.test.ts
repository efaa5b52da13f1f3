import fc from 'fast-check';
import t from 'tap';
import { isDecoy, mailboxOf, parseAddress } from '../../../src/recruitment/addresses/address.ts';
import { contactPages } from '../../../src/recruitment/addresses/contact_pages.ts';
import { findAddresses, type Manner } from '../../../src/recruitment/addresses/find.ts';
import { nobodysReason } from '../../../src/recruitment/addresses/nobody.ts';
import { addressesInText } from '../../../src/recruitment/addresses/text.ts';
import { verifyAddress } from '../../../src/recruitment/addresses/verify.ts';
import { readPage } from '../../../src/recruitment/pages/read.ts';
import { startNameServer } from '../../core/net/name_server.ts';

t.test('reads addresses in running text, and nothing else', (t) => {
  const jane = 'jane@baker.com';
  const cases: [string, string[]][] = [
    ['Write to jane@baker.com.', [jane]],
    ['<Jane@Baker.COM>', [jane]],
    ['jane@baker.comPhone 123', [jane]],
    ['mail:jane@baker.com,bob@baker.com;x', [jane, 'bob@baker.com']],
    ['jane.doe+blog@mail.baker.co.uk', ['jane.doe+blog@mail.baker.co.uk']],
    ['info@bäckerei-müller.de', ['info@xn--bckerei-mller-bfb28a.de']],
    ['jane [at] baker.com', [jane]],
    ['jane(at)baker(dot)com', [jane]],
    ['jane {at} baker {dot} com', [jane]],
    ['jane[ät]baker[punkt]com', [jane]],
    ['JANE (AT) BAKER . COM', []],
    ['jane [ at ] baker [ . ] com', [jane]],
    ['jane (arroba) baker (punto) com', [jane]],
    ['jane [arobase] baker [point] com', [jane]],
    ['jane (chiocciola) baker.com', [jane]],
    ['jane(собака)baker.com', [jane]],
    ['jane_at_baker.com', [jane]],
    ['jane at baker dot com', [jane]],
    ['jane at mail dot baker dot com', ['jane@mail.baker.com']],
    ['Email: jane at baker.com', [jane]],
    ['jane(a)baker.com', [jane]],
    ['jane☆baker.com', [jane]],
    ['jane＠baker.com', [jane]],
    ['jane @ baker.com', [jane]],
    ['jane*at*baker.com', [jane]],
    ['jane "at" baker "dot" com', [jane]],
    ['jane [a] baker.com', [jane]],
    ['Schreib an jane klammeraffe baker punkt com', [jane]],
    ['Find us @ baker.com', []],
    ['See you all at home dot com', []],
    ['jane <at> baker <dot> com', [jane]],
    ['Meet us at example.com or at baker.com', []],
    ['state-of-the-art-at-baker.com', []],
    ['https://www.youtube.com/@baker.com', []],
    ['@jane.baker', []],
    // Handles, users of URLs, packages.
    ...[
      ...['I am @mia@social.town', 'On the fediverse: @mia@social.town!', '@mia @social.town', '!bakers@lemmy.ml'],
      ...[
        'acct:mia@social.town',
        'sip:mia@phone.com',
        'XMPP: mia@jabber.de',
        'mia@mastodon.social',
        'Mastodon: mia@town.com',
      ],
      ...[
        'git@github.com:mia/site.git',
        'mia@host.com:src/site',
        'https://mia:secret@host.com/',
        'ssh://git@host.com/x',
      ],
      ...['//0f3a@errors.host.com/12', 'https://mia@host.com', '@scope/name@latest.com', 'photo@2x.zip'],
    ].map((text): [string, string[]] => [text, []]),
    ['@mia@social.town and jane@baker.com', [jane]],
    ['https://baker.com/team jane@baker.com', [jane]],
    ['mailto:jane@baker.com', [jane]],
    ['jane@baker.com: write to me', [jane]],
    ['Instagram @janebakes, jane@baker.com', [jane]],
    ['image@2x.png', []],
    ['jörg@baker.com', []],
    ['a@b', []],
    ['@', []],
  ];
  t.same(
    cases.map(([text]) => [text, addressesInText(text).flatMap(({ email }) => (isDecoy(email) ? [] : email))]),
    cases,
  );
  t.end();
});

t.test('reads addresses that a page hides from machines, and not those that it hides from readers', (t) => {
  const cloudflare = (text: string) =>
    `2a${[...Buffer.from(text)].map((byte) => (byte ^ 0x2a).toString(16).padStart(2, '0')).join('')}`;
  const jane = 'jane@baker.com';
  const cases: [string, [string, Manner][]][] = [
    ['<a href="mailto:jane@baker.com?subject=Hi">write</a>', [[jane, 'mailto']]],
    ['<a href="MAILTO:%6aane%40baker.com">write</a>', [[jane, 'mailto']]],
    ['<a href="mailto:jane(at)baker.com">write</a>', [[jane, 'obfuscated']]],
    [
      '<a href="mailto:jane@baker.com,bob@baker.com">write</a>',
      [
        [jane, 'mailto'],
        ['bob@baker.com', 'mailto'],
      ],
    ],
    ['<form action="mailto:jane@baker.com">', [[jane, 'mailto']]],
    ['<a href="&#109;&#97;&#105;&#108;&#116;&#111;&#58;&#106;ane&#x40;baker&period;com">x</a>', [[jane, 'mailto']]],
    ['<p>&#106;ane&commat;baker&#46;com</p>', [[jane, 'text']]],
    [
      '<script type="application/ld+json">{"@graph":[{"author":{"email":"mailto:jane@baker.com"}}]}</script>',
      [[jane, 'json_ld']],
    ],
    ['<span itemprop="email" content="jane@baker.com"></span>', [[jane, 'json_ld']]],
    [
      `<a href="/cdn-cgi/l/email-protection" class="__cf_email__" data-cfemail="${cloudflare(jane)}">[email&#160;protected]</a>`,
      [[jane, 'cloudflare']],
    ],
    [`<a href="/cdn-cgi/l/email-protection#${cloudflare(jane)}">x</a>`, [[jane, 'cloudflare']]],
    ['<p>jane<span>@</span><b>baker</b>.com</p>', [[jane, 'text']]],
    ['<p>jane<!-- nobody -->@<!-- x@y.com -->baker.com</p>', [[jane, 'text']]],
    ['<p>jane<span style="display:none">.nospam</span>@baker.com</p>', [[jane, 'text']]],
    ['<style>.x{display:none}</style><p>jane<i class="x">null</i>@baker.com</p>', [[jane, 'text']]],
    ['<p>jane&#8203;@baker.com</p>', [[jane, 'text']]],
    ['<p>jane&nbsp;[at]&nbsp;baker.com</p>', [[jane, 'obfuscated']]],
    ['<span style="unicode-bidi:bidi-override;direction:rtl">moc.rekab@enaj</span>', [[jane, 'reversed']]],
    ['<bdo dir="rtl">moc.rekab@enaj</bdo>', [[jane, 'reversed']]],
    [
      '<style>.r{unicode-bidi:bidi-override; direction: rtl}</style><b class="r">moc.rekab@enaj</b>',
      [[jane, 'reversed']],
    ],
    ["<script>document.write('<a href=\"mai' + 'lto:jane' + '@' + 'baker.com\">x</a>')</script>", [[jane, 'script']]],
    ['<p>jane<img src="at.png" alt="@">baker.com</p>', [[jane, 'text']]],
    ['<a data-email="jane@baker.com">x</a>', [[jane, 'script']]],
    [`<a href="javascript:location='mailto:jane@baker.com'">x</a>`, [[jane, 'script']]],
    ['<noscript>jane@baker.com</noscript>', [[jane, 'text']]],
    ['<div>jane@baker.com</div><div>Fax</div>', [[jane, 'text']]],
    ['<!-- jane@baker.com -->', []],
    ['<p hidden>jane@baker.com</p>', []],
    ['<a style="display: none" href="mailto:trap@baker.com">x</a>', []],
    ['<script>var dsn = "https://0123456789abcdef0123@o1.ingest.sentry.io/1"; var a = "jane@baker.com"</script>', []],
    ['<style>/* jane@baker.com */</style>', []],
    ['<img src="photo@2x.png" alt="photo@2x.png">', []],
    ['<p>you@example.com name@domain.com your@email.com user@yourdomain.com</p>', []],
    ['<p>abc@sentry.wixpress.com noreply@baker.com</p>', []],
    ['<p>a3f09b2c4d5e6f708192@baker.com</p>', []],
  ];
  t.same(
    cases.map(([html]) => [html, findAddresses(html).map(({ email, manner }) => [email, manner])]),
    cases,
  );
  t.end();
});

t.test('knows people, roles, and addresses of nobody', (t) => {
  const mailboxes = [
    ['jane.doe@baker.com', 'person'],
    ['j@baker.com', 'person'],
    ['affiliate@baker.com', 'business'],
    ['ads.team@baker.com', 'business'],
    ['kooperationen@baker.com', 'business'],
    ['info@baker.com', 'general'],
    ['hello2@baker.com', 'general'],
    ['baker@baker.com', 'general'],
    ['the-baker@thebaker.com', 'general'],
    ['contact+web@baker.com', 'general'],
    ['datenschutz@baker.com', 'other'],
    ['no.body@baker.com', 'person'],
  ] as const;
  t.same(
    mailboxes.map(([email]) => [email, mailboxOf(email)]),
    mailboxes,
  );
  const decoys = [
    'x@example.org',
    'x@sub.example.com',
    'max.mustermann@web.de',
    'a@b.wixpress.com',
    'no-reply@baker.com',
    'donotreply@baker.com',
    'a@2x.com',
  ];
  t.same(
    decoys.filter((email) => !isDecoy(email)),
    [],
  );
  t.same(['jane@gmail.com', 'name.surname@baker.com', 'email@baker.com', 'max@mustermann-shop.de'].filter(isDecoy), []);
  const invalid = [
    '',
    '@',
    'a@',
    '@b.com',
    'a b@c.com',
    'a@localhost',
    'a@127.0.0.1',
    'a@b.notatld',
    '.a@b.com',
    'a..b@c.com',
    `${'a'.repeat(65)}@b.com`,
    'a@-b.com',
    'a@b..com',
  ];
  t.same(
    invalid.filter((text) => parseAddress(text) !== undefined),
    [],
  );
  t.end();
});

t.test('tells pages of hosts, servers and sellers of domains from those of people, by what they say', (t) => {
  const reasonOf = (heading: string) => {
    const html = `<title>${heading}</title><h1>${heading}</h1><p>info@elsewhere.com</p>`;
    return nobodysReason(html, readPage(html, 'https://baker.com/'));
  };
  for (const heading of [
    'Oops! That page can’t be found.',
    'Sorry, this page isn’t available',
    'This page has moved or no longer exists',
    'Sorry, this store is currently unavailable.',
    '403 Forbidden',
    'Internal Server Error',
    '503 Service Unavailable',
    'baker.com | 522: Connection timed out',
    'Briefly unavailable for scheduled maintenance. Check back in a minute.',
    'Just a moment...',
    "Looks like this domain isn't connected to a website yet",
    'Diese Domain wurde gerade frisch registriert',
    'Hier entsteht eine neue Internetpräsenz',
    'Diese Website steht zum Verkauf!',
    'Get this domain',
    'Baker.com is for sale | Domain shop',
    'This domain has expired',
    'This domain was registered with a registrar',
  ])
    t.type(reasonOf(heading), 'string', heading);
  for (const heading of [
    'Jane bakes',
    'How I bought this domain',
    'My 500 best recipes',
    '500 bad jokes about bread',
    'Just a moment of tea',
    'This site is available in English',
    'My shop is no longer a secret',
    'The shop is currently available on the market',
    'Coming soon: my second book',
  ])
    t.equal(reasonOf(heading), undefined, heading);
  const book = '<h1>Books</h1><p>My book at janebakes.com is for sale.</p>';
  t.equal(nobodysReason(book, readPage(book, 'https://baker.com/')), undefined);
  t.end();
});

t.test('chooses pages that say how to reach the owner, in many languages', (t) => {
  const chosen = (links: [string, string][], language = 'en', most = 5) =>
    contactPages(
      readPage(
        `<html lang="${language}">${links.map(([href, text]) => `<a href="${href}">${text}</a>`).join('')}`,
        'https://baker.com/',
      ),
      most,
    ).map(({ url, kind }) => `${kind} ${url.replace('https://baker.com', '')}`);
  const kinds: [string, string][] = [
    ['Contact', 'contact'],
    ['Kontakt', 'contact'],
    ['Contáctanos', 'contact'],
    ['Contatti', 'contact'],
    ['Contato', 'contact'],
    ['İletişim', 'contact'],
    ['Контакты', 'contact'],
    ['お問い合わせ', 'contact'],
    ['Work with me', 'advertise'],
    ['Werbung', 'advertise'],
    ['Publicité', 'advertise'],
    ['Publicidad', 'advertise'],
    ['Samenwerken', 'advertise'],
    ['Współpraca', 'advertise'],
    ['Samarbete', 'advertise'],
    ['Media Kit', 'media_kit'],
    ['Mediadaten', 'media_kit'],
    ['Impressum', 'imprint'],
    ['Mentions légales', 'imprint'],
    ['Aviso legal', 'imprint'],
    ['About me', 'about'],
    ['Über mich', 'about'],
    ['À propos', 'about'],
    ['Sobre mí', 'about'],
    ['Chi siamo', 'about'],
    ['Quem somos', 'about'],
    ['Over ons', 'about'],
    ['O nas', 'about'],
    ['Om oss', 'about'],
    ['Hakkımızda', 'about'],
  ];
  t.same(
    kinds.map(([text]) => [text, chosen([['/x', text]])[0]]),
    kinds.map(([text, kind]) => [text, `${kind} /x`]),
  );
  t.same(
    chosen([
      ['/a', 'Recipes'],
      ['/about', 'x'],
      ['/contact-us', 'y'],
      ['/kontakt.pdf', 'z'],
      ['https://other.com/contact', 'Contact'],
      ['mailto:a@b.com', 'Contact'],
    ]),
    ['contact /contact-us', 'about /about'],
  );
  t.same(chosen([], 'de'), ['imprint /impressum', 'contact /kontakt', 'contact /contact']);
  t.same(chosen([['/om', 'Om oss']], 'sv'), ['about /om', 'contact /kontakt', 'about /om-oss', 'contact /contact']);
  t.equal(chosen(Array.from({ length: 20 }, (_, nth) => [`/contact/${nth}`, 'Contact'])).length, 5);
  t.end();
});

t.test('verifies by DNS and lists', async (t) => {
  const exchangers: Record<string, string[]> = {
    'baker.com': ['10 mail.baker.com'],
    'null.com': ['0 .'],
    'gmail.com': ['5 mx.google.com'],
  };
  const addresses: Record<string, string[]> = {
    'only-address.com': ['192.0.2.1'],
    'null.com': ['192.0.2.1'],
    'mx-fails.com': ['192.0.2.1'],
  };
  const known = new Set([...Object.keys(exchangers), ...Object.keys(addresses), 'empty.com', 'a-fails.com']);
  const { nameServers, queries } = await startNameServer(
    t,
    (name, type) =>
      name === 'a-fails.com'
        ? { rcode: 2 }
        : known.has(name)
          ? type === 'A'
            ? (addresses[name] ?? [])
            : []
          : { rcode: 3 },
    (name) => (name === 'mx-fails.com' ? { rcode: 2 } : known.has(name) ? (exchangers[name] ?? []) : { rcode: 3 }),
  );
  const cases = [
    ['jane@baker.com', 'unknown'],
    ['JANE@BAKER.COM', 'unknown'],
    ['jane@null.com', 'invalid'],
    ['jane@only-address.com', 'unknown'],
    ['jane@empty.com', 'invalid'],
    ['jane@no-such-name.com', 'invalid'],
    ['jane@mx-fails.com', 'unknown'],
    ['jane@a-fails.com', 'unknown'],
    ['jane@gmail.com', 'webmail'],
    ['jane@mailinator.com', 'disposable'],
    ['jane@sub.mailinator.com', 'disposable'],
    ['not an address', 'invalid'],
  ] as const;
  const verified = await Promise.all(
    cases.map(async ([email]) => [email, await verifyAddress(email, { nameServers })]),
  );
  t.same(verified, cases);
  t.notOk(
    queries.some((query) => query.includes('mailinator')),
    'asks nobody about disposable domains',
  );
  const cut = new AbortController();
  cut.abort(new Error('cut off'));
  await t.rejects(verifyAddress('jane@baker.com', { nameServers, signal: cut.signal }), { message: 'cut off' });
});

t.test('reads hostile pages in bounded time, and never throws', (t) => {
  const times = (text: string) => text.repeat((64 * 1024) / text.length);
  const hostile = [
    '@',
    'a@',
    'a.@',
    'a@a.',
    '@a.',
    '[at]',
    ' [at] ',
    '(',
    '( ',
    'a at ',
    'a at a dot ',
    'email: ',
    'email:a at ',
    '<a href="mailto:',
    '<b data-cfemail="',
    '<bdo dir=rtl>@',
    "<script>'+'mailto:",
    '<p>a@a.com',
    'ab-',
    '_at_',
    '☆',
  ];
  for (const text of hostile.map(times)) t.ok(findAddresses(text).length <= 100);
  const pieces = fc.constantFrom(
    '@',
    '.com',
    '[at]',
    ' at ',
    ' dot ',
    '<a href="mailto:',
    '">',
    '%',
    'data-cfemail="',
    '<bdo dir=rtl>',
    '<!--',
    '\ud800',
    '＠',
    'a',
    '<script>',
  );
  const text = fc
    .array(fc.oneof(pieces, fc.string({ unit: 'binary', maxLength: 6 })), { maxLength: 40 })
    .map((all) => all.join(''));
  fc.assert(
    fc.property(text, (text) => findAddresses(text).every(({ email }) => parseAddress(email) === email)),
    { numRuns: 500 },
  );
  t.end();
});
