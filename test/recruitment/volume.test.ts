/** Checks that what is created under a prospect, a campaign or an inbox touches as many blocks behind 5,000 others as at first. */
import assert from 'node:assert/strict';
import t from 'tap';
import { request } from 'undici';
import { transaction } from '../../src/core/postgres/transaction.ts';
import { foldProspectTallies } from '../../src/recruitment/brands/tally.ts';
import { disconnectInbox, reconnectInbox } from '../../src/recruitment/campaigns/inbox_connection.ts';
import { scheduleSequences } from '../../src/recruitment/campaigns/schedule_sequences.ts';
import { activateDeal } from '../../src/recruitment/deals/activate.ts';
import { observeJoining } from '../../src/recruitment/deals/joining.ts';
import { findPages } from '../../src/recruitment/discovery/page_index.ts';
import { keyedHash } from '../../src/recruitment/prospects/keyed_hash.ts';
import { openClassifier } from '../../src/recruitment/reading/classifier.ts';
import { type Reader, readMail } from '../../src/recruitment/reading/read_mail.ts';
import { Queues } from '../../src/recruitment/sending/queues.ts';
import { markBounced } from '../../src/recruitment/sending/record_bounce.ts';
import { unsubscribeUrl } from '../../src/recruitment/unsubscribing/link.ts';
import { type Caller, type Json, log, sql, startRail } from '../harness.ts';
import { fresh } from '../shop.ts';
import { many, more, openVolume } from '../volume.ts';
import { startMailbox } from './mailbox.ts';
import { type Mailed, mail, replyTo, type Sending, within } from './outreach/mailed.ts';
import { openSender, step } from './outreach/outreach.ts';
import { answerTo, newMessageId, source } from './outreach/read_inbox.ts';
import { startSink } from './outreach/sink.ts';

// The rows are written past the requests, so that statements and totals do not know them.
const rail = await startRail({ worker: false, audit: false });
const { vault } = rail.services;
const v1 = '/recruitment/v1';
const tables = ['prospect', 'email_address', 'suppression', 'note', 'list_prospect', 'campaign', 'sequence', 'import'];
const volume = await openVolume(
  rail,
  [...tables, 'thread', 'message', 'inbox', 'run', 'reveal', 'credit_entry', 'deal'].map(
    (table) => `recruitment.${table}`,
  ),
);
const mailbox = await startMailbox({ ...(await startSink()).handlers, secure: true });
const classifier = openClassifier();
t.teardown(() => classifier.close());
const never = new AbortController().signal;
const context = {
  ...{ store: rail.store, services: rail.services, log, worker_id: 'wrk_test', stopping: never, cut_off: never },
  use: () => {
    throw new Error('No part of a worker is needed.');
  },
};

const importOne = ({ caller, brand_id }: Pick<Sending, 'caller' | 'brand_id'>): Promise<Json> =>
  caller.post(`${v1}/prospects/import`, {
    brand_id,
    mapping: { Blog: 'url' },
    document: 'Blog\nhttps://baking.com/\n',
  });

const dealWith = (caller: Caller, prospect_id: string, program_id: string): Promise<Json> =>
  caller.post(`${v1}/deals`, {
    ...{ prospect_id, program_id },
    terms: { rate_type: 'percent', rate_value: 2000, currency: 'USD' },
  });

