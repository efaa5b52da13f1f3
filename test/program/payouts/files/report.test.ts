import t from 'tap';
import { transaction as inTransaction } from '../../../../src/core/postgres/transaction.ts';
import { connectAs, newLogin } from '../../../data/tenant.ts';
import { eventually, type Json, sql, startRail } from '../../../harness.ts';
import { openShop, type Shop } from '../../../shop.ts';
import { batchOf, bonus, payee } from '../fixture.ts';
import { freezeAll, setDebtor } from './fixture.ts';

const rail = await startRail();

interface Sent {
  batch: Json;
  message_id: string;
  /** By amount. */
  payouts: Json[];
}

/** A batch of these amounts that was sent to the bank. */
async function sent(shop: Shop, amounts: number[], { currency = 'USD' } = {}): Promise<Sent> {
  await setDebtor(rail, shop);
  for (const amount of amounts) await bonus(shop, await payee(shop, []), amount, { currency });
  const { id } = await batchOf(shop);
  await freezeAll(rail, shop, id);
  const batch = await shop.merchant.get(`/v1/payout_batches/${id}`);
  const payouts = await shop.list('payouts', `batch_id=${id}`);
  return {
    batch,
    message_id: batch.files[0].message_id,
    payouts: payouts.sort((a, b) => a.amount_minor - b.amount_minor),
  };
}

const inFile = (id: string): string => id.replace('_', '-');
const keyOf = ({ id }: Json, number = 1): string => `${inFile(id)}-${number}`;

const transaction = (payout: Json, status: string, reason = '', number = 1) =>
  `<TxInfAndSts><OrgnlEndToEndId>${keyOf(payout, number)}</OrgnlEndToEndId><TxSts>${status}</TxSts>${
    reason && because(reason)
  }</TxInfAndSts>`;

const because = (code: string) => `<StsRsnInf><Rsn><Cd>${code}</Cd></Rsn></StsRsnInf>`;

/** @param why StsRsnInf of the file or the block that is rejected */
const pain002 = (message_id: string, transactions: string, { group = '', block = '', why = '' } = {}) =>
  `<?xml version="1.0" encoding="UTF-8"?>
<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pain.002.001.10"><CstmrPmtStsRpt>
<GrpHdr><MsgId>BANK-1</MsgId><CreDtTm>2026-11-20T10:00:00Z</CreDtTm></GrpHdr>
<OrgnlGrpInfAndSts><OrgnlMsgId>${message_id}</OrgnlMsgId><OrgnlMsgNmId>pain.001.001.09</OrgnlMsgNmId>${
    group ? `<GrpSts>${group}</GrpSts>${why}` : ''
  }</OrgnlGrpInfAndSts>
<OrgnlPmtInfAndSts><OrgnlPmtInfId>${message_id}-1</OrgnlPmtInfId>${block ? `<PmtInfSts>${block}</PmtInfSts>${why}` : ''}${transactions}</OrgnlPmtInfAndSts>
</CstmrPmtStsRpt></Document>`;

const entry = (key: string, amount: string, currency: string, direction = 'DBIT', returned = '', ref = 'REF-1') =>
  `<Ntry><Amt Ccy="${currency}">${amount}</Amt><CdtDbtInd>${direction}</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts><BookgDt><Dt>2026-11-20</Dt></BookgDt>
<NtryDtls><TxDtls><Refs>${ref && `<AcctSvcrRef>${ref}</AcctSvcrRef>`}<EndToEndId>${key}</EndToEndId></Refs>${returned}</TxDtls></NtryDtls></Ntry>`;

const camt054 = (entries: string, account = '') =>
  `<?xml version="1.0" encoding="UTF-8"?>
<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.054.001.08"><BkToCstmrDbtCdtNtfctn><GrpHdr><MsgId>N-1</MsgId><CreDtTm>2026-11-20T10:00:00Z</CreDtTm></GrpHdr>
<Ntfctn><Id>1</Id>${account && `<Acct><Id><IBAN>${account}</IBAN></Id></Acct>`}${entries}</Ntfctn></BkToCstmrDbtCdtNtfctn></Document>`;

const takeIn = ({ merchant }: Shop, { id }: Json, document: string, headers?: Record<string, string>) =>
  merchant.request('POST', `/v1/payout_batches/${id}/statuses`, headers ? document : { document }, headers);

const statuses = async (shop: Shop, { id }: Json): Promise<string[]> =>
  (await shop.list('payouts', `batch_id=${id}`))
    .sort((a, b) => a.amount_minor - b.amount_minor)
    .map(({ status }) => status);

