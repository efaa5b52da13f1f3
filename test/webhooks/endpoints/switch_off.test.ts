import t from 'tap';
import { transaction } from '../../../src/core/postgres/transaction.ts';
import { createMailer } from '../../../src/mail/smtp.ts';
import { program } from '../../../src/program/index.ts';
import { disableFailingEndpoint } from '../../../src/webhooks/endpoints/switch_off.ts';
import { eventually, type Json, log, sql, startRail, startReceiver, startWorker } from '../../harness.ts';
import { type ReceivedMail, startSmtpServer } from '../../mail/smtp.ts';

const rail = await startRail({ worker: false });
const smtp = await startSmtpServer();
const mailer = await createMailer({ smtp_url: `smtp://127.0.0.1:${smtp.port}`, from: 'rail@rail.example.com' });
const services = { ...rail.services, base_url: 'https://rail.example.com', mailer };
const worker = startWorker({ url: rail.url, store: rail.store, services, concurrency: 4, log });
t.teardown(() => worker.stop());
await worker.ready;

const cases: [name: string, days_ago: number[], status: 'enabled' | 'disabled'][] = [
  ['after 20 events over five days', spread(19, 5, 0.1), 'disabled'],
  ['not after 19 events', spread(18, 5, 0.1), 'enabled'],
  ['not after 20 events over 4.9 days', spread(19, 4.9, 0.1), 'enabled'],
  ['not after 20 events of which one failed more than 30 days ago', [30.1, ...spread(18, 20, 0.1)], 'enabled'],
  ['after 20 events within 30 days', [29.9, ...spread(18, 20, 0.1)], 'disabled'],
  ['after five days of failures, though the last 20 of them are of one', [5, ...spread(24, 0.9, 0.1)], 'disabled'],
];

t.test('an endpoint that fails is switched off', async (t) => {
  for (const [name, days_ago, status] of cases) {
    await t.test(name, async (t) => {
      const shop = await openShop();
      await shop.failOver(days_ago);
      t.equal((await shop.endpoint()).status, status);
      t.equal((await shop.mails()).length, status === 'disabled' ? 1 : 0);
    });
  }
});

t.test('endpoint and mail say what happened and what to do, and that works', async (t) => {
  const shop = await openShop();
  await shop.failOver(spread(21, 6, 0.1));
  const { disabled_reason } = await shop.endpoint();
  const [times] = await rail.query(sql`
    select to_char(min(updated_at) at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"') as first,
      to_char(max(updated_at) at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"') as last
    from webhooks.delivery where endpoint_id = ${shop.endpoint_id}`);
  t.equal(
    disabled_reason,
    `Disabled: the last 22 events sent to ${shop.receiver.url} failed every attempt from ${times?.first} to ${times?.last}. ` +
      'The last error: The endpoint answered 500. ' +
      `Once the receiver works, enable it with POST /v1/webhook_endpoints/${shop.endpoint_id}/enable.`,
  );
  const [mail] = (await shop.mails()) as [ReceivedMail];
  t.equal(mail.headers.subject, `Webhook endpoint disabled: ${new URL(shop.receiver.url).host}`);
  const facts = [shop.endpoint_id, shop.program_id, shop.receiver.url, 'the last 22 events', 'answered 500.'];
  for (const fact of [...facts, times?.first, times?.last]) t.ok(mail.text.includes(fact), fact);
  t.notMatch(mail.text + disabled_reason, 'hidden', 'the query of the address is in neither');
  t.notMatch(mail.text, 'Postback');

  shop.answer(200);
  const before = shop.receiver.received.length;
  const steps = [...mail.text.matchAll(/^ {2}(GET|POST) https:\/\/rail\.example\.com(\S+)(?:\n {2}(\{.*\}))?$/gm)];
  t.equal(steps.length, 3);
  for (const [, method, path, body] of steps) {
    const { status } = await shop.merchant.request(method as string, path as string, body);
    t.ok(status < 300, `${method} ${path} answers ${status}`);
  }
  t.match(await shop.endpoint(), { status: 'enabled', disabled_reason: null });
  await shop.receiver.until(before + 22);
});

t.test('failures that did not span enough are looked at again once they can', async (t) => {
  const shop = await openShop();
  await shop.fail(20);
  t.equal((await shop.endpoint()).status, 'enabled');
  await shop.pass(4.9);
  await shop.fail(1);
  t.equal((await shop.endpoint()).status, 'enabled', 'after 4.9 days');
  await shop.pass(0.1);
  await shop.fail(1);
  t.equal((await shop.endpoint()).status, 'disabled', 'after five');
});

