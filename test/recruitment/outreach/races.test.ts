/** Sends that race: against unsubscribes, and of eight workers that draw from the same inboxes. The clock of the latter is simulated. */
import t from 'tap';
import type { TaskContext } from '../../../src/core/jobs/worker_context.ts';
import { transaction } from '../../../src/core/postgres/transaction.ts';
import { nobody } from '../../../src/recruitment/brands/acting.ts';
import { scheduleSequences } from '../../../src/recruitment/campaigns/schedule_sequences.ts';
import { suppress } from '../../../src/recruitment/contact/mark.ts';
import { claim } from '../../../src/recruitment/sending/claim.ts';
import { confirm } from '../../../src/recruitment/sending/confirm.ts';
import { recordEnds } from '../../../src/recruitment/sending/record_sent.ts';
import { unsubscribe } from '../../../src/recruitment/unsubscribing/unsubscribe.ts';
import { type Json, sql, startRail } from '../../harness.ts';
import { effort } from '../../runner/effort.ts';
import { openSender, step } from './outreach.ts';

// Ten thousand trials take some minutes, and an hour on a loaded machine.
if (effort.raced_unsubscribes > 1_000) t.setTimeout(7_200_000);

const rail = await startRail({ worker: false });
const { vault, base_url } = rail.services;
const server = { host: 'localhost', port: 465, security: 'tls', username: 'grace', password: 'none' };
const mailbox = { smtp: server, imap: server };

t.test('after an unsubscribe or a mark has been answered, no send begins', async (t) => {
  const { organization_id } = await rail.organization();
  const trials = effort.raced_unsubscribes;
  const address = (nth: number) => `reader@raced${nth}.com`;
  const sender = await openSender(rail, organization_id, {
    ...{
      mailbox,
      prospects: trials,
      inboxes: Math.ceil(trials / 400),
      address,
      steps: [step(), step({ delay_days: 0 })],
    },
  });
  const within = <T>(work: Parameters<typeof transaction<T>>[2]) =>
    transaction(rail.store, { organization_id, request_id: null }, work);
  const claiming = { worker_id: 'worker_raced', vault, base_url, random: () => 0 };
  let ended = 0;
  let held = 0;
  const trial = async (nth: number, inbox_id: string) => {
    const [claimed] = await within((tx) => claim(tx, [inbox_id], claiming));
    if (claimed?.is !== 'send') throw new Error(`Nothing to send: ${JSON.stringify(claimed)}`);
    const { message_id, attempts, mail } = claimed.message;
    let is_answered = false;
    const bar =
      nth % 2 === 0
        ? within((tx) => unsubscribe(tx, vault, { id: message_id }))
        : within((tx) => suppress(tx, vault, { kind: 'address', email: mail.to }, 'manual', nobody));
    const barring = bar.then(() => {
      is_answered = true;
    });
    // The final dot is asked for at another moment of the unsubscribe each time.
    for (let turn = 0; turn < nth % 12; turn++) await new Promise((resolve) => setImmediate(resolve));
    const was_answered = is_answered;
    const may = await within((tx) => confirm(tx, [{ message_id, attempts }], claiming.worker_id));
    if (may.has(message_id)) {
      t.notOk(was_answered, 'it began before the answer');
      ended++;
      await barring;
      await within((tx) => recordEnds(tx, [{ message_id, as: 'sent' }]));
    } else held++;
    await barring;
    const again = await within((tx) => confirm(tx, [{ message_id, attempts }], claiming.worker_id));
    if (again.size > 0) t.fail('a send begins after the answer');
  };
  // Each inbox sends one email at a time, beside the others.
  await Promise.all(
    sender.inbox_ids.map(async (inbox_id, first) => {
      for (let nth = first; nth < trials; nth += sender.inbox_ids.length) await trial(nth, inbox_id);
    }),
  );
  t.equal(ended + held, trials);
  t.comment(`${trials} trials: ${ended} sends began before the answer, ${held} were held`);
  const open = await rail.query(
    sql`select id from recruitment.sequence where organization_id = ${organization_id} and open`,
  );
  t.same(open, []);
});

t.test('whom a domain bars that a job has still to mark is written to by nobody, and told of to nobody', async (t) => {
  const { organization_id } = await rail.organization();
  const prospects = 1_100;
  const sender = await openSender(rail, organization_id, {
    mailbox,
    prospects,
    address: (nth: number) => `reader${nth}@crowd.com`,
  });
  const within = <T>(work: Parameters<typeof transaction<T>>[2]) =>
    transaction(rail.store, { organization_id, request_id: null }, work);
  const states = () =>
    rail.query(sql`
      select state, count(*)::integer as count from recruitment.sequence where organization_id = ${organization_id} group by state order by state`);
  const claimNext = async () => {
    const claiming = { worker_id: 'worker_barred', vault, base_url, random: () => 0 };
    const [claimed] = await within((tx) => claim(tx, sender.inbox_ids, claiming));
    t.match(claimed, { is: 'rest', reason: 'idle' });
  };
  await rail.query(sql`
    update recruitment.sequence set due_at = null, inbox_id = null, email_address_id = null, address_hmac = null, domain_hmac = null, company_hmac = null
    where id = ${sender.sequence_ids.at(-1)}`);
  await within((tx) => suppress(tx, vault, { kind: 'domain', domain: 'crowd.com' }, 'manual', nobody));
  t.same(await states(), [
    { state: 'stopped', count: 1_000 },
    { state: 'waiting', count: 100 },
  ]);
  await claimNext();
  await scheduleSequences({ organization_id, campaign_id: sender.campaign_id }, {
    store: rail.store,
    services: rail.services,
    stopping: new AbortController().signal,
  } as unknown as TaskContext);
  t.same(await states(), [{ state: 'stopped', count: prospects }]);
  t.same(
    await rail.query(
      sql`select body from webhooks.event where organization_id = ${organization_id} and type = 'campaign.send_failed'`,
    ),
    [],
  );
});

