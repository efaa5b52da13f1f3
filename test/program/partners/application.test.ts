import t from 'tap';
import { type Json, startRail } from '../../harness.ts';
import { fresh, openShop, types } from '../../shop.ts';

const rail = await startRail();
const shop = await openShop(rail);
const { merchant } = shop;
const program_id = shop.program.id;
const apply = (fields: Json = {}) =>
  merchant.post('/v1/applications', {
    program_id,
    email: `${fresh('applicant')}@example.com`,
    answers: { why: 'Readers.' },
    ...fields,
  });
const told = async () => (await shop.events()).map(({ type, data }) => ({ type, data }));

t.test('an application creates a pending partner, and its event has the answers', async (t) => {
  await shop.events();
  const application = await apply({ source: 'portal' });
  t.match(application, { status: 'pending', source: 'portal', answers: { why: 'Readers.' }, reviewed_at: null });
  const partner = await merchant.get(`/v1/partners/${application.partner_id}`);
  t.equal(partner.status, 'pending');
  const [created, submitted, ...rest] = await told();
  t.same(rest, []);
  t.match(created, { type: 'affiliate.created', data: { partner_id: partner.id, status: 'pending' } });
  t.same(submitted, {
    type: 'application.submitted',
    data: {
      application_id: application.id,
      partner_id: partner.id,
      email: partner.email,
      handle: partner.handle,
      answers: { why: 'Readers.' },
    },
  });
});

t.test('a partner created as pending has an application in the review queue', async (t) => {
  const partner = await shop.partner({ status: 'pending' });
  const queue = await shop.list('applications', `partner_id=${partner.id}&status=pending`);
  t.match(queue, [{ email: partner.email, partner_id: partner.id, group_id: partner.group_id }]);
});

t.test('approving emits application.approved, then affiliate.confirmed', async (t) => {
  const { id, partner_id } = await apply();
  await shop.events();
  const approved = await merchant.post(`/v1/applications/${id}/approve`, { reason: 'A good fit.' });
  t.match(approved, { status: 'approved', reviewed_at: String, reviewed_by_user_id: /^usr_/, rejection_reason: null });
  const { email, handle, group_id, status } = await merchant.get(`/v1/partners/${partner_id}`);
  t.equal(status, 'active');
  const reviewed_by = approved.reviewed_by_user_id;
  t.same(await told(), [
    {
      type: 'application.approved',
      data: { partner_id, application_id: id, email, handle, reviewed_by, reason: 'A good fit.' },
    },
    { type: 'affiliate.confirmed', data: { partner_id, email, handle, group_id } },
  ]);
});

t.test(
  'rejecting declines the partner with the exact reason; a blank one becomes the default of the program',
  async (t) => {
    for (const [reason, expected] of [
      ['  We work with\n  newsletters alone. ', '  We work with\n  newsletters alone. '],
      ['   ', shop.program.default_rejection_reason],
      [null, shop.program.default_rejection_reason],
      [undefined, shop.program.default_rejection_reason],
    ]) {
      const { id, partner_id } = await apply();
      await shop.events();
      const rejected = await merchant.post(`/v1/applications/${id}/reject`, { reason });
      t.match(rejected, { status: 'rejected', rejection_reason: expected });
      t.match(await merchant.get(`/v1/partners/${partner_id}`), { status: 'declined', decline_reason: expected });
      t.match(await told(), [
        { type: 'application.rejected', data: { application_id: id, partner_id, reason: expected } },
        { type: 'affiliate.updated', data: { partner_id, status: 'declined', reason: expected } },
      ]);
    }
    const blank = await merchant.request('PATCH', `/v1/programs/${program_id}`, { default_rejection_reason: ' \n ' });
    t.match(blank, { status: 400, body: { error: { param: 'default_rejection_reason' } } });
    const { id } = await apply();
    const long = await merchant.request('POST', `/v1/applications/${id}/reject`, { reason: 'x'.repeat(1_001) });
    t.match(long, { status: 400, body: { error: { param: 'reason' } } });
  },
);

