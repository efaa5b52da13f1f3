/** A service that was restored to an older state, and goes on. */
import t from 'tap';
import { watchHold } from '../../src/core/metrics/hold.ts';
import { command } from '../command_process.ts';
import { callerOf, encryption_key, eventually, type Json, log, type Rail, sql, startRail } from '../harness.ts';
import { copyDatabase } from '../postgres.ts';
import { batchOf, payee, payoutAfter, setRail } from '../program/payouts/fixture.ts';
import { StripeServer } from '../program/payouts/rails/stripe_server.ts';
import { startMailbox } from '../recruitment/mailbox.ts';
import { openSender, step, wake } from '../recruitment/outreach/outreach.ts';
import { startSentFolder } from '../recruitment/outreach/sent_folder.ts';
import { startSink } from '../recruitment/outreach/sink.ts';
import { fresh, openShop, type Shop } from '../shop.ts';

const stripe = await new StripeServer().start();
t.teardown(() => stripe.stop());
const sink = await startSink();
const mailbox = await startMailbox(sink.handlers);
const folder = await startSentFolder();
const provider_urls = { stripe: stripe.url };
const before = await startRail({ provider_urls });

const shop = await openShop(before, { payout_methods: ['stripe'] });
await setRail(before, shop, 'stripe', stripe.credentials);
const by_stripe = { method: 'stripe', details: { account_id: 'acct_partner' } };
await payee(shop, [6_000], { payout_method: by_stripe });
await batchOf(shop);
const [payout] = (await shop.list('payouts')) as [Json];
await payee(shop, [7_000], { payout_method: by_stripe });
const { organization_id } = shop.merchant;
await openSender(before, organization_id, {
  mailbox: { smtp: mailbox.smtp, imap: folder.imap },
  prospects: 2,
  steps: [step(), step({ subject: '', delay_days: 3 })],
});
await before.query(sql`select core.beat(null)`); // as each process of it does
const restored_url = await copyDatabase(before.url);

const outbound = ({ query }: Rail): Promise<Json[]> =>
  query(
    sql`select t.id, t.state, t.rfc_message_id from recruitment.message t where t.direction = 'outbound' order by t.rfc_message_id`,
  );
const sentBy = (rail: Rail, count: number) =>
  eventually(
    async () => (await outbound(rail)).filter(({ state }) => state === 'sent').length === count,
    `${count} sent`,
  );

// The restored state has forgotten emails, that a payout was paid, and another payout.
await wake(before);
await sentBy(before, 2);
for (const { text } of sink.accepted) folder.put(text);
await shop.merchant.post(`/v1/payouts/${payout.id}/send`);
await payoutAfter(shop, payout, 'paid');
await batchOf(shop);
const lost = (await shop.list('payouts')).find(({ id }) => id !== payout.id) as Json;
await shop.merchant.post(`/v1/payouts/${lost.id}/send`);
await payoutAfter(shop, lost, 'paid');
stripe.forgetKeys();

const restored = await startRail({ provider_urls, of_url: restored_url });
const merchant = callerOf(restored.address, shop.merchant.key, organization_id);
const again: Shop = {
  ...shop,
  merchant,
  partner: (fields) =>
    merchant.post('/v1/partners', {
      program_id: shop.program_id,
      email: `${fresh('partner')}@partner.example.com`,
      ...fields,
    }),
  list: async (plural) => (await merchant.get(`/v1/${plural}?program_id=${shop.program_id}`)).data,
};
const environment = { DATABASE_URL: restored.url, RAIL_ENCRYPTION_KEY: encryption_key.toString('base64') };
const resume = async (...options: string[]) => {
  const { code, stdout, stderr } = await command(['resume', ...options, '--json'], environment);
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
};
const jobsDone = () =>
  eventually(
    async () => (await restored.query(sql`select from graphile_worker.jobs where run_at <= now()`)).length === 0,
    'the jobs to be done',
  );

