/** Tests how prospects are reached, who must not be reached, and the rest of a person who was erased. */
import t from 'tap';
import { reEncrypt } from '../../src/core/encryption/re_encrypt.ts';
import { createVault } from '../../src/core/encryption/vault.ts';
import { type Tx, transaction } from '../../src/core/postgres/transaction.ts';
import { encrypted } from '../../src/products.ts';
import { nobody } from '../../src/recruitment/brands/acting.ts';
import { addAddresses, type FoundAddress } from '../../src/recruitment/contact/add_address.ts';
import { normaliseAddress } from '../../src/recruitment/contact/address.ts';
import { suppress } from '../../src/recruitment/contact/mark.ts';
import { isSuppressed } from '../../src/recruitment/contact/suppression.ts';
import { createProspects } from '../../src/recruitment/prospects/create.ts';
import { addEvidence } from '../../src/recruitment/prospects/evidence.ts';
import { encryption_key, eventually, type Json, sql, startRail, startReceiver } from '../harness.ts';
import { all_but_scans } from './event_types.ts';

const rail = await startRail();
const { vault } = rail.services;
const v1 = '/recruitment/v1';

async function openBrand() {
  const caller = await rail.organization();
  const receiver = await startReceiver();
  await caller.post(`${v1}/webhook_endpoints`, { url: receiver.url, event_types: all_but_scans });
  const brand = await caller.post(`${v1}/brands`, { name: 'Acme', website_url: 'https://acme.example.com' });
  return { caller, receiver, brand_id: brand.id as string };
}
type Opened = Awaited<ReturnType<typeof openBrand>>;

let nth = 0;
const add = ({ caller, brand_id }: Opened, given: Json = {}): Promise<Json> =>
  caller.post(`${v1}/prospects`, { brand_id, channel: 'website', key: `blog${++nth}.com`, ...given });
const within = <T>({ caller: { organization_id } }: Opened, work: (tx: Tx) => Promise<T>): Promise<T> =>
  transaction(rail.store, { organization_id, request_id: null }, work);
const told = async ({ receiver }: Opened, count: number, type: RegExp): Promise<[string, Json][]> => {
  const events = () => receiver.received.filter(({ body }) => type.test(body.type));
  await eventually(() => events().length >= count, `${count} of ${type}`);
  return events().map(({ body }) => [body.type, body.data]);
};
const bar = ({ caller }: Opened, body: Json): Promise<Json> => caller.post(`${v1}/do_not_contact`, body);
const get = ({ caller }: Opened, { id }: Json): Promise<Json> => caller.get(`${v1}/prospects/${id}`);
const found = (email: string, given: Partial<FoundAddress> = {}): FoundAddress => ({
  ...{ email, source: 'page', verification: 'unknown', source_url: 'https://blog.com/contact', ...given },
});

t.test('compares addresses by mailbox', (t) => {
  for (const [one, other] of [
    ['Ada@Example.com', 'ada@example.com'],
    ['ada+news@example.com', 'ada@example.com'],
    ['a.d.a+x@googlemail.com', 'ada@gmail.com'],
    ['a.d.a@example.com', 'a.d.a@example.com'],
  ] as const)
    t.equal(normaliseAddress(one), normaliseAddress(other), one);
  t.not(normaliseAddress('a.da@example.com'), normaliseAddress('ada@example.com'));
  t.equal(normaliseAddress('+ada@example.com'), '+ada@example.com');
  t.end();
});

t.test('keeps addresses sealed, the best first, and tells what was revealed', async (t) => {
  const opened = await openBrand();
  const { caller } = opened;
  const prospect = await add(opened);
  const emails = `${v1}/prospects/${prospect.id}/emails`;
  const added = await within(opened, (tx) =>
    addAddresses(tx, vault, prospect.id, [
      found('Editor@blog.com', { verification: 'valid' }),
      found('info@blog.com'),
      found('old@blog.com', { verification: 'invalid' }),
      found('editor+ads@blog.com'),
    ]),
  );
  t.equal(added, 3);
  t.match(await get(opened, prospect), { email_status: 'verified' });
  const manual = await caller.post(emails, { email: 'ada@gmail.com' });
  t.match(manual, { id: /^fea_/, email: 'ada@gmail.com', rank: 4, source: 'manual', verification: 'webmail' });
  t.match(await caller.request('POST', emails, { email: 'A.da@gmail.com' }), {
    status: 409,
    body: { existing: { id: manual.id } },
  });
  const disposable = await add(opened, { email: 'x@mailinator.com' });
  t.match((await caller.get(`${v1}/prospects/${disposable.id}/emails`)).data, [{ verification: 'disposable' }]);
  const { data } = await caller.get(emails);
  t.same(
    data.map(({ email }: Json) => email),
    ['ada@gmail.com', 'Editor@blog.com', 'info@blog.com', 'old@blog.com'],
  );
  t.match((await caller.request('GET', `${emails}?format=csv`)).text, 'Editor@blog.com');
  const several = await add(opened, { key: 'crumbs.com', email: 'info@crumbs.com' });
  for (const email of ['ada@other.com', 'x@mailinator.com', 'grace@crumbs.com'])
    await caller.post(`${v1}/prospects/${several.id}/emails`, { email });
  t.same(
    (await caller.get(`${v1}/prospects/${several.id}/emails`)).data.map(({ email }: Json) => email),
    ['grace@crumbs.com', 'info@crumbs.com', 'ada@other.com', 'x@mailinator.com'],
    'those that people add are ranked too',
  );
  t.equal(
    await within(opened, (tx) =>
      addAddresses(tx, vault, prospect.id, [found('bad@blog.com', { verification: 'invalid' })]),
    ),
    1,
  );
  const revealed = await told(opened, 3, /^email/);
  t.same(
    revealed.filter(([, data]) => data.prospect_id === prospect.id),
    [
      ['email.revealed', { prospect_id: prospect.id, source: 'page', verification: 'valid', addresses: 2 }],
      ['email.revealed', { prospect_id: prospect.id, source: 'manual', verification: 'webmail', addresses: 3 }],
    ],
  );
  const stored = await rail.query<{ address: Buffer }>(sql`select t.address from recruitment.email_address t`);
  for (const { address } of stored) t.notMatch(address.toString('latin1'), /\.com/);
  for (const { id } of data) await caller.delete(`${v1}/emails/${id}`);
  t.match(await get(opened, prospect), { email_status: 'none' });
});