t.test('an event that arrives breaks the run', async (t) => {
  const shop = await openShop();
  await shop.fail(10);
  shop.answer(200);
  await shop.tell(1);
  await shop.settled('delivered', 1);
  await shop.failOver(spread(28, 9, 0.1), 18);
  t.equal((await shop.endpoint()).status, 'enabled', '19 events since then');
  await shop.fail(1);
  t.equal((await shop.endpoint()).status, 'disabled', '20 events since then');
});

t.test('the count restarts when it is switched on again', async (t) => {
  const shop = await openShop();
  await shop.failOver(spread(19, 6, 0.1));
  t.equal((await shop.endpoint()).status, 'disabled');
  await shop.merchant.post(`/v1/webhook_endpoints/${shop.endpoint_id}/enable`);
  await shop.fail(1);
  t.equal((await shop.endpoint()).status, 'enabled');

  await shop.age([...spread(20, 8, 6), 5.2]);
  await shop.countFrom(5.5);
  await shop.fail(18);
  t.equal((await shop.endpoint()).status, 'enabled', '19 events since then, 39 in all');
  await shop.fail(1);
  t.equal((await shop.endpoint()).status, 'disabled', '20 events since then');
  t.equal((await shop.mails()).length, 2);
});

t.test('the count restarts when the secret is rotated', async (t) => {
  const shop = await openShop();
  await shop.fail(25);
  await shop.age(spread(25, 9, 0.1));
  await shop.merchant.post(`/v1/webhook_endpoints/${shop.endpoint_id}/rotate_secret`);
  await shop.fail(1);
  t.equal((await shop.endpoint()).status, 'enabled');
});

t.test('test events count neither as failures nor as arrivals', async (t) => {
  const shop = await openShop();
  const ping = async (answer: number, status: string) => {
    shop.answer(answer);
    const { id } = await shop.merchant.post(`/v1/webhook_endpoints/${shop.endpoint_id}/ping`);
    await eventually(
      async () => (await shop.merchant.get(`/v1/webhook_deliveries/${id}`)).status === status,
      'the ping',
    );
  };
  await shop.fail(18);
  await shop.age(spread(18, 6, 0.1));
  for (let nth = 0; nth < 3; nth++) await ping(500, 'failed');
  await shop.fail(1);
  t.equal((await shop.endpoint()).status, 'enabled', '19 events and 3 test events failed');
  await ping(200, 'delivered');
  await shop.fail(1);
  t.equal((await shop.endpoint()).status, 'disabled', '20 events failed, and a test event arrived');
});

t.test('a replay counts with its event', async (t) => {
  const shop = await openShop();
  const replayLatest = async () => {
    const log_of = `/v1/webhook_endpoints/${shop.endpoint_id}/deliveries`;
    const { data } = await shop.merchant.get(`${log_of}?status=failed&limit=1`);
    await shop.merchant.post(`/v1/webhook_deliveries/${data[0].id}/replay`);
  };
  await shop.fail(18);
  await shop.age(spread(18, 6, 0.1));
  await replayLatest();
  await shop.failWaiting(1);
  await shop.settled('failed', 19);
  await shop.fail(1);
  t.equal((await shop.endpoint()).status, 'enabled', '19 events failed, one of them twice');

  shop.answer(200);
  await replayLatest();
  await shop.settled('delivered', 1);
  await shop.fail(1);
  t.equal((await shop.endpoint()).status, 'enabled', 'one of 20 arrived after all');
});

t.test(
  'what waits for a retry is no failure yet; the switch-off cancels it, and the other endpoints go on',
  async (t) => {
    const shop = await openShop();
    const other = await startReceiver();
    const fields = { program_id: shop.program_id, url: other.url, event_types: ['affiliate.created'] };
    const { id: other_id } = await shop.merchant.post('/v1/webhook_endpoints', fields);
    await shop.fail(18);
    await shop.age(spread(18, 6, 0.1));
    await shop.tell(3);
    await shop.retryInAnHour(3);
    await shop.fail(1);
    t.equal((await shop.endpoint()).status, 'enabled', '19 failed, 3 wait');
    await shop.fail(1);
    t.equal((await shop.endpoint()).status, 'disabled', '20 failed, 3 wait');

    await other.until(23);
    const sent = shop.receiver.received.length;
    await rail.tick('webhooks/enqueue_due_retries', new Date(Date.now() + 3_700_000).toISOString());
    await shop.settled('cancelled', 3);
    await shop.tell(1);
    await other.until(24);
    t.equal(shop.receiver.received.length, sent, 'nothing more is sent to it');
    t.equal((await shop.merchant.get(`/v1/webhook_endpoints/${other_id}`)).status, 'enabled');
  },
);

