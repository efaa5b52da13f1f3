import { generateKeyPairSync } from 'node:crypto';
import t from 'tap';
import { dailyLimit, daysThatSent } from '../../src/recruitment/inboxes/inbox.ts';
import { openDns } from '../../src/recruitment/inboxes/sender_policy/dns.ts';
import { lookUpSenderPolicy } from '../../src/recruitment/inboxes/sender_policy/sender_policy.ts';
import { checkHost } from '../../src/recruitment/inboxes/sender_policy/spf.ts';
import { RecordFault } from '../../src/recruitment/inboxes/sender_policy/verdict.ts';
import { startNameServer } from '../core/net/name_server.ts';
import { awayFromMidnight, type Caller, type Json, sql, startRail } from '../harness.ts';
import { startMailbox } from './mailbox.ts';

const keyOf = (modulusLength: number): string =>
  generateKeyPairSync('rsa', { modulusLength }).publicKey.export({ type: 'spki', format: 'der' }).toString('base64');
const key = keyOf(1024);
const dkim = `v=DKIM1; k=rsa; p=${key}`;
const dmarc = 'v=DMARC1; p=none; rua=mailto:dmarc@acme.com';

const texts: Record<string, string[]> = {
  'acme.com': ['google-site-verification=1', 'v=spf1 include:_spf.google.com ip4:127.0.0.0/8 ~all'],
  'google._domainkey.acme.com': [dkim],
  '_dmarc.acme.com': [dmarc],
  '_spf.google.com': ['v=spf1 include:_netblocks.google.com ~all'],
  '_netblocks.google.com': ['v=spf1 ip4:203.0.113.0/24 ip6:2001:db8:4000::/36 ~all'],
  'zohomail.com': ['v=spf1 ip4:192.0.2.128/25 -all'],
  'zoho.com': ['v=spf1 ip4:192.0.2.192/26 -all'],
  'spf.protection.outlook.com': ['v=spf1 ip4:198.51.100.0/24 -all'],
};
const addresses: Record<string, string[]> = {
  ...{ localhost: ['127.0.0.1'], 'smtp.acme.com': ['203.0.113.25'], 'mx.acme.com': ['198.51.100.7'] },
};
const exchangers: Record<string, string[]> = { 'acme.com': ['10 mx.acme.com'] };
const silent = new Set<string>();
const no_name = { rcode: 3 };
const names = await startNameServer(
  t,
  (name, type) => (type === 'A' ? addresses[name] : undefined) ?? (addresses[name] ? [] : no_name),
  (name) => exchangers[name] ?? no_name,
  (name) => (silent.has(name) ? { rcode: 2 } : (texts[name] ?? no_name)),
);
const { nameServers } = names;
// Counts and emails are rows that the test writes.
const rail = await startRail({ worker: false, audit: false, own: { name_servers: nameServers } });
const { smtp, imap } = await startMailbox();
const connected = async (caller: Caller, changes: Json = {}): Promise<Json> =>
  caller.post('/recruitment/v1/inboxes', { email: 'grace@acme.com', from_name: 'Grace', smtp, imap, ...changes });
const healthOf = (caller: Caller, id: string): Promise<Json> => caller.get(`/recruitment/v1/inboxes/${id}/health`);
const policyOf = (domain: string, host = 'smtp.gmail.com') => lookUpSenderPolicy(domain, host, nameServers);

