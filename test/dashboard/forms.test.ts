/** Forms of the dashboard: money is typed as money, times in UTC, lists as rows, and lists are counted no further than a person reads. */
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import t from 'tap';
import type { Operation } from '../../src/core/resource/operation.ts';
import { decimalsIn, integersIn } from '../../src/dashboard/amounts.ts';
import { formFields } from '../../src/dashboard/operation_fields.ts';
import { sections } from '../../src/dashboard/settings.ts';
import { operations } from '../../src/operations.ts';
import { bodyOf, typedOf } from '../../src/pages/form.ts';
import { withoutBlankRows } from '../../src/pages/rows.ts';
import { type Json, sql, startRail } from '../harness.ts';
import type { Form, Page } from '../pages/browse.ts';
import { signedIn } from '../pages/people.ts';
import { openShop, type Shop } from '../shop.ts';

const rail = await startRail();
const shop = await openShop(rail);
const { merchant, program_id } = shop;
const owner = await signedIn(rail, merchant, 'owner', true);

/** Fills in the form of an operation. */
async function send(operation: string, address: Json, filled: Json) {
  const page = await owner.get(`/dashboard/do/${operation}?${new URLSearchParams(address)}`);
  const form = page.forms.find(({ action }) => action.endsWith(operation));
  return { page, form, sent: await owner.submit(form, filled) };
}

t.test('amounts are typed with the decimals of their currency', async (t) => {
  const partner: Json = await shop.partner();
  const customer: Json = await shop.referred(partner);
  for (const [currency, typed, amount_minor, shown] of [
    ['USD', '12.50', 1_250, '12.50'],
    ['USD', ' 7 ', 700, '7.00'],
    ['JPY', '1250', 1_250, '1250'],
    ['KWD', '1.25', 1_250, '1.250'],
    ['EUR', '90071992547409.91', Number.MAX_SAFE_INTEGER, '90071992547409.91'],
  ] as const) {
    const charge = `ch_${currency}_${amount_minor}`;
    const made = { customer_id: customer.id, currency, amount_minor: typed, external_charge_id: charge };
    const { sent } = await send('sales.create', { program_id }, made);
    t.equal(sent.status, 200, `${currency} ${typed} ${sent.text.slice(-300)}`);
    const [sale] = (await shop.list('sales', `external_charge_id=${charge}`)) as [Json];
    t.equal(sale.amount_minor, amount_minor, `${currency} ${typed}`);
    if (amount_minor === Number.MAX_SAFE_INTEGER) continue;
    const update = await owner.get(`/dashboard/do/sales.update?id=${sale.id}`);
    const form = update.forms.find(({ action }) => action.endsWith('sales.update'));
    t.equal(form?.fields.amount_minor, shown, 'as it stands in the form of an update');
    const refund = await send('sales.refund', { id: sale.id }, { amount_minor: shown });
    t.match(refund.page.text, new RegExp(`In ${currency}, such as`));
    t.equal((await merchant.get(`/v1/sales/${sale.id}`)).refunded_minor, amount_minor, 'a refund of all of it');
  }
});

t.test('a wrong amount is said beside its field, with what was typed', async (t) => {
  for (const [currency, typed, said] of [
    ['USD', '12,50', /amount in USD such as 12\.50/],
    ['USD', '12.505', /at most 2 digits/],
    ['JPY', '12.5', /no decimals/],
    ['USD', '1,000.00', /no other separators/],
    ['USD', '$12', /amount in USD/],
    ['USD', '1e3', /amount in USD/],
    ['USD', '0x10', /amount in USD/],
    ['USD', '99999999999999999', /amount in USD/],
  ] as const) {
    const { sent } = await send('sales.create', { program_id }, { currency, amount_minor: typed });
    t.equal(sent.status, 400, typed);
    t.match(sent.html, /id="field-amount_minor"[^>]* aria-invalid="true"/, typed);
    t.match(sent.text, said);
    const again = sent.forms.find(({ action }) => action.endsWith('sales.create'));
    t.match(again?.fields, { amount_minor: typed, currency });
  }
  t.equal((await shop.list('sales', 'external_charge_id=')).length, 0);
});