t.test('settles payouts by a pain.002, and takes a report in once', async (t) => {
  const shop = await openShop(rail);
  const { batch, message_id, payouts } = await sent(shop, [6000, 7000, 8000]);
  const [one, two, three] = payouts as [Json, Json, Json];
  await shop.events();
  const document = pain002(
    message_id,
    transaction(one, 'ACSC') + transaction(two, 'RJCT', 'AC04') + transaction(three, 'ACSP'),
  );
  const { status, body } = await takeIn(shop, batch, document);
  t.equal(status, 200, JSON.stringify(body));
  t.match(body, {
    ...{ object: 'payout_report', batch_id: batch.id, state: 'done', kind: 'pain.002', message_id: 'BANK-1' },
    ...{ waiting: 1, not_of_batch: 0, unchanged: [] },
  });
  t.same(
    body.applied.sort((a: Json, b: Json) => (a.status < b.status ? 1 : -1)),
    [
      { payout_id: one.id, status: 'paid' },
      { payout_id: two.id, status: 'failed' },
    ],
  );
  t.same(await statuses(shop, batch), ['paid', 'failed', 'processing']);
  t.match(await shop.merchant.get(`/v1/payouts/${two.id}`), {
    error_code: 'account_closed',
    error_message: /rejected/,
  });
  t.match((await shop.events()).map(({ type }) => type).sort(), ['commission.paid', 'payout.failed', 'payout.paid']);
  const again = await takeIn(shop, batch, document, { 'Content-Type': 'application/xml' });
  t.match(again, { status: 409, body: { error: { code: 'resource_already_exists', param: 'document' } } });
  t.same(again.body.existing, body);
  t.same((await shop.merchant.get(`/v1/payout_batches/${batch.id}/statuses`)).data, [body]);
});

t.test('takes a rejection of the file or of a payment information down to each payment', async (t) => {
  for (const reached of [{ group: 'RJCT' }, { block: 'RJCT' }].map((one) => ({ ...one, why: because('FF01') }))) {
    const shop = await openShop(rail);
    const { batch, message_id, payouts } = await sent(shop, [6000, 7000]);
    const document = pain002(message_id, transaction(payouts[0] as Json, 'RJCT', 'AM04'), reached);
    t.match(await takeIn(shop, batch, document), { status: 200, body: { state: 'done', applied: { length: 2 } } });
    t.same(await statuses(shop, batch), ['failed', 'failed']);
    t.match((await shop.list('payouts', `batch_id=${batch.id}`)).map(({ error_code }) => error_code).sort(), [
      'insufficient_funds',
      'provider_rejected',
    ]);
  }
  const shop = await openShop(rail);
  const { batch, message_id } = await sent(shop, [6000, 7000]);
  t.match(await takeIn(shop, batch, pain002(message_id, '', { group: 'ACSC' })), {
    status: 200,
    body: { applied: [] },
  });
  t.same(await statuses(shop, batch), ['processing', 'processing'], 'a success reaches none');
});

t.test('settles payouts by a camt.054 in each currency, and takes back what was returned', async (t) => {
  const amounts: [string, number, string, string][] = [
    ['USD', 123_456, '1234.56', '1234.57'],
    ['JPY', 5001, '5001', '50.01'],
    ['KWD', 12_345, '12.345', '123.45'],
  ];
  for (const [currency, amount, written, wrong] of amounts) {
    const shop = await openShop(rail, { min_payout_minor: 0 });
    const { batch, payouts } = await sent(shop, [amount], { currency });
    const [payout] = payouts as [Json];
    for (const other of [entry(keyOf(payout), wrong, currency), entry(keyOf(payout), written, 'EUR')]) {
      t.match(await takeIn(shop, batch, camt054(other)), {
        status: 200,
        body: {
          applied: [],
          not_applied: [{ payout_id: payout.id, end_to_end_id: keyOf(payout), reason: /were sent|not an amount/ }],
        },
      });
    }
    t.same(await statuses(shop, batch), ['processing']);
    const booked = camt054(entry(keyOf(payout), written, currency) + entry('INVOICE-7', '1', currency));
    t.match(await takeIn(shop, batch, booked, { 'Content-Type': 'text/xml; charset=utf-8' }), {
      status: 200,
      body: { kind: 'camt.054', applied: [{ payout_id: payout.id, status: 'paid' }], not_of_batch: 1 },
    });
    t.match(await shop.merchant.get(`/v1/payouts/${payout.id}`), {
      external_id: 'REF-1',
      paid_at: '2026-11-20T00:00:00.000Z',
    });
    const returned = '<RtrInf><Rsn><Cd>AC04</Cd></Rsn><AddtlInf>Account closed</AddtlInf></RtrInf>';
    t.match(await takeIn(shop, batch, camt054(entry(keyOf(payout), written, currency, 'CRDT', returned))), {
      body: { applied: [{ payout_id: payout.id, status: 'failed' }] },
    });
    t.match(await shop.merchant.get(`/v1/payouts/${payout.id}`), {
      ...{ status: 'failed', error_code: 'returned', error_message: 'Account closed', paid_at: null },
    });
    t.match(await takeIn(shop, batch, camt054(entry(keyOf(payout), written, currency))), {
      body: { applied: [], unchanged: [payout.id] },
    });
  }
});

