import t from 'tap';
import { readBankReport } from '../../../../src/program/payouts/bank/bank_report.ts';
import type { BookingReport } from '../../../../src/program/payouts/bank/camt054.ts';

const keyOf = (n: number) => `pyt_01h455vb4pex5vsknk084sn02q-${n}`;

const detail = (id: string | null, more = ''): string =>
  `<TxDtls><Refs>${id === null ? '' : `<EndToEndId>${id}</EndToEndId>`}</Refs>${more}</TxDtls>`;
const amount = (text: string, currency = 'EUR'): string => `<Amt Ccy="${currency}">${text}</Amt>`;
const details = (text: string, currency = 'EUR') => `<AmtDtls><TxAmt>${amount(text, currency)}</TxAmt></AmtDtls>`;
const returned = '<RtrInf><Rsn><Cd>AC04</Cd></Rsn><AddtlInf>Account closed</AddtlInf></RtrInf>';

interface Entry {
  status?: string;
  direction?: string;
  total?: string;
  batch?: string;
  more?: string;
}

const entry = (
  content: string,
  { status = '<Cd>BOOK</Cd>', direction = 'DBIT', total = amount('12.34'), batch = '', more = '' }: Entry = {},
): string =>
  `<Ntry>${total}<CdtDbtInd>${direction}</CdtDbtInd>${more}<Sts>${status}</Sts><BookgDt><Dt>2026-12-15</Dt></BookgDt><AcctSvcrRef>E1</AcctSvcrRef><NtryDtls>${batch}${content}</NtryDtls></Ntry>`;

const report = (entries: string, version = '08'): string =>
  `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.054.001.${version}"><BkToCstmrDbtCdtNtfctn><GrpHdr><MsgId>N1</MsgId><CreDtTm>2026-12-16T08:00:00</CreDtTm></GrpHdr><Ntfctn><Id>1</Id>${entries}</Ntfctn></BkToCstmrDbtCdtNtfctn></Document>`;

const read = (xml: string): BookingReport => {
  const found = readBankReport(xml);
  if (found.kind !== 'camt.054') throw new Error(found.kind);
  return found;
};
const only = (xml: string) => read(xml).transfers[0];

t.test('reads a debit as paid, with amount, date and reference', async (t) => {
  t.strictSame(read(report(entry(detail(keyOf(1))))), {
    kind: 'camt.054',
    report_id: 'N1',
    reported_at: '2026-12-16T08:00:00.000Z',
    transfers: [
      {
        end_to_end_id: keyOf(1),
        outcome: 'paid',
        ignored_because: null,
        amounts: [{ amount_minor: 1234, currency: 'EUR' }],
        reason_code: null,
        reason_text: null,
        at: '2026-12-15T00:00:00.000Z',
        external_id: 'E1',
        references: ['E1'],
        account: null,
      },
    ],
    without_id: 0,
  });
});

t.test('reads a credit with RtrInf as returned, with its reason', async (t) => {
  t.match(only(report(entry(detail(keyOf(1), returned), { direction: 'CRDT' }))), {
    outcome: 'returned',
    reason_code: 'AC04',
    reason_text: 'Account closed',
    amounts: [{ amount_minor: 1234, currency: 'EUR' }],
  });
});

t.test('ignores what is neither, and says why', async (t) => {
  const cases: [string, RegExp][] = [
    [entry(detail(keyOf(1)), { status: '<Cd>PDNG</Cd>' }), /not booked: its Sts is PDNG/],
    [entry(detail(keyOf(1)), { status: 'INFO' }), /not booked: its Sts is INFO/],
    [entry(detail(keyOf(1)), { status: '<Prtry>BOOKED</Prtry>' }), /not booked/],
    [entry(detail(keyOf(1)), { direction: 'CRDT' }), /credit without RtrInf/],
    [entry(detail(keyOf(1), returned)), /debit with RtrInf/],
    [entry(detail(keyOf(1)), { more: '<RvslInd>true</RvslInd>' }), /reverses a credit/],
    [entry(detail(keyOf(1)), { direction: 'X' }), /CdtDbtInd is X/],
    [entry(detail(keyOf(1), returned), { status: '<Cd>PDNG</Cd>', direction: 'CRDT' }), /not booked/],
  ];
  for (const [content, ignored_because] of cases)
    t.match(only(report(content)), { outcome: 'ignored', ignored_because });
});

