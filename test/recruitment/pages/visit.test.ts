import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import t from 'tap';
import { createPacing } from '../../../src/recruitment/pages/pacing.ts';
import { rulesOf } from '../../../src/recruitment/pages/robots.ts';
import { visit } from '../../../src/recruitment/pages/visit.ts';
import { type Page, type Site, startFarm } from '../farm/farm.ts';

const mebibyte = 1024 * 1024;
const page = (text: string) => `<!doctype html><title>${text}</title>`;
const redirect = (location: string, status = 302): Page => ({ status, headers: { location } });
const robots = (text: string): Page => ({ type: 'text/plain', body: text });
const zeros = Buffer.alloc(100 * mebibyte);

/** Each site has one page to visit, at `/`, and what a visit of it comes to. */
const sites: (Site & { outcome: Record<string, unknown> })[] = [
  {
    host: 'plain-blog.com',
    pages: { '/': page('Hello') },
    outcome: { outcome: 'page', content: 'html', text: page('Hello') },
  },
  { host: 'no-robots.com', pages: { '/robots.txt': { status: 410 }, '/': page('x') }, outcome: { outcome: 'page' } },
  {
    host: 'forbids-all.com',
    pages: { '/robots.txt': robots('User-agent: *\nDisallow: /'), '/': page('x') },
    outcome: { outcome: 'forbidden', by: 'robots' },
  },
  {
    host: 'forbids-us.com',
    pages: {
      '/robots.txt': robots('\ufeffuser-agent: railbot/2.0\nUser-agent: Other\nDisallow: /\n\nUser-agent: *\nAllow: /'),
      '/': page('x'),
    },
    outcome: { outcome: 'forbidden', by: 'robots' },
  },
  {
    host: 'forbids-others.com',
    pages: {
      '/robots.txt': robots('User-agent: BadBot\nDisallow: /\nUser-agent: *\nDisallow: /private'),
      '/': page('x'),
    },
    outcome: { outcome: 'page' },
  },
  {
    host: 'robots-fail.com',
    pages: { '/robots.txt': { status: 503 }, '/': page('x') },
    outcome: { outcome: 'forbidden', by: 'robots_unavailable' },
  },
  {
    host: 'robots-moved.com',
    pages: {
      '/robots.txt': redirect('/r/1'),
      '/r/1': redirect('/r/2'),
      '/r/2': robots('User-agent: *\nDisallow: /'),
      '/': page('x'),
    },
    outcome: { outcome: 'forbidden', by: 'robots' },
  },
  {
    host: 'robots-inside.com',
    pages: { '/robots.txt': redirect('http://169.254.169.254/robots.txt'), '/': page('x') },
    outcome: { outcome: 'forbidden', by: 'robots_unavailable' },
  },
  {
    host: 'robots-bomb.com',
    pages: { '/robots.txt': { headers: { 'content-encoding': 'gzip' }, body: gzipSync(zeros) }, '/': page('x') },
    outcome: { outcome: 'page' },
  },
  {
    host: 'robots-wildcards.com',
    pages: {
      '/robots.txt': robots(`User-agent: *\n${`Disallow: /${'*a'.repeat(2000)}\n`.repeat(50)}`),
      '/': page('x'),
    },
    outcome: { outcome: 'forbidden', by: 'robots_unavailable' },
  },
  {
    host: 'robots-names.com',
    pages: {
      '/robots.txt': robots(`${'User-agent: a\nUser-agent: b\n'.repeat(8000)}${'Disallow: /b\n'.repeat(8000)}`),
      '/': page('x'),
    },
    outcome: { outcome: 'page' },
  },
  { host: 'login.com', pages: { '/': { status: 403 } }, outcome: { outcome: 'forbidden', by: 'server', status: 403 } },
  { host: 'gone.com', pages: {}, outcome: { outcome: 'http_error', status: 404, retry_after_s: null } },
  {
    host: 'busy.com',
    pages: { '/': { status: 429, headers: { 'retry-after': '120' } } },
    outcome: { outcome: 'http_error', status: 429, retry_after_s: 120 },
  },
  {
    host: 'picture.com',
    pages: { '/': { type: 'image/png', body: 'x' } },
    outcome: { outcome: 'not_html', content_type: 'image/png' },
  },
  { host: 'untyped.com', pages: { '/': { type: '', body: page('x') } }, outcome: { outcome: 'page' } },
  {
    host: 'untyped-file.com',
    pages: { '/': { type: '', body: '\u0000\u0001' } },
    outcome: { outcome: 'not_html', content_type: null },
  },
  {
    host: 'feed.com',
    pages: {
      '/': {
        type: 'application/xml',
        body: `<?xml version="1.0"?><!-- ${'<!---->'.repeat(500)} --><rss version="2.0"></rss>`,
      },
    },
    outcome: { outcome: 'page', content: 'feed' },
  },
  {
    host: 'sitemap.com',
    pages: { '/': { type: 'application/xml', body: '<urlset/>' } },
    outcome: { outcome: 'not_html' },
  },
  {
    host: 'moves.com',
    pages: { '/': redirect('/1', 301), '/1': redirect('/2', 307), '/2': redirect('//plain-blog.com:PORT/', 308) },
    outcome: { outcome: 'page', text: page('Hello') },
  },
  {
    host: 'moves-on.com',
    pages: { '/': redirect('/1'), '/1': redirect('/2'), '/2': redirect('/3'), '/3': redirect('/4'), '/4': page('x') },
    outcome: { outcome: 'unreachable', reason: 'too_many_redirects' },
  },
  {
    host: 'moves-nowhere.com',
    pages: { '/': { status: 302 } },
    outcome: { outcome: 'unreachable', reason: 'malformed' },
  },
  {
    host: 'moves-to-file.com',
    pages: { '/': redirect('file:///etc/passwd') },
    outcome: { outcome: 'unreachable', reason: 'invalid_url' },
  },
  ...[
    'http://10.0.0.1/',
    'http://127.0.0.1:PORT/',
    'http://[::1]:PORT/',
    'http://169.254.169.254/latest/meta-data/',
    'http://localhost:PORT/',
    'http://2130706433/',
    'http://rail.example.com/',
    'http://private-name.com:PORT/',
    'http://half-private.com:PORT/',
    'http://user:password@plain-blog.com:PORT/',
    'http://plain-blog.com:6379/',
  ].map((target, nth) => ({
    host: `moves-inside-${nth}.com`,
    pages: { '/': redirect(target) },
    outcome: { outcome: 'unreachable', reason: 'address_not_allowed' },
  })),
  {
    host: 'private-name.com',
    addresses: ['10.1.2.3'],
    pages: {},
    outcome: { outcome: 'unreachable', reason: 'address_not_allowed' },
  },
  {
    host: 'half-private.com',
    addresses: ['127.0.0.1', '192.168.0.1'],
    pages: {},
    outcome: { outcome: 'unreachable', reason: 'address_not_allowed' },
  },
  {
    host: 'no-address.com',
    addresses: [],
    pages: {},
    outcome: { outcome: 'unreachable', reason: 'name_not_resolved' },
  },
  {
    host: 'hangs-up.com',
    pages: { '/': (request) => request.socket.destroy() },
    outcome: { outcome: 'unreachable', reason: 'connection' },
  },
  {
    host: 'big.com',
    pages: { '/': 'x'.repeat(3 * mebibyte) },
    outcome: { outcome: 'page', is_truncated: true },
  },
  ...(
    [
      ['gzip', gzipSync],
      ['deflate', deflateSync],
      ['br', brotliCompressSync],
      ['zstd', zstdCompressSync],
    ] as const
  ).flatMap(([encoding, compress]) => [
    {
      host: `${encoding}.com`,
      pages: { '/': { headers: { 'content-encoding': encoding }, body: compress(Buffer.from(page('packed'))) } },
      outcome: { outcome: 'page', text: page('packed'), is_truncated: false },
    },
    {
      host: `${encoding}-bomb.com`,
      pages: { '/': { headers: { 'content-encoding': encoding }, body: compress(zeros) } },
      outcome: { outcome: 'page', is_truncated: true },
    },
    {
      host: `${encoding}-broken.com`,
      pages: { '/': { headers: { 'content-encoding': encoding }, body: Buffer.from('not compressed at all') } },
      outcome: { outcome: 'unreachable', reason: 'malformed' },
    },
  ]),
  ...['none', 'UTF-8', 'utf8', 'binary', 'identity', '', 'text/html', 'identity, UTF-8'].map((encoding, nth) => ({
    host: `no-encoding-${nth}.com`,
    pages: { '/': { headers: { 'content-encoding': encoding }, body: page('plain') } },
    outcome: { outcome: 'page', text: page('plain') },
  })),
  {
    host: 'identity-and-gzip.com',
    pages: { '/': { headers: { 'content-encoding': 'identity, gzip' }, body: gzipSync(page('packed')) } },
    outcome: { outcome: 'page', text: page('packed') },
  },
  { host: 'www.only-www.com', pages: { '/': page('There') }, outcome: { outcome: 'page' } },
  {
    host: 'only-www.com',
    addresses: [],
    pages: {},
    outcome: { outcome: 'page', text: page('There'), url: 'http://www.only-www.com:PORT/' },
  },
  { host: 'www.bare-hangs-up.com', pages: { '/': page('There') }, outcome: { outcome: 'page' } },
  {
    host: 'bare-hangs-up.com',
    pages: { '/': (request) => request.socket.destroy() },
    outcome: { outcome: 'page', text: page('There') },
  },
  {
    host: 'sub.only-www.com',
    addresses: [],
    pages: {},
    outcome: { outcome: 'unreachable', reason: 'name_not_resolved' },
  },
  {
    host: 'twice-packed.com',
    pages: { '/': { headers: { 'content-encoding': 'gzip, gzip' }, body: gzipSync(gzipSync(page('x'))) } },
    outcome: { outcome: 'unreachable', reason: 'malformed' },
  },
  {
    host: 'long-header.com',
    pages: { '/': { headers: { 'x-long': 'x'.repeat(60_000) }, body: page('x') } },
    outcome: { outcome: 'unreachable', reason: 'malformed' },
  },
];

