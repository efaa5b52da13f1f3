import t from 'tap';
import { transaction } from '../../../src/core/postgres/transaction.ts';
import { setPayoutMethod } from '../../../src/program/partners/payout_method.ts';
import { readTaxForm, submitTaxForm } from '../../../src/program/partners/tax_form.ts';
import { acceptTerms, openSteps } from '../../../src/program/partners/terms.ts';
import { type Question, questions } from '../../../src/program/programs/questions.ts';
import { type Json, type Rail, sql, startRail } from '../../harness.ts';
import { fresh, openShop, type Shop } from '../../shop.ts';
import { bank } from '../payouts/fixture.ts';

const rail = await startRail();
const address = () => `${fresh('applicant')}@example.com`;
const apply = ({ merchant, program_id }: Shop, fields: Json = {}) =>
  merchant.request('POST', '/v1/applications', { program_id, email: address(), ...fields });
const within = <Result>(shop: Shop, work: Parameters<typeof transaction<Result>>[2]): Promise<Result> =>
  transaction(rail.store, { organization_id: shop.merchant.organization_id, request_id: null }, work);

const asked: Question[] = [
  { key: 'audience', label: 'Who reads you?', kind: 'long_text', required: true, options: [] },
  { key: 'site', label: 'Your site', kind: 'url', required: false, options: [] },
  { key: 'channel', label: 'Where do you write?', kind: 'choice', required: false, options: ['Blog', 'Newsletter'] },
  { key: 'topics', label: 'About what?', kind: 'choices', required: false, options: ['Bread', 'Tea'] },
  { key: 'adult', label: 'You are of age', kind: 'checkbox', required: true, options: [] },
];

t.test('an application answers the questions of the program', async (t) => {
  const shop = await openShop(rail, { questions: asked });
  t.same(shop.program.questions, asked);
  const good = { audience: 'Bakers', adult: true };
  for (const [answers, param] of [
    [{}, 'answers.audience'],
    [{ ...good, audience: ' \n' }, 'answers.audience'],
    [{ ...good, audience: 3 }, 'answers.audience'],
    [{ ...good, adult: false }, 'answers.adult'],
    [{ ...good, adult: 'yes' }, 'answers.adult'],
    [{ ...good, site: 'javascript:alert(1)' }, 'answers.site'],
    [{ ...good, channel: 'Radio' }, 'answers.channel'],
    [{ ...good, topics: ['Bread', 'Coal'] }, 'answers.topics'],
    [{ ...good, topics: 'Bread' }, 'answers.topics'],
  ] as const) {
    const refused = await apply(shop, { answers });
    t.match(refused, { status: 400, body: { error: { param } } }, JSON.stringify(answers));
  }
  const answers = {
    ...good,
    site: 'https://tea.example.com',
    channel: 'Blog',
    topics: ['Tea'],
    unasked: { is: 'kept' },
  };
  t.match(await apply(shop, { answers }), { status: 201, body: { answers } });
  const none = await shop.merchant.patch(`/v1/programs/${shop.program_id}`, { questions: [] });
  t.same(none.questions, []);
  t.match(await apply(shop), { status: 201 });
});

t.test('questions that nobody could answer are refused, by the field', async (t) => {
  const shop = await openShop(rail);
  const [first] = asked as [Question];
  for (const [given, param] of [
    [[first, first], 'questions.1.key'],
    [[{ ...first, key: 'Audience' }], 'questions.0.key'],
    [[{ ...first, key: '__proto__' }], 'questions.0.key'],
    [[{ ...first, kind: 'choice' }], 'questions.0.options'],
    [[{ ...first, options: ['a'] }], 'questions.0.options'],
    [[{ ...first, kind: 'choice', options: ['a', 'a'] }], 'questions.0.options'],
    [[{ ...first, label: ' ' }], 'questions.0.label'],
    [[{ ...first, kind: 'file' }], 'questions.0.kind'],
  ] as const) {
    const refused = await shop.merchant.request('PATCH', `/v1/programs/${shop.program_id}`, { questions: given });
    t.match(refused, { status: 400, body: { error: { param } } }, param);
  }
  t.equal(questions.safeParse(asked).success, true);
});

