/**
 * `npm run soak -- restore`: a service is backed up, goes on, and is restored to the older state by pg_dump and by base backup with archived WAL: no email
 * is sent twice and no payout paid twice. With the programs of Debian's Postgres 15, each time to a server that never had Rail's roles.
 */
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { migrate, whyNotReady } from '../../src/core/postgres/migrate.ts';
import { command } from '../command_process.ts';
import { callerOf, encryption_key, eventually, type Json, type Rail, sql, startRail } from '../harness.ts';
import { batchOf, payee, payoutAfter, setRail } from '../program/payouts/fixture.ts';
import { StripeServer } from '../program/payouts/rails/stripe_server.ts';
import { startMailbox } from '../recruitment/mailbox.ts';
import { openSender, step, wake } from '../recruitment/outreach/outreach.ts';
import { startSentFolder } from '../recruitment/outreach/sent_folder.ts';
import { startSink } from '../recruitment/outreach/sink.ts';
import { openShop, type Shop } from '../shop.ts';
import { type Cluster, clusterAt, debian, makeDirectory, newCluster, program, query, writeFor } from './cluster.ts';

const emails_each = 8;
const payouts = 4;

export function soakRestore(): void {
  t.setTimeout(1_800_000);
  t.test('a dump, restored to another server', async (t) => {
    const one = await newCluster(debian);
    const life = await begin(one);
    const file = join(await makeDirectory(), 'rail.dump');
    await program(join(debian, 'pg_dump'), ['--format=custom', `--file=${file}`, one.url]);
    await goOn(life);
    const two = await newCluster(debian);
    const said = await program(join(debian, 'pg_restore'), ['--no-owner', `--dbname=${two.url}`, file]).catch(
      ({ stderr }) => stderr as string,
    );
    t.match(said, /role "rail_api" does not exist/);
    await migrate(two.url);
    await prove(t, life, two, 'another cluster');
  });

  t.test('a dump, restored to another database of the same server', async (t) => {
    const one = await newCluster(debian);
    const life = await begin(one);
    const file = join(await makeDirectory(), 'rail.dump');
    await program(join(debian, 'pg_dump'), ['--format=custom', `--file=${file}`, one.url]);
    await goOn(life);
    await query(one.superuser_url, 'create database restored owner rail');
    const two = { ...one, url: Object.assign(new URL(one.url), { pathname: '/restored' }).href };
    await program(join(debian, 'pg_restore'), ['--no-owner', `--dbname=${two.url}`, file]);
    await migrate(two.url);
    await prove(t, life, two, 'a dump');
  });

  t.test('a base backup, recovered to a moment', async (t) => {
    const archive = await makeDirectory();
    const one = await newCluster(debian, { archive_mode: 'on', archive_command: `cp %p ${archive}/%f` });
    const base = join(await makeDirectory(), 'base');
    const [user, password] = [new URL(one.superuser_url).username, new URL(one.superuser_url).password];
    const where = ['--host=127.0.0.1', `--port=${one.port}`, `--username=${user}`];
    await program(
      join(debian, 'pg_basebackup'),
      [`--pgdata=${base}`, '--wal-method=stream', '--checkpoint=fast', ...where],
      {
        PGPASSWORD: password,
      },
    );
    const life = await begin(one);
    const [moment] = await query<{ now: string }>(one.url, 'select clock_timestamp()::text as now');
    await goOn(life);
    await query(one.superuser_url, 'select pg_switch_wal()');
    await one.stop();
    await writeFor(join(base, 'recovery.signal'), '');
    const two = await clusterAt(debian, base, {
      restore_command: `cp ${archive}/%f %p`,
      recovery_target_time: moment?.now as string,
      recovery_target_action: 'promote',
      archive_mode: 'off',
    });
    await eventually(
      async () =>
        (await query<{ over: boolean }>(two.superuser_url, 'select not pg_is_in_recovery() as over'))[0]?.over === true,
      'the recovery to end',
      120_000,
    );
    await prove(t, life, two, 'another timeline');
  });
}

interface Life {
  rail: Rail;
  shop: Shop;
  stripe: StripeServer;
  sink: Awaited<ReturnType<typeof startSink>>;
  payouts: Json[];
}