t.test('an SPF record is evaluated as receivers do', async (t) => {
  Object.assign(texts, {
    'others.example.net': ['v=spf1 ip4:198.51.100.128/25 -all'],
    'softly.example.net': ['v=spf1 ~all'],
    'twice.example.net': ['v=spf1 -all', 'v=spf1 ~all'],
    'loop.example.net': ['v=spf1 include:loop.example.net -all'],
    '7.100.51.198.in-addr.list.example.net': [],
  });
  addresses['7.100.51.198.in-addr.list.example.net'] = ['127.0.0.2'];
  const dns = openDns(nameServers, new AbortController().signal);
  const result = async (record: string, ip = '198.51.100.7') => {
    const domain = `spf${Object.keys(texts).length}.example.com`;
    texts[domain] = [record];
    const sending = { ip, sender: `grace@${domain}` };
    return checkHost(domain, sending, dns).then(
      (found) => found.result,
      (error) => (error instanceof RecordFault ? 'permerror' : Promise.reject(error)),
    );
  };
  for (const [record, expected] of [
    ['v=spf1', 'neutral'],
    ['v=spf1 -all', 'fail'],
    ['V=SPF1 ?ALL', 'neutral'],
    ['v=spf1  ip4:198.51.100.7  -all', 'pass'],
    ['v=spf1 ip4:198.51.100.0/29 -all', 'pass'],
    ['v=spf1 ip4:198.51.100.8/29 ~all', 'softfail'],
    ['v=spf1 -ip4:198.51.100.7 +all', 'fail'],
    ['v=spf1 ip6:2001:db8::/32 -all', 'fail'],
    ['v=spf1 a:mx.acme.com -all', 'pass'],
    ['v=spf1 a:smtp.acme.com/24 -all', 'fail'],
    ['v=spf1 a:smtp.acme.com -all', 'fail'],
    ['v=spf1 mx:acme.com -all', 'pass'],
    ['v=spf1 mx:acme.com/30//64 -all', 'pass'],
    ['v=spf1 include:others.example.net -all', 'fail'],
    ['v=spf1 include:spf.protection.outlook.com -all', 'pass'],
    ['v=spf1 redirect=spf.protection.outlook.com', 'pass'],
    ['v=spf1 redirect=softly.example.net', 'softfail'],
    ['v=spf1 -all redirect=spf.protection.outlook.com', 'fail'],
    ['v=spf1 exists:%{ir}.%{v}.list.example.net -all', 'pass'],
    ['v=spf1 exists:%{i}.%{v}.list.example.net -all', 'fail'],
    ['v=spf1 exp=why.example.net unknown=%{d} -all', 'fail'],
    ['v=spf1 ptr -all', 'fail'],
    ['v=spf1 include:nowhere.example.net -all', 'permerror'],
    ['v=spf1 redirect=nowhere.example.net', 'permerror'],
    ['v=spf1 include:twice.example.net -all', 'permerror'],
    ['v=spf1 include:loop.example.net -all', 'permerror'],
    ['v=spf1 ip4:198.51.100.300 -all', 'permerror'],
    ['v=spf1 ip4:198.51.100.0/33 -all', 'permerror'],
    ['v=spf1 ip4:2001:db8:: -all', 'permerror'],
    ['v=spf1 ipv4:198.51.100.7 -all', 'permerror'],
    ['v=spf1 include -all', 'permerror'],
    ['v=spf1 all:example.com', 'permerror'],
    ['v=spf1 exists:%{q}.example.com -all', 'permerror'],
    ['v=spf1 a:one.example.net a:two.example.net -all', 'fail'],
    ['v=spf1 a:one.example.net a:two.example.net a:three.example.net -all', 'permerror'],
    [`v=spf1 ${'a:smtp.acme.com '.repeat(10)}-all`, 'fail'],
    [`v=spf1 ${'a:smtp.acme.com '.repeat(11)}-all`, 'permerror'],
  ] as const) {
    t.equal(await result(record), expected, record);
  }
  t.equal(await result('v=spf1 ip6:2001:db8::/32 -all', '2001:db8::1'), 'pass');
  t.equal(await result('v=spf1 ip4:0.0.0.0/0 -all', '2001:db8::1'), 'fail');
});