t.test('takes a camt.054 of the account that the file pays from, and of no other', async (t) => {
  const shop = await openShop(rail);
  const { batch, payouts } = await sent(shop, [6000]);
  const booked = entry(keyOf(payouts[0] as Json), '60.00', 'USD');
  const elsewhere = await takeIn(shop, batch, camt054(booked, 'FR1420041010050500013M02606'));
  t.match(elsewhere, { status: 200, body: { applied: [], not_applied: [{ reason: /2606.*3000/ }] } });
  t.same(await statuses(shop, batch), ['processing']);
  t.match(await takeIn(shop, batch, camt054(booked, 'DE89 3704 0044 0532 0130 00')), {
    status: 200,
    body: { applied: { length: 1 } },
  });
});

t.test('numbers the statement of a payout that was paid and came back in the same report', async (t) => {
  const shop = await openShop(rail);
  const { batch, payouts } = await sent(shop, [6000]);
  const [payout] = payouts as [Json];
  const returned = '<RtrInf><Rsn><Cd>AC04</Cd></Rsn></RtrInf>';
  const both = entry(keyOf(payout), '60.00', 'USD') + entry(keyOf(payout), '60.00', 'USD', 'CRDT', returned);
  t.match(await takeIn(shop, batch, camt054(both)), { status: 200 });
  t.match(await shop.merchant.get(`/v1/payouts/${payout.id}`), { status: 'failed', error_code: 'returned' });
  t.match(await shop.merchant.get(`/v1/payouts/${payout.id}/statement`), { number: /^\d{4}-00001$/ });
  await shop.merchant.delete(`/v1/payouts/${payout.id}`);
  const psql = await connectAs(await newLogin(rail, shop.merchant));
  t.match(
    await psql.query('select status, bonus_minor, total_minor from data.payout_statement'),
    [{ status: 'failed', bonus_minor: '6000', total_minor: '6000' }],
    'data teams find what was paid also once the payout is deleted',
  );
});

t.test('takes back what a late success pays a second time', async (t) => {
  const shop = await openShop(rail);
  const { batch, message_id, payouts } = await sent(shop, [6000]);
  const [payout] = payouts as [Json];
  await takeIn(shop, batch, pain002(message_id, transaction(payout, 'RJCT', 'AC04')));
  await shop.merchant.delete(`/v1/payouts/${payout.id}`);
  const late = await takeIn(shop, batch, pain002(message_id, transaction(payout, 'ACSC')));
  t.match(late, { status: 200, body: { applied: [{ payout_id: payout.id, status: 'deleted' }] } }, late.text);
  const [clawback] = await shop.list('commissions', 'kind=clawback');
  t.match(clawback, {
    amount_minor: -6000,
    clawback_of: null,
    partner_id: payout.partner_id,
    note: /^Paid after the payout was deleted: /,
  });
  t.match(await shop.list('risk_flags'), [{ kind: 'double_payout' }]);
  const psql = await connectAs(await newLogin(rail, shop.merchant));
  t.match(
    await psql.query('select object, id, amount_minor from data.reconciliation'),
    [{ object: 'payout', id: `${payout.id}-1`, amount_minor: '-6000' }],
    'the bank moved it',
  );
});

t.test('refuses what does not fit, and changes nothing', async (t) => {
  const shop = await openShop(rail);
  const { batch, message_id } = await sent(shop, [6000, 7000]);
  const other = await sent(shop, [9000]);
  const refusals: [string, RegExp][] = [
    [pain002(other.message_id, transaction(other.payouts[0] as Json, 'ACSC')), /which is not a file of this batch/],
    [pain002(message_id, transaction({ id: 'pyt_nobody' }, 'ACSC')), /'pyt-nobody-1'/],
    [camt054(entry('INVOICE-7', '1', 'USD')), /names no payment of this batch/],
    ['<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', /declaration/],
    ['{"a": 1}', /XML|root/],
    ['<Document><FIToFICstmrCdtTrf></FIToFICstmrCdtTrf></Document>', /FIToFICstmrCdtTrf/],
    [`${'<a>'.repeat(10_000)}${'</a>'.repeat(10_000)}`, /./],
  ];
  for (const [document, message] of refusals) {
    for (const headers of [undefined, { 'Content-Type': 'application/xml' }]) {
      const answer = await takeIn(shop, batch, document, headers);
      t.match(answer, { status: 400, body: { error: { code: 'invalid_parameter', message } } }, answer.text);
    }
  }
  t.same(await statuses(shop, batch), ['processing', 'processing']);
  t.same((await shop.merchant.get(`/v1/payout_batches/${batch.id}/statuses`)).data, []);
});

