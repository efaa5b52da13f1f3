/** The unsubscribe link of every email: one-click, the page, and what no token may do. */
import t from 'tap';
import { request } from 'undici';
import { newId } from '../../../src/core/values/id.ts';
import { is_barred, isSuppressed } from '../../../src/recruitment/contact/suppression.ts';
import { keyedHash } from '../../../src/recruitment/prospects/keyed_hash.ts';
import { unsubscribeUrl } from '../../../src/recruitment/unsubscribing/link.ts';
import { unsubscribe } from '../../../src/recruitment/unsubscribing/unsubscribe.ts';
import { eventually, type Json, sql, startRail } from '../../harness.ts';
import { mail, type Outreach, openOutreach, replyTo, sendTo, within } from './mailed.ts';

const rail = await startRail();
const { vault } = rail.services;
const v1 = '/recruitment/v1';

const linkOf = (outreach: Outreach, message_id: string): Promise<string> =>
  within(rail, outreach, async (tx) =>
    unsubscribeUrl(await keyedHash(tx, vault), rail.address, {
      organization_id: outreach.caller.organization_id,
      message_id,
    }),
  );

async function send(method: 'GET' | 'HEAD' | 'POST', url: string, headers: Record<string, string> = {}, body?: string) {
  const answer = await request(url, { method, headers, ...(body === undefined ? {} : { body }) });
  return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() };
}

/** As Gmail sends it. */
const boundary = 'b1_0123456789abcdef';
const multipart = `--${boundary}\r\nContent-Disposition: form-data; name="List-Unsubscribe"\r\n\r\nOne-Click\r\n--${boundary}--\r\n`;
const multipart_type = { 'Content-Type': `multipart/form-data; boundary=${boundary}` };
const urlencoded_type = { 'Content-Type': 'application/x-www-form-urlencoded' };

const told = ({ receiver }: Outreach, of: RegExp = /^(affiliate\.(unsub|stage)|do_not)/): [string, Json][] =>
  receiver
    .events()
    .filter(({ type }) => of.test(type))
    .map(({ type, data }) => [type, data]);
const untilTold = (outreach: Outreach, count: number) =>
  eventually(() => told(outreach).length >= count, `${count} events`);
/** All that was told, once a later event has come. */
async function allTold(outreach: Outreach): Promise<[string, Json][]> {
  const { caller, brand_id } = outreach;
  const last = await caller.post(`${v1}/prospects`, {
    brand_id,
    channel: 'other',
    key: `${newId('last')}.com`.replace('_', ''),
  });
  await caller.post(`${v1}/prospects/${last.id}/save`);
  const saved = () =>
    outreach.receiver.events().some(({ type, data }) => data.prospect_id === last.id && type === 'affiliate.saved');
  await eventually(saved, 'the last event');
  return told(outreach);
}

t.test('unsubscribes by one click, once', async (t) => {
  const outreach = await openOutreach(rail);
  const { caller } = outreach;
  const sent = await mail(rail, outreach);
  const link = await linkOf(outreach, sent.message_id);
  const answer = await send('POST', link, multipart_type, multipart);
  t.equal(answer.status, 200);
  const page = await send('GET', link, { 'Accept-Language': 'en' });
  t.match(page, { status: 200, text: 'You are unsubscribed' }, 'the link opened later asks nothing');
  t.notMatch(page.text, '<form');
  t.notOk(answer.headers.location);
  t.notOk(answer.headers['set-cookie']);
  t.match(await within(rail, outreach, (tx) => isSuppressed(tx, vault, sent.email, 'none')), {
    reason: 'unsubscribed',
  });
  t.match(await caller.get(`${v1}/prospects/${sent.prospect_id}`), {
    ...{ stage: 'lost', unsubscribed_at: /^20/, do_not_contact: null, email_status: 'none' },
  });
  t.match((await caller.get(`${v1}/do_not_contact`)).data, [
    { kind: 'address', value: sent.email, reason: 'unsubscribed', by_user_id: null },
  ]);
  t.match(await rail.query(sql`select state, ended_at from recruitment.sequence where id = ${sent.sequence_id}`), [
    { state: 'unsubscribed', ended_at: /./ },
  ]);
  for (const [headers, body] of [
    [urlencoded_type, 'List-Unsubscribe=One-Click'],
    [{}, undefined],
    [{}, 'anything'],
    [{ 'Content-Type': 'text/plain' }, '\0'],
    [{ 'Content-Type': 'application/json' }, '{'],
  ] as const)
    t.equal((await send('POST', link, headers, body)).status, 200);
  const out = { ...outreach, ...sent };
  const [first, second, ...more] = await allTold(outreach);
  t.same(first, [
    'affiliate.unsubscribed',
    {
      ...{ brand_id: out.brand_id, prospect_id: out.prospect_id, campaign_id: out.campaign_id },
      ...{ sequence_id: out.sequence_id, inbox_id: out.inbox_id, occurred_at: first?.[1].occurred_at },
    },
  ]);
  t.same(second, [
    'affiliate.stage_changed',
    { prospect_id: sent.prospect_id, from: 'contacted', to: 'lost', by_user_id: null, reason: 'unsubscribed' },
  ]);
  t.same(more, []);
  const { data } = await caller.get(`${v1}/prospects/${sent.prospect_id}/activity`);
  t.match(
    data.filter(({ kind }: Json) => kind === 'unsubscribed'),
    { length: 1 },
  );
});

