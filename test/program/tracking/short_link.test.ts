import t from 'tap';
import { buildApi } from '../../../src/api.ts';
import { openTab } from '../../browser.ts';
import { graphOf } from '../../data/graphql/client.ts';
import { eventually, type Json, log, sql, startRail } from '../../harness.ts';

const rail = await startRail();
const merchant = await rail.organization();
const program = await merchant.post('/v1/programs', {
  name: 'Acme',
  website_url: 'https://acme.example.com',
  currency: 'USD',
});
const partner = await merchant.post('/v1/partners', { program_id: program.id, email: 'ada@partner.example.com' });
const link = await merchant.post('/v1/links', {
  program_id: program.id,
  partner_id: partner.id,
  destination_url: 'https://acme.example.com/pricing?plan=pro#yearly',
});
const service = new URL(rail.address);

const browser = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36';

const follow = (slug: string, headers: Record<string, string> = {}, method = 'GET') =>
  fetch(new URL(`/r/${slug}`, service), { method, redirect: 'manual', headers: { 'User-Agent': browser, ...headers } });
const clicks = () => merchant.get(`/v1/clicks?program_id=${program.id}`);
const attributed = () =>
  eventually(
    async () => (await clicks()).data.every(({ referral_id }: { referral_id: string | null }) => referral_id),
    'attribution',
  );
const referrals = () => merchant.get(`/v1/referrals?program_id=${program.id}`);

t.test('redirects to the tracked URL, with query and fragment kept', async (t) => {
  t.equal(link.url, 'https://acme.example.com/pricing?plan=pro&ref=ada#yearly');
  t.equal(link.short_url, `${rail.services.base_url}/r/${link.short_slug}`);
  const answer = await follow(link.short_slug);
  t.equal(answer.status, 302);
  t.equal(answer.headers.get('cache-control'), 'no-store');
  const { data, total_count } = await clicks();
  t.equal(
    answer.headers.get('location'),
    `https://acme.example.com/pricing?plan=pro&ref=ada&rail_click=${data[0].id}#yearly`,
  );
  t.equal(total_count, 1, 'the click was durable before the answer');
  t.match(data[0], { partner_id: partner.id, link_id: link.id, landing_url: link.url });
});

t.test('identifies visitors by a cookie of the short domain only', async (t) => {
  await attributed();
  const before = (await referrals()).total_count;
  const first = await follow(link.short_slug);
  const set = first.headers.get('set-cookie') as string;
  t.match(set, /^rail_visitor=[\w-]{24}; Path=\/r; Max-Age=5184000; HttpOnly; SameSite=Lax$/);
  const cookie = set.split(';')[0] as string;
  const again = await follow(link.short_slug, { Cookie: `other=1; ${cookie}` });
  t.equal(again.headers.get('set-cookie')?.split(';')[0], cookie);
  await follow(link.short_slug);
  await attributed();
  t.equal(
    (await referrals()).total_count,
    before + 2,
    'one for the browser that came twice, one for the one without a cookie',
  );
});

t.test('answers 404 for a slug that is unknown or whose link is deleted, and records nothing', async (t) => {
  const before = (await clicks()).total_count;
  t.equal((await follow('nothing')).status, 404);
  const other = await merchant.post('/v1/links', {
    program_id: program.id,
    partner_id: partner.id,
    destination_url: 'https://acme.example.com/',
    value: 'other',
  });
  await merchant.delete(`/v1/links/${other.id}`);
  const answer = await follow(other.short_slug);
  t.equal(answer.status, 404);
  t.match(await answer.json(), { error: { code: 'resource_not_found' } });
  const visited = await follow(other.short_slug, { Accept: 'text/html,*/*;q=0.8' });
  t.same([visited.status, visited.headers.get('location')], [302, new URL(program.website_url).href], 'people go on');
  t.equal(visited.headers.get('set-cookie'), null);
  t.equal((await clicks()).total_count, before);
});

