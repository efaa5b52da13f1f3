import fc from 'fast-check';
import t from 'tap';
import { fractionDigits } from '../../../../src/core/values/money.ts';
import { decimal, minorUnits } from '../../../../src/program/payouts/bank/amount.ts';
import { bankIdentifier, railIdentifier } from '../../../../src/program/payouts/bank/identifier.ts';
import { sepaText } from '../../../../src/program/payouts/bank/latin.ts';

t.test('writes names in the characters of SEPA', async (t) => {
  const cases: [name: string, expected: string][] = [
    ["Anne-Marie O'Neill (2nd), 50 + 1?", "Anne-Marie O'Neill (2nd), 50 + 1?"],
    ['Łukasz Żółć', 'Lukasz Zolc'],
    ['Groß & Söhne, Ærø Ørsted', 'Gross + Sohne, Aero Orsted'],
    ['Þór Ðuro Œuvre İstanbul ığdır', 'Thor Duro Oeuvre Istanbul igdir'],
    ['Παπαδοπούλου Χρήστος', 'Papadopoulou Christos'],
    ['Чайковский ЩУКИН', 'Chaikovskii SHCHUKIN'],
    ['山田太郎', '....'],
    ['김', '.'],
    ['Ada 🎉 Lovelace 👩‍👩‍👧', 'Ada . Lovelace ...'],
    ['<script>alert("x")</script>', ".script.alert('x')./script."],
    ['a_b~c`d[e]{f}\\g|h;i@j#k', "a-b-c'd(e)(f)/g/h,i.j.k"],
    ['one\r\ntwo\tthree\u0000four\u00a0five', 'one two three four five'],
    ['“quoted” – it’s 5 €', "'quoted' - it's 5 EUR"],
    ['ＡＢＣ ﬁne e\u0301', 'ABC fine e'],
    ['\ud800 lone', '. lone'],
    [' \u200b\u200d\ufe0f ', ''],
  ];
  for (const [name, expected] of cases) t.equal(sepaText(name, 70), expected);
});

t.test('cuts a text without leaving a space at its end', async (t) => {
  t.equal(sepaText('abc def', 4), 'abc');
  t.equal(sepaText('ß'.repeat(100), 70).length, 70);
});

t.test('reads an id back whatever the bank has put for its underscore', async (t) => {
  const key = 'pyt_01h455vb4pex5vsknk084sn02q-12';
  t.equal(bankIdentifier(key), 'pyt-01h455vb4pex5vsknk084sn02q-12');
  for (const reported of [key, bankIdentifier(key), key.replace('_', ' '), key.replace('_', ''), key.toUpperCase()])
    t.equal(railIdentifier(reported), key);
  t.equal(railIdentifier('batch-01h455vb4pex5vsknk084sn02q'), 'batch_01h455vb4pex5vsknk084sn02q');
  for (const other of ['INVOICE-7', 'pyt_1-1', '', 'SALARY_01h455vb4pex5vsknk084sn02'])
    t.equal(railIdentifier(other), other);
  t.throws(() => bankIdentifier('pyt_01h455vb4pex5vsknk084sn02q-10000'), /longer than 35/);
  t.throws(() => bankIdentifier('a b'), /characters/);
});

t.test('writes amounts with the digits of ISO 4217, also where Intl has others', async (t) => {
  t.strictSame(
    ['EUR', 'JPY', 'KWD', 'CLF', 'HUF', 'IDR', 'IQD', 'ISK'].map((code) => [code, decimal(-1234567, code)]),
    [
      ['EUR', '-12345.67'],
      ['JPY', '-1234567'],
      ['KWD', '-1234.567'],
      ['CLF', '-123.4567'],
      ['HUF', '-12345.67'],
      ['IDR', '-12345.67'],
      ['IQD', '-1234.567'],
      ['ISK', '-1234567'],
    ],
  );
  t.strictSame([decimal(0, 'EUR'), decimal(5, 'KWD'), decimal(-5, 'EUR')], ['0.00', '0.005', '-0.05']);
});

t.test('reads what it writes, and refuses what is no amount of the currency', async (t) => {
  const currency = fc.constantFrom('EUR', 'JPY', 'KWD', 'CLF');
  fc.assert(
    fc.property(fc.maxSafeNat(), currency, (amount, code) => minorUnits(decimal(amount, code), code) === amount),
  );
  const cases: [text: string, currency: string, expected: number | null][] = [
    ['12.3', 'EUR', 1230],
    ['12.3000', 'EUR', 1230],
    ['12', 'EUR', 1200],
    ['1000.00', 'JPY', 1000],
    ['12.', 'EUR', 1200],
    ['12.345', 'EUR', null],
    ['0.5', 'JPY', null],
    ['-1.00', 'EUR', null],
    ['1e3', 'EUR', null],
    ['1,000.00', 'EUR', null],
    ['90071992547409.92', 'EUR', null],
    ['', 'EUR', null],
  ];
  for (const [text, code, expected] of cases) t.equal(minorUnits(text, code), expected, `${text} ${code}`);
  t.equal(fractionDigits('EUR'), 2);
});
