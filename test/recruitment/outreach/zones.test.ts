/** Time zones: which are taken, and that no value of a tenant stops the others. */
import t from 'tap';
import { transaction } from '../../../src/core/postgres/transaction.ts';
import { foldTallies } from '../../../src/program/programs/tally.ts';
import { foldReports } from '../../../src/program/reports/sums/fold.ts';
import { brandsDue } from '../../../src/recruitment/discovery/brands_due.ts';
import { outreachBacklog } from '../../../src/recruitment/sending/backlog.ts';
import { type Caller, eventually, type Json, sql, startRail } from '../../harness.ts';
import { openShop } from '../../shop.ts';
import { startMailbox } from '../mailbox.ts';
import { always, openSender, wake } from './outreach.ts';
import { startSink } from './sink.ts';

// Rows are poisoned here on purpose.
const rail = await startRail({ audit: false });
const sink = await startSink();
const mailbox = await startMailbox({ ...sink.handlers, secure: true });
const v1 = '/recruitment/v1';

const abbreviations = ['AET', 'IST', 'CST', 'PST', 'BST', 'CET', 'EET', 'EST', 'MST', 'HST', 'Z', 'Zulu'];
const refused = [
  ...abbreviations,
  'Mars/Olympus',
  '+02:00',
  'UTC+2',
  'Factory',
  'posixrules',
  'localtime',
  'posix/Europe/Berlin',
  ' UTC',
  '',
];

t.test('names of the tz database alone are taken, wherever there is a time zone', async (t) => {
  const caller = await rail.organization();
  const shop = await openShop(rail, {}, caller);
  const brand = await caller.post(`${v1}/brands`, {
    name: 'Acme',
    website_url: 'https://acme.example.com',
    scan_schedule: 'off',
  });
  const patch = (path: string, body: Json) => caller.request('PATCH', `${v1}/${path}`, body);
  const list = `program_id=${shop.program_id}&period=2026-07-01`;
  const report = 'from=2026-07-01T00:00:00Z&to=2026-07-03T00:00:00Z';
  const places: Record<string, (zone: string) => ReturnType<Caller['request']>> = {
    default_timezone: (zone) => patch(`brands/${brand.id}`, { default_timezone: zone }),
    'schedule.timezone': (zone) => patch('campaigns/fca_none', { schedule: { ...always, timezone: zone } }),
    'timezone of an inbox': (zone) => patch('inboxes/fin_none', { timezone: zone }),
    'timezone of a prospect': (zone) => patch('prospects/fdi_none', { timezone: zone }),
    'timezone of a report': (zone) =>
      caller.request(
        'GET',
        `/v1/reports?report=overview&program_id=${shop.program_id}&${report}&timezone=${encodeURIComponent(zone)}`,
      ),
    'timezone of a list': (zone) => caller.request('GET', `/v1/sales?${list}&timezone=${encodeURIComponent(zone)}`),
    'timezone of outreach': (zone) =>
      caller.request(
        'GET',
        `${v1}/reports?brand_id=${brand.id}&group_by=day&${report}&timezone=${encodeURIComponent(zone)}`,
      ),
  };
  for (const [place, send] of Object.entries(places)) {
    const param = place.replace(/ .*/, '');
    for (const zone of refused) {
      const { status, body } = await send(zone);
      t.match(
        { status, ...body.error },
        { status: 400, code: 'invalid_parameter', param, message: /IANA time zone/ },
        `${place} ${zone}`,
      );
    }
    for (const zone of [
      'UTC',
      'GMT',
      'Europe/Berlin',
      'US/Eastern',
      'Asia/Calcutta',
      'Etc/GMT+5',
      'Japan',
      'america/new_york',
    ])
      t.not((await send(zone)).status, 400, `${place} ${zone}`);
  }
  t.equal(
    (await places.default_timezone?.('america/new_york'))?.body.default_timezone,
    'America/New_York',
    'as it is spelled',
  );
});

/** As they were stored before, or lost by an upgrade of the tz database. */
const poisons = ['AET', 'Mars/Olympus', '+99', ''];