t.test('SPF says whether the provider of an inbox may send', async (t) => {
  for (const [record, host, status, detail] of [
    ['v=spf1 include:_spf.google.com ~all', 'smtp.gmail.com', 'pass', /lets smtp\.gmail\.com send/],
    ['v=spf1 ip4:203.0.113.0/24 ip6:2001:db8:4000::/36 -all', 'smtp.gmail.com', 'pass', /lets/],
    ['v=spf1 ip4:203.0.113.0/24 -all', 'smtp.gmail.com', 'invalid', /Add `include:_spf\.google\.com` to it/],
    ['v=spf1 include:_spf.google.com ~all', 'smtp.office365.com', 'invalid', /Add `include:spf\.protection\.outlook/],
    ['v=spf1 include:zoho.com ~all', 'smtp.zoho.com', 'pass', /lets/],
    ['v=spf1 include:_spf.google.com ~all', 'smtp.zoho.com', 'invalid', /Add `include:zohomail\.com` to it/],
    ['v=spf1 -all', 'smtp.titan.email', 'unknown', /does not name the addresses/],
    ['v=spf1 +all', 'smtp.gmail.com', 'invalid', /lets every server send/],
    ['v=spf1 include:_spf.google.com bad~term ~all', 'smtp.gmail.com', 'invalid', /`bad~term`/],
    [
      `v=spf1 include:_spf.google.com ${'a:smtp.acme.com '.repeat(9)}~all`,
      'smtp.gmail.com',
      'invalid',
      /more than 10 DNS look-ups/,
    ],
    ['v=spf1 a:smtp.acme.com -all', 'smtp.acme.com', 'pass', /lets/],
    ['v=spf1 include:spf.acme.com -all', 'smtp.other.com', 'invalid', /refers to spf\.acme\.com/],
    ['v=spf1 include:softly.acme.com -all', 'relay.acme.com', 'pass', /lets/],
    ['v=spf1 ip4:198.51.100.7 -all', 'smtp.acme.com', 'unknown', /does not name the addresses of smtp\.acme\.com/],
    [undefined, 'smtp.gmail.com', 'missing', /Add the TXT record `v=spf1 include:_spf\.google\.com ~all`/],
    [undefined, 'smtp.acme.com', 'missing', /as the provider documents it/],
  ] as const) {
    const domain = `provider${Object.keys(texts).length}-${host.length}.example.org`;
    texts['softly.acme.com'] = ['v=spf1 ~all'];
    if (record) texts[domain] = [record];
    const { spf } = await policyOf(domain, host);
    t.match(spf, { status, detail, record: record ?? null }, `${record} ${host}`);
  }
  texts['several.example.org'] = ['v=spf1 -all', 'v=spf1 ~all'];
  t.match((await policyOf('several.example.org')).spf, { status: 'invalid', detail: /exists 2 times/ });
  silent.add('failing.example.org');
  t.match((await policyOf('failing.example.org')).spf, { status: 'unknown', detail: /did not answer/ });
});

t.test('DKIM keys are looked for at the selectors of the provider and at common ones', async (t) => {
  for (const [name, record, status, detail] of [
    ['selector1._domainkey', dkim, 'pass', /`selector1`/],
    ['default._domainkey', `p=${key}`, 'pass', /`default`/],
    ['default._domainkey', `v=DKIM1; k=ed25519; p=${'A'.repeat(43)}=`, 'pass', /`default`/],
    ['default._domainkey', 'v=DKIM1; p=', 'invalid', /is revoked/],
    ['default._domainkey', `v=DKIM1; p=${keyOf(512)}`, 'invalid', /has 512 bits/],
    ['default._domainkey', 'v=DKIM1; p=bm90IGEga2V5', 'invalid', /is not a valid key/],
    ['default._domainkey', `v=DKIM2; p=${key}`, 'invalid', /is not a valid record/],
    ['default._domainkey', 'v=spf1 -all', 'unknown', /was found at a common selector/],
    ['_domainkey', 'o=-', 'unknown', /Verify that your email provider signs/],
    ['other', '', 'missing', /has no DKIM key/],
  ] as const) {
    const domain = `dkim${Object.keys(texts).length}.example.org`;
    texts[`${name}.${domain}`] = [record];
    if (name.endsWith('_domainkey')) texts[`_domainkey.${domain}`] ??= [];
    const found = await policyOf(domain, 'smtp.office365.com');
    t.match(found.dkim, { status, detail, record: status === 'pass' || status === 'invalid' ? record : null }, record);
  }
});

t.test('DMARC is the policy of the domain, or of the domain above it', async (t) => {
  for (const [name, record, status, detail] of [
    ['mail.SITE', 'v=DMARC1; p=quarantine', 'pass', /of mail\.\S+ has the policy `quarantine`/],
    ['SITE', 'v=DMARC1;p=reject', 'pass', /is that of \S+, has the policy `reject`/],
    ['SITE', 'v=DMARC1; p=reject; sp=none', 'pass', /`none`/],
    ['SITE', 'v=DMARC1; rua=mailto:dmarc@acme.com', 'pass', /`none`/],
    ['SITE', 'v=DMARC1; p=monitor', 'invalid', /has no valid policy/],
    ['SITE', 'v=DMARC1; p=none; p=reject', 'invalid', /is not a list/],
    ['SITE', 'v=DMARC12; p=none', 'missing', /Add the TXT record `v=DMARC1; p=none/],
  ] as const) {
    const site = `dmarc${Object.keys(texts).length}.co.uk`;
    texts[`_dmarc.${name.replace('SITE', site)}`] = [record];
    t.match((await policyOf(`mail.${site}`)).dmarc, { status, detail }, record);
  }
  texts['_dmarc.two.example.org'] = [dmarc, dmarc];
  t.match((await policyOf('two.example.org')).dmarc, { status: 'invalid', detail: /exists 2 times/ });
});

