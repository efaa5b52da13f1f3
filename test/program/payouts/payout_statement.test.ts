import t from 'tap';
import { type Caller, eventually, type Json, sql, startRail } from '../../harness.ts';
import { openShop } from '../../shop.ts';
import { batchOf, bonus, payee } from './fixture.ts';
import { readPdf } from './statement/pdf_reader.ts';

const rail = await startRail();

/** The statement, once it has its number. */
async function numbered({ get, request }: Caller, payout: Json): Promise<Json> {
  const path = `/v1/payouts/${payout.id}/statement`;
  await eventually(async () => (await request('GET', path)).status === 200, 'the statement to have a number');
  return get(path);
}

const bytesOf = async ({ key }: Caller, path: string, accept = '*/*') => {
  const response = await fetch(new URL(path, rail.address), {
    headers: { Authorization: `Bearer ${key}`, Accept: accept },
  });
  return {
    status: response.status,
    headers: Object.fromEntries(response.headers),
    bytes: Buffer.from(await response.arrayBuffer()),
  };
};

t.test('states each commission with its sale, and adds up', async (t) => {
  const shop = await openShop(rail, { holding_period_days: 0 });
  await shop.rule();
  const ada = await payee(shop, [5000], { first_name: 'Ada', last_name: 'Lovelace', company_name: 'Ada Ltd' });
  const earlier = await shop.sale({ partner_id: ada.id, external_charge_id: 'ch_earlier', amount_minor: 10_000 });
  const first = await batchOf(shop);
  const [paid] = await shop.list('payouts', `batch_id=${first.id}`);
  await shop.merchant.post(`/v1/payouts/${paid?.id}/mark_paid`, {
    external_id: 'tx_1',
    paid_at: '2026-03-01T10:00:00Z',
  });
  const statement = await numbered(shop.merchant, paid as Json);
  t.match(statement, {
    number: '2026-00001',
    livemode: true,
    program: { id: shop.program_id, name: 'Acme' },
    partner: { id: ada.id, name: 'Ada Ltd', email: ada.email },
    currency: 'USD',
    payout: { id: paid?.id, status: 'paid', amount_minor: 7000, external_id: 'tx_1', method: 'bank_transfer' },
    totals: { earned_minor: 2000, bonus_minor: 5000, clawed_back_minor: 0, total_minor: 7000 },
  });
  t.match(
    statement.lines.map(({ kind, sale_reference, sale_amount_minor, amount_minor }: Json) => ({
      ...{ kind, sale_reference, sale_amount_minor, amount_minor },
    })),
    [
      { kind: 'bonus', sale_reference: null, sale_amount_minor: null, amount_minor: 5000 },
      { kind: 'sale', sale_reference: 'ch_earlier', sale_amount_minor: 10_000, amount_minor: 2000 },
    ],
  );
  await shop.refund(earlier);
  t.match(
    (await shop.merchant.get(`/v1/payouts/${paid?.id}/statement`)).lines,
    [{ description: 'Bonus' }, { description: 'Commission for a sale' }],
    'what is refunded after the payment is not in it',
  );
  await bonus(shop, ada, 9000);
  const second = await batchOf(shop);
  const [payout] = await shop.list('payouts', `batch_id=${second.id}`);
  const draft = await shop.merchant.get(`/v1/payouts/${payout?.id}/statement`);
  t.match(draft, {
    number: 'DRAFT',
    payout: { status: 'pending', paid_at: null },
    totals: { earned_minor: 0, bonus_minor: 9000, clawed_back_minor: -2000, total_minor: 7000 },
  });
  t.match(
    draft.lines.find(({ kind }: Json) => kind === 'clawback'),
    { sale_reference: 'ch_earlier', amount_minor: -2000, description: 'Taken back after a refund' },
  );
  await shop.merchant.delete(`/v1/payouts/${payout?.id}`);
  t.match(await shop.merchant.request('GET', `/v1/payouts/${payout?.id}/statement`), { status: 404 });
});

t.test('keeps the amount of a sale that is corrected after the payout was paid', async (t) => {
  const shop = await openShop(rail, { holding_period_days: 0, min_payout_minor: 1 });
  await shop.rule();
  const ada = await payee(shop, [5000]);
  const sale = await shop.sale({ partner_id: ada.id, external_charge_id: 'ch_1', amount_minor: 10_000 });
  const { id: batch_id } = await batchOf(shop);
  const [payout] = await shop.list('payouts', `batch_id=${batch_id}`);
  const amountOf = async (of: Json) =>
    (await shop.merchant.get(`/v1/payouts/${of.id}/statement`)).lines.find(
      ({ sale_reference }: Json) => sale_reference === 'ch_1',
    )?.sale_amount_minor;
  t.equal(await amountOf(payout as Json), 10_000);
  await shop.merchant.post(`/v1/payouts/${payout?.id}/mark_paid`);
  await numbered(shop.merchant, payout as Json);
  for (const amount_minor of [8_000, 7_000]) {
    await shop.merchant.patch(`/v1/sales/${sale.id}`, { amount_minor });
    t.equal(await amountOf(payout as Json), 10_000);
  }
  await bonus(shop, ada, 9000);
  const { id: next_id } = await batchOf(shop);
  t.equal(await amountOf((await shop.list('payouts', `batch_id=${next_id}`))[0] as Json), 7_000, 'a clawback of today');
});

