/** Forms of the dashboard: money is typed as money, times in UTC, and lists are counted no further than a person reads. */
import t from 'tap';
import { type Json, sql, startRail } from '../harness.ts';
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

t.test('a list is counted so far, and exactly by the API', async (t) => {
  await rail.query(sql`
    insert into program.risk_flag (organization_id, id, program_id, kind, severity, evidence, status, note, created_at, updated_at)
    select ${merchant.organization_id}, 'rsk_' || lpad(n::text, 26, '0'), ${program_id}, 'dispute', 'low', '{}', 'dismissed', 'No', now(), now()
    from generate_series(1, 1001) n`);
  const page = await owner.get(`/dashboard/risk_flags?program_id=${program_id}&status=dismissed`);
  t.match(page.text, /1,000\+ in all/);
  t.equal((await merchant.get(`/v1/risk_flags?program_id=${program_id}&status=dismissed`)).total_count, 1_001);
});