t.test('finds addresses under a rotated encryption key', async (t) => {
  const opened = await openBrand();
  const prospect = await add(opened, { email: 'ada@rotated.com' });
  await bar(opened, { kind: 'address', email: 'ada@rotated.com' });
  const rotated = createVault([Buffer.alloc(32, 9), encryption_key]);
  for (const table of encrypted.filter((one) => one.table.startsWith('recruitment.')))
    await reEncrypt(rail.store, rotated, table, 100, () => undefined);
  const suppressed = await within(opened, (tx) => isSuppressed(tx, rotated, 'Ada+x@rotated.com', prospect.id));
  t.match(suppressed, { reason: 'manual' });
  const back = createVault([encryption_key, Buffer.alloc(32, 9)]);
  for (const table of encrypted.filter((one) => one.table.startsWith('recruitment.')))
    await reEncrypt(rail.store, back, table, 100, () => undefined);
  t.match((await opened.caller.get(`${v1}/prospects/${prospect.id}/emails`)).data, [
    { email: 'ada@rotated.com', suppressed: true },
  ]);
});

t.test('marks a prospect, lifts the mark, and tells each once', async (t) => {
  const opened = await openBrand();
  const { caller } = opened;
  const prospect = await add(opened, { email: 'ada@marked.com' });
  const path = `${v1}/prospects/${prospect.id}/do_not_contact`;
  t.match(await caller.post(`${path}/lift`), { do_not_contact: null }, 'what is not marked stays so');
  for (const _ of [1, 2])
    t.match(await caller.post(path, { reason: 'legal' }), { do_not_contact: { reason: 'legal', since: /^20/ } });
  t.match(await within(opened, (tx) => isSuppressed(tx, vault, 'ada@marked.com', prospect.id)), { reason: 'legal' });
  for (const _ of [1, 2]) t.match(await caller.post(`${path}/lift`, { reason: 'mistake' }), { do_not_contact: null });
  t.equal(await within(opened, (tx) => isSuppressed(tx, vault, 'ada@marked.com', prospect.id)), undefined);
  const events = await told(opened, 2, /^do_not/);
  t.match(events, [
    ['do_not_contact.added', { prospect_id: prospect.id, reason: 'legal', by_user_id: /^usr_/ }],
    ['do_not_contact.lifted', { prospect_id: prospect.id, reason: 'mistake', by_user_id: /^usr_/ }],
  ]);
  t.equal(events.length, 2);
  await caller.post(path, { reason: 'complaint' });
  t.match(await caller.request('POST', `${path}/lift`), { status: 409, body: { error: { code: 'cannot_lift' } } });
});

t.test('an address and a domain bar every prospect that they hit, now and later', async (t) => {
  const opened = await openBrand();
  const { caller, brand_id } = opened;
  const [one, two, site, free] = [
    await add(opened, { email: 'ada@firm.co.uk' }),
    await add(opened, { channel: 'youtube', key: 'ada', email: 'ADA+tv@firm.co.uk' }),
    await add(opened, { key: 'firm.co.uk' }),
    await add(opened, { email: 'grace@elsewhere.com' }),
  ];
  const address = await bar(opened, { kind: 'address', email: 'ada@firm.co.uk', reason: 'legal' });
  t.match(address, {
    id: /^fdn_/,
    kind: 'address',
    value: 'ada@firm.co.uk',
    reason: 'legal',
    prospect_id: null,
    lifted_at: null,
  });
  t.match(
    await caller.request('POST', `${v1}/do_not_contact`, { kind: 'address', email: 'Ada@firm.co.uk' }),
    { status: 409, body: { error: { code: 'resource_already_exists' }, existing: address } },
    'what is barred already stays as it is',
  );
  const domain = await bar(opened, { kind: 'domain', domain: 'mail.Firm.co.uk' });
  t.match(domain, { value: 'firm.co.uk' });
  const marked = async () =>
    (await caller.get(`${v1}/prospects?brand_id=${brand_id}&do_not_contact=true`)).data
      .map(({ id }: Json) => id)
      .sort();
  t.same(await marked(), [one.id, two.id, site.id].sort());
  const added = await told(opened, 3, /^do_not_contact.added$/);
  t.same(
    added.map(([, data]) => [data.prospect_id, data.reason]),
    [
      [one.id, 'legal'],
      [two.id, 'legal'],
      [site.id, 'manual'],
    ],
  );
  const later = await add(opened, { email: 'sales@uk.firm.co.uk' });
  t.match(later, { do_not_contact: { reason: 'manual' } });
  t.match(await within(opened, (tx) => isSuppressed(tx, vault, 'new@firm.co.uk', free.id)), { id: domain.id });
  const lift = (id: string) => caller.post(`${v1}/do_not_contact/${id}/lift`, { reason: 'consent' });
  t.match(await caller.request('POST', `${v1}/prospects/${site.id}/do_not_contact/lift`), {
    status: 409,
    body: { error: { code: 'cannot_lift', message: new RegExp(domain.id) } },
  });
  t.match(await lift(address.id), { lift_reason: 'consent', lifted_at: /^20/, value: 'ada@firm.co.uk' });
  t.same((await marked()).length, 4, 'the domain still hits them');
  await lift(domain.id);
  await lift(domain.id);
  t.same(await marked(), []);
  const lifted = await told(opened, 4, /lifted$/);
  t.same(
    lifted.map(([, data]) => data.prospect_id),
    [one, two, site, later].map(({ id }) => id),
  );
  t.equal((await caller.get(`${v1}/do_not_contact?lifted=true`)).total_count, 2);
  t.equal((await caller.get(`${v1}/do_not_contact?kind=domain`)).data[0].id, domain.id);
});

