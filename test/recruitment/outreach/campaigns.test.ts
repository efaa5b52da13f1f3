/** Campaigns: what they are, who is added to them, and when they send, pause, stop and finish. */
import t from 'tap';
import { transaction } from '../../../src/core/postgres/transaction.ts';
import { createProspects } from '../../../src/recruitment/prospects/create.ts';
import { eventually, type Json, sql, startRail, startReceiver } from '../../harness.ts';
import { all_but_scans } from '../event_types.ts';
import { startMailbox } from '../mailbox.ts';

const rail = await startRail();
const mailbox = await startMailbox();
const { vault } = rail.services;
const v1 = '/recruitment/v1';
const step = { subject: 'Hello {{ prospect.name | default: "there" }}', body_text: 'We are {{ brand.name }}.' };
const follow_up = { ...step, delay_days: 3, body_text: 'Did you see it?' };
const always = { timezone: 'UTC', days: [1, 2, 3, 4, 5, 6, 7], from: '00:00', to: '24:00' };
/** The opening of a window that is closed now, whatever the time is, and for longer than a test takes. */
const opening = new Date(Date.now() + 3 * 86_400_000);
opening.setUTCHours(9, 0, 0, 0);
const closed = { ...always, days: [opening.getUTCDay() || 7], from: '09:00', to: '10:00' };

async function open({ inboxes = 1 } = {}) {
  const caller = await rail.organization();
  const brand = await caller.post(`${v1}/brands`, {
    ...{ name: 'Acme', website_url: 'https://acme.example.com', sender_company: 'Acme GmbH' },
    ...{ postal_address: 'Hauptstr. 1, Berlin', privacy_url: 'https://acme.example.com/privacy' },
  });
  const { smtp, imap } = mailbox;
  const made: Json[] = [];
  for (let nth = 0; nth < inboxes; nth++) {
    const email = `grace${nth}@acme.com`;
    made.push(await caller.post(`${v1}/inboxes`, { email, from_name: 'Grace', smtp, imap, daily_limit: 500 }));
  }
  const receiver = await startReceiver();
  await caller.post(`${v1}/webhook_endpoints`, { url: receiver.url, event_types: all_but_scans });
  return { caller, receiver, brand_id: brand.id as string, inbox_ids: made.map(({ id }) => id as string) };
}
type Opened = Awaited<ReturnType<typeof open>>;

const draft = ({ caller, brand_id, inbox_ids }: Opened, given: Json = {}): Promise<Json> =>
  caller.post(`${v1}/campaigns`, { brand_id, name: 'Blogs', inbox_ids, steps: [step], schedule: always, ...given });
let nth = 0;
const add = ({ caller, brand_id }: Opened, given: Json = {}): Promise<Json> =>
  caller.post(`${v1}/prospects`, { brand_id, channel: 'website', key: `blog${++nth}.com`, ...given });
const addMany = (opened: Opened, count: number): Promise<Json[]> =>
  Promise.all(Array.from({ length: count }, () => add(opened, { email: `ada@blog${nth + 1}.com` })));
const enrol = ({ caller }: Opened, { id }: Json, prospects: Json[]): Promise<Json> =>
  caller.post(`${v1}/campaigns/${id}/prospects`, { prospect_ids: prospects.map((one) => one.id) });
const sequencesOf = ({ id }: Json): Promise<Json[]> =>
  rail.query(sql`
    select s.*, a.prospect_id = s.prospect_id as is_own_address from recruitment.sequence s
    left join recruitment.email_address a on a.id = s.email_address_id
    where s.campaign_id = ${id} order by s.id`);

const told = async ({ receiver }: Opened, count: number): Promise<[string, Json][]> => {
  const events = () => receiver.events().filter(({ type }) => /^(campaign|inbox)\./.test(type));
  await eventually(() => events().length >= count, `${count} events of campaigns`);
  return events().map(({ type, data }) => [type, data]);
};
const typesOf = (events: [string, Json][]): string[] => events.map(([type]) => type);
const launched = async (opened: Opened, prospects: number, given: Json = {}) => {
  const campaign = await draft(opened, given);
  const added = await addMany(opened, prospects);
  await enrol(opened, campaign, added);
  await opened.caller.post(`${v1}/campaigns/${campaign.id}/launch`);
  const isScheduled = async () => (await sequencesOf(campaign)).every((one) => one.due_at !== null);
  await eventually(isScheduled, 'the sequences to be scheduled');
  return { campaign, added, path: `${v1}/campaigns/${campaign.id}` };
};

