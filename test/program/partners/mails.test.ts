import t from 'tap';
import { service_opening } from '../../../src/core/jobs/task.ts';
import { transaction } from '../../../src/core/postgres/transaction.ts';
import { language_codes, textsIn } from '../../../src/program/partners/mails/languages.ts';
import { composed, type MailAbout, writePartnerMail } from '../../../src/program/partners/mails/partner_mail.ts';
import { mailReferrals, toTell } from '../../../src/program/partners/mails/referral_mails.ts';
import { setPayoutMethod } from '../../../src/program/partners/payout_method.ts';
import { eventually, type Json, sql, startRail } from '../../harness.ts';
import { fresh, openShop, type Shop } from '../../shop.ts';
import { bank, batchOf, payee, payoutAfter } from '../payouts/fixture.ts';

const rail = await startRail();

const mailsOf = ({ merchant }: Shop): Promise<Json[]> =>
  rail.query(sql`
    select id, recipient, subject, text from core.outgoing_mail
    where organization_id = ${merchant.organization_id} and recipient <> 'owner@example.com' order by created_at, id`);

/** Waits until no job of these tasks is left: what they were to write is written. */
const done = (...tasks: string[]) =>
  eventually(async () => {
    const [{ left } = { left: 1 }] = await rail.query<{ left: number }>(
      sql`select count(*)::int as left from graphile_worker.jobs where task_identifier = any(${tasks.map((name) => `program/${name}`)})`,
    );
    return left === 0;
  }, tasks.join(', '));

async function mailed(shop: Shop): Promise<Json[]> {
  await done('mail_partner', 'mail_rate_change', 'find_referrals_to_mail', 'mail_referrals');
  return mailsOf(shop);
}

const apply = ({ merchant, program_id }: Shop, fields: Json = {}) =>
  merchant.post('/v1/applications', { program_id, email: `${fresh('applicant')}@example.com`, ...fields });

t.test('tells an applicant of each step, in their language, and nobody what somebody else typed', async (t) => {
  const terms = { terms_url: 'https://acme.example.com/terms', terms_version: 'May' };
  const shop = await openShop(rail, { name: 'Acme\r\nBcc: eve@example.com', ...terms });
  const german = await apply(shop, { language_code: 'de', first_name: 'http://spam.example', answers: { a: 'spam' } });
  await shop.merchant.post(`/v1/applications/${german.id}/approve`);
  const other = await apply(shop, { language_code: 'ja' });
  const reason = 'We work\nwith "newsletters" <alone>.\n\n  Sorry — Ada';
  await shop.merchant.post(`/v1/applications/${other.id}/reject`, { reason });
  const all = await mailed(shop);
  t.equal(all.length, 4);
  t.notMatch(JSON.stringify(all), 'spam');
  const to = (email: string) => all.filter(({ recipient }) => recipient === email).map(({ subject }) => subject);
  const program = 'Acme Bcc: eve@example.com';
  t.same(to(german.email).sort(), [`Ihre Bewerbung bei ${program}`, `Ihre Bewerbung bei ${program} wurde angenommen`]);
  t.same(to(other.email).sort(), [`Your application to ${program}`, `Your application to ${program} was declined`]);
  const text = (subject: RegExp) => all.find((mail) => subject.test(mail.subject))?.text;
  t.ok(text(/declined$/).includes(`\n\n${reason}\n`), 'word for word');
  t.match(text(/angenommen$/), 'Die Bedingungen des Programms, Version May: https://acme.example.com/terms');
  t.match(text(/angenommen$/), `${rail.services.base_url}/portal`);
});

t.test(
  'a program that writes to its partners itself sends none; a welcome is sent where it is asked for',
  async (t) => {
    const silent = await openShop(rail, { partner_emails: false });
    await silent.merchant.post(`/v1/applications/${(await apply(silent)).id}/approve`);
    const shop = await openShop(rail);
    await shop.partner();
    await shop.partner({ send_welcome: true, status: 'pending' });
    const { email } = await shop.partner({ send_welcome: true, language_code: 'fr' });
    t.match(await mailed(shop), [{ recipient: email, subject: 'Bienvenue dans le programme partenaire de Acme' }]);
    t.same(await mailsOf(silent), []);
  },
);

t.test('welcomes a customer who became a partner by the first sale', async (t) => {
  const shop = await openShop(rail, { auto_enrol_customers: true });
  await shop.sale({ customer_id: (await shop.referred(await shop.partner(), { email: 'grace@example.com' })).id });
  t.match(
    (await mailed(shop)).filter(({ recipient }) => recipient === 'grace@example.com'),
    [{ subject: 'Welcome to the partner program of Acme' }],
  );
});

