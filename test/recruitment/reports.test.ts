import t from 'tap';
import { newId } from '../../src/core/values/id.ts';
import { awayFromMidnight, type Caller, eventually, type Json, sql, startRail } from '../harness.ts';

// Emails are rows that a test writes, which belong to no counter.
const rail = await startRail({ audit: false });
const v1 = '/recruitment/v1';

async function openBrand(caller: Caller) {
  const program = await caller.post('/v1/programs', {
    ...{ name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' },
  });
  const brand = await caller.post(`${v1}/brands`, {
    ...{ name: 'Acme', website_url: 'https://acme.example.com', program_id: program.id, scan_schedule: 'off' },
  });
  const add = (key: string) =>
    caller.post(`${v1}/prospects`, { brand_id: brand.id, channel: 'website', key, email: `hello@${key}` });
  const report = (query = '') => caller.get(`${v1}/reports?brand_id=${brand.id}${query}`);
  return { brand_id: brand.id as string, program_id: program.id as string, add, report };
}

/** A deal, once it is active. */
async function activate(
  caller: Caller,
  given: { prospect_id: string; program_id: string },
  upfront_fee_minor?: number,
) {
  const terms = { rate_type: 'percent', rate_value: 2_000, currency: 'USD', upfront_fee_minor };
  const deal = await caller.post(`${v1}/deals`, { ...given, terms });
  await caller.post(`${v1}/deals/${deal.id}/agree`, { agreed_by: 'prospect' });
  await caller.post(`${v1}/deals/${deal.id}/activate`);
  await eventually(async () => (await caller.get(`${v1}/deals/${deal.id}`)).status === 'active', 'the activation');
  return caller.get(`${v1}/deals/${deal.id}`);
}

t.test('counts the pipeline, and what partners from deals brought since their activation', async (t) => {
  await awayFromMidnight();
  const caller = await rail.organization();
  const { brand_id, program_id, add, report } = await openBrand(caller);
  const [ada, bob] = [await add('ada.com'), await add('bob.com')];
  await add('cy.com');
  const member = (await caller.get(`${v1}/team`)).data[0];
  await caller.post(`${v1}/prospects/${ada.id}/assign`, { member_id: member.id });
  for (const stage of ['lost', 'interested', 'lost']) await caller.post(`${v1}/prospects/${bob.id}/move`, { stage });
  const { partner_id } = await activate(caller, { prospect_id: ada.id, program_id }, 5_000);
  const sale = await caller.post('/v1/sales', {
    ...{ program_id, partner_id, amount_minor: 10_000, currency: 'USD', external_charge_id: newId('test') },
    customer: { email: 'buyer@customer.example.com' },
  });
  await caller.post(`/v1/sales/${sale.id}/refund`, { amount_minor: 2_500 });

  const pipeline = await report();
  t.match(pipeline, { object: 'recruitment_report', group_by: 'stage', timezone: 'UTC', currency: 'USD' });
  t.same(
    pipeline.rows.map(({ stage, prospects, reached }: Json) => [stage, prospects, reached]),
    [
      ['found', 1, 3],
      ['contacted', 0, 0],
      ['replied', 0, 0],
      ['interested', 0, 1],
      ['negotiating', 0, 1],
      ['agreed', 0, 1],
      ['active', 1, 1],
      ['lost', 1, 1],
    ],
  );
  const revenue = [{ currency: 'USD', revenue_minor: 7_500, commissions_minor: 6_500 }];
  t.match(pipeline.totals, {
    added: 3,
    lost: 1,
    active: 1,
    activated: 1,
    credits_spent: 0,
    millicredits_per_active: 0,
    revenue,
  });

  const by_member = await report('&group_by=member');
  t.match(by_member.rows, [
    { member_id: member.id, active: 1, added: 1, revenue },
    { member_id: null, added: 2, lost: 1, revenue: [] },
  ]);
  t.match((await report(`&member_id=${member.id}`)).totals, { added: 1, lost: 0, active: 1, revenue });
  const today = new Date().toISOString().slice(0, 10);
  t.match((await report('&group_by=day')).rows, [{ period: today, added: 3, revenue }]);
  t.match((await report('&group_by=month')).rows, [{ period: today.slice(0, 7), lost: 1 }]);
  await caller.post('/v1/sales', {
    ...{ program_id, partner_id, amount_minor: 300, currency: 'USD', external_charge_id: newId('test') },
    occurred_at: new Date(Date.now() + 3_600_000).toISOString(),
  });
  const later = `&from=${new Date(Date.now() + 60_000).toISOString()}&to=2100-01-01T00:00:00Z`;
  const alone = [{ added: 0, sent: 0, revenue: [{ currency: 'USD', revenue_minor: 300, commissions_minor: 60 }] }];
  t.match((await report(`&group_by=week${later}`)).rows, alone, 'a period of revenue alone has a row');
  t.match((await report(`&group_by=member${later}`)).rows, [{ member_id: member.id, ...alone[0] }]);
  const by_week = await fetch(`${rail.address}${v1}/reports?brand_id=${brand_id}&group_by=week&format=csv${later}`, {
    headers: { authorization: `Bearer ${caller.key}` },
  });
  t.match(await by_week.text(), /provider_minor,revenue\r?\n.*""revenue_minor"":300/);
  t.match(await report('&to=2020-01-01T00:00:00Z'), {
    totals: { added: 0, millicredits_per_active: null, revenue: [] },
  });
});

t.test('a partner of two prospects counts once, for the member of the first, and sums stay exact', async (t) => {
  const caller = await rail.organization();
  const { program_id, add, report } = await openBrand(caller);
  const first = (await caller.get(`${v1}/team`)).data[0];
  const second = await caller.post(`${v1}/team`, { name: 'Bob', email: 'bob@acme.example.com', role: 'member' });
  for (const [key, member, upfront_fee_minor] of [
    ['person.com', first, Number.MAX_SAFE_INTEGER],
    ['person.org', second, 700],
  ] as const) {
    const prospect = await add(key);
    if (key === 'person.org') await caller.post(`${v1}/prospects/${prospect.id}/emails`, { email: 'hello@person.com' });
    await caller.post(`${v1}/prospects/${prospect.id}/assign`, { member_id: member.id });
    await activate(caller, { prospect_id: prospect.id, program_id }, upfront_fee_minor);
  }
  const revenue = [{ currency: 'USD', revenue_minor: 0, commissions_minor: Number.MAX_SAFE_INTEGER }];
  t.same((await report()).totals.revenue, revenue);
  t.same((await report(`&member_id=${first.id}`)).totals.revenue, revenue);
  t.same((await report(`&member_id=${second.id}`)).totals.revenue, []);
});

t.test('counts nothing of what a partner sold before the activation, refunds included', async (t) => {
  const caller = await rail.organization();
  const { program_id, add, report } = await openBrand(caller);
  const ada = await add('ada.com');
  const { id: partner_id } = await caller.post('/v1/partners', { program_id, email: 'hello@ada.com' });
  const sale = await caller.post('/v1/sales', {
    ...{ program_id, partner_id, amount_minor: 10_000, currency: 'USD', external_charge_id: newId('test') },
    customer: { email: 'buyer@customer.example.com' },
  });
  t.equal((await activate(caller, { prospect_id: ada.id, program_id })).partner_id, partner_id);
  await caller.post(`/v1/sales/${sale.id}/refund`, { amount_minor: 2_500 });
  t.same((await report()).totals.revenue, []);
});

t.test('counts emails and replies by campaign, inbox, step and text', async (t) => {
  const caller = await rail.organization();
  const { brand_id, add, report } = await openBrand(caller);
  const { inbox_id, campaign_id } = await insertCampaign(caller.organization_id, brand_id);
  const emails: [day: number, step: number, variant: number, outcome: string, reply: string | null][] = [
    [1, 0, 0, 'sent', 'positive'],
    [1, 0, 1, 'sent', null],
    [2, 0, 1, 'bounced', null],
    [3, 1, 0, 'sent', 'angry'],
    [3, 1, 0, 'unknown', null],
  ];
  for (const [nth, [day, step, variant, outcome, reply]] of emails.entries()) {
    const { id: prospect_id } = await add(`blog${nth}.com`);
    await caller.post(`${v1}/prospects/${prospect_id}/move`, { stage: 'contacted' });
    await insertEmail(
      { organization_id: caller.organization_id, brand_id, campaign_id, inbox_id, prospect_id },
      {
        ...{ at: `2026-03-0${day}T12:00:00Z`, step, variant, outcome, reply },
      },
    );
  }
  const window = '&from=2026-03-01T00:00:00Z&to=2026-03-08T00:00:00Z';
  t.match((await report(`&group_by=campaign${window}`)).rows, [
    { campaign_id, sent: 4, bounced: 1, failed: 0, replies: 2, reply_positive: 1, reply_angry: 1 },
  ]);
  t.match((await report(`&group_by=inbox${window}`)).rows, [{ inbox_id, sent: 4, replies: 2 }]);
  t.match((await report(`&group_by=step${window}`)).rows, [
    { campaign_id, step_index: 0, sent: 3, bounced: 1, replies: 1 },
    { campaign_id, step_index: 1, sent: 1, replies: 1 },
  ]);
  t.match((await report(`&group_by=variant${window}`)).rows, [
    { step_index: 0, variant: 0, sent: 1, reply_positive: 1 },
    { step_index: 0, variant: 1, sent: 2, bounced: 1, replies: 0 },
    { step_index: 1, variant: 0, sent: 1, reply_angry: 1 },
  ]);
  t.match(
    (await report(`&group_by=day&timezone=Pacific/Auckland${window}`)).rows.map(({ period, sent, replies }: Json) => [
      ...[period, sent, replies],
    ]),
    [
      ['2026-03-02', 2, 1],
      ['2026-03-03', 1, 0],
      ['2026-03-04', 1, 1],
    ],
  );
  const [, second] = (await caller.get(`${v1}/prospects?brand_id=${brand_id}&limit=100`)).data.reverse();
  await caller.post(`${v1}/prospects/${second.id}/move`, { stage: 'agreed' });
  t.match(
    (await report('&group_by=variant&from=2026-03-01T00:00:00Z')).rows.map(({ step_index, variant, agreed }: Json) => [
      ...[step_index, variant, agreed],
    ]),
    [
      [0, 0, 0],
      [0, 1, 1],
      [1, 0, 0],
    ],
    'what follows counts for the last email before it',
  );
  const funnel = (await report(`&campaign_id=${campaign_id}&from=2026-03-01T00:00:00Z`)).rows;
  t.match(
    funnel.find(({ stage }: Json) => stage === 'agreed'),
    { prospects: 1, reached: 1 },
  );
  t.match((await report(`&campaign_id=fca_other${window}`)).totals, { sent: 0, replies: 0 });
  const csv = await fetch(`${rail.address}${v1}/reports?brand_id=${brand_id}&group_by=campaign&format=csv${window}`, {
    headers: { authorization: `Bearer ${caller.key}` },
  });
  t.match(await csv.text(), `campaign_id,contacted,replied,interested`);
});

t.test('refuses what is no report', async (t) => {
  const caller = await rail.organization();
  const { brand_id } = await openBrand(caller);
  for (const [query, param] of [
    ['&group_by=color', 'group_by'],
    ['&from=2026-02-01T00:00:00Z&to=2026-01-01T00:00:00Z', 'to'],
    ['&group_by=day&from=2000-01-01T00:00:00Z', 'from'],
    ['&timezone=Mars', 'timezone'],
  ]) {
    const answer = await caller.request('GET', `${v1}/reports?brand_id=${brand_id}${query}`);
    t.match(answer, { status: 400, body: { error: { param } } }, String(query));
  }
  const stranger = await rail.organization();
  t.equal((await stranger.request('GET', `${v1}/reports?brand_id=${brand_id}`)).status, 404);
});

async function insertCampaign(organization_id: string, brand_id: string) {
  const [inbox_id, campaign_id] = [newId('fin'), newId('fca')];
  await rail.query(sql`
    insert into recruitment.inbox (
      organization_id, id, email, from_name, smtp, imap, secrets, daily_limit, min_gap_s, max_gap_s, timezone, connected_at
    )
    values (${organization_id}, ${inbox_id}, 'grace@acme.com', 'Grace', '{}', '{}', '', 40, 0, 0, 'UTC', now())`);
  await rail.query(sql`
    insert into recruitment.campaign (
      organization_id, id, brand_id, name, schedule, max_per_domain_day, bounce_pause_bps, reply_wait_days, allow_risky, stop_for_company
    )
    values (${organization_id}, ${campaign_id}, ${brand_id}, 'Spring', '{"timezone": "UTC", "days": [1], "from": "09:00", "to": "17:00"}', 3, 300, 5, false, true)`);
  return { inbox_id, campaign_id };
}

interface Email {
  at: string;
  step: number;
  variant: number;
  outcome: string;
  reply: string | null;
}

/** An email of a sequence of its own, and perhaps a reply to it, an hour later. */
async function insertEmail(of: Json, { at, step, variant, outcome, reply }: Email): Promise<void> {
  const { organization_id, brand_id, campaign_id, inbox_id, prospect_id } = of;
  const sequence_id = newId('fsq');
  await rail.query(sql`
    insert into recruitment.sequence (organization_id, id, campaign_id, brand_id, prospect_id, inbox_id, state, next_step, ended_at)
    values (
      ${organization_id}, ${sequence_id}, ${campaign_id}, ${brand_id}, ${prospect_id}, ${inbox_id}, 'stopped', ${step + 1}, now()
    )`);
  const sent_at = outcome === 'unknown' ? null : at;
  const bounced_at = outcome === 'bounced' ? at : null;
  await rail.query(sql`
    insert into recruitment.message (
      organization_id, id, brand_id, prospect_id, campaign_id, sequence_id, inbox_id, direction, purpose, state, step_index, variant,
      rfc_message_id, sent_at, bounced_at
    )
    values (
      ${organization_id}, ${newId('fms')}, ${brand_id}, ${prospect_id}, ${campaign_id}, ${sequence_id}, ${inbox_id}, 'outbound', 'sequence',
      ${outcome}, ${step}, ${variant}, ${newId('test')}, ${sent_at}, ${bounced_at}
    )`);
  if (reply === null) return;
  await rail.query(sql`
    insert into recruitment.message (
      organization_id, id, brand_id, prospect_id, campaign_id, sequence_id, inbox_id, direction, purpose, state, rfc_message_id, reply_kind,
      confidence, received_at
    )
    values (
      ${organization_id}, ${newId('fms')}, ${brand_id}, ${prospect_id}, ${campaign_id}, ${sequence_id}, ${inbox_id}, 'inbound', 'reply',
      'received', ${newId('test')}, ${reply}, 1, ${at}::timestamptz + interval '1 hour'
    )`);
}