t.test('tells what a visit came to, of friendly and of hostile hosts', async (t) => {
  const farm = await startFarm(t, sites);
  for (const site of sites) {
    for (const [path, answer] of Object.entries(site.pages)) {
      if (typeof answer === 'object' && answer.headers?.location !== undefined) {
        answer.headers.location = answer.headers.location.replace('PORT', String(farm.port));
      }
      site.pages[path] = answer;
    }
  }
  for (const { host, outcome } of sites) {
    const visited = await visit(farm.url(host), farm.visitor);
    if (typeof outcome.url === 'string') outcome.url = outcome.url.replace('PORT', String(farm.port));
    t.match({ host, ...visited }, { host, ...outcome });
    if (visited.outcome === 'page') t.ok(visited.text.length <= mebibyte, `${host} is cut at 1 MiB`);
  }
  t.equal(farm.requests.filter(({ path }) => path === '/private').length, 0);
  const user_agents = new Set(farm.requests.map(({ headers }) => headers['user-agent']));
  t.same([...user_agents], ['RailBot/1.0 (+https://rail.example.com/docs)']);
  t.notOk(farm.requests.some(({ headers }) => 'cookie' in headers));
});

t.test('refuses what is no address of a page', async (t) => {
  const farm = await startFarm(t, []);
  for (const text of [
    '',
    'x',
    'mailto:a@b.c',
    'javascript:1',
    'ftp://a.com/',
    'http://',
    `http://a.com/${'x'.repeat(3000)}`,
  ]) {
    const { outcome } = await visit(text, farm.visitor);
    t.equal(outcome, 'unreachable', text.slice(0, 20));
  }
});