t.test('a job that runs again writes no second mail, and none for a deleted partner', async (t) => {
  const shop = await openShop(rail);
  const { id: partner_id, organization_id = shop.merchant.organization_id } = await shop.partner();
  const write = (id: string, at = new Date().toISOString()) =>
    transaction(rail.store, service_opening, (tx) =>
      writePartnerMail(tx, rail.services, { organization_id, id, partner_id, at, about: { kind: 'welcome' } }),
    );
  await write('mail_once');
  await write('mail_once');
  t.equal((await mailsOf(shop)).length, 1);
  await shop.merchant.delete(`/v1/partners/${partner_id}`);
  await write('mail_again');
  t.equal((await mailsOf(shop)).length, 1);
});

const minute = async (shop: Shop) => {
  await rail.tick('program/find_referrals_to_mail', new Date().toISOString());
  return mailed(shop);
};

t.test('tells of the first referral, then of new ones, as each partner wants it', async (t) => {
  const shop = await openShop(rail);
  const [both, first_only, new_only, neither] = await Promise.all(
    [
      {},
      { email_new_referral: false },
      { email_first_referral: false },
      { email_new_referral: false, email_first_referral: false },
    ].map(async (wishes) => {
      const partner = await shop.partner({ language_code: 'es' });
      return shop.merchant.patch(`/v1/partners/${partner.id}`, wishes);
    }),
  );
  const all = [both, first_only, new_only, neither] as Json[];
  const subjects = async () => {
    const mails = await minute(shop);
    return all.map(({ email }) => mails.filter(({ recipient }) => recipient === email).map(({ subject }) => subject));
  };
  await shop.click(both as Json);
  t.same(await subjects(), [[], [], [], []], 'a visit is no referral');
  await Promise.all(all.map((partner) => shop.referred(partner)));
  const [first, one] = ['Su primera recomendación para Acme', 'Una nueva recomendación para Acme'];
  t.same(await subjects(), [[first], [first], [one], []]);
  t.same(await subjects(), [[first], [first], [one], []], 'once');
  await Promise.all(all.map((partner) => shop.referred(partner)));
  t.same(await subjects(), [[first, one], [first], [one, one], []]);
  const [mail] = (await mailsOf(shop)).filter(({ recipient }) => recipient === both?.email);
  t.match(mail?.text, `Elija qué correos recibe: ${rail.services.base_url}/portal/notifications`);
  t.notMatch(JSON.stringify(await mailsOf(shop)), 'customer.example.com', 'customers are not named');
});

t.test('more than ten in a day are told in one mail after it', async (t) => {
  const shop = await openShop(rail);
  const { id: partner_id } = await shop.partner();
  for (let nth = 0; nth < 14; nth++) await shop.customer({ partner_id });
  t.same((await minute(shop)).map(({ subject }) => subject).sort(), [
    '9 new referrals for Acme',
    'Your first referral for Acme',
  ]);
  await shop.customer({ partner_id });
  t.equal((await minute(shop)).length, 2, 'they wait for the day to end');
  await rail.query(sql`update program.referral_mail set day = day - 1 where partner_id = ${partner_id}`);
  const subjects = (await minute(shop)).map(({ subject }) => subject);
  t.equal(subjects.length, 3);
  t.match(subjects.at(-1), /^5 more referrals for Acme on [A-Z][a-z]+ \d+, \d{4}$/);
  t.equal((await minute(shop)).length, 3, 'once');
});

t.test('a worker that is killed while it writes about referrals tells of each once', async (t) => {
  const shop = await openShop(rail);
  const { organization_id } = shop.merchant;
  const { id: partner_id } = await shop.partner();
  await shop.customer({ partner_id });
  const lock = await rail.store.database.connect();
  await lock.query('begin');
  await lock.query('lock table core.outgoing_mail in access exclusive mode');
  const killed = transaction(rail.store, service_opening, (tx) => mailReferrals(tx, rail.services, organization_id));
  const outcome = t.rejects(killed);
  await eventually(async () => {
    const victims = await rail.query(sql`
      select pg_terminate_backend(a.pid) from pg_stat_activity a
      where a.datname = current_database() and a.wait_event_type = 'Lock' and a.query like '%insert into core.outgoing_mail%' and a.pid <> pg_backend_pid()`);
    return victims.length > 0;
  }, 'the mail to be written');
  await outcome;
  await lock.query('rollback');
  lock.release();
  t.same(await mailsOf(shop), []);
  await Promise.all(
    [1, 2, 3].map(() =>
      transaction(rail.store, service_opening, (tx) => mailReferrals(tx, rail.services, organization_id)),
    ),
  );
  t.match(await mailsOf(shop), [{ subject: 'Your first referral for Acme' }]);
  t.equal((await mailsOf(shop)).length, 1);
});