t.test('takes a domain in its own letters, and no public suffix', async (t) => {
  const opened = await openBrand();
  const site = await add(opened, { key: 'müller-brot.de' });
  t.equal(site.url, 'https://xn--mller-brot-9db.de/');
  t.match(await bar(opened, { kind: 'domain', domain: 'Müller-Brot.de' }), { value: 'xn--mller-brot-9db.de' });
  t.match(await opened.caller.get(`${v1}/prospects/${site.id}`), { do_not_contact: { reason: 'manual' } });
  for (const domain of ['co.uk', 'com.br'])
    t.match(await opened.caller.request('POST', `${v1}/do_not_contact`, { kind: 'domain', domain }), {
      status: 400,
      body: { error: { code: 'invalid_parameter', param: 'domain', message: /public suffix/ } },
    });
  t.match(await bar(opened, { kind: 'domain', domain: 'gmail.com' }), { value: 'gmail.com' });
});

t.test('an unsubscribe is of all prospects with the address, tells no mark, and cannot be lifted', async (t) => {
  const opened = await openBrand();
  const [one, two] = [await add(opened, { email: 'ada@gone.com' }), await add(opened, { email: 'ada@gone.com' })];
  const manual = await bar(opened, { kind: 'address', email: 'ada@gone.com' });
  const entry = await bar(opened, { kind: 'address', email: 'ada@gone.com', reason: 'unsubscribed' });
  t.equal(entry.id, manual.id, 'it replaces a reason that can be lifted');
  for (const prospect of [one, two, await add(opened, { email: 'ada@gone.com' })])
    t.match(await get(opened, prospect), { unsubscribed_at: /^20/ });
  t.match(await opened.caller.request('POST', `${v1}/do_not_contact/${entry.id}/lift`), {
    status: 409,
    body: { error: { code: 'cannot_lift' } },
  });
  t.equal((await told(opened, 2, /^do_not_contact/)).length, 2);
  const bounced = await add(opened, { email: 'grace@gone.com' });
  await bar(opened, { kind: 'address', email: 'grace@gone.com', reason: 'hard_bounce' });
  t.match(await get(opened, bounced), { email_status: 'bounced', do_not_contact: null });
  for (const [body, param] of [
    [{ kind: 'address' }, 'email'],
    [{ kind: 'domain', email: 'a@example.com', domain: 'example.com' }, 'email'],
    [{ kind: 'domain', domain: 'example' }, 'domain'],
    [{ kind: 'prospect', prospect_id: one.id, reason: 'hard_bounce' }, 'reason'],
  ] as const)
    t.match(await opened.caller.request('POST', `${v1}/do_not_contact`, body), {
      status: 400,
      body: { error: { param } },
    });
});

t.test('the mark of a prospect follows from what bars it now, by the strongest reason', async (t) => {
  const opened = await openBrand();
  const { caller } = opened;
  const [one, two] = [await add(opened, { email: 'ada@now.com' }), await add(opened, { email: 'ada@now.com' })];
  const lift = ({ id }: Json) => caller.post(`${v1}/do_not_contact/${id}/lift`, { reason: 'mistake' });
  const reasons = async () =>
    [await get(opened, one), await get(opened, two)].map(({ do_not_contact }) => do_not_contact?.reason ?? null);
  const address = await bar(opened, { kind: 'address', email: 'ada@now.com' });
  const domain = await bar(opened, { kind: 'domain', domain: 'now.com', reason: 'legal' });
  t.same(await reasons(), ['legal', 'legal']);
  t.match(await get(opened, one), { email_status: 'none' }, 'a barred address is none that can be used');
  await lift(domain);
  t.same(await reasons(), ['manual', 'manual']);
  const stronger = await bar(opened, { kind: 'address', email: 'ada@now.com', reason: 'angry_reply' });
  t.match(stronger, { id: address.id, reason: 'angry_reply' });
  const [held] = (await caller.get(`${v1}/prospects/${one.id}/emails`)).data;
  await caller.delete(`${v1}/emails/${held.id}`);
  t.same(await reasons(), [null, 'angry_reply']);
  await caller.delete(`${v1}/prospects/${two.id}`);
  const again = await add(opened, { key: two.key, email: 'ada@now.com' });
  t.match(again, { do_not_contact: { reason: 'angry_reply' } });
  await lift(address);
  t.match(await get(opened, again), { do_not_contact: null, email_status: 'found' }, 'the hash is enough to lift');
  const events = (await told(opened, 9, /^do_not/)).map(([type, data]) => [
    type.slice(15),
    data.prospect_id,
    data.reason,
  ]);
  t.same(events, [
    ['added', one.id, 'manual'],
    ['added', two.id, 'manual'],
    ['added', one.id, 'legal'],
    ['added', two.id, 'legal'],
    ['added', one.id, 'angry_reply'],
    ['added', two.id, 'angry_reply'],
    ['lifted', one.id, 'other'],
    ['added', again.id, 'angry_reply'],
    ['lifted', again.id, 'mistake'],
  ]);
});

