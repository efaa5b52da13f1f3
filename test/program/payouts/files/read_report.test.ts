import t from 'tap';
import { readReport } from '../../../../src/program/payouts/files/read_report.ts';

const long = `<Document>${' '.repeat(40_000)}</Document>`;
const codeOf = (reading: Promise<unknown>) =>
  reading.then(
    () => 'read',
    (error) => error.code,
  );

t.test('an organization that sends many long reports keeps nobody else waiting', async (t) => {
  const codes = await Promise.all([
    ...Array.from({ length: 5 }, () => codeOf(readReport(long, 'org_one'))),
    codeOf(readReport(long, 'org_other')),
  ]);
  t.same(
    codes.map((code) => code === 'rate_limit_exceeded'),
    [false, false, true, true, true, false],
  );
  t.not(await codeOf(readReport(long, 'org_one')), 'rate_limit_exceeded', 'it can send again');
});

t.test('of a long report, payments of others are counted and not given on', async (t) => {
  const entry = (id: string) =>
    `<Ntry><Amt Ccy="EUR">1.00</Amt><CdtDbtInd>DBIT</CdtDbtInd><Sts>BOOK</Sts><NtryDtls><TxDtls><Refs><EndToEndId>${id}</EndToEndId></Refs></TxDtls></NtryDtls></Ntry>`;
  const entries = Array.from({ length: 400 }, (_, nth) => entry(`RENT-${nth}`)).join('');
  const own = 'pyt-01h455vb4pex5vsknk084sn02q';
  const report = await readReport(
    `<Document><BkToCstmrDbtCdtNtfctn><Ntfctn>${entries}${entry(own)}</Ntfctn></BkToCstmrDbtCdtNtfctn></Document>`,
    'org_many',
  );
  t.match(report, { kind: 'camt.054', without_id: 400, transfers: { length: 1 } });
});