t.test('decides what is told: a table', (t) => {
  const all = { is_told: true, email_first_referral: true, email_new_referral: true };
  const from = (fields: Json) =>
    toTell({ ...all, customers: 0, is_first: false, day: null, told: 0, waiting: 0, ...fields }, '2026-11-29');
  const news = (count: number): MailAbout => ({ kind: 'new_referrals', count });
  t.same(from({ customers: 3, is_first: true }), {
    abouts: [{ kind: 'first_referral' }, news(2)],
    next: { told: 3, waiting: 0 },
  });
  t.same(from({ customers: 3, day: '2026-11-29', told: 9 }), { abouts: [news(1)], next: { told: 10, waiting: 2 } });
  t.same(from({ customers: 1, day: '2026-11-29', told: 10, waiting: 2 }), {
    abouts: [],
    next: { told: 10, waiting: 3 },
  });
  t.same(from({ customers: 1, day: '2026-11-28', told: 10, waiting: 2 }), {
    abouts: [{ kind: 'more_referrals', count: 2, day: '2026-11-28' }, news(1)],
    next: { told: 1, waiting: 0 },
  });
  t.same(from({ day: '2026-11-28', told: 10, waiting: 2, email_new_referral: false }), {
    abouts: [],
    next: { told: 0, waiting: 0 },
  });
  t.same(from({ customers: 4, is_told: false }), { abouts: [], next: { told: 0, waiting: 0 } });
  t.end();
});

t.test('tells of another rate those for whom it is another one, once for each change', async (t) => {
  const shop = await openShop(rail);
  const [ada, bob, eve] = (await Promise.all([
    shop.partner({ language_code: 'fr' }),
    shop.partner(),
    shop.partner(),
  ])) as [Json, Json, Json];
  await shop.merchant.patch(`/v1/partners/${eve.id}`, { status: 'suspended' });
  const told = async () => {
    const mails = await mailed(shop);
    const lines = (mails.splice(0) as Json[]).map(({ recipient, text }) => [
      recipient,
      text.split('\n\n')[2].trim().replaceAll(/\s/g, ' '),
    ]);
    await rail.query(sql`delete from core.outgoing_mail where organization_id = ${shop.merchant.organization_id}`);
    return lines.sort();
  };
  const standard = await shop.rule({ rate_value: 2000 });
  t.same(
    await told(),
    [
      [ada.email, 'Tous les paiements: aucune commission → 20 %'],
      [bob.email, 'All payments: no commission → 20%'],
    ].sort(),
  );
  const own = await shop.rule({ rate_value: 3050, partner_ids: [ada.id], applies_to: 'first' });
  t.same(await told(), [[ada.email, 'Premiers paiements des clients: 20 % → 30,5 %']]);
  await shop.merchant.patch(`/v1/rules/${standard.id}`, { rate_type: 'fixed', rate_value: 1250 });
  t.same(
    await told(),
    [
      [ada.email, 'Paiements suivants: 20 % → 12,50 $US'],
      [bob.email, 'All payments: 20% → $12.50'],
    ].sort(),
  );
  await shop.merchant.patch(`/v1/rules/${standard.id}`, { name: 'Renamed' });
  await shop.merchant.patch(`/v1/rules/${own.id}`, { priority: 7 });
  await shop.rule({ rate_value: 9000, product_ids: ['gold'] });
  t.same(await told(), [], 'no rate is another one');
  await shop.merchant.delete(`/v1/rules/${standard.id}`);
  t.same(
    await told(),
    [
      [ada.email, 'Paiements suivants: 12,50 $US → aucune commission'],
      [bob.email, 'All payments: $12.50 → no commission'],
    ].sort(),
  );
});