t.test('applies what is plain of a pain.002, and lists the rest', async (t) => {
  const shop = await openShop(rail, { min_payout_minor: 0 });
  const { batch, message_id, payouts } = await sent(shop, [6000, 7000, 8000, 9000]);
  const [odd, settled, rejected, unnamed] = payouts as [Json, Json, Json, Json];
  const elsewhere =
    '</OrgnlPmtInfAndSts><OrgnlPmtInfAndSts><OrgnlPmtInfId>OTHER-1</OrgnlPmtInfId><PmtInfSts>RJCT</PmtInfSts>';
  const entries = [
    ...[transaction(odd, 'ACSC').repeat(600), transaction(odd, 'RJCT')],
    ...[transaction(settled, 'ACSC'), transaction(rejected, 'RJCT', 'AC04')],
    transaction(unnamed, 'ACSC').replace(/<OrgnlEndToEndId>.*?<\/OrgnlEndToEndId>/, ''),
  ];
  const { status, body } = await takeIn(shop, batch, pain002(message_id, entries.join('') + elsewhere));
  t.equal(status, 200, JSON.stringify(body));
  t.match(body.not_applied, [
    { payout_id: odd.id, end_to_end_id: keyOf(odd), reason: /both ACSC and RJCT/ },
    { payout_id: null, end_to_end_id: null, reason: /number 604 .* has no OrgnlEndToEndId/ },
    { payout_id: null, end_to_end_id: null, reason: /'OTHER-1', which is not in the file/ },
  ]);
  t.match(body, { state: 'done', applied: { length: 2 }, waiting: 0, not_of_batch: 0 });
  t.same(await statuses(shop, batch), ['processing', 'paid', 'failed', 'processing']);
});

t.test('takes files up to 10 MiB here alone', async (t) => {
  const shop = await openShop(rail);
  const { batch, message_id, payouts } = await sent(shop, [6000]);
  const xml = { 'Content-Type': 'application/xml' };
  const path = `/v1/payout_batches/${batch.id}/statuses`;
  const padding = `<!-- ${' '.repeat(9000)} -->`;
  const report = pain002(message_id, transaction(payouts[0] as Json, 'ACSC'));
  const large = report.replace('</CstmrPmtStsRpt>', `${padding.repeat(300)}</CstmrPmtStsRpt>`);
  t.ok(large.length > 2 * 1024 * 1024);
  t.match(await shop.merchant.request('POST', path, large, xml), { status: 200, body: { applied: { length: 1 } } });
  t.match(await shop.merchant.request('POST', path, ' '.repeat(10 * 1024 * 1024 + 1), xml), {
    status: 413,
    body: { error: { code: 'payload_too_large', message: /10 MiB/ } },
  });
  t.match(await shop.merchant.request('POST', '/v1/payout_batches', report, xml), {
    status: 415,
    body: { error: { code: 'unsupported_media_type' } },
  });
  const key = { Authorization: `Bearer ${shop.merchant.key}` };
  const latin = await fetch(new URL(path, rail.address), {
    method: 'POST',
    headers: { ...key, ...xml },
    body: Buffer.from('<a>\xfc</a>', 'latin1'),
  });
  t.equal(latin.status, 400);
  t.match(((await latin.json()) as Json).error.message, /not encoded in UTF-8/);
  const declared = (encoding: string) =>
    pain002(message_id, transaction(payouts[0] as Json, 'RJCT', 'AC04'))
      .replace('UTF-8', encoding)
      .replace('BANK-1', `Überweisung ${encoding}`);
  const files = [
    Buffer.from(declared('ISO-8859-1'), 'latin1'),
    Buffer.from(`\ufeff${declared('UTF-16')}`, 'utf16le'),
    Buffer.from(`\ufeff${declared('UTF-16BE')}`, 'utf16le').swap16(),
  ];
  for (const body of files) {
    const answer = await fetch(new URL(path, rail.address), { method: 'POST', headers: { ...key, ...xml }, body });
    t.match(await answer.json(), { message_id: /^Überweisung /, not_applied: [{ payout_id: payouts[0]?.id }] });
  }
});

t.test('goes on with many payouts in a worker', async (t) => {
  const shop = await openShop(rail);
  const { batch, message_id, payouts } = await sent(
    shop,
    Array.from({ length: 203 }, (_, nth) => 6000 + nth),
  );
  const { body } = await takeIn(shop, batch, pain002(message_id, '', { group: 'RJCT', why: because('FF01') }));
  t.match(body, { state: 'running', applied: { length: 200 } });
  let report: Json = {};
  await eventually(async () => {
    [report] = (await shop.merchant.get(`/v1/payout_batches/${batch.id}/statuses`)).data;
    return report.state === 'done';
  }, 'the report to be applied');
  t.equal(new Set(report.applied.map(({ payout_id }: Json) => payout_id)).size, 203);
  t.ok(payouts.length > 0);
  t.match(await shop.merchant.get(`/v1/payout_batches/${batch.id}`), { status: 'completed' });
});