t.test('keeps the settings of a draft, with ids of steps that a change keeps', async (t) => {
  const opened = await open();
  const { caller, brand_id } = opened;
  const campaign = await draft(opened, {
    steps: [{ ...step, variants: [{ ...step, weight: 2, body_html: '<p>Hello</p>' }] }, follow_up],
  });
  t.match(campaign, {
    ...{ object: 'campaign', id: /^fca_/, brand_id, state: 'draft', pause_causes: [], daily_new_limit: null },
    ...{ max_per_domain_day: 3, bounce_pause_bps: 300, reply_wait_days: 5, allow_risky: false, schedule: always },
    steps: [
      { id: /^fst_/, delay_days: 0, weight: 1, body_html: null, variants: [{ weight: 2, body_html: '<p>Hello</p>' }] },
      { id: /^fst_/, delay_days: 3, variants: [] },
    ],
  });
  const one = `${v1}/campaigns/${campaign.id}`;
  const [first, second] = campaign.steps;
  const changed = await caller.patch(one, {
    steps: [
      { ...second, delay_days: 1 },
      { ...first, delay_days: 2 },
    ],
  });
  t.same(
    changed.steps.map(({ id }: Json) => id),
    [second.id, first.id],
  );
  t.match((await caller.get(`${v1}/campaigns?brand_id=${brand_id}&state=draft`)).data, [{ id: campaign.id }]);
  t.match((await caller.get(`${v1}/campaigns?brand_id=${brand_id}&inbox_id=${opened.inbox_ids[0]}`)).total_count, 1);
  t.match((await caller.get(`${v1}/campaigns?brand_id=${brand_id}&inbox_id=fin_other`)).total_count, 0);
  const other = await draft(opened, { steps: undefined, inbox_ids: [] });
  t.same([other.steps, other.inbox_ids], [[], []]);
  t.match(await caller.delete(one), { deleted: true });
  t.equal((await caller.request('GET', one)).status, 404);
});

t.test('refuses settings that cannot work, and says which', async (t) => {
  const opened = await open();
  const { caller, brand_id } = opened;
  const campaign = { brand_id, name: 'Blogs', steps: [step] };
  for (const [given, param, message] of [
    [{ steps: [{ ...step, subject: '{{ prospect.nam }}' }] }, 'steps.0.subject', /no variable prospect\.nam.*Use one/],
    [{ steps: [{ ...step, body_text: '{% if %}' }] }, 'steps.0.body_text', /line 1/],
    [
      { steps: [step, { ...follow_up, variants: [{ ...step, body_html: '{{ x | y }}' }] }] },
      'steps.1.variants.0.body_html',
      /./,
    ],
    [{ steps: [step, step] }, 'steps.1.delay_days', /required/],
    [{ steps: [{ ...step, id: 'fst_other' }] }, 'steps.0.id', /not a step/],
    [{ steps: Array(9).fill(follow_up) }, 'steps', /./],
    [{ schedule: { ...always, from: '18:00', to: '09:00' } }, 'schedule.to', /./],
    [{ inbox_ids: ['fin_other'] }, 'inbox_ids', /No inbox/],
    [{ bounce_pause_bps: 10_001 }, 'bounce_pause_bps', /./],
  ] as const) {
    const { status, body } = await caller.request('POST', `${v1}/campaigns`, { ...campaign, ...given });
    t.match({ status: status === 400 || status === 404, body }, { status: true, body: { error: { param, message } } });
  }
});