/** A campaign that sends, and a prospect who was written to and replied. */
async function openOffice() {
  const caller = await rail.organization();
  const { organization_id } = caller;
  await rail.query(sql`insert into recruitment.plan (organization_id, name) values (${organization_id}, 'grow')`);
  const sender = await openSender(rail, organization_id, {
    ...{ mailbox, prospects: 30, steps: [step(), step({ delay_days: 3 })] },
    address: (nth) => `reader@blog${nth}.com`,
    campaign: { bounce_pause_bps: 10_000 },
    inbox: { daily_limit: 40, min_gap_s: 3_600, max_gap_s: 3_600, ramp: { start: 30, step: 1 } },
  });
  const { brand_id, campaign_id } = sender;
  const [inbox_id] = sender.inbox_ids as [string];
  const outreach = { caller, brand_id, campaign_id, inbox_id };
  const mailed = await mail(rail, outreach);
  const reply_id = await replyTo(rail, outreach, mailed, mailed.email);
  const note = await caller.post(`${v1}/prospects/${mailed.prospect_id}/notes`, { text: 'They like it.' });
  const list = await caller.post(`${v1}/lists`, { brand_id, name: 'Spring' });
  const entry = await caller.post(`${v1}/do_not_contact`, { kind: 'address', email: 'eve@barred.example.com' });
  const lifted = await caller.post(`${v1}/do_not_contact`, { kind: 'prospect', prospect_id: sender.prospect_ids[0] });
  await caller.post(`${v1}/do_not_contact/${lifted.id}/lift`, { reason: 'mistake' });
  const search = await caller.post(`${v1}/searches`, { brand_id, search_type: 'keyword', query: 'bread' });
  const imported = await importOne(outreach);
  const website_url = 'https://acme.example.com';
  const program = await caller.post('/v1/programs', { name: 'Acme', website_url, currency: 'USD' });
  await caller.patch(`${v1}/brands/${brand_id}`, { program_id: program.id });
  const deal = await dealWith(caller, sender.prospect_ids[1] as string, program.id);
  return {
    ...{ ...outreach, organization_id, sender, mailed, reply_id, note, list, entry, lifted, search, imported },
    ...{ program_id: program.id as string, deal },
  };
}
type Office = Awaited<ReturnType<typeof openOffice>>;

/** Puts so many of each object under the same parents. */
async function fill({ organization_id, sender, mailed, ...office }: Office, count = many): Promise<void> {
  const copy = (table: string, id: string, differing?: Record<string, string>) =>
    volume.copy({ organization_id, count }, `recruitment.${table}`, { id }, differing);
  const [address] = await rail.query(sql`
    select a.id from recruitment.email_address a where a.organization_id = ${organization_id} and a.prospect_id = ${mailed.prospect_id}`);
  const hmac = `sha256(('many ' || n)::bytea)`;
  const of_many = { prospect_id: `'fdi_many' || n` };
  await copy('prospect', mailed.prospect_id, { id: `'fdi_many' || n`, key: `'many' || n || '.com'` });
  await copy('email_address', address?.id, { ...of_many, address_hmac: hmac });
  // Half of them wait for a person, the others for tomorrow.
  await copy('sequence', sender.sequence_ids.at(-1) as string, {
    ...{ ...of_many, address_hmac: hmac, company_hmac: hmac, paused_by_user: 'n % 2 = 0' },
    due_at: `now() + (n % 2 * 2 - 1) * interval '1 day'`,
  });
  await copy('campaign', office.campaign_id, { id: `'fca_many' || n`, state: `'finished'`, finished_at: 'now()' });
  await copy('sequence', mailed.sequence_id, {
    ...{ campaign_id: `'fca_many' || n`, state: `'completed'`, ended_at: 'now()' },
  });
  await copy('thread', mailed.thread_id);
  // Half of them bounced, in no thread.
  const [sent_at, is_bounced] = [`now() - interval '1 day'`, 'n % 2 = 0'];
  await copy('message', mailed.message_id, {
    ...{ sequence_id: 'null', sent_at, rfc_message_id: `'many' || n || '@acme.example.com'` },
    ...{
      state: `case when ${is_bounced} then 'bounced' else s.state end`,
      bounced_at: `case when ${is_bounced} then ${sent_at} end`,
    },
    thread_id: `case when not ${is_bounced} then s.thread_id end`,
  });
  await rail.query(sql`update recruitment.campaign set counted_since = '2026-01-01' where id = ${office.campaign_id}`);
  await copy('message', office.reply_id, { rfc_message_id: `'many' || n || '@their.example.com'` });
  await copy('note', office.note.id);
  await copy('suppression', office.lifted.id);
  await copy('suppression', office.entry.id, { hmac });
  await copy('run', office.search.id, { state: `'done'`, finished_at: 'now()' });
  await copy('import', office.imported.id, { state: `'done'`, finished_at: 'now()' });
  await spend(organization_id, count);
  await agreeTo(organization_id, office.deal.id, count);
  await rail.query(sql`
    insert into recruitment.activity (organization_id, id, prospect_id, kind, data)
    select ${organization_id}, core.new_id('fac'), ${mailed.prospect_id}, 'replied', '{}' from generate_series(1, ${count}::integer)`);
  await rail.query(sql`
    insert into recruitment.list_prospect (organization_id, list_id, prospect_id)
    select ${organization_id}, ${office.list.id}, 'fdi_many' || n from generate_series(1, ${count}::integer) as n`);
  await rail.query(sql`
    insert into recruitment.inbox_day (organization_id, inbox_id, day, sent)
    select ${organization_id}, ${office.inbox_id}, current_date - 1 - n, 1 from generate_series(1, ${count}::integer) as n`);
  // As workers do each minute.
  await transaction(rail.store, { organization_id: null, request_id: null }, (tx) =>
    foldProspectTallies(tx, 1_000_000),
  );
  // An erasure reads the events since its prospect came, which are all of them here.
  await rail.query(sql`truncate webhooks.event`);
  await rail.query(sql`vacuum recruitment.sequence`);
  await rail.query(sql`analyze`);
}