t.test('settles once what ten reports and a person settle at the same time', async (t) => {
  const shop = await openShop(rail);
  const { batch, message_id, payouts } = await sent(shop, [6000, 7000]);
  const [one, two] = payouts as [Json, Json];
  const document = (nth: number) =>
    pain002(message_id, transaction(one, 'ACSC') + transaction(two, 'ACSC')).replace('BANK-1', `B-${nth}`);
  await shop.events();
  await Promise.all([
    ...Array.from({ length: 10 }, (_, nth) => takeIn(shop, batch, document(nth % 5))),
    shop.merchant.request('POST', `/v1/payouts/${one.id}/mark_paid`),
  ]);
  t.same(await statuses(shop, batch), ['paid', 'paid']);
  t.equal((await shop.events()).filter(({ type }) => type === 'payout.paid').length, 2);
  t.same(await shop.list('commissions', 'kind=clawback'), []);
});

t.test('leaves a payout that was marked as paid as it is when the bank rejects the transfer', async (t) => {
  const shop = await openShop(rail);
  const { batch, message_id, payouts } = await sent(shop, [6000]);
  const [payout] = payouts as [Json];
  await shop.merchant.post(`/v1/payouts/${payout.id}/mark_paid`, { external_id: 'BY-HAND' });
  const { status } = await takeIn(shop, batch, pain002(message_id, transaction(payout, 'RJCT', 'AC04')));
  t.equal(status, 200);
  t.match(await shop.merchant.get(`/v1/payouts/${payout.id}`), { status: 'paid', external_id: 'BY-HAND' });
  t.match(await shop.list('commissions'), [{ status: 'paid' }]);
});

t.test('changes nothing where the bank refuses a second copy of a file, a block or a payment', async (t) => {
  const shop = await openShop(rail);
  const { batch, message_id, payouts } = await sent(shop, [6000, 7000]);
  const [one, two] = payouts as [Json, Json];
  await takeIn(shop, batch, pain002(message_id, transaction(one, 'ACSC')));
  for (const reason of ['DU01', 'DU02', 'DU03', 'DU04', 'DU05', 'AM05']) {
    const listed = transaction(one, 'RJCT', reason) + transaction(two, 'RJCT', reason);
    const unreasoned = transaction(one, 'RJCT') + transaction(two, 'RJCT');
    const reports = [
      pain002(message_id, listed),
      pain002(message_id, '', { group: 'RJCT', why: because(reason) }),
      pain002(message_id, unreasoned, { group: 'RJCT', why: because(reason) }),
      pain002(message_id, '', { block: 'RJCT', why: because(reason) }),
      pain002(message_id, '', { group: 'CANC', why: because(` ${reason.toLowerCase()} `) }),
    ];
    for (const document of reports) {
      const { body } = await takeIn(shop, batch, document);
      t.match(body, { state: 'done', applied: [], waiting: 0 }, document);
      t.same(body.unchanged.sort(), [one.id, two.id].sort(), document);
      t.match(body.not_applied, [{ reason: new RegExp(reason) }, { reason: new RegExp(reason) }]);
    }
  }
  t.same((await statuses(shop, batch)).sort(), ['paid', 'processing']);
});

t.test('applies what fits of a camt.054 whatever else stands in it', async (t) => {
  const shop = await openShop(rail, { min_payout_minor: 0 });
  const { batch, payouts } = await sent(shop, [6000, 7000, 8000, 9000]);
  const [one, less, wire, odd] = payouts as [Json, Json, Json, Json];
  const returned = '<RtrInf><Rsn><Cd>AC04</Cd></Rsn></RtrInf>';
  const value = '<AmtDtls><CntrValAmt><Amt Ccy="USD">80.00</Amt></CntrValAmt></AmtDtls>';
  const strangers = [
    ...[entry('RENT', '+5.00', 'USD'), entry('RENT-2', '1,50', 'USD'), entry('RENT-3', '1', 'XXX')],
    entry('RENT-4', '1', 'USD').replace('2026-11-20', 'yesterday'),
  ];
  const { status, body } = await takeIn(
    shop,
    batch,
    camt054(
      [
        ...strangers,
        entry(keyOf(one), '+60.00', 'USD'),
        entry(keyOf(less), '65.00', 'USD', 'CRDT', returned),
        entry(keyOf(wire), '74.48', 'EUR', 'DBIT', value),
        entry(keyOf(odd), '90,00', 'USD'),
      ].join(''),
    ),
  );
  t.equal(status, 200);
  t.match(body, { not_of_batch: 4, not_applied: [{ payout_id: odd.id, reason: /not an amount/ }] });
  t.equal(body.applied.length, 3);
  const after = (payout: Json) => shop.merchant.get(`/v1/payouts/${payout.id}`);
  t.match(await after(one), { status: 'paid' });
  t.match(await after(less), { status: 'failed', fee_minor: 500 });
  t.match(await after(wire), { status: 'paid' });
  t.match(await after(odd), { status: 'processing' });
});