t.test('shows browsers a page for an unknown link, without scripts or other resources', async (t) => {
  const answer = await follow('<script>', { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' });
  t.equal(answer.status, 404);
  t.equal(answer.headers.get('content-type'), 'text/html; charset=utf-8');
  t.match(answer.headers.get('content-security-policy'), /^default-src 'none';.* frame-ancestors 'none'/);
  const page = await answer.text();
  t.match(page, 'This link does not exist or was deleted');
  t.notMatch(page, '<script');
});

t.test("passes the visitor's own query and the click's id on", async (t) => {
  const query = 'utm_source=mail&utm_source=b%20c&plan=team&ref=bob&rail_click=clk_x&%C3%BC=1&=&q';
  const answer = await follow(`${link.short_slug}?${query}`);
  const [click] = (await clicks()).data;
  const passed = 'https://acme.example.com/pricing?ref=ada&utm_source=mail&utm_source=b%20c&plan=team&%C3%BC=1&=&q';
  t.equal(answer.headers.get('location'), `${passed}&rail_click=${click.id}#yearly`);
  t.equal(click.landing_url, `${passed}#yearly`);
  const customer = await merchant.post('/v1/customers', { program_id: program.id, click_id: click.id });
  t.equal(customer.partner_id, partner.id, 'a site signs the visitor up with the id');
  t.same((await merchant.get(`/v1/referrals/${customer.referral_id}`)).utm, { source: 'b c' });

  await t.test('without an id where no click is recorded', async (t) => {
    const head = await follow(`${link.short_slug}?utm_source=mail&rail_click=clk_x`, {}, 'HEAD');
    t.equal(head.headers.get('location'), 'https://acme.example.com/pricing?plan=pro&ref=ada&utm_source=mail#yearly');
  });

  await t.test('and records the page without the query where it is very long', async (t) => {
    const long = await follow(`${link.short_slug}?q=${'x'.repeat(4000)}`);
    const [click] = (await clicks()).data;
    t.equal(click.landing_url, link.url);
    t.match(long.headers.get('location'), `&q=${'x'.repeat(4000)}&rail_click=${click.id}#yearly`);
  });
});

t.test('HEAD redirects without recording a click', async (t) => {
  const before = (await clicks()).total_count;
  const answer = await follow(link.short_slug, {}, 'HEAD');
  t.equal(answer.status, 302);
  t.equal(answer.headers.get('location'), link.url);
  t.equal(answer.headers.get('set-cookie'), null);
  t.equal((await follow('nothing', {}, 'HEAD')).status, 404);
  t.equal((await follow(link.short_slug, {}, 'POST')).status, 405);
  t.equal((await clicks()).total_count, before);
});

t.test('the cookie lasts as long as the attribution window, and is Secure for an https short link', async (t) => {
  await merchant.patch(`/v1/programs/${program.id}`, { cookie_days: 7, custom_domain: 'go.acme.example.com' });
  const secure = await merchant.post('/v1/links', {
    program_id: program.id,
    partner_id: partner.id,
    destination_url: 'https://acme.example.com/ä?q=ö',
    value: 'secure',
  });
  t.equal(secure.short_url, `https://go.acme.example.com/r/${secure.short_slug}`);
  const answer = await follow(secure.short_slug);
  t.match(answer.headers.get('set-cookie'), /; Max-Age=604800; HttpOnly; SameSite=Lax; Secure$/);
  t.equal(
    answer.headers.get('location')?.replace(/&rail_click=clk_\w+$/, ''),
    'https://acme.example.com/%C3%A4?q=%C3%B6&ref=secure',
    'as a header can hold it',
  );
  t.equal(answer.headers.get('x-robots-tag'), 'noindex');
});

t.test('a short URL keeps its host when the address of the service changes', async (t) => {
  const base_url = 'https://acme.example.com/rail';
  const moved = await buildApi({ store: rail.store, services: { ...rail.services, base_url }, log });
  t.teardown(() => moved.close());
  const headers = { Authorization: `Bearer ${merchant.key}` };
  await merchant.patch(`/v1/programs/${program.id}`, { custom_domain: null });
  const { id, short_slug, short_url } = (
    await moved.inject({
      method: 'POST',
      url: '/v1/links',
      headers,
      payload: {
        program_id: program.id,
        partner_id: partner.id,
        destination_url: 'https://acme.example.com/',
        value: 'moved',
      },
    })
  ).json();
  t.equal(short_url, `${base_url}/r/${short_slug}`);
  t.match((await follow(short_slug)).headers.get('set-cookie'), '; Path=/rail/r; ', 'the path that browsers see');
  for (const [changes, expected] of [
    [{ label: 'Footer' }, short_url],
    [{ short_slug: 'summer' }, `${base_url}/r/summer`],
  ] as const) {
    t.equal((await merchant.patch(`/v1/links/${id}`, changes)).short_url, expected);
  }
});

t.test('a bot is redirected too; its click is kept, earns nothing, and is counted nowhere', async (t) => {
  const google = 'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)';
  const scanners = [google, 'BarracudaCentral-Bot/1.0', 'facebookexternalhit/1.1', 'curl/8.5.0'];
  const day = {
    from: new Date(Date.now() - 86_400_000).toISOString(),
    to: new Date(Date.now() + 86_400_000).toISOString(),
  };
  const kinds = ['overview', 'partners', 'groups', 'links', 'countries', 'landing_pages'];
  const query = (fields: Record<string, string>) =>
    new URLSearchParams({ program_id: program.id, ...fields }).toString();
  /** Everything that counts clicks. */
  const counts = async () => ({
    list: (await clicks()).total_count,
    of_partner: (await merchant.get(`/v1/clicks?${query({ partner_id: partner.id })}`)).total_count,
    of_a_day: (await merchant.get(`/v1/clicks?${query({ created_after: day.from })}`)).total_count,
    program: (await merchant.get(`/v1/programs/${program.id}?include[]=stats`)).stats.clicks,
    partner: (await merchant.get(`/v1/partners/${partner.id}?include[]=stats`)).stats.clicks,
    link: (await merchant.get(`/v1/links/${link.id}?include[]=stats`)).stats.clicks,
    reports: await Promise.all(
      kinds.map(async (report) => {
        const { rows, totals } = await merchant.get(
          `/v1/reports/${report}?${query({ ...day, ...(report === 'overview' ? { interval: 'day' } : {}) })}`,
        );
        return [report, totals.clicks, rows.map((row: Json) => row.clicks)];
      }),
    ),
    data: await graphOf(merchant).data(
      '{ click_daily { nodes { clicks credited_clicks } } funnel_daily { nodes { clicks } } }',
    ),
  });
  await attributed();
  const before = await counts();
  t.ok(before.list > 0 && before.link > 0 && before.reports.every(([, total]) => total > 0));
  for (const user_agent of scanners) t.equal((await follow(link.short_slug, { 'User-Agent': user_agent })).status, 302);
  const sent = { program_id: program.id, value: 'ada', landing_url: null, user_agent: google };
  const posted = await merchant.post('/v1/clicks', { ...sent, visitor_token: 'visitor-bot' });
  t.equal(posted.is_bot, true);
  const kept = () => merchant.get(`/v1/clicks?${query({ is_bot: 'true' })}`);
  const waiting = sql`select from program.click where program_id = ${program.id} and attributed_at is null`;
  await eventually(async () => (await rail.query(waiting)).length === 0, 'the clicks to be attributed');
  const { data, total_count } = await kept();
  t.equal(total_count, scanners.length + 1, 'they are kept');
  t.ok(data.every((one: Json) => one.is_bot && one.referral_id === null));
  t.same(await counts(), before);
  const not_bots = await merchant.get(`/v1/clicks?${query({ is_bot: 'false' })}`);
  t.equal(not_bots.total_count, before.list);
});

t.test('the link of a pending or declined partner redirects without recording a click', async (t) => {
  const grace = await merchant.post('/v1/partners', {
    program_id: program.id,
    email: 'grace@partner.example.com',
    status: 'pending',
  });
  const theirs = await merchant.post('/v1/links', {
    program_id: program.id,
    partner_id: grace.id,
    destination_url: 'https://acme.example.com/',
  });
  const recorded = async () => {
    const answer = await follow(theirs.short_slug);
    t.equal(answer.status, 302);
    t.equal(answer.headers.get('location'), theirs.url);
    const { total_count } = await merchant.get(`/v1/clicks?program_id=${program.id}&link_id=${theirs.id}`);
    return [total_count, answer.headers.has('set-cookie')];
  };
  t.same(await recorded(), [0, false]);
  const [application] = (await merchant.get(`/v1/applications?program_id=${program.id}&partner_id=${grace.id}`)).data;
  await merchant.post(`/v1/applications/${application.id}/reject`);
  t.same(await recorded(), [0, false]);
  await merchant.patch(`/v1/partners/${partner.id}`, { status: 'suspended' });
  const before = (await clicks()).total_count;
  await follow(link.short_slug);
  t.equal((await clicks()).total_count, before + 1, 'a click through a suspended partner is kept');
  await merchant.patch(`/v1/partners/${partner.id}`, { status: 'active' });
});

t.test(
  "the visitor's IP address is taken from a proxy of the private network, and stored only as a hash",
  async (t) => {
    const hashAfter = async (forwarded?: string) => {
      await follow(link.short_slug, forwarded === undefined ? {} : { 'X-Forwarded-For': forwarded });
      const [row] = await rail.query<{ ip_hash: string | null }>(
        sql`select ip_hash from program.click order by id desc limit 1`,
      );
      return row?.ip_hash;
    };
    t.equal(await hashAfter(), null, "the proxy's own address says nothing of the visitor");
    const hash = rail.services.vault.hash('93.184.215.14');
    t.equal(await hashAfter('93.184.215.14'), hash);
    t.equal(await hashAfter('8.8.8.8, 93.184.215.14, 10.0.0.3'), hash, 'what the visitor said before is not believed');
    t.equal(await hashAfter('93.184.215.14:52311'), hash, 'a port is no part of it');
    t.equal(await hashAfter('8.8.8.8, 93.184.215.14:52311, 10.0.0.3:80'), hash);
  },
);

t.test('a page that a browser loads before anybody asks for it earns and moves nothing', async (t) => {
  const earned = (await referrals()).total_count;
  const first = await follow(link.short_slug);
  const cookie = first.headers.get('set-cookie')?.split(';')[0] as string;
  await eventually(async () => (await referrals()).total_count > earned, 'attribution');
  const rival = await merchant.post('/v1/partners', { program_id: program.id, email: 'rival@partner.example.com' });
  const theirs = await merchant.post('/v1/links', {
    program_id: program.id,
    partner_id: rival.id,
    destination_url: 'https://acme.example.com/',
  });
  const before = [(await clicks()).total_count, (await referrals()).total_count];
  const ahead: Record<string, string>[] = [
    { 'Sec-Purpose': 'prefetch' },
    { 'Sec-Purpose': 'prefetch;prerender' },
    { 'Sec-Purpose': 'prefetch;anonymous-client-ip' },
    { Purpose: 'prefetch' },
    { Purpose: 'Preview' },
    { 'X-Purpose': 'preview' },
    { 'X-Moz': 'prefetch' },
  ];
  for (const headers of ahead) {
    const answer = await follow(theirs.short_slug, { ...headers, Cookie: cookie });
    const what = JSON.stringify(headers);
    t.same([answer.status, answer.headers.get('location')], [302, theirs.url], what);
    t.equal(answer.headers.get('cache-control'), 'no-store');
    t.match(answer.headers.get('vary'), /Sec-Purpose/);
    t.notOk(answer.headers.has('set-cookie'), what);
  }
  t.same([(await clicks()).total_count, (await referrals()).total_count], before);
  const asked: Record<string, string>[] = [
    { 'Sec-Purpose': 'navigate' },
    { Purpose: 'speculation' },
    { 'X-Purpose': '' },
  ];
  for (const headers of asked) {
    t.match((await follow(theirs.short_slug, headers)).headers.get('location'), /rail_click=/);
  }
});

t.test('`to` leads to another page of the same website, and nowhere else', async (t) => {
  const open = async (query: string) => {
    const location = (await follow(`${link.short_slug}?${query}`)).headers.get('location') as string;
    return location.replace(/[?&]rail_click=clk_\w+/, '');
  };
  const website = 'https://acme.example.com';
  t.equal(await open('to=/features'), `${website}/features?ref=ada`);
  t.equal(
    await open('utm_source=mail&to=%2Ffeatures%3Fa%3D1%26ref%3Dbob%23top'),
    `${website}/features?a=1&ref=ada&utm_source=mail#top`,
  );
  t.equal(await open(`to=${website}/a`), `${website}/a?ref=ada`);
  for (const to of [
    ...['//evil.example', '/\\evil.example', 'https://evil.example', 'https://acme.example.com.evil.example'],
    ...['https://acme.example.com@evil.example/', 'https://user@acme.example.com/', 'javascript:alert(1)', 'features'],
    ...['http://acme.example.com/', 'https://acme.example.com:444/', '', '/\t/evil.example', 'https:evil.example'],
  ]) {
    const found = new URL(await open(new URLSearchParams({ to }).toString()));
    t.equal(found.origin, website, to);
    t.equal(found.username, '', to);
  }
});

t.test('a repeated load within a second is one click', async (t) => {
  const cookie = (await follow(link.short_slug)).headers.get('set-cookie')?.split(';')[0] as string;
  const before = (await clicks()).total_count;
  const answers = await Promise.all([1, 2, 3].map(() => follow(link.short_slug, { Cookie: cookie })));
  const ids = answers.map(({ headers }) => new URL(String(headers.get('location'))).searchParams.get('rail_click'));
  t.equal(new Set(ids).size, 1);
  t.equal((await clicks()).total_count, before + 1);
  t.equal(answers[0]?.headers.get('referrer-policy'), 'strict-origin-when-cross-origin');
  const other = await merchant.post('/v1/links', {
    ...{ program_id: program.id, partner_id: partner.id, destination_url: 'https://acme.example.com/', value: 'again' },
  });
  await follow(other.short_slug, { Cookie: cookie });
  t.equal((await clicks()).total_count, before + 2, 'another link is another click');
});

t.test('the QR code of a link leads to its short URL, as SVG and PNG', async (t) => {
  const { svg, url } = await merchant.get(`/v1/links/${link.id}/qr`);
  t.equal(url, link.short_url);
  const file = (format: string) =>
    fetch(new URL(`/v1/links/${link.id}/qr?format=${format}`, service), {
      headers: { Authorization: `Bearer ${merchant.key}` },
    });
  const drawn = await file('svg');
  t.match(drawn.headers.get('content-type'), /^image\/svg\+xml/);
  t.equal(await drawn.text(), svg);
  const png = await file('png');
  t.equal(png.headers.get('content-type'), 'image/png');
  const { page } = await openTab();
  await page.setContent('<canvas></canvas>');
  // The pixels of both, as a browser draws them, module by module.
  const dark = await page.evaluate(`(async () => {
    const draw = async (src) => {
      const image = Object.assign(new Image(), { src })
      await image.decode()
      const size = ${(/viewBox="0 0 (\d+)/.exec(svg) as RegExpExecArray)[1]}
      const canvas = Object.assign(document.querySelector('canvas'), { width: size * 8, height: size * 8 })
      const context = canvas.getContext('2d')
      context.drawImage(image, 0, 0, size * 8, size * 8)
      return Array.from({ length: size * size }, (_, nth) =>
        context.getImageData((nth % size) * 8 + 4, Math.floor(nth / size) * 8 + 4, 1, 1).data[0] < 128 ? 1 : 0).join('')
    }
    return [await draw('data:image/svg+xml;base64,${Buffer.from(svg).toString('base64')}'), await draw('data:image/png;base64,${Buffer.from(await png.arrayBuffer()).toString('base64')}')]
  })()`);
  const [of_svg, of_png] = dark as [string, string];
  t.equal(of_png, of_svg);
  t.ok(of_svg.includes('1111111'), 'its finder patterns are there');
});

t.test('keeps slugs unique over all tenants', async (t) => {
  const stranger = await rail.organization();
  const elsewhere = await stranger.post('/v1/programs', {
    name: 'B',
    website_url: 'https://b.example.com',
    currency: 'EUR',
  });
  const bob = await stranger.post('/v1/partners', { program_id: elsewhere.id, email: 'bob@b.example.com' });
  const theirs = await stranger.post('/v1/links', {
    program_id: elsewhere.id,
    partner_id: bob.id,
    destination_url: 'https://b.example.com/',
  });
  const answer = await stranger.request('PATCH', `/v1/links/${theirs.id}`, { short_slug: link.short_slug });
  t.equal(answer.status, 409);
  t.match(answer.body, { error: { code: 'resource_already_exists', param: 'short_slug' } });
  t.notOk('existing' in answer.body, 'what another tenant has stays with it');
});