/** Writes credits that were given and spent before this month. */
async function spend(organization_id: string, count: number): Promise<void> {
  await rail.query(sql`
    with before as (
      select p.last_credit_number as number, p.credit_balance as balance from recruitment.plan p where p.organization_id = ${organization_id}
    ), entry as (
      insert into recruitment.credit_entry (organization_id, id, number, kind, amount, balance_before, balance, reason, created_at)
      select ${organization_id}, 'fcr_' || core.id_time_part(at) || right(core.new_id('fcr'), 16), b.number + n,
        case when n % 2 = 1 then 'grant' else 'spend' end, n % 2 * 2 - 1, b.balance + 1 - n % 2, b.balance + n % 2,
        case when n % 2 = 1 then 'month_began' else 'search' end, at
      from before b, generate_series(1, ${count}::integer) as n, (select now() - interval '2 months') as past (at)
    )
    update recruitment.plan set last_credit_number = last_credit_number + ${count}::integer where organization_id = ${organization_id}`);
}

/** Writes deals of a prospect that were cancelled, and versions of one. */
async function agreeTo(organization_id: string, deal_id: string, count: number): Promise<void> {
  const versions = sql`insert into recruitment.deal_version (organization_id, id, deal_id, version, rate_type, rate_value, currency)`;
  const same = sql`recruitment.deal d, generate_series(1, ${count}::integer) as n where d.id = ${deal_id}`;
  await rail.query(sql`
    with deal as (
      insert into recruitment.deal (organization_id, id, brand_id, prospect_id, program_id, status, cancelled_at)
      select d.organization_id, 'fdl_many' || n, d.brand_id, d.prospect_id, d.program_id, 'cancelled', now() from ${same}
    )
    ${versions} select ${organization_id}, 'fdv_many' || n, 'fdl_many' || n, 1, 'percent', 2000, 'USD' from ${same}`);
  await rail.query(sql`
    with version as (
      ${versions} select ${organization_id}, 'fdv_later' || n, ${deal_id}, d.version + n, 'percent', 2000, 'USD' from ${same}
    )
    update recruitment.deal set version = version + ${count}::integer where id = ${deal_id}`);
}

// Another organization's objects make the indexes as deep as they are behind the others.
await fill(await openOffice(), 1_000);
const office = await openOffice();
const { caller, organization_id, brand_id, campaign_id, inbox_id, sender, mailed, reply_id } = office;
const [other_id] = sender.prospect_ids as [string];
const prospect = `${v1}/prospects/${mailed.prospect_id}`;
await rail.query(sql`analyze`);

