import fc from 'fast-check';
import t from 'tap';
import { readBankReport } from '../../../../src/program/payouts/bank/bank_report.ts';
import type { StatusReport } from '../../../../src/program/payouts/bank/pain002.ts';

const message_id = 'batch_01h455vb4pex5vsknk084sn02q';
const keyOf = (n: number) => `pyt_01h455vb4pex5vsknk084sn02q-${n}`;
const reported_at = '2026-12-16T08:00:00.000Z';

const element = (name: string, content: string | undefined): string =>
  content === undefined ? '' : `<${name}>${content}</${name}>`;
const because = (code?: string, words?: string): string =>
  `<StsRsnInf>${code ? `<Rsn><Cd>${code}</Cd></Rsn>` : ''}${element('AddtlInf', words)}</StsRsnInf>`;
const payment = (n: number, status?: string, more = ''): string =>
  `<TxInfAndSts><StsId>S${n}</StsId><OrgnlEndToEndId>${keyOf(n)}</OrgnlEndToEndId>${element('TxSts', status)}${more}</TxInfAndSts>`;
const block = (payments: string, status?: string, more = ''): string =>
  `<OrgnlPmtInfAndSts><OrgnlPmtInfId>B-1</OrgnlPmtInfId>${element('PmtInfSts', status)}${more}${payments}</OrgnlPmtInfAndSts>`;

function report(content: string, group = '', version = '10'): string {
  return `<?xml version="1.0" encoding="UTF-8"?>
<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pain.002.001.${version}"><CstmrPmtStsRpt>
  <GrpHdr><MsgId>BANK-1</MsgId><CreDtTm>2026-12-16T09:00:00+01:00</CreDtTm></GrpHdr>
  <OrgnlGrpInfAndSts><OrgnlMsgId>${message_id}</OrgnlMsgId><OrgnlMsgNmId>pain.001.001.09</OrgnlMsgNmId>${group}</OrgnlGrpInfAndSts>
  ${content}
</CstmrPmtStsRpt></Document>`;
}

const read = (xml: string): StatusReport => {
  const found = readBankReport(xml);
  if (found.kind !== 'pain.002') throw new Error(found.kind);
  return found;
};
const shown = (xml: string) =>
  read(xml).statuses.map((s) => `${s.status} ${s.outcome} ${s.error_code} ${s.reason_code}`);

t.test('reads the status, reason, time and reference of each payment', async (t) => {
  const rejected = payment(
    2,
    'RJCT',
    `<StsRsnInf><Rsn><Cd>AC04</Cd></Rsn><AddtlInf>Account closed</AddtlInf><AddtlInf>by R&amp;D &#8211; caf&#xe9;</AddtlInf></StsRsnInf><AcctSvcrRef>R2</AcctSvcrRef><OrgnlTxRef><Amt><InstdAmt Ccy="EUR">1.00</InstdAmt></Amt></OrgnlTxRef>`,
  );
  const settled = payment(1, 'ACSC', '<FctvIntrBkSttlmDt><Dt>2026-12-15</Dt></FctvIntrBkSttlmDt>');
  t.strictSame(read(report(block(`${settled}${rejected}`, 'PART'), '<GrpSts>PART</GrpSts>')), {
    kind: 'pain.002',
    message_id,
    report_id: 'BANK-1',
    reported_at,
    group: {
      status: 'PART',
      outcome: 'waiting',
      error_code: null,
      of_file: false,
      reason_code: null,
      reason_text: null,
    },
    payment_informations: [
      {
        payment_information_id: 'B-1',
        status: 'PART',
        outcome: 'waiting',
        error_code: null,
        of_file: false,
        reason_code: null,
        reason_text: null,
      },
    ],
    statuses: [
      {
        end_to_end_id: keyOf(1),
        payment_information_id: 'B-1',
        status: 'ACSC',
        outcome: 'paid',
        error_code: null,
        of_file: false,
        reason_code: null,
        reason_text: null,
        at: '2026-12-15T00:00:00.000Z',
        external_id: null,
        ignored_because: null,
      },
      {
        end_to_end_id: keyOf(2),
        payment_information_id: 'B-1',
        status: 'RJCT',
        outcome: 'failed',
        error_code: 'account_closed',
        of_file: false,
        reason_code: 'AC04',
        reason_text: 'Account closed by R&D – café',
        at: reported_at,
        external_id: 'R2',
        ignored_because: null,
      },
    ],
    unnamed: [],
  });
});