t.test('new terms are a new version, which partners are asked for again', async (t) => {
  const terms_url = 'https://acme.example.com/terms';
  const shop = await openShop(rail, { terms_url, terms_version: 'May' });
  const program = `/v1/programs/${shop.program_id}`;
  t.match(await apply(shop, { terms_version: 'April' }), { status: 400, body: { error: { param: 'terms_version' } } });
  const { body: application } = await apply(shop, { terms_version: 'May', language_code: 'DE' });
  const partner = () => shop.merchant.get(`/v1/partners/${application.partner_id}`);
  t.match(await partner(), { terms_version: 'May', terms_accepted_at: String, language_code: 'de' });
  t.match(await shop.merchant.patch(program, { terms_url }), { terms_version: 'May' }, 'the same terms');
  const today = new Date().toISOString().slice(0, 10);
  const next = await shop.merchant.patch(program, { terms_url: `${terms_url}/2` });
  t.equal(next.terms_version, today);
  const third = await shop.merchant.patch(program, { terms_url: `${terms_url}/3` });
  t.equal(third.terms_version, `${today}-2`);
  const steps = () => within(shop, async (tx) => openSteps(tx, (await partner()) as never));
  t.same(await steps(), ['terms', 'payout_method']);
  await t.rejects(
    within(shop, (tx) => acceptTerms(tx, application.partner_id, 'May')),
    { code: 'invalid_parameter' },
  );
  await within(shop, (tx) => acceptTerms(tx, application.partner_id, `${today}-2`));
  t.match(await partner(), { terms_version: `${today}-2`, completed_onboarding: false });
  t.same(await steps(), ['payout_method']);
  t.match(await shop.merchant.patch(program, { terms_url: null }), { terms_url: null, terms_version: null });
});

t.test('a private group is joined by an invitation to it, of this address, in time', async (t) => {
  const shop = await openShop(rail);
  const other = await openShop(rail);
  const { program_id } = shop;
  const group = await shop.merchant.post('/v1/groups', { program_id, name: 'Inner circle', is_private: true });
  const group_id = group.id;
  const invite = (fields: Json = {}, id = group_id, of = shop) =>
    of.merchant.post(`/v1/groups/${id}/invitation`, fields);
  const invitation = await invite();
  t.match(invitation, { object: 'group_invitation', group_id, email: null, expires_at: String });
  t.equal(
    invitation.url,
    `${rail.services.base_url}/join/${shop.program.subdomain}/inner-circle?invitation=${invitation.token}`,
  );
  const email = address();
  const open = await shop.merchant.post('/v1/groups', { program_id, name: 'Open' });
  const elsewhere = await other.merchant.post('/v1/groups', { program_id: other.program_id, name: 'Elsewhere' });
  for (const group_invitation of [
    undefined,
    'forged',
    invitation.token.slice(0, -4),
    (await invite({}, open.id)).token,
    (await invite({}, elsewhere.id, other)).token,
    (await invite({ email: address() })).token,
    await expired(rail, shop, group_id),
  ]) {
    const refused = await apply(shop, { email, group_id, group_invitation });
    t.match(refused, { status: 400, body: { error: { param: 'group_invitation' } } });
  }
  t.match(await apply(shop, { email: address(), group_id, group_invitation: invitation.token }), {
    status: 201,
    body: { group_id },
  });
  const { token } = await invite({ email: email.toUpperCase() });
  t.match(await apply(shop, { email, group_id, group_invitation: token }), { status: 201, body: { group_id } });
  t.match(await apply(shop, { group_id: open.id }), { status: 201 });
  t.match(await shop.partner({ group_id }), { group_id }, 'the merchant adds whom they want');
  t.match(await other.merchant.request('POST', `/v1/groups/${group_id}/invitation`), { status: 404 });
});

async function expired({ services }: Rail, { merchant }: Shop, group_id: string): Promise<string> {
  const { organization_id } = merchant;
  const plain = JSON.stringify({ group_id, organization_id, email: null, expires_at: '2026-01-01T00:00:00.000Z' });
  return services.vault.encrypt(plain, 'group_invitation').toString('base64url');
}

t.test('a tax form is kept encrypted, and a key reads its status alone', async (t) => {
  const shop = await openShop(rail, { require_tax_forms: true });
  const { id } = await shop.partner();
  const content = Buffer.from('%PDF-1.7 the taxpayer is Ada').toString('base64');
  const file = { name: 'w9.pdf', media_type: 'application/pdf' as const, content };
  await t.rejects(
    within(shop, (tx) => readTaxForm(tx, rail.services, id)),
    { code: 'resource_not_found' },
  );
  await within(shop, (tx) => setPayoutMethod(tx, rail.services, id, bank as never, 'partner'));
  t.match(await shop.merchant.get(`/v1/partners/${id}`), { completed_onboarding: false });
  await within(shop, (tx) => submitTaxForm(tx, rail.services, id, file));
  t.match(await shop.merchant.get(`/v1/partners/${id}`), { completed_onboarding: true });
  const shown = await shop.merchant.get(`/v1/partners/${id}/tax_form`);
  t.match(shown, { status: 'submitted' });
  t.notMatch(JSON.stringify(shown), 'w9');
  t.match(await within(shop, (tx) => readTaxForm(tx, rail.services, id)), file);
  const [stored] = await rail.query<{ content: Buffer }>(
    sql`select content from program.tax_form where partner_id = ${id}`,
  );
  t.notOk(stored?.content.includes('w9.pdf'));
  t.notOk(stored?.content.includes(content));
  const other = await openShop(rail);
  await t.rejects(
    within(other, (tx) => readTaxForm(tx, rail.services, id)),
    { code: 'resource_not_found' },
  );
});