t.test(
  'whoever holds an address of a person who was erased, or of a marked prospect of a deleted brand, is marked',
  async (t) => {
    const opened = await openBrand();
    const { caller } = opened;
    const [erased, other, marked] = [
      await add(opened, { email: 'ada@held.com' }),
      await add(opened, { email: 'ada@held.com' }),
      await add(opened, { email: 'grace@held.com' }),
      await add(opened, { email: 'joan@held.com' }),
    ];
    await caller.delete(`${v1}/prospects/${erased.id}`);
    t.match(await get(opened, other), { do_not_contact: { reason: 'legal' }, email_status: 'none' });
    await caller.post(`${v1}/prospects/${marked.id}/do_not_contact`, { reason: 'complaint' });
    const brand = await caller.post(`${v1}/brands`, { name: 'Other', website_url: 'https://other.example.com' });
    const elsewhere = { ...opened, brand_id: brand.id };
    const [same, unknown] = [
      await add(elsewhere, { email: 'grace@held.com' }),
      await add(elsewhere, { email: 'joan@held.com' }),
    ];
    t.match(same, { do_not_contact: null });
    await caller.delete(`${v1}/brands/${opened.brand_id}`);
    t.match(await get(opened, same), { do_not_contact: { reason: 'complaint' } });
    t.match(await get(opened, unknown), { do_not_contact: null });
    t.match(await add(elsewhere, { email: 'Grace@held.com' }), { do_not_contact: { reason: 'complaint' } });
    t.same((await told(opened, 4, /^do_not/)).map(([, data]) => [data.prospect_id, data.reason]).slice(0, 3), [
      [other.id, 'legal'],
      [marked.id, 'complaint'],
      [same.id, 'complaint'],
    ]);
    t.same(
      (await rail.audit()).filter(({ organization_id }) => organization_id === caller.organization_id),
      [],
    );
  },
);

/** Many prospects at one domain, each with an address and a sequence that waits. */
async function addMany({ caller, brand_id }: Opened, many: number): Promise<Json> {
  const sample = await add({ caller, brand_id } as Opened, { email: 'ada@many.com' });
  const campaign = await caller.post(`${v1}/campaigns`, { brand_id, name: 'Blogs' });
  await rail.query(sql`
    insert into recruitment.prospect (organization_id, id, brand_id, channel, key, source, email_status)
    select ${caller.organization_id}, 'fdi_' || core.id_time_part(now()) || 'e00g' || lpad(n::text, 12, '0'), ${brand_id}, 'youtube',
      'channel' || n, 'manual', 'found'
    from generate_series(1, ${many - 1}) as n`);
  await rail.query(sql`
    insert into recruitment.email_address
      (organization_id, id, prospect_id, address, address_hmac, domain_hmac, source, verification, found_at)
    select p.organization_id, replace(p.id, 'fdi', 'fea'), p.id, a.address, sha256(p.id::bytea), a.domain_hmac, 'manual', 'unknown', now()
    from recruitment.email_address a
    join recruitment.prospect p on p.organization_id = a.organization_id and p.id <> a.prospect_id
    where a.prospect_id = ${sample.id}`);
  await rail.query(sql`
    insert into recruitment.sequence (organization_id, id, campaign_id, brand_id, prospect_id)
    select p.organization_id, replace(p.id, 'fdi', 'fsq'), ${campaign.id}, p.brand_id, p.id
    from recruitment.prospect p where p.brand_id = ${brand_id}`);
  return campaign;
}

t.test('a campaign of many sequences stops at once, and a job ends those that the request leaves', async (t) => {
  const opened = await openBrand();
  const { caller } = opened;
  const { id } = await addMany(opened, 520);
  t.match(await caller.post(`${v1}/campaigns/${id}/stop`), { state: 'stopped' });
  const ended = () =>
    rail.query(sql`
      select count(*)::integer as count from recruitment.sequence
      where campaign_id = ${id} and state = 'stopped' group by ended_at order by ended_at`);
  await eventually(async () => (await ended()).length === 2, 'the job to end', 60_000);
  t.same(await ended(), [{ count: 500 }, { count: 20 }]);
});

