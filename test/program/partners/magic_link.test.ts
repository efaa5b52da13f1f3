import t from 'tap';
import { transaction } from '../../../src/core/postgres/transaction.ts';
import { redeemMagicLink } from '../../../src/program/partners/magic_link.ts';
import { sql, startRail } from '../../harness.ts';

const rail = await startRail({ worker: false });
const merchant = await rail.organization();
const program = await merchant.post('/v1/programs', {
  name: 'Acme',
  website_url: 'https://acme.example.com',
  currency: 'USD',
});
const partner = await merchant.post('/v1/partners', { program_id: program.id, email: 'ada@partner.example.com' });

const redeem = (token: string, now?: string) =>
  transaction(rail.store, { organization_id: null, request_id: null, now }, (tx) => redeemMagicLink(tx, token));

async function newToken(): Promise<{ token: string; expires_at: string }> {
  const { url, expires_at } = await merchant.post(`/v1/partners/${partner.id}/magic_link`);
  return { token: new URL(url).searchParams.get('token') as string, expires_at };
}

t.test('a magic link signs its partner in', async (t) => {
  const { token } = await newToken();
  t.same(await redeem(token), { organization_id: merchant.organization_id, partner_id: partner.id });
});

t.test('a magic link is redeemed once, also by two concurrent attempts', async (t) => {
  const { token } = await newToken();
  const let_in = (await Promise.all([redeem(token), redeem(token), redeem(token)])).filter(Boolean);
  t.equal(let_in.length, 1);
  t.equal(await redeem(token), undefined);
});

t.test('the page of a magic link shows a button, and uses no token up', async (t) => {
  const { url } = await merchant.post(`/v1/partners/${partner.id}/magic_link`);
  const { pathname, search } = new URL(url);
  const answer = await fetch(new URL(pathname + search, rail.address), { headers: { Accept: 'text/html' } });
  t.same([answer.status, answer.headers.get('content-type')], [200, 'text/html; charset=utf-8']);
  t.match(await answer.text(), 'Press the button to sign in. The link works once.');
  t.match(await redeem(new URL(url).searchParams.get('token') as string), { partner_id: partner.id });
});

t.test('a magic link expires after 15 minutes', async (t) => {
  const { token, expires_at } = await newToken();
  t.equal(await redeem(token, expires_at), undefined);
  const just_before = new Date(Date.parse(expires_at) - 1).toISOString();
  t.match(await redeem(token, just_before), { partner_id: partner.id });
});

t.test('links that expired are deleted when another one is made', async (t) => {
  await rail.query(sql`update program.magic_link set created_at = now() - interval '25 hours'`);
  await newToken();
  t.equal((await rail.query(sql`select from program.magic_link where partner_id = ${partner.id}`)).length, 1);
});

t.test('a magic link of a suspended partner is not redeemed', async (t) => {
  const { token } = await newToken();
  await merchant.patch(`/v1/partners/${partner.id}`, { status: 'suspended' });
  t.equal(await redeem(token), undefined);
  t.equal(await redeem('nobody-made-this-token'), undefined);
});

t.test('the token is stored hashed', async (t) => {
  const { token } = await newToken();
  const rows = await rail.query(sql`select row_to_json(m)::text as stored from program.magic_link m`);
  t.ok(rows.length > 0);
  t.notOk(rows.some(({ stored }) => stored.includes(token) || stored.includes(Buffer.from(token).toString('hex'))));
});