t.test('a rate is a percentage or an amount, and stays what it was where nothing changed', async (t) => {
  const yen = await openShop(rail, { currency: 'JPY' }, merchant);
  const made = async (own: Shop, name: string, rate_type: string, rate_value: string) => {
    const page = await send('rules.create', { program_id: own.program_id }, { name, rate_type, rate_value });
    return { ...page, rule: (await own.list('rules')).find((rule) => rule.name === name) as Json };
  };
  t.equal((await made(shop, 'Share', 'percent', '12.5')).rule.rate_value, 1_250);
  t.equal((await made(shop, 'Fixed', 'fixed', '12.5')).rule.rate_value, 1_250);
  const { rule } = await made(yen, 'Yen', 'percent', '20');
  t.equal(rule.rate_value, 2_000);
  // The same text is another number of another kind.
  const changed = await send('rules.update', { id: rule.id }, { rate_type: 'fixed' });
  t.match(changed.form?.fields, { rate_type: 'percent', rate_value: '20' });
  t.match(await merchant.get(`/v1/rules/${rule.id}`), { rate_type: 'fixed', rate_value: 20 });
  const renamed = await send('rules.update', { id: rule.id }, { name: 'Yen again' });
  t.equal(renamed.form?.fields.rate_value, '20');
  const { data } = await merchant.get(`/v1/audit_log?object_id=${rule.id}&operation=rules.update`);
  t.same(data[0].fields, ['name']);
});

t.test('a time is typed in UTC, and one that is not changed is not sent', async (t) => {
  const rule = await shop.rule({ name: 'Season', starts_at: '2026-01-31T10:30:15.250Z' });
  const { form } = await send('rules.update', { id: rule.id }, { name: 'High season' });
  t.equal(form?.fields.starts_at, '2026-01-31T10:30:15.250');
  const { sent } = await send('rules.update', { id: rule.id }, { ends_at: '2027-01-01T00:00' });
  t.equal(sent.status, 200, sent.text.slice(-400));
  t.match(await merchant.get(`/v1/rules/${rule.id}`), {
    name: 'High season',
    starts_at: '2026-01-31T10:30:15.250Z',
    ends_at: '2027-01-01T00:00:00.000Z',
  });
  const found = await owner.get(`/dashboard/rules?program_id=${program_id}&created_after=2999-01-01T00:00`);
  t.match(found.text, /Nothing matches these filters/);
});

t.test('questions are rows: added, corrected, removed, and kept in their order', async (t) => {
  const path = `/dashboard/do/programs.update?id=${program_id}&only=questions&back=/dashboard/settings`;
  const formAt = (page: Page) => page.forms.find(({ action }) => action.endsWith('programs.update'));
  const questions = async () => (await merchant.get(`/v1/programs/${program_id}`)).questions;
  const first = { key: 'site', label: 'Which "site" do you run?', kind: 'url' };
  const named = (nth: number, fields: Json) =>
    Object.fromEntries(Object.entries(fields).map(([name, value]) => [`questions.${nth}.${name}`, value]));

  const empty = await owner.get(path);
  t.notMatch(Object.keys(formAt(empty)?.fields ?? {}).join(), 'field-name', 'only what was asked for has a field');
  // Another row is asked for with what was typed so far, and nothing is saved.
  const more = await owner.submit(
    { ...(formAt(empty) as Form), ...{ fields: { ...formAt(empty)?.fields, more: 'questions' } } },
    named(0, first),
  );
  t.equal(more.status, 200);
  t.match(formAt(more)?.fields, { ...named(0, first), 'questions.1.key': '' });
  t.same(await questions(), []);
  const wrong = await owner.submit(formAt(more), named(1, { key: 'Size', label: 'How large?', kind: 'choice' }));
  t.equal(wrong.status, 400);
  t.match(wrong.html, /id="field-questions-1-key"[^>]* aria-invalid="true"/);
  t.match(formAt(wrong)?.fields, named(1, { key: 'Size', label: 'How large?' }));
  const saved = await owner.submit(formAt(wrong), named(1, { key: 'size', options: 'Small\nLarge' }));
  t.equal(saved.path.split('?')[0], '/dashboard/settings', saved.text.slice(-300));
  const both = [
    { ...first, required: false, options: [] },
    { key: 'size', label: 'How large?', kind: 'choice', required: false, options: ['Small', 'Large'] },
  ];
  t.same(await questions(), both);

  // A row without anything in it goes, wherever it stands; an error is beside the row that is meant.
  const cleared = named(0, { key: '', label: '', kind: '', required: '', options: '' });
  const added = named(2, { key: 'size', label: 'Again', kind: 'text' });
  const twice = await owner.submit(formAt(await owner.get(path)), { ...cleared, ...added });
  t.match(twice.html, /id="field-questions-1-key"[^>]* aria-invalid="true"/);
  t.match(formAt(twice)?.fields, { 'questions.0.key': 'size', 'questions.1.key': 'size', 'questions.2.key': '' });
  await owner.submit(formAt(twice), { 'questions.1.key': 'again' });
  t.same(
    (await questions()).map(({ key }: Json) => key),
    ['size', 'again'],
  );
  const { data } = await merchant.get(`/v1/audit_log?object_id=${program_id}&operation=programs.update`);
  t.same(data[0].fields, ['questions'], 'nothing else was sent');
  // Sent again without a change, no field is.
  await owner.submit(formAt(await owner.get(path)));
  const log = await merchant.get(`/v1/audit_log?object_id=${program_id}&operation=programs.update`);
  t.same(
    log.data.slice(0, log.data.length - data.length).flatMap(({ fields }: Json) => fields),
    [],
  );
});