const queues = new Queues(context);
/** Sends the next email of the inbox, whose gap is over. */
async function send(): Promise<void> {
  await rail.query(sql`update recruitment.inbox set next_slot_at = null where id = ${inbox_id}`);
  await queues.run({ organization_id, inbox_id });
}
const reader: Reader = {
  ...{ inbox: { organization_id, inbox_id }, own_addresses: ['grace0@acme.example.com'], classifier, context },
  own_server: { imap_host: 'localhost', hosts: ['acme.example.com'], authserv_id: null },
};
const read = (text: string) =>
  readMail({ source: Buffer.from(text), whole: true, arrived_at: new Date() }, { advance: async () => {} }, reader);
const add = (given: Json = {}) =>
  caller.post(`${v1}/prospects`, { brand_id, channel: 'website', key: `${fresh('blog')}.com`, name: 'Blog', ...given });
const linkTo = ({ message_id }: Mailed) =>
  within(rail, office, async (tx) =>
    unsubscribeUrl(await keyedHash(tx, vault), rail.address, { organization_id, message_id }),
  );
const complaintAbout = ({ message_id }: Mailed): string =>
  source(
    {
      From: 'feedback@provider.example.com',
      'Content-Type': 'multipart/report; report-type=feedback-report; boundary="part"',
    },
    `--part
Content-Type: message/feedback-report

Feedback-Type: abuse

--part
Content-Type: text/rfc822-headers

Message-ID: <${message_id}@acme.example.com>

--part--`,
  );
const mailOne = () => mail(rail, office, { key: `${fresh('mailed')}.com`, email: `ada@${fresh('mailed')}.com` });