t.test('tells paid, doubtful and waiting apart', async (t) => {
  const outcomes = {
    paid: ['ACSC', 'ACCC'],
    doubtful: ['RJCT', 'CANC'],
    waiting: [
      'ACTC',
      'ACCP',
      'ACSP',
      'ACWC',
      'ACWP',
      'ACFC',
      'RCVD',
      'PDNG',
      'PART',
      'PATC',
      'BLCK',
      'PRES',
      'XXXX',
      'acsc',
    ],
  };
  for (const [outcome, statuses] of Object.entries(outcomes))
    for (const status of statuses)
      t.equal(read(report(block(payment(1, status)))).statuses[0]?.outcome, outcome, status);
  t.strictSame(shown(report(block(payment(1)))), ['null waiting null null']);
});

t.test('names the error of each reason', async (t) => {
  const errors = {
    insufficient_funds: ['AM04'],
    account_closed: ['AC04'],
    limit_exceeded: ['AM02'],
    currency_not_supported: ['AM03'],
    recipient_invalid: ['AC01', 'RC01', 'BE04'],
    compliance_hold: ['RR01', 'RR02', 'RR03', 'RR04'],
    provider_rejected: ['AG01', 'MS03', 'RR05', 'FF01', 'ac06'],
  };
  for (const [error, codes] of Object.entries(errors))
    for (const code of codes)
      t.equal(read(report(block(payment(1, 'RJCT', because(code))))).statuses[0]?.error_code, error);
  t.strictSame(shown(report(block(payment(1, 'RJCT')))), ['RJCT doubtful null null']);
  t.strictSame(shown(report(block(payment(1, 'RJCT', because('NARR'))))), ['RJCT doubtful null NARR']);
  const own = '<StsRsnInf><Rsn><Prtry>B42</Prtry></Rsn></StsRsnInf>';
  t.strictSame(shown(report(block(payment(1, 'CANC', own)))), ['CANC doubtful null B42']);
  t.strictSame(
    shown(report(block(payment(1, 'ACSP', because('AM04'))))),
    ['ACSP waiting null AM04'],
    'a reason alone is no rejection',
  );
});

t.test('lets a rejection reach down, and a success never', async (t) => {
  const rejected = `<GrpSts>RJCT</GrpSts>${because('AM04', 'No cover')}`;
  const each = block(`${payment(1)}${payment(2, 'PDNG')}${payment(3, 'RJCT', because('AC01'))}${payment(4, 'RJCT')}`);
  const by_group = [
    'RJCT failed insufficient_funds AM04',
    'RJCT failed insufficient_funds AM04',
    'RJCT failed recipient_invalid AC01',
    'RJCT failed insufficient_funds AM04',
  ];
  t.strictSame(shown(report(each, rejected)), by_group);
  t.strictSame(
    shown(report(block(payment(1), 'RJCT', because('AM02')), rejected)),
    ['RJCT failed limit_exceeded AM02'],
    'the nearest counts',
  );
  t.strictSame(shown(report(`${block(payment(1), 'CANC')}${block(payment(2), 'ACSC')}`)), [
    'CANC doubtful null null',
    'null waiting null null',
  ]);
  const of_block = report(block(payment(1, 'RJCT'), 'RJCT'), rejected);
  t.strictSame(shown(of_block), ['RJCT failed insufficient_funds AM04'], 'the reason above holds for what has none');
  const doubts = ['<StsRsnInf><Rsn><Prtry>duplicate</Prtry></Rsn></StsRsnInf>', because(undefined, 'Doppelt erhalten')];
  for (const why of doubts)
    t.match(shown(report(block(payment(1, 'RJCT', because('AC04'))), `<GrpSts>RJCT</GrpSts>${why}`)), [
      /^RJCT doubtful/,
    ]);
  t.strictSame(
    shown(report(block(payment(1, 'RJCT', because('MS03')) + payment(1, 'RJCT', because('AM05'))))),
    ['RJCT unchanged null AM05'],
    'what may have been paid is no failure',
  );
  for (const success of ['ACSC', 'ACCC', 'ACSP'])
    t.strictSame(shown(report(block(payment(1), success), `<GrpSts>${success}</GrpSts>`)), ['null waiting null null']);
});

t.test('gives a rejection of the file without any payment', async (t) => {
  const { group, payment_informations, statuses } = read(
    report('', `<GrpSts>RJCT</GrpSts>${because('FF01', 'Bad file')}`),
  );
  t.match(group, { status: 'RJCT', outcome: 'failed', error_code: 'provider_rejected', reason_text: 'Bad file' });
  t.strictSame([payment_informations, statuses], [[], []]);
});