t.test('tiers and maps have amounts in their own units', async (t) => {
  const rule = async (name: string) => (await shop.list('rules')).find((one) => one.name === name) as Json;
  const { sent } = await send(
    'rules.create',
    { program_id },
    {
      ...{ name: 'Tiers', rate_type: 'percent', rate_value: '10', tier_metric: 'revenue_minor' },
      ...{ 'tiers.0.from': '1000.50', 'tiers.0.rate_value': '12.5' },
    },
  );
  t.equal(sent.status, 200, sent.text.slice(-400));
  t.match(sent.text, /\$1,000\.50 12\.5%/, 'a table of them');
  const { id } = await rule('Tiers');
  t.same((await rule('Tiers')).tiers, [{ from: 100_050, rate_value: 1_250 }]);
  const form = await send('rules.update', { id }, { 'tiers.1.from': '2000', 'tiers.1.rate_value': '1x' });
  t.match(form.form?.fields, { 'tiers.0.from': '1000.50', 'tiers.0.rate_value': '12.5' });
  t.match(form.sent.html, /id="field-tiers-1-rate_value"[^>]* aria-invalid="true"/);
  const fixed = { rate_type: 'fixed', tier_metric: 'sales_count', 'tiers.0.from': '3', 'tiers.0.rate_value': '7.25' };
  await send('rules.update', { id }, fixed);
  t.match(await rule('Tiers'), { rate_type: 'fixed', rate_value: 1_000, tiers: [{ from: 3, rate_value: 725 }] });

  const map = (nth: number, key: string, value: string) => ({
    [`min_payouts.${nth}.key`]: key,
    [`min_payouts.${nth}.value`]: value,
  });
  const payouts = async () => (await merchant.get(`/v1/programs/${program_id}`)).min_payouts;
  const update = (filled: Json) => send('programs.update', { id: program_id }, filled);
  await update(map(0, 'JPY', '5000'));
  t.same(await payouts(), { JPY: 5_000 });
  await update(map(1, 'KWD', '1.25'));
  t.same(await payouts(), { JPY: 5_000, KWD: 1_250 });
  const shown = await update({ ...map(0, 'JPY', '5000.5') });
  t.match(shown.form?.fields, { ...map(0, 'JPY', '5000'), ...map(1, 'KWD', '1.250') });
  t.match(shown.sent.html, /id="field-min_payouts-0-value"[^>]* aria-invalid="true"/);
  t.match((await update(map(2, '', '7'))).sent.html, /id="field-min_payouts-2-key"[^>]* aria-invalid="true"/);
  t.match((await update(map(2, 'KWD', '7'))).sent.html, /id="field-min_payouts-2-key"[^>]* aria-invalid="true"/);
  t.match((await update(map(2, 'jpy', '7'))).sent.html, /id="field-min_payouts-error"/);
  t.equal((await update(map(0, 'JPY', ''))).sent.status, 200);
  t.same(await payouts(), { KWD: 1_250 }, 'a pair without a value goes');
  await update(map(0, '', ''));
  t.same(await payouts(), {});
});

