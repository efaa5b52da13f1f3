import { a, type GoldenSite, html, mailed } from './golden.ts';

const site = (
  host: string,
  body: string,
  addresses: string[],
  { head = '', pages = {} as GoldenSite['pages'], exchangers = mailed.exchangers as string[] | null } = {},
): GoldenSite => ({
  host,
  exchangers,
  pages: { '/': html({ lang: 'en', title: 'A small studio', head, body }), ...pages },
  golden: { language: 'en', evidence: [], score: [0, 0], addresses },
});
const page = (body: string) => html({ lang: 'en', title: 'Page', body });
const cloudflare = (text: string) =>
  `7f${[...Buffer.from(text)].map((byte) => (byte ^ 0x7f).toString(16).padStart(2, '0')).join('')}`;
const entities = (text: string) =>
  [...text]
    .map((letter, nth) => (nth % 2 === 0 ? `&#${letter.charCodeAt(0)};` : `&#x${letter.charCodeAt(0).toString(16)};`))
    .join('');
const reversed = (text: string) => [...text].reverse().join('');

/** Every way to hide an address from machines, and traps for them. */
export const hidden: GoldenSite[] = [
  site('plainmailto.com', a('mailto:ida@plainmailto.com', 'Write'), ['ida@plainmailto.com']),
  site('percentmailto.com', a('mailto:%69da%40percentmailto.com?body=Hi%40you', 'Write'), ['ida@percentmailto.com']),
  site(
    'entitiesmail.com',
    `<a href="${entities('mailto:ida@entitiesmail.com')}">${entities('ida@entitiesmail.com')}</a>`,
    ['ida@entitiesmail.com'],
  ),
  site('bracketsmail.com', '<p>ida [at] bracketsmail [dot] com</p>', ['ida@bracketsmail.com']),
  site('parensmail.com', '<p>ida(at)parensmail.com</p>', ['ida@parensmail.com']),
  site('wordsmail.com', '<p>You can write to ida at wordsmail dot com any day.</p>', ['ida@wordsmail.com']),
  site(
    'cloudmail.com',
    `<a class="__cf_email__" data-cfemail="${cloudflare('ida@cloudmail.com')}" href="/cdn-cgi/l/email-protection">[email&nbsp;protected]</a>`,
    ['ida@cloudmail.com'],
  ),
  site('cloudlinkmail.com', `<a href="/cdn-cgi/l/email-protection#${cloudflare('ida@cloudlinkmail.com')}">Write</a>`, [
    'ida@cloudlinkmail.com',
  ]),
  site(
    'rtlmail.com',
    `<span style="direction: rtl; unicode-bidi: bidi-override">${reversed('ida@rtlmail.com')}</span>`,
    ['ida@rtlmail.com'],
  ),
  site('rtlclassmail.com', `<span class="mail">${reversed('ida@rtlclassmail.com')}</span>`, ['ida@rtlclassmail.com'], {
    head: '<style>.mail { unicode-bidi: bidi-override; direction: rtl; }</style>',
  }),
  site('splitmail.com', '<p>ida<wbr>@<span>split</span><em>mail</em>.com</p>', ['ida@splitmail.com']),
  site('commentmail.com', '<p>ida<!-- @nobody.com -->@comment<!-- x -->mail.com</p><!-- trap@commentmail.com -->', [
    'ida@commentmail.com',
  ]),
  site('decoymail.com', '<p>ida<b style="display:none">-remove</b>@decoymail.com</p><p hidden>trap@decoymail.com</p>', [
    'ida@decoymail.com',
  ]),
  site(
    'scriptmail.com',
    "<script>document.write('<a href=\"mailto:' + 'ida' + '@' + 'scriptmail.com' + '\">')</script>",
    ['ida@scriptmail.com'],
  ),
  site('jsonldmail.com', '<p>See below.</p>', ['ida@jsonldmail.com'], {
    head: '<script type="application/ld+json">{"@context":"https://schema.org","@type":"Organization","contactPoint":{"@type":"ContactPoint","email":"ida@jsonldmail.com"}}</script>',
  }),
  site(
    'samplesmail.com',
    '<form><input placeholder="you@example.com"></form><p>you@example.com, name@yourdomain.com, logo@2x.png, 0123456789abcdef01@o9.ingest.sentry.io, x@sentry.wixpress.com, noreply@samplesmail.com</p>',
    [],
  ),
  site(
    'rankingmail.com',
    `<p>web@other-agency.com ida.rank@gmail.com support@rankingmail.com info@rankingmail.com ida@rankingmail.com</p>`,
    [
      'ida@rankingmail.com',
      'info@rankingmail.com',
      'support@rankingmail.com',
      'ida.rank@gmail.com',
      'web@other-agency.com',
    ],
  ),
  site(
    'sixpages.com',
    ['contact', 'about', 'advertise', 'media-kit', 'imprint', 'about-the-team', 'contact-press']
      .map((path) => a(`/${path}`, path.replaceAll('-', ' ')))
      .join(' '),
    ['one@sixpages.com', 'two@sixpages.com', 'three@sixpages.com', 'four@sixpages.com', 'five@sixpages.com'],
    {
      pages: {
        '/contact': page('three@sixpages.com'),
        '/about': page('four@sixpages.com'),
        '/advertise': page('one@sixpages.com'),
        '/media-kit': page('two@sixpages.com'),
        '/imprint': page('five@sixpages.com'),
        '/about-the-team': page('seven@sixpages.com'),
      },
    },
  ),
  site('nullmx-mail.com', 'ida@nullmx-mail.com', ['ida@nullmx-mail.com'], { exchangers: ['0 .'] }),
  site('nodnsanswer-mail.com', 'ida@nodnsanswer-mail.com', ['ida@nodnsanswer-mail.com'], { exchangers: null }),
  site('subdomainmail.com', 'ida@mail.subdomainmail.com', ['ida@mail.subdomainmail.com']),
  site('guessedpages.com', '<p>No links at all.</p>', ['ida@guessedpages.com'], {
    pages: { '/contact': page('ida@guessedpages.com'), '/about': page('Since 1999.') },
  }),
  site('forbiddencontact.com', `${a('/contact', 'Contact')}`, [], {
    pages: {
      '/robots.txt': { type: 'text/plain', body: 'User-agent: *\nDisallow: /contact' },
      '/contact': page('ida@forbiddencontact.com'),
    },
  }),
];