t.test('holds emails and payouts, whether or not a process has noticed', async (t) => {
  await wake(restored);
  await jobsDone();
  t.equal(sink.accepted.length, 2);
  t.match(await merchant.request('POST', `/v1/payouts/${payout.id}/send`), {
    status: 409,
    body: { error: { code: 'payout_locked', message: /service_restored.*restored from a backup/ } },
  });
  t.match(await resume('--dry-run'), {
    held: { reason: 'a dump' },
    resumed: false,
    emails: { count: 2 },
    payouts_pending: { count: 0 },
  });
  await wake(restored);
  await jobsDone();
  t.equal(sink.accepted.length, 2);
});

t.test('sends and pays nothing twice once it is resumed', async (t) => {
  t.match(await resume(), { resumed: true, payouts_compared: false });
  await wake(restored);
  await sentBy(restored, 2);
  t.equal(sink.accepted.length, 2, 'each email was accepted once');
  t.same(await outbound(restored), await outbound(before), 'under the ids that they had');

  await merchant.post(`/v1/payouts/${payout.id}/send`);
  t.match(await payoutAfter(again, payout, 'paid'), { attempt: 1 });
  t.match(stripe.movedFor(`${payout.id}-1`), { times: 1, amount_minor: 6_000 });
});

t.test('pays what was due before by another payout only once an operator has compared payouts', async (t) => {
  const newest = async () => {
    await batchOf(again);
    return (await again.list('payouts')).toSorted((one, two) => (one.id < two.id ? 1 : -1))[0] as Json;
  };
  const send = ({ id }: Json) => merchant.request('POST', `/v1/payouts/${id}/send`);
  const twin = await newest();
  t.match(twin, { amount_minor: lost.amount_minor, partner_id: lost.partner_id });
  t.match(await send(twin), { status: 409, body: { error: { message: /service_restored/ } } });
  await merchant.post(`/v1/payouts/${twin.id}/mark_paid`);
  t.match(await resume('--payouts-compared'), { held: null, payouts_compared: true });

  await payee(again, [8_000], { payout_method: by_stripe });
  const other = await newest();
  t.equal((await send(other)).status, 200);
  await payoutAfter(again, other, 'paid');
  t.match(
    [payout, lost, twin, other].map(({ id }) => stripe.movedFor(`${id}-1`)?.times),
    [1, 1, undefined, 1],
  );
});

t.test('tells a state that is older from a replica that was promoted with all that was acknowledged', async (t) => {
  const beat = async (known: number | null) =>
    (
      await restored.query<{ beat: number; held_since: string | null; reason: string | null }>(
        sql`select * from core.beat(${known}::bigint)`,
      )
    )[0];
  const last = (await beat(null))?.beat as number;
  t.match(await beat(last), { held_since: null }, 'all goes on');
  t.match(await beat(last + 10), { reason: 'an earlier beat' }, 'this process has seen a later state');
  const end = await watchHold(restored.store.database, '/nowhere/beat.json', log);
  end();
  t.match(await (await fetch(`${restored.address}/readyz`)).json(), {
    status: 'ready',
    held: /an earlier beat.*resume --dry-run/,
  });
  t.match(await resume('--nothing-lost'), { resumed: true, payouts_compared: true });
  t.match(await beat(last), { held_since: null });

  const promote = sql`update core.cluster set timeline = timeline + 1, is_synchronous = true`;
  await restored.query(promote);
  t.match(await beat(last), { held_since: null }, 'commits waited for the replica, and it has what this process knows');
  await restored.query(promote);
  t.match(await beat(null), { reason: 'another timeline' }, 'nobody knows');
  await resume('--nothing-lost');
  await restored.query(sql`update core.cluster set timeline = timeline + 1, is_synchronous = false`);
  t.match(await beat(last), { reason: 'another timeline' }, 'the last commits may be lost');
});

t.test('an operator holds and resumes by hand, and reads what is so', async (t) => {
  const said = async (...args: string[]) => (await command(args, environment)).stdout;
  t.match(await said('hold'), /^Emails and payouts are held since \S+: an operator held them, as after a restore/);
  const looked = await said('resume', '--dry-run');
  t.match(looked, /^Emails and payouts are held since/);
  t.notMatch(looked, /dry-run/, 'it does not name itself');
  const resumed = await said('resume', '--nothing-lost');
  t.match(resumed, /^Emails and payouts were held since \S+: an operator[\s\S]*Emails and payouts go on\.\n/);
  t.notMatch(resumed, /are held|dry-run/);
});
