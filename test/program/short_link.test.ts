import t from 'tap';
import { eventually, startRail } from '../harness.ts';

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

const follow = (slug: string, headers: Record<string, string> = {}) =>
  fetch(new URL(`/r/${slug}`, service), { redirect: 'manual', headers: { 'User-Agent': browser, ...headers } });
const clicks = () => merchant.get(`/v1/clicks?program_id=${program.id}`);
const attributed = () =>
  eventually(
    async () => (await clicks()).data.every(({ referral_id }: { referral_id: string | null }) => referral_id),
    'attribution',
  );
const referrals = () => merchant.get(`/v1/referrals?program_id=${program.id}`);

t.test('sends the visitor on to the tracked address, with query and fragment kept', async (t) => {
  t.equal(link.url, 'https://acme.example.com/pricing?plan=pro&ref=ada#yearly');
  t.equal(link.short_url, `${rail.services.base_url}/r/${link.short_slug}`);
  const answer = await follow(link.short_slug);
  t.equal(answer.status, 302);
  t.equal(answer.headers.get('location'), link.url);
  t.equal(answer.headers.get('cache-control'), 'no-store');
  const { data, total_count } = await clicks();
  t.equal(total_count, 1, 'the click was durable before the answer');
  t.match(data[0], { partner_id: partner.id, link_id: link.id, landing_url: link.url });
});

t.test('tells visitors apart by a cookie of the short domain, and by nothing else', async (t) => {
  await attributed();
  const before = (await referrals()).total_count;
  const first = await follow(link.short_slug);
  const set = first.headers.get('set-cookie') as string;
  t.match(set, /^rail_visitor=[\w-]{24}; Path=\/r; Max-Age=\d+; HttpOnly; SameSite=Lax/);
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
  t.equal((await clicks()).total_count, before);
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