t.test('adds prospects one by one, and says of each why it was not added', async (t) => {
  const opened = await open();
  const { caller } = opened;
  const campaign = await draft(opened);
  const [good, marked, hidden, lost, active] = await addMany(opened, 5);
  await caller.post(`${v1}/prospects/${marked?.id}/do_not_contact`, { reason: 'manual' });
  await caller.post(`${v1}/prospects/${hidden?.id}/hide`, { reason: 'other' });
  await caller.post(`${v1}/prospects/${lost?.id}/move`, { stage: 'lost' });
  await caller.post(`${v1}/prospects/${active?.id}/move`, { stage: 'active' });
  const gone = await add(opened, { email: 'gone@gone.com' });
  await caller.post(`${v1}/do_not_contact`, { kind: 'address', email: 'gone@gone.com', reason: 'unsubscribed' });
  const foreign = await add(await open());
  const all = [good, marked, hidden, lost, active, gone, foreign] as Json[];
  const { data } = await enrol(opened, campaign, all);
  t.same(
    data.map(({ prospect_id }: Json) => prospect_id),
    all.map(({ id }) => id),
  );
  t.same(
    data.map(({ error }: Json) => error?.code),
    [undefined, 'do_not_contact', 'hidden', 'lost', 'in_pipeline', 'unsubscribed', 'resource_not_found'],
  );
  t.match((await enrol(opened, campaign, [good as Json])).data, [{ error: { code: 'already_in_campaign' } }]);
  const path = `${v1}/campaigns/${campaign.id}`;
  t.match(await caller.get(`${path}?include[]=stats`), { stats: { prospects: 1, waiting: 1, failed: 0 } });
  t.match((await caller.get(`${v1}/prospects/${good?.id}/activity?kind=campaign_added`)).total_count, 1);
  for (const [body, status] of [
    [{ prospect_ids: ['sample_fdi_01'] }, 409],
    [{}, 400],
    [{ prospect_ids: [good?.id], list_id: 'fls_1' }, 400],
    [{ list_id: 'fls_1' }, 404],
  ] as const)
    t.equal((await caller.request('POST', `${path}/prospects`, body)).status, status);
});

t.test('adds a list by a job that says how far it is', async (t) => {
  const opened = await open();
  const { caller, brand_id } = opened;
  const campaign = await draft(opened);
  const list = await caller.post(`${v1}/lists`, { brand_id, name: 'All' });
  const { organization_id } = caller;
  const count = 2500;
  await transaction(rail.store, { organization_id, request_id: null }, async (tx) => {
    const rows = Array.from({ length: count }, (_, of) => ({
      brand_id,
      channel: 'other' as const,
      key: `one${of}.org`,
    }));
    const created = await createProspects(tx, vault, rows, { source: 'api' });
    const ids = created.map((one) => one?.id as string);
    await tx.all(sql`
      insert into recruitment.list_prospect (organization_id, list_id, prospect_id)
      select ${organization_id}, ${list.id}, id from unnest(${ids}::text[]) as id`);
    await tx.all(sql`
      update recruitment.prospect set saved = true, hidden = id = any(${ids.slice(-7)}),
        hidden_reason = case when id = any(${ids.slice(-7)}) then 'other' end
      where organization_id = ${organization_id}`);
  });
  const addition = await caller.post(`${v1}/campaigns/${campaign.id}/prospects`, { list_id: list.id });
  t.match(addition, { id: /^fad_/, state: 'queued', total: count, list_id: list.id });
  const now = () => caller.get(`${v1}/campaign_additions/${addition.id}`);
  await eventually(async () => (await now()).finished_at !== null, 'the list to be added');
  t.match(await now(), { state: 'done', added: count - 7, refused: { hidden: 7 }, error: null });
  const path = `${v1}/campaigns/${campaign.id}?include[]=stats`;
  t.match(await caller.get(path), { stats: { prospects: count - 7, waiting: count - 7 } });
});

t.test('previews the exact email, and follow-ups as answers', async (t) => {
  const opened = await open();
  const { caller } = opened;
  const html = { ...step, body_html: '<p>Hello {{ prospect.name }}</p>' };
  const campaign = await draft(opened, { steps: [{ ...html, variants: [{ ...step, subject: 'Other' }] }, follow_up] });
  const path = `${v1}/campaigns/${campaign.id}/preview`;
  const prospect = await add(opened, { name: 'Ada & Co', email: 'ada@ada.com' });
  const first = await caller.post(path, { prospect_id: prospect.id });
  t.match(first, {
    ...{ object: 'campaign_preview', to: 'ada@ada.com', subject: 'Hello Ada & Co', inbox_id: opened.inbox_ids[0] },
    ...{
      text: /We are Acme\.[\s\S]*Acme GmbH[\s\S]*Hauptstr/,
      html: /Hello Ada &amp; Co/,
      raw: /\r\nFrom: Grace <grace0@acme/,
    },
  });
  const header = ({ headers }: Json, name: string) => headers.find((one: Json) => one.name === name)?.value;
  t.match(
    header(first, 'List-Unsubscribe'),
    /^<http:.*\/recruitment\/u\/\w{78}>, <mailto:grace0@acme\.com\?subject=unsub/,
  );
  t.equal(header(first, 'List-Unsubscribe-Post'), 'List-Unsubscribe=One-Click');
  t.match(await caller.post(path, { prospect_id: prospect.id, variant: 1 }), { subject: 'Other', variant: 1 });
  const second = await caller.post(path, { prospect_id: prospect.id, step_index: 1 });
  t.match(second, { subject: 'Re: Hello Ada & Co', text: /Did you see it/ });
  t.equal(header(second, 'References'), header(second, 'In-Reply-To'));
  const nameless = await add(opened, { email: 'x@nameless.com' });
  const unreachable = await add(opened);
  for (const [body, message] of [
    [{ prospect_id: nameless.id }, /steps\.0\.body_html.*no value for prospect\.name/],
    [{ prospect_id: unreachable.id }, /no_address/],
    [{ prospect_id: prospect.id, step_index: 2 }, /The last step is 1/],
    [{ prospect_id: prospect.id, variant: 2 }, /The highest of the step is 1/],
  ] as const)
    t.match(await caller.request('POST', path, body), { status: 400, body: { error: { message } } });
  t.equal((await caller.request('POST', path, { prospect_id: 'sample_fdi_01' })).status, 409);
});

