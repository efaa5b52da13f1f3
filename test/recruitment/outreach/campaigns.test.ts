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