t.test('takes nothing from a payment of which the report contradicts itself, and all from the others', async (t) => {
  const cases: [string, RegExp][] = [
    [
      report(block(payment(1, 'ACSC')), '<GrpSts>RJCT</GrpSts>'),
      /rejects the file or payment information .* settled \(ACSC\)/,
    ],
    [report(block(payment(1, 'ACCC'), 'RJCT')), /Ask the bank which is true/],
    [report(block(payment(1, 'ACSC') + payment(1, 'RJCT'))), /says of pyt_.*-1 both ACSC and RJCT/],
    [report(block(payment(1, 'RJCT</TxSts><TxSts>ACSC'))), /element TxSts occurs 2 times/],
    [report(block(payment(1, 'ACSC') + payment(1, 'RJCT') + payment(1, 'ACSC'))), /both ACSC and RJCT/],
    [
      report(block(payment(1, 'ACSC') + payment(1, 'ACSC', '<FctvIntrBkSttlmDt><Dt>soon</Dt></FctvIntrBkSttlmDt>'))),
      /is 'soon', which is not a date/,
    ],
  ];
  for (const [xml, ignored_because] of cases) {
    const [one, two] = read(
      xml.replace('</OrgnlPmtInfAndSts>', `${payment(2, 'RJCT', because('AC04'))}</OrgnlPmtInfAndSts>`),
    ).statuses;
    t.match(one, { end_to_end_id: keyOf(1), outcome: 'waiting', status: null, ignored_because });
    t.match(two, { end_to_end_id: keyOf(2), outcome: 'failed', ignored_because: null });
  }
});

t.test('gives a payment once, with its outcome', async (t) => {
  const twice = block(
    payment(1, 'ACSP') +
      payment(1, 'ACSC') +
      payment(1, 'PDNG') +
      payment(2, 'RJCT', because('AC01')) +
      payment(2, 'RJCT'),
  );
  t.strictSame(shown(report(twice)), ['ACSC paid null null', 'RJCT doubtful null null']);
});

t.test('says what is missing and what to do', async (t) => {
  const nameless = report(block(payment(1, 'ACSC'))).replace(/<OrgnlMsgId>.*?<\/OrgnlMsgId>/, '');
  t.throws(() => read(nameless), { message: /OrgnlMsgId is missing\. Ask the bank/ });
  const unnamed = report(
    block(payment(1, 'ACSC') + payment(2, 'ACSC').replace(/<OrgnlEndToEndId>.*?<\/OrgnlEndToEndId>/, '')),
  );
  t.match(read(unnamed), {
    statuses: { length: 1 },
    unnamed: [/TxInfAndSts number 2 of B-1 has no OrgnlEndToEndId\. Ask the bank/],
  });
  t.throws(() => read(unnamed.replace('</OrgnlPmtInfId>', '</OrgnlPmtInfId><PmtInfSts>RJCT</PmtInfSts>')), {
    message: /rejects the file or payment information of a payment without OrgnlEndToEndId/,
  });
  const dated = report(block(payment(1, 'ACSC'))).replace('2026-12-16T09:00:00+01:00', '16.12.2026');
  t.throws(() => read(dated), {
    message: "CreDtTm is '16.12.2026', which is not a date such as 2026-11-30 or 2026-11-30T10:00:00Z.",
  });
});

t.test('reads all versions, prefixes and an envelope alike', async (t) => {
  const expected = read(report(block(payment(1, 'ACSC'))));
  for (let version = 3; version <= 14; version++)
    t.strictSame(read(report(block(payment(1, 'ACSC')), '', String(version).padStart(2, '0'))), expected);
  const prefixed = report(block(payment(1, 'ACSC')))
    .replace(/<(\/?)([A-Z])/g, '<$1ns2:$2')
    .replace('xmlns=', 'xmlns:ns2=');
  t.strictSame(read(prefixed), expected);
  const document = report(block(payment(1, 'ACSC'))).replace(/<\?.*?\?>/, '');
  t.strictSame(read(`<BizMsgEnvlp><AppHdr><BizMsgIdr>1</BizMsgIdr></AppHdr>${document}</BizMsgEnvlp>`), expected);
  t.strictSame(read(report(payment(1, 'ACSC'))).statuses[0]?.payment_information_id, null, 'without a block');
  t.strictSame(shown(report(block(payment(1, 'ACSC').replace('pyt_', 'PYT-')))), ['ACSC paid null null']);
});

t.test('never says paid where anything above is rejected, nor where the payment says nothing', async (t) => {
  const any = fc.constantFrom(undefined, 'ACSC', 'ACCC', 'RJCT', 'CANC', 'PDNG', 'ACSP');
  const is = (statuses: string[], status?: string) => status !== undefined && statuses.includes(status);
  fc.assert(
    fc.property(any, any, any, (group, info, own) => {
      const xml = report(block(payment(1, own), info), element('GrpSts', group));
      const rejected_above = is(['RJCT', 'CANC'], group) || is(['RJCT', 'CANC'], info);
      const paid = is(['ACSC', 'ACCC'], own);
      const expected =
        rejected_above && paid
          ? 'waiting'
          : paid
            ? 'paid'
            : rejected_above || is(['RJCT', 'CANC'], own)
              ? 'doubtful'
              : 'waiting';
      return read(xml).statuses[0]?.outcome === expected;
    }),
  );
  t.pass();
});
