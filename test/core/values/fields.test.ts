import t from 'tap';
import type { z } from 'zod';
import { operations } from '../../../src/operations.ts';
import { startRail } from '../../harness.ts';

const rail = await startRail({ worker: false });
const merchant = await rail.organization();
const acme = { name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' };
const program = await merchant.post('/v1/programs', acme);
const newPartner = (email: string) => merchant.request('POST', '/v1/partners', { program_id: program.id, email });

t.test('an address of mail may have every sign that RFC 5321 allows without quotation marks', async (t) => {
  for (const sign of "!#$%&'*+/=?^_`{|}~-") t.equal((await newPartner(`a${sign}b@example.com`)).status, 201, sign);
  for (const email of [
    'a.b.c@example.com',
    `${'l'.repeat(64)}@example.com`,
    '1@2.example.com',
    'a@a-b.example',
    `a@${'d'.repeat(63)}.example.com`,
    'jos\u00e9@example.com',
    '\u4e2d\u6587@example.com',
  ]) {
    const { status, body } = await newPartner(email);
    t.equal(status, 201, email);
    t.equal(body.email, email);
  }
});

t.test('what is no address of mail is refused', async (t) => {
  for (const email of [
    ...[
      '',
      'a',
      '@',
      'a@',
      '@example.com',
      'a@b',
      'a@b@example.com',
      'a b@example.com',
      'a@example.com ',
      '"a b"@example.com',
    ],
    ...['.a@example.com', 'a.@example.com', 'a..b@example.com', 'a@.example.com', 'a@example.com.', 'a@example..com'],
    ...[
      'a@-x.example.com',
      'a@x-.example.com',
      'a@1.2.3.4',
      'a@[1.2.3.4]',
      'a,b@example.com',
      'a\nb@example.com',
      'a@exa_mple.com',
    ],
    ...[
      `${'l'.repeat(65)}@example.com`,
      `a@${'d'.repeat(64)}.com`,
      `a@${'d.'.repeat(126)}com`,
      'a\u00a0b@example.com',
      'a@x\u2024y.com',
    ],
  ]) {
    const { status, body } = await newPartner(email);
    t.equal(status, 400, email);
    t.equal(body.error.param, 'email');
  }
});

t.test(
  'an address whose domain is of other letters is kept with its ASCII domain, and is one address in both forms',
  async (t) => {
    const { body } = await newPartner('ada@B\u00fccher.example.com');
    t.equal(body.email, 'ada@xn--bcher-kva.example.com');
    const again = await newPartner('ADA@xn--bcher-kva.example.com');
    t.match(again, { status: 409, body: { existing: { id: body.id } } });
    const list = await merchant.get(
      `/v1/partners?program_id=${program.id}&email=${encodeURIComponent('ada@b\u00fccher.example.com')}`,
    );
    t.equal(list.total_count, 1);
  },
);

t.test('a URL is kept as it was parsed', async (t) => {
  for (const [sent, kept] of [
    ['https://acme.example.com', 'https://acme.example.com/'],
    ['HTTPS://ACME.example.com:443/a/../b c?d=e f#g', 'https://acme.example.com/b%20c?d=e%20f#g'],
    ['https://b\u00fccher.example.com/\u00e9', 'https://xn--bcher-kva.example.com/%C3%A9'],
    ['http://0x7f.1/', 'http://127.0.0.1/'],
    ['  https://acme.example.com/ ', 'https://acme.example.com/'],
  ] as const) {
    const { website_url } = await merchant.post('/v1/programs', { ...acme, website_url: sent });
    t.equal(website_url, kept);
    const endpoint = await merchant.post('/v1/webhook_endpoints', { program_id: program.id, url: sent });
    t.equal(endpoint.url, kept);
  }
  const long = await merchant.request('POST', '/v1/programs', {
    ...acme,
    website_url: `https://a.example/${'\u00e9'.repeat(1_000)}`,
  });
  t.equal(long.body.error.param, 'website_url', 'its length is that of what is kept');
  const sent = { ...acme, website_url: `https://a.example/${'./'.repeat(1_100)}` };
  const shrinks = await merchant.request('POST', '/v1/programs', sent);
  t.equal(shrinks.body.error.param, 'website_url', 'and that of what is sent, as the description says');
});

t.test('a time may have any offset, wherever it is sent', async (t) => {
  for (const offset of ['Z', '+00:00', '-00:00', '+05:30', '-12:00', '+14:00', '+23:59', '-23:59']) {
    const time = encodeURIComponent(`2026-01-31T12:00:00${offset}`);
    for (const path of ['partners', 'sales', 'commissions/maturing']) {
      const filter = path.endsWith('maturing') ? 'from' : 'created_after';
      const { status, text } = await merchant.request('GET', `/v1/${path}?program_id=${program.id}&${filter}=${time}`);
      t.equal(status, 200, text.slice(0, 200));
    }
  }
  for (const time of [
    '2026-01-31T12:00:00',
    '2026-01-31T12:00:00+24:00',
    '2026-01-31T12:00:00+0100',
    '2026-02-30T12:00:00Z',
  ]) {
    const path = `/v1/partners?program_id=${program.id}&created_after=${encodeURIComponent(time)}`;
    t.match(await merchant.request('GET', path), { status: 400, body: { error: { param: 'created_after' } } }, time);
  }
});

/** The texts that a schema takes, without those of a format, a pattern or a list of names, which bound their characters too. */
function textsIn(schema: z.core.$ZodType, path: string): [path: string, text: z.ZodString][] {
  const { type, ...def } = schema._zod.def as never as Record<string, never> & { type: string };
  const inner = def.innerType ?? def.element ?? def.in ?? def.left;
  if (type === 'object')
    return Object.entries(def.shape ?? {}).flatMap(([name, field]) => textsIn(field as never, `${path}.${name}`));
  if (type === 'union') return (def.options as unknown as never[]).flatMap((option) => textsIn(option, path));
  if (inner) return textsIn(inner, path);
  const text = schema as z.ZodString;
  const checks = (def.checks ?? []) as { _zod: { def: { check: string } } }[];
  const isFree =
    type === 'string' &&
    !def.format &&
    !checks.some(({ _zod }) => ['string_format', 'custom'].includes(_zod.def.check));
  return isFree ? [[path, text]] : [];
}

t.test('the length of a text is counted in code points, as the description counts it', async (t) => {
  const texts = operations.flatMap(({ name, body, query }) =>
    [body, query].flatMap((schema) => (schema ? textsIn(schema, name) : [])),
  );
  const bounded = texts.filter(([, text]) => typeof text.maxLength === 'number');
  t.ok(bounded.length > 50, `${bounded.length} texts`);
  for (const [path, text] of bounded) {
    const most = text.maxLength as number;
    t.equal(text.safeParse('\u{1f600}'.repeat(most)).success, true, `${path} takes ${most}`);
    t.equal(text.safeParse('\u{1f600}'.repeat(most + 1)).success, false, `${path} takes no more`);
    const least = text.minLength ?? 0;
    if (least > 0)
      t.equal(text.safeParse('\u{1f600}'.repeat(least - 1)).success, false, `${path} takes no less than ${least}`);
  }
});

t.test('a name of as many emoji as its bound is kept', async (t) => {
  const name = '\u{1f600}'.repeat(200);
  t.equal((await merchant.post('/v1/programs', { ...acme, name })).name, name);
  t.equal((await merchant.request('POST', '/v1/programs', { ...acme, name: `${name}!` })).status, 400);
});