t.test(
  'a payout method that the partner changes is told to both addresses, and not paid by for 72 hours',
  async (t) => {
    const shop = await openShop(rail, { payout_methods: ['bank_transfer', 'paypal'], require_tax_forms: false });
    const { merchant } = shop;
    const set = (id: string, method: Json, by: 'partner' | 'merchant' = 'partner') =>
      transaction(rail.store, { organization_id: merchant.organization_id, request_id: null }, (tx) =>
        setPayoutMethod(tx, rail.services, id, method as never, by),
      );
    const partner = await payee(shop, [6000], { payout_method: null });
    await merchant.request('PUT', `/v1/programs/${shop.program_id}/rails/bank_transfer`, {
      mode: 'live',
      credentials: { name: 'Acme', iban: 'DE89370400440532013000', bic: 'COBADEFFXXX' },
    });
    t.match(
      await set(partner.id, { method: 'paypal', details: { email: 'old@paypal.example.com' } }),
      { held_until: null },
      'the first one',
    );
    t.same(await mailed(shop), []);
    const before = Date.now();
    const changed = await set(partner.id, bank);
    t.ok(Date.parse(changed.held_until as string) >= before + 72 * 3_600_000 - 60_000);
    t.match(await merchant.get(`/v1/partners/${partner.id}/payout_method`), { held_until: changed.held_until });
    const mails = await mailed(shop);
    t.same(mails.map(({ recipient }) => recipient).sort(), ['old@paypal.example.com', partner.email].sort());
    for (const { text } of mails)
      t.match(text, /bank transfer, to the account that ends in 3000\.\n\nNothing is paid to it before .*\(UTC\)/);
    const jobs = await rail.query<{ payload: string }>(sql`select payload::text from graphile_worker._private_jobs`);
    t.notOk(jobs.some(({ payload }) => payload.includes('old@paypal.example.com')));
    await set(partner.id, bank);
    t.equal((await mailed(shop)).length, 2, 'the same again is no change');

    await batchOf(shop);
    const [{ id } = {}] = (await shop.list('payouts')) as [Json];
    const refused = await merchant.request('POST', `/v1/payouts/${id}/send`);
    t.match(refused.body, { error: { code: 'payout_locked', message: /payout_method_changed.*72 hours/ } });
    const [{ held_reason } = { held_reason: '' }] = await rail.query<{ held_reason: string }>(
      sql`select held_reason from program.payout where id = ${id}`,
    );
    t.equal(held_reason, 'payout_method_changed');
    await rail.query(
      sql`update program.payout_method set held_until = now() - interval '1 second' where partner_id = ${partner.id}`,
    );
    await merchant.post(`/v1/payouts/${id}/send`);
    t.match(await payoutAfter(shop, { id }, 'processing'), { status: 'processing' });
  },
);

t.test('every language says everything, in its own words', (t) => {
  const rate = { before: { rate_type: 'percent' as const, rate_value: 1000 }, after: null };
  const abouts: MailAbout[] = [
    ...(['applied', 'approved', 'welcome', 'first_referral'] as const).map((kind) => ({ kind })),
    { kind: 'rejected', application_id: 'app_1' },
    { kind: 'new_referrals', count: 1 },
    { kind: 'new_referrals', count: 3 },
    { kind: 'more_referrals', count: 3, day: '2026-11-28' },
    { kind: 'rate_changed', first: rate, renewal: { before: null, after: null } },
    { kind: 'payout_method_changed', method: 'wire', hint: '3000', held_until: '2026-11-28T10:00:00.000Z' },
  ];
  const to = {
    recipient: 'a@example.com',
    program: 'Acme',
    currency: 'USD',
    terms_url: 'https://acme.example.com/terms',
    terms_version: '7',
  };
  for (const about of abouts) {
    const texts = language_codes.map((language_code) =>
      composed({ ...to, language_code, reason: 'No.' }, about, rail.services),
    );
    t.equal(new Set(texts.map(({ subject }) => subject)).size, language_codes.length, about.kind);
    for (const { subject, text } of texts) {
      t.match(subject, 'Acme');
      t.notMatch(subject + text, /undefined|null|NaN|\[object/);
      t.match(text, /^\S.*\n\n/);
    }
  }
  t.end();
});

t.test('the mails of other rooms are in every language, too', (t) => {
  const payment = {
    program: 'Acme',
    amount: 'USD 60.00',
    method: 'Wise',
    account: '3000',
    period: '2026-11-01',
    statement: '2026-00001',
  };
  const all = language_codes.map((language) => [
    textsIn(language).sign_in({ program: 'Acme', url: 'https://x.example.com/', minutes: 15 }),
    textsIn(language).payout_paid({ ...payment, is_attached: true, payout_id: 'pyt_1' }),
  ]);
  for (const nth of [0, 1]) {
    t.equal(new Set(all.map((one) => one[nth]?.subject)).size, language_codes.length);
    t.notMatch(JSON.stringify(all), /undefined|null/);
  }
  for (const [sign_in, paid] of all) {
    t.match(sign_in?.paragraphs.join(), 'https://x.example.com/');
    t.match(paid?.paragraphs.join(), /USD 60\.00.*3000.*2026-00001.*pyt_1/s);
  }
  t.end();
});