/** A service with payouts and two campaigns: the emails of one are sent already. */
async function begin(cluster: Cluster): Promise<Life> {
  await migrate(cluster.url);
  const stripe = await new StripeServer().start();
  t.teardown(() => stripe.stop());
  const sink = await startSink();
  const mailbox = await startMailbox(sink.handlers);
  const folder = await startSentFolder();
  const { accepted } = sink;
  const push = accepted.push.bind(accepted);
  // The server keeps a copy of what it accepts.
  accepted.push = (...emails) => {
    for (const { text } of emails) folder.put(text);
    return push(...emails);
  };
  const rail = await startRail({ of_url: cluster.url, provider_urls: { stripe: stripe.url }, audit: false });
  const shop = await openShop(rail, { payout_methods: ['stripe'] });
  await setRail(rail, shop, 'stripe', stripe.credentials);
  for (let nth = 0; nth < payouts; nth++)
    await payee(shop, [6_000], { payout_method: { method: 'stripe', details: { account_id: 'acct_partner' } } });
  await batchOf(shop);
  const open = (of: string) =>
    openSender(rail, shop.merchant.organization_id, {
      mailbox: { smtp: mailbox.smtp, imap: folder.imap },
      prospects: emails_each,
      address: (nth) => `reader@${of}-blog${nth}.com`,
      steps: [step(), step({ subject: '', delay_days: 3 })],
      inbox: { timezone: of === 'early' ? 'UTC' : 'Europe/Berlin' },
    });
  await open('early');
  await wake(rail);
  await eventually(async () => accepted.length === emails_each, 'the first emails', 120_000);
  await rail.query(sql`update recruitment.inbox set email = 'early@acme.example.com'`);
  await open('late');
  await rail.query(sql`select core.beat(null)`);
  return { rail, shop, stripe, sink, payouts: await shop.list('payouts') };
}

/** The rows that the restored state forgets. */
async function goOn({ rail, shop, sink, payouts }: Life): Promise<void> {
  await wake(rail);
  await eventually(async () => sink.accepted.length === 2 * emails_each, 'all emails', 120_000);
  for (const { id } of payouts) await shop.merchant.post(`/v1/payouts/${id}/send`);
  for (const one of payouts) await payoutAfter(shop, one, 'paid');
}

async function prove(t: Test, life: Life, cluster: Cluster, reason: string): Promise<void> {
  const { shop, stripe, sink } = life;
  const restored = await startRail({ of_url: cluster.url, provider_urls: { stripe: stripe.url } });
  t.equal(await whyNotReady(restored.store.database), undefined);
  const merchant = callerOf(restored.address, shop.merchant.key, shop.merchant.organization_id);
  const environment = { DATABASE_URL: cluster.url, RAIL_ENCRYPTION_KEY: encryption_key.toString('base64') };
  const resume = async (...options: string[]) =>
    JSON.parse((await command(['resume', ...options, '--json'], environment)).stdout);
  await wake(restored);
  t.match(await resume('--dry-run'), { held: { reason }, emails: { count: emails_each } });
  const [first] = life.payouts as [Json];
  t.equal((await merchant.request('POST', `/v1/payouts/${first.id}/send`)).status, 409);
  t.equal(sink.accepted.length, 2 * emails_each, 'nothing leaves while it is held');

  await resume();
  await wake(restored);
  await eventually(
    async () => {
      const [sent] = await restored.query<{ count: number }>(
        sql`select count(*) as count from recruitment.message where direction = 'outbound' and state = 'sent'`,
      );
      return sent?.count === 2 * emails_each;
    },
    'all emails to be known as sent',
    120_000,
  );
  for (const { id } of life.payouts) await merchant.post(`/v1/payouts/${id}/send`);
  for (const one of life.payouts) await payoutAfter({ ...shop, merchant }, one, 'paid');
  t.equal(new Set(sink.accepted.map(({ to }) => to)).size, 2 * emails_each);
  t.equal(sink.accepted.length, 2 * emails_each, 'no email twice');
  t.ok(
    life.payouts.every(({ id }) => stripe.movedFor(`${id}-1`)?.times === 1),
    'no payout twice',
  );
  t.same(await restored.audit(), []);
}