t.test('records in bulk are rows, each with its outcome', async (t) => {
  const row = (nth: number, amount: string, currency: string) => ({
    [`records.${nth}.amount_minor`]: amount,
    [`records.${nth}.currency`]: currency,
    [`records.${nth}.external_charge_id`]: `ch_bulk_${nth}`,
  });
  const first = await send('sales.create_in_bulk', {}, row(0, '12.505', 'USD'));
  t.match(first.sent.html, /id="field-records-0-amount_minor"[^>]* aria-invalid="true"/);
  const form = first.sent.forms.find(({ action }) => action.endsWith('sales.create_in_bulk')) as Form;
  const filled = { ...form, fields: { ...form.fields, ...row(1, '700', 'JPY'), ...row(2, '7', '') } };
  const second = await owner.submit(filled, row(0, '12.50', 'USD'));
  t.match(second.html, /id="field-records-2-currency-error">“Currency” is required/);
  const again = second.forms.find(({ action }) => action.endsWith('sales.create_in_bulk')) as Form;
  const partner_id = 'part_00000000000000000000000000';
  const sent = await owner.submit(again, { ...row(2, '7', 'USD'), 'records.2.partner_id': partner_id });
  t.match(sent.text, /Recorded sale_….* Recorded sale_….* No partner with the id/);
  const recorded = async (nth: number) =>
    (await shop.list('sales', `external_charge_id=ch_bulk_${nth}`))[0]?.amount_minor;
  t.same([await recorded(0), await recorded(1), await recorded(2)], [1_250, 700, undefined]);
});

t.test('credentials and accounts have the fields of what they are of', async (t) => {
  const account = {
    mode: 'live',
    'credentials.name': 'Acme GmbH',
    'credentials.iban': 'DE89370400440532013001',
    'credentials.bic': 'COBADEFFXXX',
  };
  const wrong = await send('rails.put', { id: program_id, rail: 'bank_transfer' }, account);
  t.match(wrong.page.html, /The account that pays\./);
  t.match(wrong.sent.html, /id="field-credentials-iban"[^>]* aria-invalid="true"/);
  const form = wrong.sent.forms.find(({ action }) => action.endsWith('rails.put'));
  await owner.submit(form, { 'credentials.iban': 'DE89370400440532013000' });
  t.match((await merchant.get(`/v1/programs/${program_id}/rails`)).data, [
    { rail: 'bank_transfer', account: 'Acme GmbH' },
  ]);
  const empty = await send('rails.put', { id: program_id, rail: 'bank_transfer' }, { mode: 'live' });
  t.match(empty.sent.html, /id="field-credentials-name-error">.*IBAN/s, 'beside the field of the map');
  t.notMatch((await owner.get('/dashboard/do/programs.create')).text, /\bNull\b/, 'what is null is said to be empty');
  t.match(
    (await owner.get('/dashboard/do/rules.create')).text,
    /Groups The rule applies only/,
    'what is chosen by name',
  );
  const stripe = await owner.get(`/dashboard/do/processors.put?id=${program_id}&processor=stripe`);
  t.match(stripe.html, /name="credentials\.secret_key"/);
  const asked = await owner.get(`/dashboard/do/rails.put?id=${program_id}`);
  t.match(asked.html, /name="path:rail".*name="credentials\.0\.key"/s, 'pairs, until it is known what they are of');
  const partner: Json = await shop.partner();
  const paid = { method: 'paypal', 'details.email': 'ada@partner.example.com' };
  const { sent } = await send('partners.put_payout_method', { id: partner.id }, paid);
  t.equal(sent.status, 200, sent.text.slice(-300));
  t.match(await merchant.get(`/v1/partners/${partner.id}/payout_method`), { method: 'paypal' });
});

t.test('metadata keeps what it holds, whatever of it is changed', async (t) => {
  const metadata = {
    text: '12',
    number: 12,
    flag: true,
    none: null,
    deep: { a: [1, 'b'] },
    lines: 'one\ntwo',
    quote: '"',
  };
  const partner: Json = await shop.partner({ metadata });
  const { form } = await send(
    'partners.update',
    { id: partner.id },
    { 'metadata.7.key': 'more', 'metadata.7.value': 'yes' },
  );
  t.ok(Object.values(form?.fields ?? {}).includes('"12"'), 'a text that would be a number is quoted');
  t.same((await merchant.get(`/v1/partners/${partner.id}`)).metadata, { ...metadata, more: 'yes' });
});