t.test('eight workers pass no cap, and keep every gap', async (t) => {
  const { organization_id } = await rail.organization();
  await rail
    .query(
      sql`insert into recruitment.plan (organization_id, name) values (${organization_id}, 'grow') on conflict (organization_id) do update set name = 'grow'`,
    )
    .catch(() => {});
  const day_ms = 86_400_000;
  const start = Date.parse('2026-03-27T00:00:00Z'); // over a night in which clocks change
  const sender = await openSender(rail, organization_id, {
    ...{
      mailbox,
      prospects: 400,
      inboxes: 3,
      address: (nth: number) => `reader${nth}@company${Math.floor(nth / 8)}.com`,
    },
    inbox: {
      daily_limit: 20,
      ramp: { start: 5, step: 5 },
      min_gap_s: 600,
      max_gap_s: 1_200,
      timezone: 'Europe/Berlin',
    },
    campaign: {
      ...{ daily_new_limit: 25, max_per_domain_day: 2 },
      schedule: { timezone: 'Europe/Berlin', days: [1, 2, 3, 4, 5, 6, 7], from: '08:00', to: '18:00' },
    },
    steps: [step(), step({ delay_days: 1 })],
  });
  await rail.query(
    sql`update recruitment.sequence set due_at = ${new Date(start).toISOString()} where organization_id = ${organization_id}`,
  );
  for (let at = start; at < start + 3 * day_ms; at += 30 * 60_000) {
    const now = new Date(at).toISOString();
    const within = <T>(work: Parameters<typeof transaction<T>>[2]) =>
      transaction(rail.store, { organization_id, request_id: null, now }, work);
    await Promise.all(
      Array.from({ length: 8 }, async (_, worker) => {
        const claiming = { worker_id: `worker_${worker}`, vault, base_url, random: Math.random };
        for (const claimed of await within((tx) => claim(tx, sender.inbox_ids, claiming))) {
          if (claimed.is !== 'send') continue;
          const { message_id, attempts } = claimed.message;
          const may = await within((tx) => confirm(tx, [{ message_id, attempts }], claiming.worker_id));
          if (may.size > 0) await within((tx) => recordEnds(tx, [{ message_id, as: 'sent' }]));
        }
      }),
    );
  }
  const rows = await rail.query<Json>(sql`
    select m.inbox_id, m.step_index, encode(s.company_hmac, 'hex') as company, m.sent_at,
      to_char(m.sent_at at time zone 'Europe/Berlin', 'YYYY-MM-DD') as day, to_char(m.sent_at at time zone 'Europe/Berlin', 'HH24:MI') as clock
    from recruitment.message m
    join recruitment.sequence s on s.organization_id = m.organization_id and s.id = m.sequence_id
    where m.organization_id = ${organization_id} and m.state = 'sent'
    order by m.inbox_id, m.sent_at`);
  t.ok(rows.length > 30, `${rows.length} emails`);
  t.ok(
    rows.every(({ clock }) => clock >= '08:00' && clock < '18:00'),
    'all inside the window',
  );
  const most = (key: (row: Json) => string, of = rows) =>
    Math.max(
      ...Map.groupBy(of, key)
        .values()
        .map((those) => those.length),
    );
  const caps = [5, 10, 15, 20];
  const days = [...new Set(rows.map(({ day }) => day))].sort();
  for (const [nth, day] of days.entries()) {
    t.ok(
      most(
        ({ inbox_id }) => inbox_id,
        rows.filter((row) => row.day === day),
      ) <= (caps[nth] ?? 20),
      `the ramp on day ${nth}`,
    );
  }
  t.ok(
    most(
      ({ day }) => day,
      rows.filter(({ step_index }) => step_index === 0),
    ) <= 25,
    'new ones in a day',
  );
  t.ok(most(({ day, company }) => `${day} ${company}`) <= 2, 'emails to a company in a day');
  for (const [nth, row] of rows.entries()) {
    const before = rows[nth - 1];
    if (before?.inbox_id !== row.inbox_id) continue;
    if (Date.parse(row.sent_at) - Date.parse(before?.sent_at) < 600_000) t.fail('a gap was not kept');
  }
});