t.test('finds what blocks a launch, and what to know of every prospect', async (t) => {
  const opened = await open();
  const { caller, brand_id } = opened;
  const campaign = await draft(opened, { steps: [{ ...step, body_text: '{{ prospect.name }}' }], inbox_ids: [] });
  const path = `${v1}/campaigns/${campaign.id}`;
  const codes = (found: Json[]) => found.map(({ code }) => code).sort();
  const empty = await caller.post(`${path}/preflight`);
  t.match(empty, { ok: false, prospects: 0, days: null });
  t.same(codes(empty.blocking), ['no_inbox', 'no_prospects']);
  t.same(empty.warnings, [], 'no duration is estimated without an inbox');
  await caller.patch(`${v1}/brands/${brand_id}`, { postal_address: null, privacy_url: null });
  await caller.patch(path, { inbox_ids: opened.inbox_ids });
  const good = await add(opened, { name: 'Ada', email: 'ada@good.com', country_code: 'DE' });
  const same = await add(opened, { name: 'Ada too', email: 'Ada@good.com' });
  const nameless = await add(opened, { email: 'x@nameless.com' });
  const none = await add(opened, { name: 'None' });
  const risky = await add(opened, { name: 'Risky', email: 'x@mailinator.com' });
  const barred = await add(opened, { name: 'Barred', email: 'x@barred.com' });
  await enrol(opened, campaign, [good, same, nameless, none, risky, barred]);
  await caller.post(`${v1}/do_not_contact`, { kind: 'address', email: 'x@barred.com', reason: 'unsubscribed' });
  const found = await caller.post(`${path}/preflight`);
  t.same(codes(found.blocking), ['no_postal_address', 'no_privacy_url']);
  const warned = Object.fromEntries(found.warnings.map((one: Json) => [one.code, one.prospect_ids]));
  t.match(warned, {
    ...{ consent_required: [good.id], in_another_campaign: [same.id], template_error: [nameless.id] },
    ...{ no_address: [none.id], risky_address: [risky.id], unsubscribe_headers_unsigned: [] },
  });
  t.match(found, { prospects: 5, reachable: 2, rendered: 5, partial: false, emails: 2, days: 1 });
  t.equal(found.warnings.find((one: Json) => one.code === 'template_error').field, 'steps.0.body_text');
  const refused = await caller.request('POST', `${path}/launch`);
  t.match(refused, {
    status: 409,
    body: { error: { code: 'preflight_failed', message: /no_postal_address: .*privacy/ } },
  });
  t.match(await caller.get(path), { state: 'draft' });
});