t.test('records by hand that a payment came back', async (t) => {
  const shop = await openShop(rail);
  const { batch, message_id, payouts } = await sent(shop, [6000]);
  const [payout] = payouts as [Json];
  const path = `/v1/payouts/${payout.id}/mark_returned`;
  t.match(await shop.merchant.request('POST', path), { status: 409, body: { error: { code: 'payout_locked' } } });
  await takeIn(shop, batch, pain002(message_id, transaction(payout, 'ACSC')));
  t.match(await shop.merchant.request('POST', path, { fee_minor: 6001 }), {
    status: 400,
    body: { error: { param: 'fee_minor' } },
  });
  await shop.events();
  t.match(await shop.merchant.request('POST', path, { returned_at: '2000-01-01T00:00:00Z' }), {
    status: 400,
    body: { error: { param: 'returned_at' } },
  });
  const { submitted_at } = await shop.merchant.get(`/v1/payouts/${payout.id}`);
  const back = { reason: 'Account closed', returned_at: submitted_at, fee_minor: 500 };
  t.match(await shop.merchant.post(path, back), {
    ...{ status: 'failed', error_code: 'returned', error_message: 'Account closed', fee_minor: 500, paid_at: null },
    failed_at: back.returned_at,
  });
  t.same(
    (await shop.events()).map(({ type }) => type),
    ['payout.failed', 'commission.updated'],
  );
  t.match(await takeIn(shop, batch, pain002(message_id, transaction(payout, 'ACCC'))), {
    body: { unchanged: [payout.id] },
  });
});

/** A debit or a return that the bank calls `ref`. */
const booked = (payout: Json, ref: string, returned = '', number = 1) =>
  entry(keyOf(payout, number), '60.00', 'USD', returned ? 'CRDT' : 'DBIT', returned && back(returned), ref);
const back = (code: string) => `<RtrInf><Rsn><Cd>${code}</Cd></Rsn></RtrInf>`;

/** Returns the clawbacks of a partner, the oldest first. */
const clawbacks = async (shop: Shop) =>
  (await shop.list('commissions', 'kind=clawback'))
    .sort((a, b) => (a.id < b.id ? -1 : 1))
    .map(({ amount_minor, status }) => `${amount_minor} ${status}`);

t.test('leaves a payout paid whatever a bank rejects afterwards', async (t) => {
  const shop = await openShop(rail);
  const { batch, message_id, payouts } = await sent(shop, [6000]);
  const [payout] = payouts as [Json];
  await takeIn(shop, batch, camt054(booked(payout, 'A')));
  const twice = '<StsRsnInf><Rsn><Cd>NARR</Cd></Rsn><AddtlInf>Doppelte Datei</AddtlInf></StsRsnInf>';
  for (const document of [
    ...[because('DT01'), twice, ''].flatMap((why) => [
      pain002(message_id, '', { group: 'RJCT', why }),
      pain002(message_id, '', { block: 'RJCT', why }),
    ]),
    ...['DT01', 'AC04', 'MS03'].map((code) => pain002(message_id, transaction(payout, 'RJCT', code))),
  ]) {
    const { body } = await takeIn(shop, batch, document);
    t.match(
      body,
      { applied: [], not_applied: [{ payout_id: payout.id, reason: /mark_returned/ }], waiting: 0 },
      document,
    );
  }
  t.same(await statuses(shop, batch), ['paid']);
});

t.test('takes back what the bank executed twice, until as many came back', async (t) => {
  const shop = await openShop(rail);
  const { batch, payouts } = await sent(shop, [6000]);
  const [payout] = payouts as [Json];
  const report = async (...entries: string[]) => {
    const { body } = await takeIn(shop, batch, camt054(entries.join('')));
    return [body.applied.length, body.unchanged.length, await statuses(shop, batch), await clawbacks(shop)];
  };
  const [due, voided] = ['-6000 due', '-6000 voided'];
  t.same(await report(booked(payout, 'A')), [1, 0, ['paid'], []]);
  t.same(await report(booked(payout, 'B'), booked(payout, 'A')), [1, 1, ['paid'], [due]]);
  t.same(await report(booked(payout, 'B'), booked(payout, 'C')), [1, 1, ['paid'], [due, due]]);
  const unnamed = await takeIn(shop, batch, camt054(booked(payout, '').repeat(2)));
  t.match(unnamed.body, { applied: [], unchanged: [payout.id], not_applied: [{ reason: /more than once/ }] });
  t.match(await shop.list('risk_flags'), [{ kind: 'double_payout' }]);
  t.match(await shop.merchant.request('POST', `/v1/payouts/${payout.id}/mark_returned`), {
    status: 409,
    body: { error: { code: 'payout_locked', message: /paid twice.*com_/ } },
  });
  const psql = await connectAs(await newLogin(rail, shop.merchant));
  t.equal((await psql.query('select from data.reconciliation')).length, 3, 'the bank moved it three times');
  t.same(await report(booked(payout, 'R1', 'AM05')), [1, 0, ['paid'], [due, voided]]);
  t.same(await report(booked(payout, 'R1', 'AM05'), booked(payout, 'A')), [0, 2, ['paid'], [due, voided]]);
  t.same(await report(booked(payout, 'R2', 'AC04')), [1, 0, ['paid'], [voided, voided]]);
  t.same(await report(booked(payout, 'R3', 'AC04')), [1, 0, ['failed'], [voided, voided]]);
  t.match(await shop.merchant.get(`/v1/payouts/${payout.id}`), { error_code: 'returned' });
  t.same(await report(booked(payout, 'D')), [1, 0, ['paid'], [voided, voided]], 'the bank pays what came back again');
});