t.test('tells one event however many ask at the same time', async (t) => {
  const outreach = await openOutreach(rail);
  const sent = await mail(rail, outreach);
  const link = await linkOf(outreach, sent.message_id);
  const answers = await Promise.all(Array.from({ length: 50 }, () => send('POST', link, multipart_type, multipart)));
  t.ok(answers.every(({ status }) => status === 200));
  t.same(
    (await allTold(outreach)).map(([type]) => type),
    ['affiliate.unsubscribed', 'affiliate.stage_changed'],
  );
});

t.test('bars every prospect who holds the address, and tells of one', async (t) => {
  const outreach = await openOutreach(rail);
  const { caller } = outreach;
  const one = await mail(rail, outreach);
  const two = await caller.post(`${v1}/prospects`, {
    ...{ brand_id: outreach.brand_id, channel: 'youtube', key: 'ada', email: one.email.toUpperCase() },
  });
  await send('POST', await linkOf(outreach, one.message_id));
  t.match(await caller.get(`${v1}/prospects/${two.id}`), { unsubscribed_at: /^20/, stage: 'found' });
  t.equal((await allTold(outreach)).filter(([type]) => type === 'affiliate.unsubscribed').length, 1);
});

t.test('moves nobody out of agreed or active', async (t) => {
  const outreach = await openOutreach(rail);
  const sent = await mail(rail, outreach);
  await outreach.caller.post(`${v1}/prospects/${sent.prospect_id}/move`, { stage: 'agreed' });
  await send('POST', await linkOf(outreach, sent.message_id));
  t.match(await outreach.caller.get(`${v1}/prospects/${sent.prospect_id}`), {
    stage: 'agreed',
    unsubscribed_at: /^20/,
  });
  t.match(
    (await allTold(outreach)).map(([type]) => type),
    ['affiliate.stage_changed', 'affiliate.unsubscribed'],
  );
});

t.test('works after the prospect was erased and the brand deleted, by the hash alone', async (t) => {
  const outreach = await openOutreach(rail);
  const { caller } = outreach;
  const [erased, other, campaign] = [
    await mail(rail, outreach),
    await mail(rail, outreach),
    await mail(rail, outreach),
  ];
  const address = (await caller.get(`${v1}/prospects/${other.prospect_id}/emails`)).data[0];
  await caller.delete(`${v1}/emails/${address.id}`);
  const links = await Promise.all([erased, other, campaign].map(({ message_id }) => linkOf(outreach, message_id)));
  await caller.delete(`${v1}/prospects/${erased.prospect_id}`);
  t.equal((await send('GET', links[0] as string)).status, 200);
  t.equal((await send('POST', links[0] as string, multipart_type, multipart)).status, 200);
  t.match(await within(rail, outreach, (tx) => isSuppressed(tx, vault, erased.email, 'none')), {
    reason: 'unsubscribed',
  });
  t.equal((await send('POST', links[1] as string)).status, 200);
  t.match(await caller.get(`${v1}/prospects/${other.prospect_id}`), { stage: 'lost', unsubscribed_at: /^20/ });
  t.match(await within(rail, outreach, (tx) => isSuppressed(tx, vault, other.email, 'none')), {
    reason: 'unsubscribed',
  });
  await caller.delete(`${v1}/brands/${outreach.brand_id}`);
  await rail.query(sql`delete from recruitment.campaign where id = ${outreach.campaign_id}`);
  await rail.query(sql`update recruitment.inbox set deleted_at = now() where id = ${outreach.inbox_id}`);
  t.match(await send('POST', links[2] as string), { status: 200, text: 'from this sender' });
  t.match(await within(rail, outreach, (tx) => isSuppressed(tx, vault, campaign.email, 'none')), {
    reason: 'unsubscribed',
  });
  await untilTold(outreach, 2);
  t.same(
    told(outreach).map(([type, data]) => [type, data.prospect_id]),
    [
      ['affiliate.unsubscribed', other.prospect_id],
      ['affiliate.stage_changed', other.prospect_id],
    ],
  );
});