t.test('withdrawing declines the partner with the reason withdrawn', async (t) => {
  const { id, partner_id } = await apply();
  t.match(await merchant.post(`/v1/applications/${id}/withdraw`), { status: 'withdrawn', reviewed_at: null });
  t.match(await merchant.get(`/v1/partners/${partner_id}`), { status: 'declined', decline_reason: 'withdrawn' });
});

t.test('a declined partner cannot be reinstated, and the refusal says what to do instead', async (t) => {
  const { id, partner_id, email } = await apply();
  await merchant.post(`/v1/applications/${id}/reject`);
  for (const status of ['active', 'suspended']) {
    t.match(await merchant.request('PATCH', `/v1/partners/${partner_id}`, { status }), {
      status: 409,
      body: { error: { code: 'invalid_state_transition', message: /Submit a new application/ } },
    });
  }
  await merchant.delete(`/v1/partners/${partner_id}`);
  t.match(await shop.partner({ email }), { status: 'active' });
});

t.test('a rejected or withdrawn applicant may apply again', async (t) => {
  for (const verb of ['reject', 'withdraw']) {
    const first = await apply({ first_name: 'Ada', company_name: 'Engines' });
    const before = await merchant.get(`/v1/partners/${first.partner_id}`);
    await merchant.post(`/v1/applications/${first.id}/${verb}`);
    await shop.events();
    const handle = `again-${verb}`;
    const again = await apply({
      email: first.email.toUpperCase(),
      first_name: 'Augusta',
      handle,
      answers: { why: 'Still readers.' },
      source: 'mail',
    });
    t.match(again, {
      status: 'pending',
      partner_id: first.partner_id,
      answers: { why: 'Still readers.' },
      source: 'mail',
    });
    t.not(again.id, first.id);
    t.match(await merchant.get(`/v1/partners/${first.partner_id}`), {
      status: 'pending',
      decline_reason: null,
      first_name: 'Augusta',
      company_name: 'Engines',
      group_id: before.group_id,
      email: first.email,
      handle,
    });
    const { partner_id, email } = first;
    t.same(await told(), [
      { type: 'affiliate.updated', data: { partner_id, status: 'pending', reason: null } },
      {
        type: 'application.submitted',
        data: { application_id: again.id, partner_id, email, handle, answers: { why: 'Still readers.' } },
      },
    ]);
    const repeated = await merchant.request('POST', '/v1/applications', { program_id, email });
    t.match(repeated, { status: 409, body: { error: { param: 'email' }, existing: { id: partner_id } } });
    t.match(await merchant.post(`/v1/applications/${again.id}/approve`), { status: 'approved' });
    t.match(await merchant.get(`/v1/applications/${first.id}`), { status: /rejected|withdrawn/ });
    const active = await merchant.request('POST', '/v1/applications', { program_id, email });
    t.match(active, { status: 409, body: { error: { param: 'email' }, existing: { id: partner_id } } });
  }

  await t.test('once, however many requests there are at a time', async (t) => {
    const { id, email } = await apply();
    await merchant.post(`/v1/applications/${id}/reject`);
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => merchant.request('POST', '/v1/applications', { program_id, email })),
    );
    t.equal(answers.filter(({ status }) => status === 201).length, 1);
    t.equal(answers.filter(({ status }) => status === 409).length, 19);
  });
});

t.test('a decided application cannot be decided again', async (t) => {
  const verbs = ['approve', 'reject', 'withdraw'];
  for (const first of verbs) {
    const { id } = await apply();
    await merchant.post(`/v1/applications/${id}/${first}`);
    await shop.events();
    for (const verb of verbs) {
      t.match(await merchant.request('POST', `/v1/applications/${id}/${verb}`), {
        status: 409,
        body: { error: { code: 'invalid_state_transition' } },
      });
    }
    t.same(types(await shop.events()), []);
  }
});