t.test(
  'a domain of many prospects is barred at once, and a job marks and lifts those that a request leaves',
  async (t) => {
    const opened = await openBrand();
    const { organization_id } = opened.caller;
    const many = 520;
    await addMany(opened, many);
    const parts = async (kind: string) => {
      const rows = await rail.query(sql`
      select count(*)::integer as count from recruitment.activity
      where organization_id = ${organization_id} and kind = ${kind} group by created_at order by created_at`);
      return rows.map(({ count }) => count);
    };
    const all = async (kind: string) => (await parts(kind)).reduce((sum, count) => sum + count, 0) === many;
    const entry = await bar(opened, { kind: 'domain', domain: 'many.com' });
    await eventually(() => all('do_not_contact_added'), 'the marks', 60_000);
    t.match(
      await rail.query(sql`select from recruitment.sequence where organization_id = ${organization_id} and open`),
      [],
    );
    t.same(await parts('do_not_contact_added'), [500, 20]);
    t.match(await opened.caller.post(`${v1}/do_not_contact/${entry.id}/lift`, {}), {
      lifted_at: /^20/,
      value: 'many.com',
    });
    await eventually(() => all('do_not_contact_lifted'), 'the lifts', 60_000);
    t.same(await parts('do_not_contact_lifted'), [500, 20]);
    t.same(
      await rail.query(sql`
      select do_not_contact_reason as reason, email_status, count(*)::integer as count from recruitment.prospect
      where organization_id = ${organization_id} group by 1, 2`),
      [{ reason: null, email_status: 'found', count: many }],
    );
    t.same(
      await rail.query(sql`
      select type, count(*)::integer as events, count(distinct body::jsonb #>> '{data,prospect_id}')::integer as prospects
      from webhooks.event where organization_id = ${organization_id} and type like 'do_not_contact%' group by type order by type`),
      ['added', 'lifted'].map((what) => ({ type: `do_not_contact.${what}`, events: many, prospects: many })),
    );

    await bar(opened, { kind: 'domain', domain: 'many.com' });
    // The mark of the second half is lifted before its job has come: whichever is done first, nobody stays marked.
    const [again] = (await opened.caller.get(`${v1}/do_not_contact?lifted=false`)).data;
    await opened.caller.post(`${v1}/do_not_contact/${again.id}/lift`, {});
    await eventually(
      async () =>
        (
          await rail.query(sql`
        select from recruitment.prospect where organization_id = ${organization_id} and (do_not_contact_reason is not null or email_status = 'none')
        union all
        select from graphile_worker.jobs where key like ${`refresh_bars:${'%'}`}`)
        ).length === 0,
      'nobody to be marked',
      60_000,
    );
    t.same(
      (await rail.audit()).filter((one) => one.organization_id === organization_id),
      [],
    );
  },
);

t.test('an unsubscribe of an address of many prospects holds for those that a job comes to as well', async (t) => {
  const opened = await openBrand();
  const { organization_id } = opened.caller;
  await addMany(opened, 520);
  await rail.query(sql`
    update recruitment.email_address t set address_hmac = sha256(t.organization_id::bytea) where t.organization_id = ${organization_id}`);
  const [held] = await rail.query(sql`
    select address_hmac as hmac from recruitment.email_address where organization_id = ${organization_id} limit 1`);
  await within(opened, (tx) =>
    suppress(tx, vault, { kind: 'address', hmac: held?.hmac, email: null }, 'unsubscribed', nobody),
  );
  const parts = () =>
    rail.query(sql`
      select count(*)::integer as count from recruitment.prospect
      where organization_id = ${organization_id} and unsubscribed_at is not null group by unsubscribed_at order by unsubscribed_at`);
  await eventually(async () => (await parts()).length === 2, 'the job to end', 60_000);
  t.same(await parts(), [{ count: 500 }, { count: 20 }]);
  t.same(
    await rail.query(sql`
      select state, count(*)::integer as count from recruitment.sequence where organization_id = ${organization_id} group by state`),
    [{ state: 'unsubscribed', count: 520 }],
  );
});

t.test(
  'what an address of many prospects was barred for twice holds for those that a job comes to as well',
  async (t) => {
    const opened = await openBrand();
    const { organization_id } = opened.caller;
    const many = 520;
    await addMany(opened, many);
    await rail.query(sql`
    update recruitment.email_address t set address_hmac = sha256(t.organization_id::bytea) where t.organization_id = ${organization_id}`);
    const [held] = await rail.query(sql`
    select address_hmac as hmac from recruitment.email_address where organization_id = ${organization_id} limit 1`);
    // Before the job of the first has come.
    await within(opened, async (tx) => {
      for (const reason of ['hard_bounce', 'manual', 'unsubscribed', 'complaint'] as const)
        await suppress(tx, vault, { kind: 'address', hmac: held?.hmac, email: null }, reason, nobody);
    });
    const counts = () =>
      rail.query(sql`
      select count(*) filter (where p.do_not_contact_reason = 'complaint')::integer as marked, count(p.unsubscribed_at)::integer as unsubscribed,
        count(a.bounced_at)::integer as bounced
      from recruitment.prospect p
      join recruitment.email_address a on a.organization_id = p.organization_id and a.prospect_id = p.id
      where p.organization_id = ${organization_id}`);
    await eventually(async () => (await counts())[0]?.marked === many, 'the marks', 60_000);
    t.same(await counts(), [{ marked: many, unsubscribed: many, bounced: many }]);
    t.same(
      await rail.query(
        sql`select refresh_after, refresh_notes from recruitment.suppression where organization_id = ${organization_id}`,
      ),
      [{ refresh_after: null, refresh_notes: [] }],
    );
  },
);

t.test(
  'a brand of many marked prospects is gone at once, and a job bars the addresses that the request leaves',
  async (t) => {
    const opened = await openBrand();
    const { caller, brand_id } = opened;
    const many = 520;
    await addMany(opened, many);
    await rail.query(sql`
    update recruitment.prospect set do_not_contact_reason = 'manual', do_not_contact_since = now() where brand_id = ${brand_id}`);
    await caller.delete(`${v1}/brands/${brand_id}`);
    t.equal((await caller.request('GET', `${v1}/brands/${brand_id}`)).status, 404);
    const parts = () =>
      rail.query(sql`
      select count(*)::integer as count from recruitment.suppression
      where organization_id = ${caller.organization_id} group by created_at order by created_at`);
    await eventually(
      async () => (await rail.query(sql`select from recruitment.prospect where brand_id = ${brand_id}`)).length === 0,
      'the prospects to be erased',
      60_000,
    );
    const [first, ...others] = (await parts()).map(({ count }) => count);
    t.equal(first, 500);
    t.equal(
      others.reduce((sum, count) => sum + count, 0),
      many - 500,
    );
  },
);