t.test('bars both addresses of a person who asks by a reply from another one', async (t) => {
  const outreach = await openOutreach(rail);
  const sent = await mail(rail, outreach);
  const reply = await replyTo(rail, outreach, sent, 'ada@private.example.com', { purpose: 'unsubscribe' });
  await within(rail, outreach, (tx) => unsubscribe(tx, vault, { id: reply, is_authentic: true }));
  for (const email of [sent.email, 'ada@private.example.com'])
    t.match(await within(rail, outreach, (tx) => isSuppressed(tx, vault, email, 'none')), { reason: 'unsubscribed' });
});

t.test('bars the address that was written to first, however often another one was since', async (t) => {
  const outreach = await openOutreach(rail);
  const sent = await mail(rail, outreach);
  const { organization_id } = outreach.caller;
  await rail.query(sql`
    insert into recruitment.message (organization_id, id, thread_id, brand_id, prospect_id, inbox_id, direction, purpose, state, rfc_message_id,
      address_hmac, sent_at)
    select m.organization_id, core.new_id('fms'), m.thread_id, m.brand_id, m.prospect_id, m.inbox_id, 'outbound', 'answer', 'sent',
      m.id || n, sha256('another'), now()
    from recruitment.message m, generate_series(1, 200) as n
    where m.organization_id = ${organization_id} and m.id = ${sent.message_id}`);
  const reply_id = await replyTo(rail, outreach, sent, 'ada@elsewhere.example.com', { purpose: 'unsubscribe' });
  await within(rail, outreach, (tx) => unsubscribe(tx, vault, { id: reply_id }));
  t.match(await within(rail, outreach, (tx) => isSuppressed(tx, vault, sent.email, 'none')), {
    reason: 'unsubscribed',
  });
});

t.test('an email is barred by its address, by the domain, and by the prospect, until that is lifted', async (t) => {
  const outreach = await openOutreach(rail);
  const { caller } = outreach;
  const { message_id, prospect_id, email } = await mail(rail, outreach);
  const isBarred = async () => {
    const [row] = await rail.query(
      sql`select ${is_barred} as barred from recruitment.message t where t.id = ${message_id}`,
    );
    return row?.barred;
  };
  const domain = email.split('@')[1];
  for (const entry of [
    { kind: 'address', email },
    { kind: 'domain', domain },
    { kind: 'prospect', prospect_id },
  ]) {
    t.equal(await isBarred(), false);
    const { id } = await caller.post(`${v1}/do_not_contact`, entry);
    t.equal(await isBarred(), true, entry.kind);
    await caller.post(`${v1}/do_not_contact/${id}/lift`, { reason: 'mistake' });
  }
});

t.test('bars nobody by the link of a test email', async (t) => {
  const outreach = await openOutreach(rail);
  const sent = await mail(rail, outreach);
  const test_id = newId('fms');
  await rail.query(sql`
    insert into recruitment.message (organization_id, id, brand_id, inbox_id, direction, purpose, state, rfc_message_id, address_hmac, sent_at)
    select organization_id, ${test_id}, brand_id, inbox_id, 'outbound', 'test', 'sent', ${test_id}, address_hmac, now()
    from recruitment.message where id = ${sent.message_id}`);
  t.equal((await send('POST', await linkOf(outreach, test_id))).status, 200);
  t.equal(await within(rail, outreach, (tx) => isSuppressed(tx, vault, sent.email, 'none')), undefined);
});