t.test(
  'launches, gives each sequence an address, an inbox and a time, and fails those that cannot be sent',
  async (t) => {
    const opened = await open({ inboxes: 2 });
    const { caller } = opened;
    const campaign = await draft(opened, { schedule: closed });
    const path = `${v1}/campaigns/${campaign.id}`;
    const good = await addMany(opened, 4);
    const none = await add(opened);
    await enrol(opened, campaign, [...good, none]);
    t.match(await caller.post(`${path}/launch`), { state: 'sending', launched_at: /Z$/ });
    const later = await addMany(opened, 1);
    await enrol(opened, campaign, later);
    const scheduled = async () => (await sequencesOf(campaign)).filter((one) => one.due_at !== null);
    await eventually(async () => (await scheduled()).length === 5, 'the sequences to be scheduled');
    const sequences = await scheduled();
    t.ok(sequences.every((one) => one.is_own_address && one.company_hmac !== null));
    t.same([...new Set(sequences.map((one) => one.inbox_id))].sort(), opened.inbox_ids.toSorted());
    for (const { due_at } of sequences) t.same(new Date(due_at), opening);
    const events = await told(opened, 2);
    t.same(typesOf(events), ['campaign.launched', 'campaign.send_failed']);
    t.match(events[1]?.[1], {
      reason: 'no_address',
      prospect_id: none.id,
      campaign_id: campaign.id,
      sequence_id: /^fsq_/,
    });
    t.match(await caller.request('PATCH', path, { name: 'x' }), { status: 409 });
    t.match(await caller.request('DELETE', path), {
      ...{ status: 409, body: { error: { message: /Only a draft can be deleted/ } } },
    });
    const rival = await draft(opened);
    await enrol(opened, rival, [good[0] as Json, ...(await addMany(opened, 1))]);
    await caller.post(`${v1}/campaigns/${rival.id}/launch`);
    const [, , , failed] = await told(opened, 4);
    t.match(failed, ['campaign.send_failed', { reason: 'in_another_campaign', prospect_id: good[0]?.id }]);
  },
);

t.test('starts later by a tick, or becomes a draft again that says why', async (t) => {
  const opened = await open();
  const { caller, brand_id } = opened;
  const start_at = new Date(Date.now() + 3_600_000).toISOString();
  const schedule = async () => {
    const campaign = await draft(opened);
    await enrol(opened, campaign, await addMany(opened, 1));
    const path = `${v1}/campaigns/${campaign.id}`;
    t.match(await caller.post(`${path}/launch`, { start_at }), { state: 'scheduled', start_at, launched_at: null });
    await rail.query(sql`update recruitment.campaign set start_at = now() where id = ${campaign.id}`);
    return path;
  };
  const good = await schedule();
  const states = async (path: string) => (await caller.get(path)).state;
  await rail.tick('recruitment/sweep_campaigns', new Date(Date.now() + 60_000).toISOString());
  await eventually(async () => (await states(good)) === 'sending', 'the campaign to start');
  const bad = await schedule();
  await caller.patch(`${v1}/brands/${brand_id}`, { postal_address: null });
  await rail.tick('recruitment/sweep_campaigns', new Date(Date.now() + 120_000).toISOString());
  await eventually(async () => (await states(bad)) === 'draft', 'the campaign to be a draft');
  t.match(await caller.get(bad), { launch_error: /^no_postal_address: / });
  t.same(typesOf(await told(opened, 1)), ['campaign.launched']);
});

t.test('pauses and resumes by a set of causes, and stops and finishes', async (t) => {
  const opened = await open();
  const { caller } = opened;
  const { path, campaign } = await launched(opened, 2, { schedule: closed });
  t.match(await caller.post(`${path}/pause`), { state: 'paused', pause_causes: ['user'], pause_reason: null });
  const inbox = `${v1}/inboxes/${opened.inbox_ids[0]}`;
  await caller.post(`${inbox}/disconnect`);
  t.match(await caller.get(path), { pause_causes: ['user', 'inbox'], pause_reason: 'no_inbox' });
  t.match(await caller.post(`${path}/resume`), { state: 'paused', pause_causes: ['inbox'] });
  t.match(await caller.request('POST', `${path}/resume`), { status: 409 });
  t.match(await caller.patch(path, { steps: [...campaign.steps, follow_up] }), { steps: { length: 2 } });
  t.same(
    (await sequencesOf(campaign)).map((one) => one.due_at),
    [null, null],
  );
  await caller.post(`${inbox}/reconnect`);
  t.match(await caller.get(path), { state: 'sending', pause_causes: [] });
  await eventually(async () => (await sequencesOf(campaign)).every((one) => one.due_at !== null), 'new times');
  t.match(await caller.post(`${path}/stop`), { state: 'stopped', stopped_at: /Z$/ });
  t.match(await caller.post(`${path}/stop`), { state: 'stopped' });
  t.match(await caller.request('POST', `${path}/resume`), { status: 409 });
  t.match(await caller.get(`${path}?include[]=stats`), { stats: { stopped: 2, waiting: 0 } });
  const other = await launched(opened, 1, { schedule: closed });
  await caller.post(`${v1}/prospects/${other.added[0]?.id}/hide`, { reason: 'other' });
  await rail.tick('recruitment/sweep_campaigns', new Date(Date.now() + 180_000).toISOString());
  const events = await told(opened, 8);
  t.same(typesOf(events), [
    ...['campaign.launched', 'campaign.paused', 'inbox.disconnected', 'inbox.connected', 'campaign.resumed'],
    ...['campaign.stopped', 'campaign.launched', 'campaign.finished'],
  ]);
  t.match(events[1]?.[1], { reason: null, fix: null, sent: null, bounced: null });
  t.match(await caller.get(other.path), { state: 'finished', finished_at: /Z$/ });
});