let kinds = 0;
const creates: Record<string, () => Promise<unknown>> = {
  'a prospect of a brand': () => add({ email: `ada@${fresh('blog')}.com` }),
  'an address at a domain of others': async () => add({ email: `${fresh('ada')}@${mailed.email.split('@')[1]}` }),
  'a prospect who is barred and freed': async () => {
    await caller.post(`${v1}/prospects/${other_id}/do_not_contact`);
    await caller.post(`${v1}/prospects/${other_id}/do_not_contact/lift`, { reason: 'mistake' });
  },
  'an address that is barred': () =>
    caller.post(`${v1}/do_not_contact`, { kind: 'address', email: `${fresh('eve')}@barred.example.com` }),
  'a note of a prospect': () => caller.post(`${prospect}/notes`, { text: 'They like it.' }),
  'a prospect of a list': async () =>
    caller.post(`${v1}/lists/${office.list.id}/prospects`, { prospect_ids: [(await add()).id] }),
  'a prospect of a campaign': async () => {
    const { id } = await add({ email: `ada@${fresh('blog')}.com` });
    await caller.post(`${v1}/campaigns/${campaign_id}/prospects`, { prospect_ids: [id] });
    await scheduleSequences({ organization_id, campaign_id }, context);
  },
  'an email of a campaign': send,
  'an answer to a prospect': async () => {
    await caller.post(`${prospect}/reply`, { text: 'We pay 20 %.' });
    await send();
  },
  'a reply': () => read(answerTo(mailed, 'What do you pay?')),
  'a reply to a reply': () => read(answerTo(mailed, 'And when?', { 'In-Reply-To': `<${reply_id}@their.example.com>` })),
  'a mail that names no email': () => read(source({ From: mailed.email, 'Message-ID': newMessageId() }, 'How much?')),
  'an automatic reply': () => read(answerTo(mailed, 'I am out of office.', { 'Auto-Submitted': 'auto-replied' })),
  'a reply that is corrected': () =>
    caller.post(`${v1}/messages/${reply_id}/reclassify`, {
      reply_kind: kinds++ % 2 ? 'not_now' : 'positive',
    }),
  'an email that bounces': async () => {
    const { message_id } = await mailOne();
    await within(rail, office, (tx) => markBounced(tx, vault, message_id, 'blocked'));
  },
  'a person who unsubscribes': async () => {
    const url = await linkTo(await mailOne());
    const body = 'List-Unsubscribe=One-Click';
    await request(url, { method: 'POST', body, headers: { 'Content-Type': 'application/x-www-form-urlencoded' } });
  },
  'a search of a brand': () => caller.post(`${v1}/searches`, { brand_id, search_type: 'keyword', query: 'bread' }),
  'a reveal of addresses': async () => caller.post(`${v1}/prospects/${(await add()).id}/reveal`),
  'an import of prospects': () => importOne(office),
  'an unsubscribe by reply that is taken back': async () => {
    await read(answerTo(mailed, 'Please remove me from your mailing list.'));
    const [last] = await rail.query(sql`
      select m.id from recruitment.message m where m.prospect_id = ${mailed.prospect_id} and m.purpose = 'unsubscribe' order by m.id desc limit 1`);
    await caller.post(`${v1}/messages/${last?.id}/reclassify`, { reply_kind: 'not_now' });
  },
  'a complaint about spam': async () => {
    await read(complaintAbout(await mailOne()));
    assert.equal((await caller.get(`${v1}/campaigns/${campaign_id}`)).pause_reason, 'spam_complaint');
    await caller.post(`${v1}/campaigns/${campaign_id}/resume`);
  },
  'an inbox that is disconnected and connected': async () => {
    await within(rail, office, (tx) => disconnectInbox(tx, { id: inbox_id }, 'disabled'));
    await within(rail, office, (tx) => reconnectInbox(tx, { id: inbox_id }));
  },
  'a deal that is agreed and activated': async () => {
    const { id: prospect_id } = await add({ email: `ada@${fresh('blog')}.com` });
    const { id: deal_id } = await dealWith(caller, prospect_id, office.program_id);
    await caller.post(`${v1}/deals/${deal_id}/agree`);
    await caller.post(`${v1}/deals/${deal_id}/activate`);
    await activateDeal({ organization_id, request_id: null, deal_id, version: 1 }, context);
    assert.equal((await caller.get(`${v1}/deals/${deal_id}`)).status, 'active');
  },
  'a deal of a prospect that is changed, cancelled and reopened': async () => {
    const one = `${v1}/deals/${office.deal.id}`;
    await caller.patch(one, { terms: { rate_value: kinds++ } });
    await caller.post(`${one}/cancel`);
    await caller.post(`${one}/reopen`);
  },
  'an invited prospect who joins': async () => {
    const email = `ada@${fresh('blog')}.com`;
    const { id } = await add({ email });
    await caller.post(`${v1}/prospects/${id}/invite`, { via: 'mark' });
    await caller.post('/v1/partners', { program_id: office.program_id, email });
    await within(rail, office, (tx) => observeJoining(tx, vault, office.program_id, 500));
    assert.equal((await caller.get(`${v1}/prospects/${id}`)).stage, 'active');
  },
  'a prospect who is erased': async () => caller.delete(`${v1}/prospects/${(await mailOne()).prospect_id}`),
  'a prospect who is moved': () => caller.post(`${prospect}/move`, { stage: kinds++ % 2 ? 'lost' : 'negotiating' }),
};
await volume.compare(creates, () => fill(office));

t.test(`a search looks at no more pages behind ${many} of other words and links`, async (t) => {
  const write = (count: number) =>
    rail.query(sql`
      insert into recruitment.page (organization_id, url, host, domain, title, description, text, linked_domains, fetched_at)
      select ${organization_id}, 'https://blog' || n || '.com/', 'blog' || n || '.com', 'blog' || n || '.com', 'Bread' || n, 'Baking', 'Flour',
        array['shop' || n || '.com'], now()
      from generate_series(1, ${count}::integer) as n
      on conflict do nothing`);
  const look = async (asked: object) =>
    volume.checked(organization_id, async (tx) => {
      const found = await findPages(tx, { text: '', language: null, country: null, ...asked }, 10, 0);
      t.equal(found.length, 1);
    });
  await write(1);
  const before = [await look({ text: 'bread1' }), await look({ links_to: 'shop1.com' })];
  await write(many);
  await rail.query(sql`vacuum (analyze) recruitment.page`);
  const now = [await look({ text: 'bread1' }), await look({ links_to: 'shop1.com' })];
  t.comment(`${before}, ${now}`);
  for (const [nth, blocks] of now.entries()) t.ok(blocks <= (before[nth] as number) + more, `${before}, then ${now}`);
});
