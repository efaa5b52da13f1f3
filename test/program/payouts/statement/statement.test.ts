import t from 'tap';
import { Statement, statementTotals } from '../../../../src/program/payouts/statement/statement.ts';
import { statementCsv } from '../../../../src/program/payouts/statement/statement_csv.ts';
import { line, statement } from './example.ts';

const csvOf = (value: Statement): string => [...statementCsv(value)].join('');
const head =
  'statement_number,payout_id,date,commission_id,kind,sale_reference,description,sale_amount_minor,amount_minor,currency\r\n';
const ids = [
  'S-2026-000123,pyt_01h455vb4pex5vsknk084sn02q',
  '2026-10-03T10:11:12.000Z,com_01h455vb4pex5vsknk084sn02q',
].join();

t.test('is a plain value that its schema describes', async (t) => {
  const value = statement([line(), line({ kind: 'bonus', sale_reference: null, sale_amount_minor: null })]);
  t.strictSame(Statement.parse(JSON.parse(JSON.stringify(value))), value);
  t.throws(() => Statement.parse({ ...value, currency: 'EURO' }));
});

t.test('adds up the lines by their kinds', async (t) => {
  const lines = [
    line({ amount_minor: 100 }),
    line({ amount_minor: 23 }),
    line({ kind: 'bonus', amount_minor: 5 }),
    line({ kind: 'clawback', amount_minor: -50 }),
  ];
  t.strictSame(statementTotals(lines), { earned_minor: 123, bonus_minor: 5, clawed_back_minor: -50, total_minor: 78 });
  const most = line({ amount_minor: Number.MAX_SAFE_INTEGER });
  t.throws(() => statementTotals([most, most]), { name: 'RangeError' });
});

t.test('writes a CSV line for each commission, in minor units as the lists have them', async (t) => {
  t.equal(csvOf(statement([])), head);
  const lines = [line(), line({ kind: 'clawback', amount_minor: -5, sale_reference: null, sale_amount_minor: null })];
  t.equal(
    csvOf(statement(lines)),
    `${head}${ids},sale,ch_0001,Commission for a sale,9900,1980,EUR\r\n${ids},clawback,,Commission for a sale,,-5,EUR\r\n`,
  );
  t.match(csvOf(statement([line()], { currency: 'KWD' })), ',9900,1980,KWD\r\n');
});

t.test('keeps names as they are, and defuses what a spreadsheet would run', async (t) => {
  const csv = csvOf(
    statement([
      line({ description: '=HYPERLINK("http://x")', sale_reference: '+1' }),
      line({ description: '山田, "Łódź"\n@x' }),
    ]),
  );
  t.match(csv, `,'+1,"'=HYPERLINK(""http://x"")",`);
  t.match(csv, ',"山田, ""Łódź""\n@x",');
});

t.test('writes each of many lines once', async (t) => {
  const lines = Array.from({ length: 1501 }, (_, n) => line({ sale_reference: `ch_${n}.`, amount_minor: n }));
  const csv = csvOf(statement(lines));
  t.strictSame(
    [...csv.matchAll(/ch_\d+\./g)].map(String),
    lines.map(({ sale_reference }) => sale_reference),
  );
});

t.test('writes no CSV that does not add up', async (t) => {
  const value = statement();
  t.throws(
    () => csvOf({ ...value, totals: { ...value.totals, total_minor: 1 } }),
    /has the total_minor 1, and its lines 1980/,
  );
});