t.test('prospects who are added one by one are shared among inboxes that are full for a month', async (t) => {
  const opened = await open({ inboxes: 2 });
  for (const id of opened.inbox_ids) await opened.caller.patch(`${v1}/inboxes/${id}`, { daily_limit: 1 });
  const { campaign } = await launched(opened, 62, { schedule: closed });
  for (let nth = 0; nth < 20; nth++) {
    await enrol(opened, campaign, await addMany(opened, 1));
    await eventually(
      async () => (await sequencesOf(campaign)).every((one) => one.due_at !== null),
      'it to be scheduled',
    );
  }
  const sequences = await sequencesOf(campaign);
  for (const id of opened.inbox_ids) t.ok(sequences.filter(({ inbox_id }) => inbox_id === id).length > 31);
});

t.test('takes the times of many sequences by a job, and sends none of them before', async (t) => {
  const opened = await open({ inboxes: 2 });
  const { caller, inbox_ids } = opened;
  const { path, campaign, added } = await launched(opened, 1, { schedule: closed, inbox_ids: [inbox_ids[0]] });
  const many = 700;
  await rail.query(sql`
    with prospect as (
      insert into recruitment.prospect (organization_id, id, brand_id, channel, key, source, email_status)
      select p.organization_id, 'fdi_' || core.id_time_part(now()) || 'e00g' || lpad(n::text, 12, '0'), p.brand_id, 'youtube', 'channel' || n, 'manual', 'found'
      from generate_series(1, ${many - 1}) as n, recruitment.prospect p
      where p.id = ${added[0]?.id}
      returning organization_id, id
    ), address as (
      insert into recruitment.email_address (organization_id, id, prospect_id, address, address_hmac, domain_hmac, source, verification, found_at)
      select p.organization_id, replace(p.id, 'fdi', 'fea'), p.id, a.address, sha256(p.id::bytea), a.domain_hmac, 'manual', 'webmail', now()
      from prospect p
      join recruitment.email_address a on a.organization_id = p.organization_id and a.prospect_id = ${added[0]?.id}
      returning organization_id, id, prospect_id, address_hmac, domain_hmac
    )
    insert into recruitment.sequence (organization_id, id, campaign_id, brand_id, prospect_id, inbox_id, email_address_id, address_hmac, domain_hmac, due_at)
    select a.organization_id, replace(a.prospect_id, 'fdi', 'fsq'), s.campaign_id, s.brand_id, a.prospect_id, s.inbox_id, a.id, a.address_hmac,
      a.domain_hmac, now()
    from address a
    join recruitment.sequence s on s.organization_id = a.organization_id and s.campaign_id = ${campaign.id}`);
  await caller.post(`${path}/pause`);
  await caller.patch(path, { inbox_ids: [inbox_ids[1]] });
  const parts = async () =>
    (
      await rail.query(sql`
        select count(*)::integer as count from recruitment.sequence
        where campaign_id = ${campaign.id} and due_at is null and inbox_id is null group by updated_at order by updated_at`)
    ).map(({ count }) => count);
  await eventually(async () => (await parts()).length === 2, 'the job to end', 60_000);
  t.same(await parts(), [500, 200]);
  t.match(await caller.post(`${path}/resume`), { state: 'sending' });
  const scheduled = () =>
    rail.query(sql`
      select inbox_id, count(*)::integer as count, bool_and(due_at >= ${opening}::timestamptz) as is_later
      from recruitment.sequence where campaign_id = ${campaign.id} group by inbox_id`);
  await eventually(async () => (await scheduled())[0]?.inbox_id === inbox_ids[1], 'new times');
  await eventually(async () => (await scheduled()).length === 1, 'new times of all');
  t.same(await scheduled(), [{ inbox_id: inbox_ids[1], count: many, is_later: true }]);

  // Resumed before the job has come: what it has left has the times of before, and nothing is sent by them.
  await rail.query(sql`update recruitment.sequence set due_at = now() where campaign_id = ${campaign.id}`);
  await caller.post(`${path}/pause`);
  await caller.patch(path, { schedule: always, inbox_ids: [inbox_ids[0]], reply_wait_days: 9 });
  await caller.patch(path, { schedule: closed });
  await caller.post(`${path}/resume`);
  await rail.tick('recruitment/send_due', new Date().toISOString());
  await eventually(async () => (await scheduled()).every((one) => one.inbox_id === inbox_ids[0]), 'new times again');
  t.same(await scheduled(), [{ inbox_id: inbox_ids[0], count: many, is_later: true }]);
  t.same(await rail.query(sql`select id from recruitment.message where campaign_id = ${campaign.id}`), []);
});

