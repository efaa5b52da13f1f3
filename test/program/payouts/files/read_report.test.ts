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