t.test('settings have every setting once, and lead back when one is changed', async (t) => {
  const all = sections.flatMap(({ fields }) => fields);
  const known = formFields(operations.find(({ name }) => name === 'programs.update') as Operation);
  t.same(all.toSorted(), known.map(({ name }) => name).toSorted());
  const page = await owner.get(`/dashboard/settings?program_id=${program_id}`);
  t.match(page.text, /Brand .*Terms .*Applications .*Attribution .*Payouts .*Emails .*Team .*API keys/);
  t.ok(page.links.some((link) => link.endsWith(`/join/${shop.program.subdomain}`)));
  const change = page.links.find((link) => link.includes('only=terms_url')) as string;
  const form = (await owner.get(change)).forms.find(({ action }) => action.endsWith('programs.update'));
  const terms_url = 'https://acme.example.com/terms';
  const saved = await owner.submit(form, { terms_url, terms_version: '3' });
  t.match(saved.path, /^\/dashboard\/settings\?done=programs\.update/);
  t.match(await merchant.get(`/v1/programs/${program_id}`), { name: 'Acme', terms_url, terms_version: '3' });
  const viewer = await signedIn(rail, merchant, 'viewer');
  const seen = await viewer.get('/dashboard/settings');
  t.same(
    seen.links.filter((link) => link.startsWith('/dashboard/do/')),
    [],
  );
  for (const back of ['https://evil.example.com', '//evil.example.com', '/dashboard/../x'])
    t.notMatch(
      (await owner.get(`/dashboard/do/programs.update?${new URLSearchParams({ id: program_id, back })}`)).html,
      'evil',
    );
});

t.test('what is named in a field and is not there is said beside the field, and what was typed stays', async (t) => {
  const customer_id = 'cus_00000000000000000000000000';
  const { page, sent } = await send(
    'sales.create',
    {},
    { customer_id, amount_minor: '7', external_charge_id: 'ch_nobody' },
  );
  t.match(page.html, /<option value="prg_\w+" selected>Acme</, 'a program is chosen by its name');
  t.equal(sent.status, 404);
  t.match(sent.html, /id="field-customer_id"[^>]* aria-invalid="true"/);
  const again = sent.forms.find(({ action }) => action.endsWith('sales.create'));
  t.match(again?.fields, { customer_id, amount_minor: '7', currency: 'USD', program_id });
  const tag = await merchant.post('/v1/tags', { program_id, name: 'Gone' });
  const gone = await send('tags.delete', { id: tag.id }, {});
  t.equal(gone.sent.path, '/dashboard/tags?done=tags.delete');
});

t.test('records are chosen by their names, and people found by their addresses', async (t) => {
  const group = (name: string) => merchant.post('/v1/groups', { program_id, name });
  const [first, second] = [await group('Zebra'), await group('Antelope')];
  const partner: Json = await shop.partner({ email: 'found@partner.example.com' });
  const rule = await shop.rule({ name: 'Of groups', group_ids: [first.id, second.id] });
  const { page, form } = await send('rules.update', { id: rule.id }, { name: 'Of two groups' });
  t.match(page.text, /Groups .*Zebra .*Antelope/);
  t.equal(form?.fields.group_ids, `${first.id}\n${second.id}`);
  const { data } = await merchant.get(`/v1/audit_log?object_id=${rule.id}&operation=rules.update`);
  t.same(data[0].fields, ['name']);
  const chosen = await send('rules.update', { id: rule.id }, { group_ids: second.id });
  t.same((await merchant.get(`/v1/rules/${rule.id}`)).group_ids, [second.id]);
  const { group_ids, ...others } = (chosen.form as Form).fields;
  await owner.submit({ ...(chosen.form as Form), fields: { ...others, form_key: crypto.randomUUID() } });
  t.same((await merchant.get(`/v1/rules/${rule.id}`)).group_ids, [], 'no box is ticked');

  const bonus = { amount_minor: '5', note: 'Thanks' };
  await send('commissions.create', {}, { ...bonus, partner_id: 'Found@Partner.example.com' });
  t.match(await shop.list('commissions', `partner_id=${partner.id}`), [{ kind: 'bonus', amount_minor: 500 }]);
  const nobody = await send('commissions.create', {}, { ...bonus, partner_id: 'nobody@partner.example.com' });
  t.match(nobody.sent.html, /id="field-partner_id-error">Nobody has the email address/);
  const other = await openShop(rail);
  await other.partner({ email: 'elsewhere@partner.example.com' });
  const elsewhere = await send('commissions.create', {}, { ...bonus, partner_id: 'elsewhere@partner.example.com' });
  t.match(elsewhere.sent.html, /Nobody has the email address/);
  await Promise.all(Array.from({ length: 50 }, () => shop.partner()));
  t.match((await owner.get('/dashboard/do/commissions.create')).html, /<input id="field-partner_id"/);
});