t.test('reads the status of all versions', async (t) => {
  for (const version of ['02', '04', '06'])
    t.equal(only(report(entry(detail(keyOf(1)), { status: 'BOOK' }), version))?.outcome, 'paid');
  for (const version of ['08', '10', '12']) t.equal(only(report(entry(detail(keyOf(1))), version))?.outcome, 'paid');
});

t.test('reads each payment of a batch with its own amount and direction', async (t) => {
  const batch = '<Btch><NbOfTxs>4</NbOfTxs></Btch>';
  const content = [
    detail(keyOf(1), details('1.00')),
    detail(keyOf(2), amount('2.00')),
    detail(keyOf(3)),
    detail(keyOf(4), `${details('1000', 'JPY')}<CdtDbtInd>CRDT</CdtDbtInd>${returned}`),
  ].join('');
  const { transfers } = read(report(entry(content, { total: amount('99.00'), batch })));
  t.strictSame(
    transfers.map(({ end_to_end_id, outcome, amounts }) => [
      end_to_end_id,
      outcome,
      amounts[0]?.amount_minor ?? null,
      amounts[0]?.currency ?? null,
    ]),
    [
      [keyOf(1), 'paid', 100, 'EUR'],
      [keyOf(2), 'paid', 200, 'EUR'],
      [keyOf(3), 'paid', null, null],
      [keyOf(4), 'returned', 1000, 'JPY'],
    ],
  );
  const shortened = read(report(entry(detail(keyOf(1)), { total: amount('99.00'), batch })));
  t.same(shortened.transfers[0]?.amounts, [], 'the sum of a batch is not the amount of its one detail');
});

t.test('prefers the amount as instructed to the amount as converted', async (t) => {
  const both = `<AmtDtls><InstdAmt>${amount('10.000', 'KWD')}</InstdAmt><TxAmt>${amount('29.50')}</TxAmt></AmtDtls>`;
  t.match(only(report(entry(detail(keyOf(1), `${amount('29.50')}${both}`)))), {
    amounts: [{ amount_minor: 10_000, currency: 'KWD' }],
  });
});

t.test('counts payments that have no id, and keeps the ids of others as they are', async (t) => {
  const content = `${entry(detail(null) + detail('NOTPROVIDED') + detail('SALARY-12'))}<Ntry><Amt Ccy="EUR">5</Amt></Ntry>`;
  const { transfers, without_id } = read(report(content));
  t.strictSame([transfers.map(({ end_to_end_id }) => end_to_end_id), without_id], [['SALARY-12'], 3]);
});

t.test('leaves out a payment with an amount that is none of its currency, and reads the others', async (t) => {
  const cases = [
    amount('12.345'),
    amount('1,234.00'),
    amount('0.5', 'JPY'),
    amount('-1'),
    '<Amt>12.00</Amt>',
    amount('90071992547409.92'),
  ];
  for (const total of cases)
    t.match(read(report(entry(detail(keyOf(1)), { total }) + entry(detail(keyOf(2)), { total: amount('+5.00') }))), {
      transfers: [
        { end_to_end_id: keyOf(1), outcome: 'ignored', ignored_because: /is not an amount in a currency/ },
        { end_to_end_id: keyOf(2), outcome: 'paid', amounts: [{ amount_minor: 500, currency: 'EUR' }] },
      ],
    });
});

t.test('refuses a notification that holds nothing', async (t) => {
  const xml = report('').replace(/<Ntfctn>.*<\/Ntfctn>/, '');
  t.throws(() => read(xml), { message: /has no Ntfctn/ });
});