t.test('waits for an inbox where it is resumed without one, and forgets a time that it did not wait for', async (t) => {
  const opened = await open();
  const { caller, inbox_ids } = opened;
  const campaign = await draft(opened);
  const path = `${v1}/campaigns/${campaign.id}`;
  await enrol(opened, campaign, await addMany(opened, 1));
  await caller.post(`${path}/launch`, { start_at: new Date(Date.now() + 3_600_000).toISOString() });
  t.match(await caller.post(`${path}/launch`), { state: 'sending', start_at: null });
  await caller.post(`${path}/pause`);
  await caller.patch(path, { inbox_ids: [] });
  t.match(await caller.post(`${path}/resume`), { state: 'paused', pause_causes: ['inbox'], pause_reason: 'no_inbox' });
  t.match(await caller.request('POST', `${path}/resume`), { status: 409 });
  await caller.patch(path, { inbox_ids });
  t.match(await caller.post(`${path}/resume`), { state: 'sending', pause_causes: [], pause_reason: null });
  t.same(typesOf(await told(opened, 3)), ['campaign.launched', 'campaign.paused', 'campaign.resumed']);
});

t.test('sends what is due as soon as it is resumed, by the limits that were changed meanwhile', async (t) => {
  const opened = await open();
  const { caller, inbox_ids } = opened;
  const { path, campaign } = await launched(opened, 1, { schedule: closed });
  const isDue = () =>
    rail.query(
      sql`update recruitment.sequence s set due_at = now(), inbox_id = ${inbox_ids[0]} where s.campaign_id = ${campaign.id}`,
    );
  await caller.post(`${path}/pause`);
  await caller.patch(path, { name: 'Shops' });
  t.not((await sequencesOf(campaign))[0]?.due_at, null, 'a name moves nothing');
  for (const limit of [{ max_per_domain_day: 2 }, { daily_new_limit: 2 }]) {
    await isDue();
    await caller.patch(path, limit);
    t.equal((await sequencesOf(campaign))[0]?.due_at, null, 'a limit that is changed gives new times');
  }
  await rail.query(
    sql`update recruitment.campaign c set schedule = ${JSON.stringify(always)}::jsonb where c.id = ${campaign.id}`,
  );
  await isDue();
  await caller.post(`${path}/resume`);
  await eventually(async () => (await sequencesOf(campaign))[0]?.state === 'active', 'the email to be sent');
});

t.test('sends a test to a team member, by the way that every email goes', async (t) => {
  const opened = await open();
  const { caller } = opened;
  const campaign = await draft(opened, { steps: [step, follow_up] });
  const path = `${v1}/campaigns/${campaign.id}`;
  const [member] = (await caller.get(`${v1}/team`)).data;
  const queued = await caller.post(`${path}/test`, { member_id: member.id });
  t.match(queued, {
    object: 'message',
    purpose: 'test',
    state: 'planned',
    subject: 'Hello The Baking Blog',
    prospect_id: null,
  });
  const isSent = async () => (await caller.get(`${v1}/messages/${queued.id}`)).state === 'sent';
  await eventually(isSent, 'the test to be sent');
  t.match(await caller.post(`${path}/test`, { email: member.email, step_index: 1 }), {
    subject: 'Re: Hello The Baking Blog',
  });
  t.match((await caller.get(`${path}/stats`)).steps, [{ sent: 0 }, { sent: 0 }]);
  for (const [body, status] of [
    [{ email: 'ada@elsewhere.com' }, 400],
    [{}, 400],
    [{ member_id: 'tm_unknown' }, 404],
    [{ member_id: member.id, prospect_id: 'fdi_unknown' }, 404],
    [{ member_id: member.id, step_index: 2 }, 400],
  ] as const)
    t.equal((await caller.request('POST', `${path}/test`, body)).status, status);
});