t.test('an app that is being set up stays the same while its code is typed wrong', async (t) => {
  const person = await signedIn(rail, merchant, 'member');
  const form = ({ forms }: Page) => forms.find(({ action }) => action.endsWith('/account/app'));
  const key = ({ text }: Page) => /Key: ([A-Z2-7 ]+)/.exec(text)?.[1];
  const page = await person.get('/dashboard/account');
  const wrong = await person.submit(form(page), { code: '000000' });
  t.match(wrong.text, /code of the new app is not right/);
  t.ok(key(page));
  t.equal(key(wrong), key(page));
  t.not(key(await person.get('/dashboard/account')), key(page));
});

t.test('a form of 5,001 fields is refused', async (t) => {
  const fields = Object.fromEntries(Array.from({ length: 5_001 }, (_, nth) => [`tiers.${nth % 1_000}.x${nth}`, '1']));
  t.equal((await owner.post('/dashboard/do/rules.create', fields)).status, 413);
});

t.test('what a form shows of a record is the record, read back', async () => {
  const json = fc.jsonValue({ maxDepth: 2 }).map((value) => JSON.parse(JSON.stringify(value)));
  const text = fc.string({ minLength: 1 }).filter((one) => one.trim() === one && !one.includes('\r'));
  const key = text.filter((one) => one !== '__proto__');
  const bodies: Record<string, fc.Arbitrary<Json>> = {
    'programs.update': fc.record({
      questions: fc.array(
        fc.record({
          key: text,
          label: text,
          kind: fc.constantFrom('text', 'choices'),
          required: fc.boolean(),
          options: fc.array(text, { minLength: 1 }),
        }),
        { minLength: 1, maxLength: 12 },
      ),
      payout_limits: fc.dictionary(fc.constantFrom('USD', 'JPY', 'KWD', 'EUR'), fc.nat(), { minKeys: 1 }),
    }),
    'campaigns.update': fc.record({
      steps: fc.array(
        fc.record({
          id: text,
          subject: text,
          body_text: text,
          delay_days: fc.nat(),
          variants: fc.array(fc.record({ subject: text, body_text: text }), { minLength: 1, maxLength: 3 }),
        }),
        { minLength: 1, maxLength: 3 },
      ),
      schedule: fc.record({ days: fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1 }) }),
    }),
    'links.update': fc.record({
      rate_override: fc.record({ rate_type: fc.constantFrom('percent', 'fixed'), rate_value: fc.nat() }),
    }),
    'partners.update': fc.record({ metadata: fc.dictionary(key, json, { minKeys: 1 }) }),
  };
  for (const [name, made] of Object.entries(bodies)) {
    const fields = formFields(operations.find((one) => one.name === name) as Operation);
    fc.assert(
      fc.property(made, (body) => {
        const integers = typedOf(fields, body);
        const typed = decimalsIn(fields, integers, 'USD');
        const sent = withoutBlankRows(
          fields,
          Object.fromEntries(new URLSearchParams(new URLSearchParams(typed).toString())),
        );
        const read = JSON.parse(JSON.stringify(bodyOf(fields, integersIn(fields, sent, 'USD'))));
        return isDeepStrictEqual(read, JSON.parse(JSON.stringify(body)));
      }),
      { numRuns: 50 },
    );
  }
});

t.test('a list is counted so far, and exactly by the API', async (t) => {
  await rail.query(sql`
    insert into program.risk_flag (organization_id, id, program_id, kind, severity, evidence, status, note, created_at, updated_at)
    select ${merchant.organization_id}, 'rsk_' || lpad(n::text, 26, '0'), ${program_id}, 'dispute', 'low', '{}', 'dismissed', 'No', now(), now()
    from generate_series(1, 1001) n`);
  const page = await owner.get(`/dashboard/risk_flags?program_id=${program_id}&status=dismissed`);
  t.match(page.text, /1,000\+ in all/);
  t.equal((await merchant.get(`/v1/risk_flags?program_id=${program_id}&status=dismissed`)).total_count, 1_001);
});