t.test('ends with what does not answer in time, and with what is cut off', async (t) => {
  const drip: Page = (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' });
    const timer = setInterval(() => response.write('x'), 10);
    response.on('close', () => clearInterval(timer));
  };
  const silent: Page = () => {};
  const tar_pits: Site[] = [
    { host: 'drips.com', pages: { '/': drip } },
    { host: 'silent.com', pages: { '/': silent } },
    { host: 'silent-robots.com', pages: { '/robots.txt': silent } },
    {
      host: 'slow-hops.com',
      pages: {
        '/': (_: unknown, response: Parameters<typeof drip>[1]) =>
          void setTimeout(() => response.writeHead(302, { location: '/' }).end(), 150),
      },
    },
  ];
  const farm = await startFarm(t, tar_pits, { timeout_ms: 300 });
  t.same(
    await Promise.all(tar_pits.map(async ({ host }) => [host, await visit(farm.url(host), farm.visitor)])),
    tar_pits.map(({ host }) => [host, { outcome: 'unreachable', url: farm.url(host), reason: 'timeout' }]),
  );
  const cut = new AbortController();
  const visited = visit(farm.url('silent.com', '/other'), farm.visitor, cut.signal);
  cut.abort();
  t.match(await visited, { outcome: 'unreachable', reason: 'aborted' });
});