t.test('is CSV in minor units, and PDF with the digits of each currency', async (t) => {
  const shop = await openShop(rail);
  const ada = await payee(shop, [123_456]);
  await bonus(shop, ada, 5001, { currency: 'JPY' });
  await bonus(shop, ada, 12_345, { currency: 'KWD' });
  await batchOf(shop);
  const amounts: Json = { USD: ['123456', '1,234.56 USD'], JPY: ['5001', '5,001 JPY'], KWD: ['12345', '12.345 KWD'] };
  for (const { id, currency } of await shop.list('payouts')) {
    const [plain, shown] = amounts[currency];
    const csv = await bytesOf(shop.merchant, `/v1/payouts/${id}/statement?format=csv`);
    t.equal(csv.headers['content-type'], 'text/csv; charset=utf-8');
    t.match(csv.bytes.toString(), `,,${plain},${currency}\r\n`);
    const pdf = await bytesOf(shop.merchant, `/v1/payouts/${id}/statement`, 'application/pdf');
    t.equal(pdf.headers['content-type'], 'application/pdf');
    t.equal(pdf.headers['content-disposition'], `attachment; filename="statement-${id}.pdf"`);
    const text = JSON.stringify(readPdf(pdf.bytes));
    t.match(text, shown);
    t.match(text, 'DRAFT');
  }
  t.match(
    await shop.merchant.request('GET', `/v1/payouts/${(await shop.list('payouts'))[0]?.id}/statement?format=xml`),
    {
      status: 400,
      body: { error: { param: 'format' } },
    },
  );
});

t.test('numbers statements without gaps, by the year of payment, and emails them once', async (t) => {
  const shop = await openShop(rail);
  for (let nth = 0; nth < 6; nth++) await payee(shop, [6000]);
  const quiet = await payee(shop, [6000]);
  await rail.query(sql`update program.partner set email_payout_paid = false where id = ${quiet.id}`);
  await batchOf(shop);
  const payouts = await shop.list('payouts');
  const years = ['2025', '2025', '2026', '2026', '2026', '2026', '2026'];
  await Promise.all(
    payouts.map(({ id }, nth) =>
      shop.merchant.post(`/v1/payouts/${id}/mark_paid`, { paid_at: `${years[nth]}-02-01T00:00:00Z` }),
    ),
  );
  const numbers = await Promise.all(payouts.map(async (payout) => (await numbered(shop.merchant, payout)).number));
  t.same(numbers.toSorted(), ['2025-00001', '2025-00002', ...[1, 2, 3, 4, 5].map((nth) => `2026-0000${nth}`)]);
  const mails = () =>
    rail.query<Json>(sql`
      select recipient, subject, text, attachment_name, attachment_type, attachment from core.outgoing_mail
      where organization_id = ${shop.merchant.organization_id} order by recipient`);
  await eventually(async () => (await mails()).length === 6, 'the mails');
  const all = await mails();
  t.notOk(all.some(({ recipient }) => recipient === quiet.email));
  for (const { text, subject, attachment, attachment_name, attachment_type } of all) {
    const [, id] = /Payout: (pyt_\w+)/.exec(text) as unknown as [string, string];
    const { number, period_start, period_end } = await shop.merchant.get(`/v1/payouts/${id}/statement`);
    t.equal(subject, 'Your payout of USD 60.00 from Acme');
    t.match(text, 'Acme has paid you USD 60.00.\n\nMethod: Bank transfer, account ends in 3000\nPeriod: ');
    t.match(text, `Period: ${period_start.slice(0, 10)} to ${period_end.slice(0, 10)}`);
    t.match(text, `Statement: ${number}, attached`);
    t.same([attachment_name, attachment_type], [`statement-${number}.pdf`, 'application/pdf']);
    t.ok(attachment.equals((await bytesOf(shop.merchant, `/v1/payouts/${id}/statement?format=pdf`)).bytes));
  }
});

t.test('holds up no change of the payout while its statement is read for the email', async (t) => {
  const shop = await openShop(rail);
  await payee(shop, [6000]);
  await batchOf(shop);
  const [{ id } = {}] = await shop.list('payouts');
  // A statement of many commissions is read for long, and reads refunds: here it waits for a lock instead.
  const client = await rail.store.database.connect();
  await client.query('begin');
  await client.query('lock table program.refund in access exclusive mode');
  await shop.merchant.post(`/v1/payouts/${id}/mark_paid`);
  await eventually(async () => (await rail.waiting()) > 0, 'the email to read the statement');
  t.match(await shop.merchant.request('POST', `/v1/payouts/${id}/mark_returned`), {
    status: 200,
    body: { status: 'failed', error_code: 'returned' },
  });
  await client.query('rollback');
  client.release();
});
