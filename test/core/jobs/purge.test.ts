import t from 'tap';
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