t.test('reads a robots.txt once for all visits of a host, and asks again when it could not be had', async (t) => {
  let now = 0;
  const clock = { now: () => now, sleep: async () => {} };
  let status = 500;
  const answering: Page = (_request, response) => response.writeHead(status).end();
  const farm = await startFarm(t, [{ host: 'often.com', pages: { '/robots.txt': answering, '/': page('x') } }], {
    clock,
  });
  const outcomes = async () =>
    (await Promise.all([1, 2, 3].map(() => visit(farm.url('often.com'), farm.visitor)))).map(({ outcome }) => outcome);
  const asked = () => farm.requests.filter(({ path }) => path === '/robots.txt').length;
  t.same(await outcomes(), ['forbidden', 'forbidden', 'forbidden']);
  t.equal(asked(), 1);
  status = 404;
  now += 11 * 60_000;
  t.same(await outcomes(), ['page', 'page', 'page']);
  t.equal(asked(), 2);
  now += 23 * 3_600_000;
  await outcomes();
  t.equal(asked(), 2);
  now += 2 * 3_600_000;
  await outcomes();
  t.equal(asked(), 3);
});

t.test('gives each host a turn a second, or as rarely as it asks', async (t) => {
  let now = 0;
  const waits: number[] = [];
  const clock = { now: () => now, sleep: async (ms: number) => void waits.push(ms) };
  const pacing = createPacing({ clock });
  await Promise.all([
    pacing.wait('a.com'),
    pacing.wait('a.com'),
    pacing.wait('b.com'),
    pacing.wait('a.com', 5000),
    pacing.wait('a.com'),
  ]);
  t.same(waits, [1000, 2000, 7000]);
  now = 60_000;
  await pacing.wait('a.com');
  pacing.hold('a.com', 30_000);
  await pacing.wait('a.com');
  t.same(waits.slice(3), [30_000]);
});

t.test('waits between the requests of a visit, and heeds a crawl delay up to a bound', async (t) => {
  const waits: number[] = [];
  const clock = { now: () => 0, sleep: async (ms: number) => void waits.push(ms) };
  const site = {
    host: 'slowly.com',
    pages: { '/robots.txt': robots('User-agent: *\nCrawl-delay: 600'), '/': redirect('/x'), '/x': page('x') },
  };
  const farm = await startFarm(t, [site], { clock, interval_ms: 1000 });
  t.match(await visit(farm.url('slowly.com'), farm.visitor), { outcome: 'page' });
  t.same(waits, [1000, 31_000]);
});

t.test('reads robots.txt as RFC 9309 says', (t) => {
  const allows = (text: string, path: string, status = 200) =>
    rulesOf('https://a.com', { status, bytes: Buffer.from(text) }).allows(new URL(path, 'https://a.com'));
  const cases: [string, string, boolean][] = [
    ['', '/', true],
    ['User-agent: *\nDisallow:', '/a', true],
    ['User-agent: *\nDisallow: /a', '/ab', false],
    ['User-agent: *\nDisallow: /a\nAllow: /a/b', '/a/b/c', true],
    ['User-agent: *\nDisallow: /*.php$', '/x.php', false],
    ['User-agent: *\nDisallow: /*.php$', '/x.php?a', true],
    ['User-agent: RAILBOT\nDisallow: /a\nUser-agent: *\nDisallow: /', '/b', true],
    ['User-agent: railbot-images\nDisallow: /', '/', true],
    ['User-agent: railbot # us\rDisallow: / # all', '/', false],
    ['User-agent: *\nDisallow: /ä', '/%C3%A4', false],
    ['<html>no robots here</html>', '/', true],
  ];
  t.same(
    cases.map(([text, path]) => [text, path, allows(text, path)]),
    cases,
  );
  t.same(
    [404, 403, 429, 500, 503, 999].map((status) => allows('', '/', status)),
    [true, true, true, false, false, false],
  );
  const wildcards = `User-agent: *\nDisallow: /${'*a'.repeat(20_000)}b`;
  t.same(
    [allows(wildcards, `/${'a'.repeat(400)}`), allows(wildcards, `/${'a'.repeat(600)}`)],
    [true, false],
    'what takes too long to be compared is forbidden',
  );
  const rules = (count: number) =>
    `User-agent: *\n${Array.from({ length: count }, (_, nth) => `Disallow: /${nth}`).join('\n')}`;
  t.same(
    [allows(rules(9_000), '/b'), allows(rules(10_001), '/b')],
    [true, false],
    'more rules than are read forbid all',
  );
  t.end();
});