t.test('keeps the payout paid where the debit of a returned copy is not known, and waits for it', async (t) => {
  const shop = await openShop(rail);
  const { batch, message_id, payouts } = await sent(shop, [6000]);
  const [payout] = payouts as [Json];
  await takeIn(shop, batch, pain002(message_id, transaction(payout, 'ACSC')));
  const copy = await takeIn(shop, batch, camt054(booked(payout, 'R1', 'AM05')));
  t.match(copy.body, { applied: [], not_applied: [{ payout_id: payout.id, reason: /second copy/ }] });
  await takeIn(shop, batch, camt054(booked(payout, 'A') + booked(payout, 'B')));
  t.same([await statuses(shop, batch), await clawbacks(shop)], [['paid'], []]);
  await takeIn(shop, batch, camt054(booked(payout, 'R2', 'AC04')));
  t.match(await shop.list('payouts'), [{ status: 'failed', error_code: 'returned' }]);
});

t.test('takes the return of a copy for that of the payment where a person says so', async (t) => {
  for (const action of ['mark_returned', 'mark_failed']) {
    const shop = await openShop(rail);
    const { batch, message_id, payouts } = await sent(shop, [6000]);
    const [payout] = payouts as [Json];
    if (action === 'mark_returned') await takeIn(shop, batch, pain002(message_id, transaction(payout, 'ACSC')));
    await takeIn(shop, batch, camt054(booked(payout, 'R1', 'AM05')));
    t.match(await shop.merchant.post(`/v1/payouts/${payout.id}/${action}`), { status: 'failed' });
    await takeIn(shop, batch, camt054(booked(payout, 'A') + booked(payout, 'R1', 'AM05')));
    t.same(await statuses(shop, batch), ['failed'], 'one was paid, and came back');
    await takeIn(shop, batch, camt054(booked(payout, 'B')));
    t.same([await statuses(shop, batch), await clawbacks(shop)], [['paid'], []], 'the bank has paid once more');
  }
});

t.test('counts a return before its debit in a report as after it', async (t) => {
  const shop = await openShop(rail);
  const { batch, payouts } = await sent(shop, [6000]);
  const [payout] = payouts as [Json];
  await takeIn(shop, batch, camt054(booked(payout, 'R1', 'AM05') + booked(payout, 'B') + booked(payout, 'A')));
  t.same([await statuses(shop, batch), await clawbacks(shop)], [['paid'], ['-6000 voided']]);
});

t.test('leaves a payout paid by one of two attempts when the other comes back', async (t) => {
  const shop = await openShop(rail);
  const { batch, message_id, payouts } = await sent(shop, [6000]);
  const [payout] = payouts as [Json];
  await takeIn(shop, batch, pain002(message_id, transaction(payout, 'RJCT', 'AC04')));
  await shop.merchant.post(`/v1/payouts/${payout.id}/retry`);
  await takeIn(shop, batch, camt054(booked(payout, 'A') + booked(payout, 'B', '', 2)));
  t.same([await statuses(shop, batch), await clawbacks(shop)], [['paid'], ['-6000 due']]);
  await takeIn(shop, batch, camt054(booked(payout, 'R1', 'AC04')));
  t.same([await statuses(shop, batch), await clawbacks(shop)], [['paid'], ['-6000 voided']]);
  t.match(await shop.merchant.get(`/v1/payouts/${payout.id}`), { external_id: 'B' });
  t.match(await shop.merchant.request('POST', `/v1/payouts/${payout.id}/retry`), { status: 409 });
  await takeIn(shop, batch, camt054(booked(payout, 'R2', 'AC04', 2)));
  t.match(await shop.list('payouts'), [{ status: 'failed', error_code: 'returned' }]);
});