t.test(
  'writes to nobody from two campaigns that are launched at once, and finishes none that prospects are added to',
  async (t) => {
    const opened = await open();
    const { caller } = opened;
    const [one, other] = await Promise.all([draft(opened, { schedule: closed }), draft(opened, { schedule: closed })]);
    const added = await addMany(opened, 12);
    await Promise.all([enrol(opened, one, added), enrol(opened, other, added)]);
    await Promise.all([one, other].map(({ id }) => caller.post(`${v1}/campaigns/${id}/launch`)));
    const all = async () => [...(await sequencesOf(one)), ...(await sequencesOf(other))];
    await eventually(
      async () => (await all()).every((each) => each.due_at !== null || each.ended_at !== null),
      'a turn for each',
    );
    const sequences = await all();
    t.equal(sequences.filter(({ open }) => open).length, 12);
    t.same(
      [...new Set(sequences.filter(({ open }) => !open).map((each) => each.failed_reason))],
      ['in_another_campaign'],
    );
    const survivor = sequences.some(({ open, campaign_id }) => open && campaign_id === one.id) ? one : other;
    const open_ids = sequences
      .filter((each) => each.open && each.campaign_id === survivor.id)
      .map((each) => each.prospect_id);
    const late = await addMany(opened, 1);
    await Promise.all([
      enrol(opened, survivor, late).catch(() => undefined),
      ...open_ids.map((id) => caller.post(`${v1}/prospects/${id}/hide`, { reason: 'other' })),
      rail.tick('recruitment/sweep_campaigns', new Date(Date.now() + 240_000).toISOString()),
    ]);
    const { state } = await caller.get(`${v1}/campaigns/${survivor.id}`);
    const is_left = (await sequencesOf(survivor)).some(({ open }) => open);
    t.notOk(state === 'finished' && is_left);
  },
);

t.test('stops the campaigns of a brand that is deleted, drafts too', async (t) => {
  const opened = await open();
  const { caller, brand_id } = opened;
  const { path, campaign } = await launched(opened, 1, { schedule: closed });
  const other = await draft(opened);
  await caller.delete(`${v1}/brands/${brand_id}`);
  t.match(await caller.get(path), { state: 'stopped' });
  t.match(await sequencesOf(campaign), [{ state: 'stopped' }]);
  t.match(await caller.request('POST', `${path}/launch`), { status: 409 });
  const events = await told(opened, 3);
  t.same(
    events.slice(1).map(([type, { campaign_id }]) => [type, campaign_id]),
    [campaign.id, other.id].map((id) => ['campaign.stopped', id]),
  );
});

t.test('stops many campaigns of a brand by a job', async (t) => {
  const opened = await open();
  const { caller, brand_id } = opened;
  const { campaign } = await launched(opened, 1, { schedule: closed });
  const many = 600;
  await rail.query(sql`
    insert into recruitment.campaign (organization_id, id, brand_id, name, inbox_ids, schedule, max_per_domain_day, bounce_pause_bps, reply_wait_days,
      allow_risky, stop_for_company)
    select c.organization_id, 'fca_' || core.id_time_part(now()) || 'e00g' || lpad(n::text, 12, '0'), c.brand_id, 'Draft ' || n, c.inbox_ids, c.schedule,
      c.max_per_domain_day, c.bounce_pause_bps, c.reply_wait_days, c.allow_risky, c.stop_for_company
    from recruitment.campaign c, generate_series(1, ${many - 1}) as n
    where c.id = ${campaign.id}`);
  await caller.delete(`${v1}/brands/${brand_id}`);
  const parts = async () =>
    (
      await rail.query(sql`
        select count(*)::integer as count from recruitment.campaign
        where brand_id = ${brand_id} and state = 'stopped' group by stopped_at order by stopped_at`)
    ).map(({ count }) => count);
  await eventually(async () => (await parts()).length === 2, 'the job to end', 60_000);
  t.same(await parts(), [500, 100]);
  t.match(await sequencesOf(campaign), [{ state: 'stopped' }]);
  t.same(
    await rail.query(sql`
      select count(*)::integer as events, count(distinct body::jsonb #>> '{data,campaign_id}')::integer as campaigns
      from webhooks.event where organization_id = ${caller.organization_id} and type = 'campaign.stopped'`),
    [{ events: many, campaigns: many }],
  );
});