t.test('a domain marks sites that are added later, by hand and by a search', async (t) => {
  const opened = await openBrand();
  const { brand_id } = opened;
  await bar(opened, { kind: 'domain', domain: 'barredsite.com', reason: 'legal' });
  const site = await add(opened, { key: 'www.barredsite.com' });
  t.match(site, { do_not_contact: { reason: 'legal', since: /^20/ } });
  const brand = await opened.caller.post(`${v1}/brands`, { name: 'Other', website_url: 'https://other.example.com' });
  const rows = ['podcast', 'x'].map((channel) => ({
    ...{ brand_id: channel === 'x' ? brand_id : brand.id, channel: channel as 'podcast' | 'x' },
    key: channel === 'x' ? 'barredsite' : 'barredsite.com',
  }));
  const [podcast, account] = await within(opened, (tx) => createProspects(tx, vault, rows, { source: 'search' }));
  t.match(await get(opened, podcast as Json), { do_not_contact: { reason: 'legal' } });
  t.match(await get(opened, account as Json), { do_not_contact: null });
  t.same(
    (await told(opened, 2, /^do_not/)).map(([, data]) => [data.prospect_id, data.by_user_id === null]),
    [
      [site.id, false],
      [podcast?.id, true],
    ],
  );
});

t.test('an unsubscribe holds beside a complaint, and its mark cannot be lifted', async (t) => {
  const opened = await openBrand();
  const { caller } = opened;
  const one = await add(opened, { email: 'ada@both.com' });
  await bar(opened, { kind: 'address', email: 'ada@both.com', reason: 'complaint' });
  const unsubscribed = { kind: 'address', email: 'ada@both.com', reason: 'unsubscribed' };
  t.match(await bar(opened, unsubscribed), { reason: 'complaint' });
  t.match(await get(opened, one), { unsubscribed_at: /^20/, do_not_contact: { reason: 'complaint' } });
  t.equal((await caller.request('POST', `${v1}/do_not_contact`, unsubscribed)).status, 409, 'nothing changes');
  const two = await add(opened, { email: 'grace@both.com' });
  await bar(opened, { kind: 'address', email: 'grace@both.com' });
  await bar(opened, { kind: 'address', email: 'grace@both.com', reason: 'unsubscribed' });
  for (const { id } of [one, two]) {
    const refused = await caller.request('POST', `${v1}/prospects/${id}/do_not_contact/lift`);
    t.match(refused, { status: 409, body: { error: { code: 'cannot_lift' } } });
  }
  t.equal((await told(opened, 2, /^do_not/)).length, 2);
});

t.test('exports what is known of a person, and erases it but for hashes', async (t) => {
  const opened = await openBrand();
  const { caller, brand_id } = opened;
  const key = `secretblog${++nth}.com`;
  const prospect = await add(opened, { key, name: 'Secret', email: 'ada@secretblog.com' });
  const other = await add(opened, { email: 'grace@secretblog.com' });
  const list = await caller.post(`${v1}/lists`, { brand_id, name: 'A' });
  await caller.post(`${v1}/prospects/${prospect.id}/save`, { list_id: list.id });
  await caller.post(`${v1}/prospects/${prospect.id}/notes`, { text: 'Secretive.' });
  await bar(opened, { kind: 'address', email: 'grace@secretblog.com' });
  await told(opened, 1, /saved$/);
  const copies = (type: string, digit: number, count: number) =>
    rail.query(sql`
      insert into webhooks.event (organization_id, id, position, program_id, type, livemode, body, request_id, created_at)
      select e.organization_id, 'fev_' || core.id_time_part(now()) || 'e00g' || ${digit} || lpad(n::text, 11, '0'),
        nextval('webhooks.event_position'), e.program_id, case when ${count} > 1 then 'scan.finished' else e.type end, e.livemode, e.body, e.request_id, now()
      from (
        select e.* from webhooks.event e where e.organization_id = ${caller.organization_id} and e.type = ${type} limit 1
      ) as e, generate_series(1, ${count}) as n`);
  t.match(await caller.get(`${v1}/prospects/${prospect.id}/export`), {
    object: 'prospect_export',
    prospect: { id: prospect.id, key },
    emails: [{ email: 'ada@secretblog.com' }],
    lists: [{ id: list.id }],
    notes: [{ text: 'Secretive.' }],
    activity: [{ kind: 'added' }, { kind: 'email_added' }, { kind: 'saved' }, { kind: 'note_added' }],
    events: [{ type: 'affiliate.added' }, { type: 'email.revealed' }, { type: 'affiliate.saved', data: { key } }, {}],
    do_not_contact: [],
  });
  const needed = ['prospects:read', 'notes:read', 'lists:read', 'do_not_contact:read', 'deals:read'];
  for (const missing of needed) {
    const blind = await rail.key(caller.organization_id, { scopes: needed.filter((scope) => scope !== missing) });
    t.match(await blind.request('GET', `${v1}/prospects/${prospect.id}/export`), {
      ...{ status: 403, body: { error: { code: 'insufficient_scope', param: missing } } },
    });
  }
  const cursor = `${v1}/prospects?brand_id=${brand_id}&ending_before=${prospect.id}`;
  await copies('affiliate.added', 0, 10_000);
  await copies('affiliate.saved', 1, 1);
  t.match(await caller.request('DELETE', `${v1}/prospects/${prospect.id}`), {
    status: 200,
    body: { object: 'prospect', deleted: true },
  });
  await caller.delete(`${v1}/prospects/${other.id}`);
  t.equal((await caller.request('GET', `${v1}/prospects/${prospect.id}`)).status, 404);
  t.equal((await caller.request('GET', cursor)).status, 200, 'its id stays a cursor');
  const jobs = () => rail.query(sql`select from graphile_worker.jobs where key = ${`erase_prospects:${prospect.id}`}`);
  await eventually(async () => (await jobs()).length === 0, 'the events to be erased', 60_000);
  const tables = ['prospect', 'email_address', 'note', 'activity', 'list_prospect', 'suppression', 'tombstone'];
  const left = await rail.query<{ text: string }>(sql`
    select query_to_xml(format('select * from recruitment.%I where organization_id = %L', given.name, ${caller.organization_id}::text), false, true, '')::text
      || (select coalesce(string_agg(e.body, ''), '') from webhooks.event e where e.organization_id = ${caller.organization_id}) as text
    from unnest(${tables}::text[]) as given (name)`);
  for (const { text } of left) t.notMatch(text, /secret/i);
  const entries = (await caller.get(`${v1}/do_not_contact`)).data;
  t.same(entries.map(({ value, reason }: Json) => [value, reason]).sort(), [
    [null, 'legal'],
    [null, 'manual'],
  ]);
  const search = { source: 'search', source_run_id: 'fsc_01kap3b6n8f2v9w4x7y0z1a2b3' } as const;
  const rows = [
    { brand_id, channel: 'website' as const, key },
    { brand_id, channel: 'website' as const, key: `new${key}` },
    { brand_id, channel: 'website' as const, key: `new${key}` },
  ];
  const outcomes = await within(opened, (tx) => createProspects(tx, vault, rows, search));
  t.match(
    outcomes.map((outcome) => outcome?.is_new),
    [undefined, true, false],
    'no search makes them again',
  );
  const again = await add(opened, { key, email: 'Ada@secretblog.com' });
  t.match(again, { do_not_contact: { reason: 'legal' } }, 'by hand they may be added, and stay barred');
  t.match(await within(opened, (tx) => isSuppressed(tx, vault, 'ada@secretblog.com', again.id)), { reason: 'legal' });
});