t.test(
  'leaves in processing what a bank rejects without a definite reason, until a person says what it was',
  async (t) => {
    const shop = await openShop(rail);
    const { batch, message_id, payouts } = await sent(shop, [6000]);
    const [payout] = payouts as [Json];
    const doubts = [
      ...['', '<StsRsnInf><Rsn><Prtry>DUPLICATE</Prtry></Rsn></StsRsnInf>', because('NARR'), because('B42')],
      ...['Duplicate file: MsgId already received', 'DU01 duplicate message', 'Fichier en double'].flatMap((words) => [
        `<StsRsnInf><AddtlInf>${words}</AddtlInf></StsRsnInf>`,
        `<StsRsnInf><Rsn><Cd>MS03</Cd></Rsn><AddtlInf>${words}</AddtlInf></StsRsnInf>`,
      ]),
      `${because('MS03')}<StsRsnInf><Rsn><Prtry>Doublon</Prtry></Rsn></StsRsnInf>`,
    ];
    const rejected = transaction(payout, 'RJCT').replace('</TxInfAndSts>', '');
    for (const why of doubts)
      for (const document of [
        pain002(message_id, '', { group: 'RJCT', why }),
        pain002(message_id, '', { block: 'RJCT', why }),
        pain002(message_id, `${rejected}${why}</TxInfAndSts>`),
        pain002(message_id, `${rejected}${why}</TxInfAndSts>`.replace('RJCT', 'CANC')),
      ]) {
        const { body } = await takeIn(shop, batch, document);
        const not_applied = [{ payout_id: payout.id, reason: /mark_failed/ }];
        t.match(body, { applied: [], unchanged: [], not_applied, waiting: 0 }, document);
      }
    t.same(await statuses(shop, batch), ['processing']);
    const reason = 'The bank has no record of it.';
    t.match(await shop.merchant.post(`/v1/payouts/${payout.id}/mark_failed`, { reason }), {
      ...{ status: 'failed', error_code: 'provider_rejected', error_message: reason },
    });
    t.match(await shop.merchant.request('POST', `/v1/payouts/${payout.id}/mark_failed`), { status: 409 });
    await takeIn(shop, batch, camt054(booked(payout, 'A')));
    t.same(await statuses(shop, batch), ['paid'], 'the person was wrong');
  },
);

t.test('fails a file that was never accepted, and doubts the rejection of one that was', async (t) => {
  const why = because('DT01');
  for (const [before, outcome] of [
    ['', 'failed'],
    ['RCVD', 'failed'],
    ['ACTC', 'processing'],
    ['ACSP', 'processing'],
  ] as const) {
    const shop = await openShop(rail);
    const { batch, message_id, payouts } = await sent(shop, [6000]);
    if (before) await takeIn(shop, batch, pain002(message_id, '', { group: before }));
    const { body } = await takeIn(shop, batch, pain002(message_id, '', { group: 'RJCT', why }));
    t.same(await statuses(shop, batch), [outcome], before);
    if (outcome === 'failed') continue;
    t.match(body, {
      applied: [],
      not_applied: [{ payout_id: payouts[0]?.id, reason: /has accepted the file before/ }],
    });
    await takeIn(shop, batch, pain002(message_id, transaction(payouts[0] as Json, 'RJCT', 'AC04')));
    t.same(await statuses(shop, batch), ['failed'], 'a failure of the payment itself');
  }
});

t.test('applies nothing of an entry without an amount, and counts what it lists once', async (t) => {
  const shop = await openShop(rail);
  const { batch, payouts } = await sent(shop, [6000]);
  const [payout] = payouts as [Json];
  for (const document of [
    camt054(booked(payout, 'A').replace(/<Amt.*?<\/Amt>/, '')),
    camt054(booked(payout, 'A').replace('BOOK', 'PDNG')),
  ])
    t.match(await takeIn(shop, batch, document), {
      body: { applied: [], not_applied: [{ payout_id: payout.id, reason: /no Amt|not booked/ }], waiting: 0 },
    });
  t.same(await statuses(shop, batch), ['processing']);
});

t.test('answers at once while a worker changes the payout', async (t) => {
  const shop = await openShop(rail);
  const { batch, payouts } = await sent(shop, [6000]);
  const [payout] = payouts as [Json];
  await takeIn(shop, batch, camt054(booked(payout, 'A')));
  const { organization_id } = shop.merchant;
  await inTransaction(rail.store, { organization_id, request_id: null }, async (tx) => {
    await tx.all(sql`select from program.payout where organization_id = ${organization_id} for no key update`);
    for (const action of ['mark_returned', 'retry'])
      t.match(await shop.merchant.request('POST', `/v1/payouts/${payout.id}/${action}`), {
        status: 409,
        body: { error: { code: 'payout_locked', message: /Try again/ } },
      });
  });
  t.match(await shop.merchant.post(`/v1/payouts/${payout.id}/mark_returned`), { status: 'failed' });
});