t.test('of a partner’s postback the owner of the account is told', async (t) => {
  const shop = await openShop({ postback: true });
  await shop.failOver(spread(19, 6, 0.1));
  const { status, partner_id } = await shop.endpoint();
  t.equal(status, 'disabled');
  const [mail] = await shop.mails();
  t.match(mail?.text, `Postback of ${partner_id}`);
});

t.test('an endpoint that is switched off by hand or deleted meanwhile stays as it is', async (t) => {
  for (const [method, path, after] of [
    ['POST', '/disable', { status: 'disabled', disabled_reason: 'disabled_by_hand' }],
    ['DELETE', '', { status: 'enabled', disabled_reason: null }],
  ] as const) {
    const shop = await openShop();
    await shop.fail(20);
    await shop.age(spread(20, 6, 0.1));
    await shop.merchant.request(method, `/v1/webhook_endpoints/${shop.endpoint_id}${path}`);
    t.equal(await check(shop.endpoint_id), undefined);
    t.match(
      (await rail.query(sql`select status, disabled_reason from webhooks.endpoint where id = ${shop.endpoint_id}`))[0],
      after,
    );
    t.equal((await shop.mails()).length, 0);
  }
});

t.test('two that check at once switch it off once, and send one mail', async (t) => {
  const shop = await openShop();
  await shop.fail(20);
  await shop.age(spread(20, 6, 0.1));
  const holder = await rail.store.database.connect();
  await holder.query('begin');
  await holder.query('select from webhooks.endpoint where id = $1 for update', [shop.endpoint_id]);
  const both = [check(shop.endpoint_id), check(shop.endpoint_id)];
  const held = sql`
    select from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and query like '%webhooks.dead_endpoint(%'`;
  await eventually(async () => (await rail.query(held)).length === 2, 'both to wait for the endpoint');
  await holder.query('commit');
  holder.release();
  t.equal((await Promise.all(both)).filter((dead) => dead !== undefined).length, 1);
  t.equal((await shop.endpoint()).status, 'disabled');
  t.equal((await shop.mails()).length, 1);
});

t.test('where the owner has no address, the mail is kept and logged', async (t) => {
  for (const email of [null, 'ada@acme.example.com, eve@e.example.com']) {
    const shop = await openShop();
    const { organization_id } = shop.merchant;
    if (email)
      await rail.query(sql`update core.user_account set email = ${email} where organization_id = ${organization_id}`);
    else
      await rail.query(sql`update core.user_account set removed_at = now() where organization_id = ${organization_id}`);
    await shop.failOver(spread(19, 6, 0.1));
    t.equal((await shop.endpoint()).status, 'disabled');
    t.equal((await shop.mails()).length, 0);
    const kept = await rail.query(
      sql`select recipient, sent_at, error from core.outgoing_mail where organization_id = ${organization_id}`,
    );
    t.match(kept, [{ recipient: null, sent_at: null, error: /no owner/ }]);
  }
});

const check = (endpoint_id: string) =>
  transaction(rail.store, { organization_id: null, request_id: null }, (tx) =>
    disableFailingEndpoint(tx, program.events, endpoint_id, services.base_url),
  );

/** So many times, evenly from some days ago until others. */
function spread(events: number, from: number, to: number): number[] {
  return Array.from({ length: events }, (_, nth) => from - ((from - to) * nth) / (events - 1));
}

/** Waits until no job of this kind is left. */
function quiet(task: string): Promise<void> {
  const left = sql`select from graphile_worker.jobs where task_identifier = ${task}`;
  return eventually(async () => (await rail.query(left)).length === 0, `the jobs of ${task} to end`);
}