t.test('asks on a page that never acts', async (t) => {
  const outreach = await openOutreach(rail);
  const sent = await mail(rail, outreach, { language_code: 'de' });
  const link = await linkOf(outreach, sent.message_id);
  const page = await send('GET', link, { Purpose: 'prefetch', 'Accept-Language': 'fr' });
  t.equal(page.status, 200);
  t.match(page.headers, {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': /default-src 'none'; style-src 'sha256-.*'; form-action 'self'/,
    'x-robots-tag': /noindex/,
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
  });
  t.match(page.text, '<html lang="de">');
  t.match(page.text, 'Möchten Sie keine E-Mails mehr von Acme &lt;GmbH&gt; &amp; Co. erhalten?');
  t.match(page.text, '<form method="post">');
  t.notMatch(page.text, /<script|mailed\d/);
  t.match(await send('HEAD', link), { status: 200, text: '' });
  t.equal(await within(rail, outreach, (tx) => isSuppressed(tx, vault, sent.email, sent.prospect_id)), undefined);
  const done = await send('POST', link, urlencoded_type, 'List-Unsubscribe=One-Click');
  t.match(done.text, 'Sie sind abgemeldet');
  t.match(done.text, 'von Acme &lt;GmbH&gt; &amp; Co.</p>', 'one full stop');
  t.equal(
    (await send('GET', link.toUpperCase().replace(/^.*\/RECRUITMENT\/U/, `${rail.address}/recruitment/u`))).status,
    200,
  );
  const unknown = await mail(rail, outreach);
  const accepting = (language: string) =>
    linkOf(outreach, unknown.message_id).then((url) => send('GET', url, { 'Accept-Language': language }));
  t.match((await accepting('xx, pt-BR;q=0.9, fr')).text, '<html lang="pt">');
  t.match((await accepting('constructor')).text, '<html lang="en">');
});

t.test('accepts no token that it did not make', async (t) => {
  const outreach = await openOutreach(rail);
  const [one, two] = [await openOutreach(rail), await rail.organization()];
  const sent = await mail(rail, outreach);
  const link = await linkOf(outreach, sent.message_id);
  const token = link.split('/').at(-1) as string;
  const [organization, message, mac] = [token.slice(0, 26), token.slice(26, 52), token.slice(52)];
  const swapped = `${mac.slice(0, -1)}${mac.endsWith('0') ? '1' : '0'}`;
  const hostile = [
    ...['x', '%00', '%2e%2e', "'--", `${token}0`, token.slice(1), organization, '0'.repeat(78), '😀'.repeat(20)].map(
      encodeURI,
    ),
    organization + message + swapped,
    one.caller.organization_id.slice(-26) + message + mac,
    two.organization_id.slice(-26) + message + mac,
    newId('org').slice(-26) + message + mac,
    organization + newId('fms').slice(-26) + mac,
    (await linkOf(outreach, newId('fms'))).split('/').at(-1) as string,
  ];
  for (const given of hostile)
    for (const method of ['GET', 'POST'] as const) {
      const answer = await send(method, `${rail.address}/recruitment/u/${given}`);
      t.ok([400, 404].includes(answer.status), `${method} ${given} answers ${answer.status}`);
      t.notMatch(answer.text, /mailed|Acme/);
    }
  t.match(await send('GET', `${rail.address}/recruitment/u/x`), { status: 404, text: 'Link not found' });
  t.equal((await send('POST', link, {}, 'x'.repeat(70_000))).status, 413);
  t.equal(await within(rail, outreach, (tx) => isSuppressed(tx, vault, sent.email, sent.prospect_id)), undefined);
  t.same(await rail.query(sql`select from recruitment.hmac_key where organization_id = ${two.organization_id}`), []);
});

t.test('writes to nobody once it has answered', async (t) => {
  const outreach = await openOutreach(rail);
  const sent = await mail(rail, outreach);
  const campaign_id = newId('fca');
  await rail.query(sql`
    insert into recruitment.campaign (organization_id, id, brand_id, name, inbox_ids, steps, schedule, max_per_domain_day, bounce_pause_bps,
      reply_wait_days, allow_risky, stop_for_company)
    select organization_id, ${campaign_id}, brand_id, 'Winter', inbox_ids, steps, schedule, 3, 300, 5, false, true
    from recruitment.campaign where id = ${outreach.campaign_id}`);
  await rail.query(sql`update recruitment.sequence set address_hmac = null where id = ${sent.sequence_id}`);
  const again = await sendTo(rail, { ...outreach, campaign_id }, sent.prospect_id, sent.email);
  await send('POST', await linkOf(outreach, sent.message_id));
  const sequences = await rail.query(
    sql`select state, open from recruitment.sequence where id in (${sent.sequence_id}, ${again.sequence_id})`,
  );
  t.same(sequences, [
    { state: 'unsubscribed', open: false },
    { state: 'unsubscribed', open: false },
  ]);
});