t.test('purges who was never contacted, and found addresses that were not used', async (t) => {
  const opened = await openBrand();
  const { caller, brand_id } = opened;
  await caller.patch(`${v1}/brands/${brand_id}`, { retention_days: 60 });
  const [old, contacted, invited, fresh] = [await add(opened), await add(opened), await add(opened), await add(opened)];
  await caller.post(`${v1}/prospects/${contacted.id}/move`, { stage: 'contacted' });
  await caller.post(`${v1}/prospects/${invited.id}/invite`, { via: 'mark' });
  for (const { id } of [old, contacted, invited])
    await rail.query(sql`update recruitment.prospect set created_at = now() - interval '61 days' where id = ${id}`);
  await within(opened, (tx) =>
    addAddresses(tx, vault, fresh.id, [found('a@fresh.com'), found('b@fresh.com'), found('c@fresh.com')]),
  );
  await caller.post(`${v1}/prospects/${fresh.id}/emails`, { email: 'by@hand.com' });
  const hour = { ago: sql`now() - interval '31 days'` };
  await rail.query(
    sql`update recruitment.email_address set found_at = ${hour.ago} where prospect_id = ${fresh.id} and rank <> 100`,
  );
  await rail.query(
    sql`update recruitment.email_address set used_at = ${hour.ago} where prospect_id = ${fresh.id} and rank = 101`,
  );
  const gone = await openBrand();
  const of_deleted = await add(gone);
  await gone.caller.delete(`${v1}/brands/${gone.brand_id}`);
  // A run as of a later time erases no more.
  await rail.tick('recruitment/purge_expired', '2999-01-01T00:00:00Z');
  const count = async (id: string) => (await rail.query(sql`select from recruitment.prospect where id = ${id}`)).length;
  await eventually(async () => (await count(old.id)) + (await count(of_deleted.id)) === 0, 'the purge');
  await eventually(
    async () => (await caller.get(`${v1}/prospects/${fresh.id}/emails`)).total_count === 3,
    'the purge of addresses',
  );
  t.same(
    (await caller.get(`${v1}/prospects?brand_id=${brand_id}`)).data.map(({ id }: Json) => id),
    [fresh.id, invited.id, contacted.id],
  );
  t.same(
    (await caller.get(`${v1}/prospects/${fresh.id}/emails`)).data.map(({ email }: Json) => email),
    ['by@hand.com', 'a@fresh.com', 'b@fresh.com'],
  );
  t.equal((await caller.get(`${v1}/do_not_contact`)).total_count, 0, 'a purge bars nobody');
});

t.test('adds evidence once, and what a visit found out', async (t) => {
  const opened = await openBrand();
  const { id } = await add(opened, { name: 'By hand' });
  const evidence = [
    { kind: 'coupon_page' as const, url: 'https://blog.com/coupons', text: 'Coupons' },
    { kind: 'keyword' as const, url: 'https://blog.com/', text: 'sourdough: all about sourdough' },
    { kind: 'keyword' as const, url: 'https://blog.com/', text: 'rye: and rye' },
  ];
  const facts = { name: 'From the page', language_code: 'en', score: 70 };
  t.equal(await within(opened, (tx) => addEvidence(tx, id, evidence, facts)), 3);
  const again = evidence.map((one) => ({ ...one, text: one.text.replace('about', 'of') }));
  t.equal(await within(opened, (tx) => addEvidence(tx, id, again, { score: 71 })), 0);
  t.equal(await within(opened, (tx) => addEvidence(tx, 'fdi_none', evidence)), undefined);
  t.match(await get(opened, { id }), { evidence, name: 'By hand', language_code: 'en', score: 71 });
});