/** An organization with an owner of its own, and an endpoint that refuses what it receives and exists for long. */
async function openShop({ postback = false } = {}) {
  const merchant = await rail.organization();
  const { organization_id } = merchant;
  const owner = `${organization_id}@acme.example.com`;
  await rail.query(sql`update core.user_account set email = ${owner} where organization_id = ${organization_id}`);
  const program = { name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' };
  const { id: program_id } = await merchant.post('/v1/programs', program);
  let status = 500;
  const receiver = await startReceiver(() => status);
  const ada = postback && (await merchant.post('/v1/partners', { program_id, email: 'ada@partner.example.com' }));
  const { id: endpoint_id } = await merchant.post('/v1/webhook_endpoints', {
    program_id,
    url: `${receiver.url}?key=hidden`,
    ...(ada ? { partner_id: ada.id, event_types: ['referral.created'] } : { event_types: ['affiliate.created'] }),
  });
  let told = 0;
  const tellOne = async (): Promise<Json> => {
    const nth = ++told;
    if (!ada) return merchant.post('/v1/partners', { program_id, email: `partner${nth}@example.com` });
    const click = { program_id, value: ada.handle, landing_url: 'https://acme.example.com' };
    return merchant.post('/v1/clicks', { ...click, visitor_token: `visitor-${nth}-of-${organization_id}` });
  };
  const real = sql`endpoint_id = ${endpoint_id} and event_id not like 'evt\_test\_%'`;
  const count = async (as: string) =>
    (await rail.query(sql`select from webhooks.delivery where ${real} and status = ${as}`)).length;
  /** Gives those that failed once a history of failures, and a time for the next attempt. */
  const skipTo = async (attempt: number, deliveries: number, next_in: string) => {
    const waiting = sql`select from webhooks.delivery where ${real} and status = 'pending' and attempt = 1`;
    await eventually(async () => (await rail.query(waiting)).length === deliveries, 'the first attempts');
    await rail.query(sql`
      with moved as (
        update webhooks.delivery set attempt = ${attempt}, next_attempt_at = now() + ${next_in}::interval
        where ${real} and status = 'pending' and attempt = 1
        returning organization_id, id
      )
      insert into webhooks.attempt (organization_id, delivery_id, attempt, at, duration_ms, status_code, error)
      select moved.organization_id, moved.id, nth, now(), 1, 500, 'The endpoint answered 500.'
      from moved
      cross join generate_series(2, ${attempt}::integer) as nth`);
  };
  const shop = {
    merchant,
    program_id,
    endpoint_id,
    receiver,
    /** Sets the answer of the receiver from now on. */
    answer(next: number) {
      status = next;
    },
    endpoint: () => merchant.get(`/v1/webhook_endpoints/${endpoint_id}`),
    /** Makes so many events. */
    async tell(events: number) {
      for (let nth = 0; nth < events; nth++) await tellOne();
    },
    /** Waits until so many deliveries have this status, and whoever checks has checked. */
    async settled(as: string, deliveries: number) {
      await eventually(async () => (await count(as)) === deliveries, `${deliveries} to be ${as}`);
      await quiet('webhooks/disable_failing_endpoint');
    },
    retryInAnHour: (deliveries: number) => skipTo(2, deliveries, '1 hour'),
    /** Sends what was refused once for the eighth time: nobody waits 62 hours. */
    async failWaiting(deliveries: number) {
      await skipTo(7, deliveries, '0');
      await rail.tick('webhooks/enqueue_due_retries', new Date(Date.now() + 1_000).toISOString());
    },
    /** Makes so many events, which the receiver refuses in every attempt. */
    async fail(events: number) {
      const failed = await count('failed');
      shop.answer(500);
      await shop.tell(events);
      await shop.failWaiting(events);
      await shop.settled('failed', failed + events);
    },
    /** Moves what has failed back in time: how many days ago it did, in order. */
    async age(days_ago: number[]) {
      await rail.query(sql`
        update webhooks.delivery d
        set updated_at = now() - make_interval(secs => age.days * 86400)
        from (
          select id, row_number() over (order by id) as nth from webhooks.delivery where ${real} and status = 'failed'
        ) as failed
        join unnest(${days_ago}::float8[]) with ordinality as age (days, nth) using (nth)
        where d.organization_id = ${organization_id} and d.id = failed.id`);
      // What a check has found out of the run before holds no longer.
      await rail.query(sql`update webhooks.endpoint set check_failures_from = null where id = ${endpoint_id}`);
    },
    /** Moves all that is known of its failures so many days back: as if they passed. */
    async pass(days: number) {
      const passed = sql`make_interval(secs => ${days}::float8 * 86400)`;
      await rail.query(sql`
        update webhooks.delivery set updated_at = updated_at - ${passed} where organization_id = ${organization_id}`);
      await rail.query(sql`
        update webhooks.endpoint set check_failures_from = check_failures_from - ${passed} where id = ${endpoint_id}`);
    },
    /** Fails so often, as long ago as this, and then once more, now. */
    async failOver(days_ago: number[], events = days_ago.length) {
      await shop.fail(events);
      await shop.age(days_ago);
      await shop.fail(1);
    },
    countFrom: (days_ago: number) =>
      rail.query(sql`
        update webhooks.endpoint set failures_count_from = now() - make_interval(secs => ${days_ago}::float8 * 86400)
        where id = ${endpoint_id}`),
    /** Returns the mails of the owner, once all are sent. */
    async mails(): Promise<ReceivedMail[]> {
      await quiet('core/send_mail');
      return smtp.received.filter(({ to }) => to.includes(owner));
    },
  };
  await shop.countFrom(60);
  return shop;
}