t.test('a zone that nobody knows is UTC, and stops no other organization', async (t) => {
  const open = async (zone: string, nth: number) => {
    const caller = await rail.organization();
    const address = () => `to${nth}@poisoned.example.com`;
    const campaign = { daily_new_limit: 5, schedule: { ...always, timezone: nth % 2 === 0 ? zone : 'recipient' } };
    const inbox = { timezone: zone };
    return { caller, ...(await openSender(rail, caller.organization_id, { mailbox, address, campaign, inbox })) };
  };
  // Two brands for each zone: one of each kind of schedule.
  const poisoned = await Promise.all(poisons.flatMap((zone) => [zone, zone]).map(open));
  for (const [nth, { brand_id, organization_id }] of poisoned.entries()) {
    const zone = poisons[Math.floor(nth / 2)];
    await rail.query(sql`
      update recruitment.brand set default_timezone = ${zone}, retention_days = 2147483647, scan_weekday = 3 where id = ${brand_id} returning id`);
    await rail.query(
      sql`update recruitment.prospect set timezone = ${zone} where organization_id = ${organization_id} returning id`,
    );
  }
  const good = await rail.organization();
  const sender = await openSender(rail, good.organization_id, { mailbox, address: () => 'ada@good.example.com' });
  await rail.query(sql`update recruitment.brand set scan_weekday = 3 where id = ${sender.brand_id} returning id`);

  await wake(rail);
  for (const to of ['ada@good.example.com', ...poisoned.map((_, nth) => `to${nth}@poisoned.example.com`)])
    await eventually(() => sink.acceptedBy(to).length === 1, `the email to ${to}`);
  for (const { caller, inbox_ids, sequence_ids } of poisoned) {
    await eventually(
      async () => (await caller.get(`${v1}/inboxes/${inbox_ids[0]}/health`)).sent_today === 1,
      'it to be counted',
    );
    t.equal((await caller.request('GET', `${v1}/sequences/${sequence_ids[0]}`)).status, 200);
  }
  t.not((await outreachBacklog.read(rail.store.database)).length, 0, 'metrics are read');

  const service = { organization_id: null, request_id: null };
  const due = await transaction(rail.store, service, (tx) => brandsDue(tx, '2030-01-02T12:00:00Z'));
  for (const { brand_id } of [sender, ...poisoned])
    t.ok(due.some(({ id, week }) => id === brand_id && week === '2030-01-02'));
  for (const task of ['recruitment/start_weekly_scans', 'recruitment/purge_expired', 'recruitment/sweep_campaigns']) {
    const run_id = await rail.tick(task, new Date().toISOString());
    const jobs = sql`select from graphile_worker._private_jobs j where j.payload ->> 'run_id' = ${run_id}`;
    await eventually(async () => (await rail.query(jobs)).length === 0, task);
  }
});

t.test('Postgres keeps out what a sweep could not read of a campaign', async (t) => {
  const caller = await rail.organization();
  const { campaign_id } = await openSender(rail, caller.organization_id, { mailbox, prospects: 0 });
  for (const schedule of [
    {},
    { ...always, from: '9' },
    { ...always, to: '24:01' },
    { ...always, days: 1 },
    { ...always, timezone: null },
    [],
  ])
    await t.rejects(
      rail.query(
        sql`update recruitment.campaign set schedule = ${JSON.stringify(schedule)}::jsonb where id = ${campaign_id}`,
      ),
      { message: /campaign_schedule_form/ },
    );
  await t.rejects(rail.query(sql`update recruitment.campaign set steps = '{}' where id = ${campaign_id}`), {
    message: /campaign_steps_are_a_list/,
  });
});

t.test('sums of one organization that are too large, or of a time that is none, stop no fold', async (t) => {
  const [odd, good] = [await openShop(rail), await openShop(rail)];
  await good.rule();
  await good.sale({ partner_id: (await good.partner()).id });
  const large = '9007199254740991000';
  await rail.query(sql`
    update program.fold set seen = pg_current_snapshot() where organization_id = ${odd.merchant.organization_id}`);
  await rail.query(sql`
    insert into program.tally_note (organization_id, subject_id, noun, kind, rows, amount_minor, inserted_in)
    select ${odd.merchant.organization_id}, ${odd.program_id}, 'sale', 'USD', 1, ${large}::bigint, '3' from generate_series(1, 3)`);
  await rail.query(sql`
    insert into program.report_note
    select c.sign, (f).*
    from program.unfolded_facts(${good.merchant.organization_id}) c
    cross join lateral (
      select jsonb_populate_record(null::program.fact, to_jsonb(c) || jsonb_build_object(
        'organization_id', ${odd.merchant.organization_id}::text, 'program_id', ${odd.program_id}::text, 'at', at.time, 'inserted_in', '3'
      )) as f
      from (values ('9999-12-31T00:00:00Z'), ('0001-01-01T00:00:00Z')) as at (time)
    ) as poisoned
    where c.program_id = ${good.program_id}`);
  const service = { organization_id: null, request_id: null };
  const folded = await transaction(rail.store, service, (tx) => foldTallies(tx, 10_000));
  t.ok(folded > 3);
  t.ok((await transaction(rail.store, service, (tx) => foldReports(tx, 10_000))) > 0);
  const left = sql`
    select from program.tally_note union all select from program.report_note`;
  t.same(await rail.query(left), []);
  t.equal((await odd.merchant.request('GET', `/v1/programs/${odd.program_id}`)).status, 200);
});
