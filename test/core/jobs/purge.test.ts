import t from 'tap';
import { purgeExpired, readRetention } from '../../../src/core/jobs/retention.ts';
import { service_opening } from '../../../src/core/jobs/task.ts';
import { transaction } from '../../../src/core/postgres/transaction.ts';
import { default_retention } from '../../../src/core/resource/services.ts';
import { kept } from '../../../src/products.ts';
import { eventually, sql, startRail } from '../../harness.ts';

const rail = await startRail();
const { organization_id } = await rail.organization();

/** Mails of this age, whose subjects say which they are. */
const writeMails = (count: number, subject: string, age: string) =>
  rail.query(sql`
    insert into core.outgoing_mail (organization_id, id, subject, text, created_at)
    select ${organization_id}, core.new_id('mail'), ${subject}, 'A text.', now() - ${age}::interval
    from generate_series(1, ${count})
    returning id`);

const subjects = async (): Promise<string[]> =>
  (
    await rail.query<{ subject: string }>(
      sql`select distinct subject from core.outgoing_mail where organization_id = ${organization_id} order by subject`,
    )
  ).map(({ subject }) => subject);

const isGone = (subject: string) => async () => !(await subjects()).includes(subject);

t.test(
  'mail goes after 90 days by the clock of Postgres, however much there is and whatever time the run is of',
  async (t) => {
    await writeMails(4_001, 'old', '90 days 1 minute');
    await writeMails(3, 'young', '89 days 23 hours');
    await rail.tick('core/purge_expired', '2999-01-01T00:00:00Z');
    await eventually(isGone('old'), 'the old mails to go');
    t.same(await subjects(), ['young']);
  },
);

t.test('scheduled runs go after 90 days', async (t) => {
  const name = 'core/purge_expired';
  const write = (age: string) =>
    rail.query(sql`
      insert into core.scheduled_run (id, name, tick, created_at)
      values (core.new_id('run'), ${name}, now() - ${age}::interval, now() - ${age}::interval) returning id`);
  await write('91 days');
  await write('89 days');
  await rail.tick(name, new Date(Date.now() + 60_000).toISOString());
  const ages = () =>
    rail.query<{ days: number }>(
      sql`select floor(extract(epoch from now() - tick) / 86400)::int as days from core.scheduled_run
        where name = ${name} and tick < now() - interval '1 day'`,
    );
  await eventually(async () => (await ages()).length === 1, 'the old run to go');
  t.same(await ages(), [{ days: 89 }]);
});

t.test('settings say how long, and it is seen what is older than they say', async (t) => {
  const read = async (retention = default_retention) => {
    const all = await readRetention(rail.store.database, kept, retention);
    return (kind: string) => all.find((one) => one.kind === kind);
  };
  await rail.query(sql`delete from core.outgoing_mail`);
  await writeMails(1, 'forgotten', '20 days');
  const ago = (await read())('mails');
  t.match(ago, { setting: 'MAIL_RETENTION_DAYS', days: 90, behind_days: 0 });
  t.equal(Math.round((Date.now() - Date.parse(ago?.oldest_at as string)) / 86_400_000), 20);
  const shorter = { ...default_retention, mail_days: 7, event_days: 7 };
  t.match((await read(shorter))('mails'), { days: 7, behind_days: 12 });
  t.match((await read())('clicks'), { setting: null, days: null, behind_days: 0 });
  t.match((await read())('idempotency_keys'), { setting: null, days: 1 });
  const now = new Date().toISOString();
  await transaction(rail.store, service_opening, (tx) => purgeExpired(tx, shorter, now, 10));
  t.match((await read(shorter))('mails'), { oldest_at: null, behind_days: 0 });

  const old = sql`now() - interval '24 days'`;
  await rail.query(sql`call core.ensure_weekly_partitions('webhooks.event', 'evt', ${old}, ${old})`);
  t.match((await read())('events'), { setting: 'EVENT_RETENTION_DAYS', days: 30, behind_days: 0 });
  const { behind_days = 0 } = (await read(shorter))('events') ?? {};
  t.ok(behind_days > 8 && behind_days < 17, `${behind_days}`);
  await rail.query(sql`call webhooks.keep_partitions(now(), 'evt', 'whd', interval '30 days')`);
  t.ok(((await read(shorter))('events')?.behind_days ?? 0) > 0, 'it is kept for 30 days');
  await rail.query(sql`call webhooks.keep_partitions(now(), 'evt', 'whd', interval '7 days')`);
  t.equal((await read(shorter))('events')?.behind_days, 0);
});