t.test('DNS answers are kept for a while', async (t) => {
  await policyOf('kept.example.org');
  names.queries.length = 0;
  await Promise.all([policyOf('kept.example.org'), policyOf('kept.example.org')]);
  t.same(names.queries, []);
});

t.test('the health of a new inbox is that of its domain, and nothing was sent', async (t) => {
  const caller = await rail.organization();
  const { id } = await connected(caller);
  t.match(await healthOf(caller, id), {
    ...{
      object: 'inbox_health',
      inbox_id: id,
      sent_today: 0,
      limit_today: 10,
      bounce_bps_28d: 0,
      blocked_28d: 0,
      complaints_28d: 0,
      unknown_28d: 0,
    },
    spf: { status: 'pass', record: texts['acme.com']?.[1], detail: 'The SPF record of acme.com lets localhost send.' },
    dkim: { status: 'pass', record: dkim },
    dmarc: { status: 'pass', record: dmarc },
    ...{ imap_last_seen: null, imap_answer: null, queue: 0 },
  });
});

t.test('of the days that sent as many are counted as bring the ramp to its limit', async (t) => {
  const caller = await rail.organization();
  const { organization_id } = caller;
  const ramps = [
    [10, 2],
    [38, 5],
    [39, 1],
    [40, 1],
    [50, 1],
  ] as const;
  for (const [start, step] of ramps) {
    const ramp = { start, step };
    const { id } = await connected(caller, { email: `grace${start}@acme.com`, daily_limit: 40, ramp });
    for (let days = 0; days <= 17; days++) {
      const found = await rail.query<{ days: number }>(sql`
        select ${daysThatSent(sql`'infinity'::date`)} as days from recruitment.inbox t where t.id = ${id}`);
      const limit = dailyLimit({ daily_limit: 40, ramp }, found[0]?.days as number);
      t.equal(limit, dailyLimit({ daily_limit: 40, ramp }, days), `${start} + ${days} * ${step}`);
      await rail.query(sql`
        insert into recruitment.inbox_day (organization_id, inbox_id, day, sent)
        values (${organization_id}, ${id}, current_date - ${days}::integer, 1)`);
    }
  }
});