t.test('race: saved and hidden at once, both hold, and each is told once', async (t) => {
  const opened = await openBrand();
  const prospect = await add(opened);
  const post = (action: string, body: Json) =>
    opened.caller.request('POST', `${v1}/prospects/${prospect.id}/${action}`, body);
  const answers = await Promise.all(
    Array.from({ length: 16 }, (_, each) => (each % 2 ? post('save', {}) : post('hide', { reason: 'other' }))),
  );
  t.ok(answers.every(({ status }) => status === 200));
  t.match(await get(opened, prospect), { saved: true, hidden: true });
  await add(opened);
  const types = (await told(opened, 4, /./)).map(([type]) => type);
  t.same(types.sort(), ['affiliate.added', 'affiliate.added', 'affiliate.hidden', 'affiliate.saved']);
});

t.test('race: nobody is assigned to a member who is removed meanwhile', async (t) => {
  const opened = await openBrand();
  const { caller, brand_id } = opened;
  const member = await caller.post(`${v1}/team`, { email: 'race@example.com' });
  const prospects = await Promise.all(Array.from({ length: 16 }, () => add(opened)));
  const assigned = prospects.map(({ id }) =>
    caller.request('POST', `${v1}/prospects/${id}/assign`, { member_id: member.id }),
  );
  const [answers] = await Promise.all([Promise.all(assigned), caller.delete(`${v1}/team/${member.id}`)]);
  const done = answers.filter(({ status }) => status === 200).length;
  t.ok(answers.every(({ status }) => status === 200 || status === 404));
  t.equal((await caller.get(`${v1}/prospects?brand_id=${brand_id}&assignee_member_id=none`)).total_count, 16);
  await add(opened);
  await told(opened, 17, /added$/);
  const events = await told(opened, 2 * done, /assigned$/);
  t.equal(events.filter(([, data]) => data.assignee_member_id === null).length, done);
  t.equal(events.length, 2 * done);
});

t.test('race: marked and lifted at once, the events say what is so', async (t) => {
  const opened = await openBrand();
  const { caller } = opened;
  const prospect = await add(opened, { email: 'ada@race.com' });
  const path = `${v1}/prospects/${prospect.id}/do_not_contact`;
  const answers = await Promise.all(
    Array.from({ length: 16 }, (_, each) => caller.request('POST', each % 2 ? path : `${path}/lift`, {})),
  );
  t.ok(answers.every(({ status }) => status === 200));
  const { do_not_contact } = await get(opened, prospect);
  await add(opened);
  await told(opened, 2, /affiliate.added$/);
  const events = (await told(opened, 1, /^do_not/)).map(([type]) => type);
  const expected = events.map((_, each) => `do_not_contact.${each % 2 ? 'lifted' : 'added'}`);
  t.same(events, expected, 'one after the other');
  t.equal(events.at(-1) === 'do_not_contact.added', do_not_contact !== null);
  const suppressed = await within(opened, (tx) => isSuppressed(tx, vault, 'ada@race.com', prospect.id));
  t.equal(suppressed !== undefined, do_not_contact !== null);
});

t.test('race: two who add the same people at once make each once', async (t) => {
  const opened = await openBrand();
  const { brand_id } = opened;
  const rows = Array.from({ length: 100 }, (_, each) => ({
    brand_id,
    channel: 'website' as const,
    key: `same${each}.com`,
  }));
  const runs = await Promise.all(
    [rows, rows.toReversed(), rows].map((some) =>
      within(opened, (tx) => createProspects(tx, vault, some, { source: 'csv_import' })),
    ),
  );
  const ids = new Set(runs.flat().map((one) => one?.id));
  t.equal(ids.size, 100);
  t.equal(runs.flat().filter((one) => one?.is_new).length, 100);
  t.equal((await told(opened, 100, /added$/)).length, 100);
});

t.test('the audit names a prospect who is not as entries, lists and addresses say', async (t) => {
  const opened = await openBrand();
  const { caller, brand_id } = opened;
  const prospect = await add(opened, { email: 'ada@audited.com' });
  const list = await caller.post(`${v1}/lists`, { brand_id, name: 'A' });
  await caller.post(`${v1}/lists/${list.id}/prospects`, { prospect_ids: [prospect.id] });
  await caller.post(`${v1}/prospects/${prospect.id}/do_not_contact`);
  const broken = await add(opened, { email: 'grace@audited.com' });
  await bar(opened, { kind: 'address', email: 'grace@audited.com', reason: 'unsubscribed' });
  const named = async () =>
    (await rail.audit()).filter(({ organization_id }) => organization_id === caller.organization_id);
  t.same(await named(), []);
  const corrupt = sql`do_not_contact_reason = null, do_not_contact_since = null, saved = false, email_status = 'bounced', unsubscribed_at = null`;
  const ids = [prospect.id, broken.id];
  await rail.query(sql`update recruitment.prospect set ${corrupt} where id = any(${ids})`);
  t.same(
    (await named()).map(({ invariant, subject_id }) => `${subject_id === prospect.id ? 1 : 2} ${invariant}`).sort(),
    [
      '1 a prospect has the email_status of the addresses',
      '1 a prospect in a list is saved',
      '1 whoever an entry of do not contact hits is marked',
      '2 a prospect has the email_status of the addresses',
      '2 whoever holds an unsubscribed address is unsubscribed',
    ],
  );
  for (const id of ids) await caller.delete(`${v1}/prospects/${id}`);
  t.same(await named(), []);
});