t.test('health counts the day of the inbox, its ramp, and 28 days of what came back', async (t) => {
  await awayFromMidnight('Pacific/Kiritimati');
  const caller = await rail.organization();
  const { organization_id } = caller;
  const { id } = await connected(caller, { timezone: 'Pacific/Kiritimati' });
  await rail.query(sql`
    insert into recruitment.inbox_day (organization_id, inbox_id, day, sent)
    select ${organization_id}, ${id}, (now() at time zone 'Pacific/Kiritimati')::date - d.ago, d.sent
    from (values (0, 7), (1, 3), (2, 0), (30, 5)) as d (ago, sent)`);
  await rail.query(sql`update recruitment.inbox set imap_last_seen_at = '2026-11-01T10:00:00Z' where id = ${id}`);
  await rail.query(sql`
    insert into recruitment.message (
      organization_id, id, brand_id, inbox_id, direction, purpose, state, phase, rfc_message_id, sent_at, bounced_at, received_at
    )
    select
      ${organization_id}, 'fms_' || m.nth, 'fbr_any', ${id}, m.direction, m.purpose, m.state,
      case m.state when 'sending' then 'claimed' end, m.nth || '@acme.com',
      case when m.state in ('sent', 'bounced') then now() - m.age end, case m.state when 'bounced' then now() - m.age end,
      case m.state when 'received' then now() - m.age end
    from (values
      (1, 'outbound', 'sequence', 'sent', interval '1 hour'),
      (2, 'outbound', 'sequence', 'bounced', interval '27 days'),
      (3, 'outbound', 'sequence', 'bounced', interval '29 days'),
      (4, 'outbound', 'answer', 'sent', interval '2 days'),
      (5, 'inbound', 'complaint', 'received', interval '27 days'),
      (6, 'inbound', 'complaint', 'received', interval '29 days'),
      (7, 'inbound', 'reply', 'received', interval '1 day'),
      (8, 'outbound', 'answer', 'planned', interval '0'),
      (9, 'outbound', 'invitation', 'sending', interval '0'),
      (10, 'outbound', 'answer', 'planned', interval '0')
    ) as m (nth, direction, purpose, state, age)`);
  await rail.query(sql`update recruitment.message set due_at = now() + interval '1 hour' where id = 'fms_10'`);
  const { id: brand_id } = await caller.post('/recruitment/v1/brands', {
    name: 'Acme',
    website_url: 'https://acme.com',
  });
  await rail.query(sql`
    insert into recruitment.campaign (
      organization_id, id, brand_id, name, steps, schedule, max_per_domain_day, bounce_pause_bps, reply_wait_days, allow_risky,
      stop_for_company, state
    )
    select ${organization_id}, c.id, ${brand_id}, c.id, '[{}, {}]', '{"timezone": "UTC", "days": [1], "from": "09:00", "to": "17:00"}', 3, 300, 5, false, true, c.state
    from (values ('fca_sending', 'sending'), ('fca_stopped', 'stopped')) as c (id, state)`);
  await rail.query(sql`
    insert into recruitment.sequence (
      organization_id, id, campaign_id, brand_id, inbox_id, state, next_step, due_at, paused_by_user, paused_until
    )
    select ${organization_id}, 'fsq_' || s.nth, s.campaign_id, ${brand_id}, ${id}, s.state, s.next_step, now() + s.due, s.by_user, now() + s.pause
    from (values
      (1, 'fca_sending', 'waiting', 0, interval '-1 hour', false, null),
      (2, 'fca_sending', 'active', 1, interval '-1 hour', false, interval '-1 minute'),
      (3, 'fca_sending', 'active', 1, interval '1 hour', false, null),
      (4, 'fca_sending', 'active', 1, interval '-1 hour', true, null),
      (5, 'fca_sending', 'active', 1, interval '-1 hour', false, interval '1 day'),
      (6, 'fca_sending', 'active', 2, interval '-1 hour', false, null),
      (7, 'fca_stopped', 'active', 1, interval '-1 hour', false, null)
    ) as s (nth, campaign_id, state, next_step, due, by_user, pause)`);
  t.match(await healthOf(caller, id), {
    ...{ sent_today: 7, limit_today: 14, bounce_bps_28d: 3_333, complaints_28d: 1, queue: 4 },
    imap_last_seen: '2026-11-01T10:00:00.000Z',
    imap_answer: null,
  });
});
