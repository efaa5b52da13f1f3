import { once } from 'node:events';
import { buffer } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import PDFDocument from 'pdfkit';
import t from 'tap';
import { embedded } from '../../../../src/program/payouts/statement/pdf_font.ts';
import { pdfAmount, pdfText } from '../../../../src/program/payouts/statement/pdf_text.ts';
import type { Statement } from '../../../../src/program/payouts/statement/statement.ts';
import { statementPdf } from '../../../../src/program/payouts/statement/statement_pdf.ts';
import { line, statement } from './example.ts';
import { type PdfText, readPdf } from './pdf_reader.ts';

const pagesOf = async (value: Statement): Promise<PdfText[][]> => readPdf(await buffer(statementPdf(value)));
const textsOf = (page: PdfText[] | undefined): string[] => (page ?? []).map(({ text }) => text);
const manyLines = (count: number) =>
  Array.from({ length: count }, (_, n) => line({ sale_reference: `ch_${n}`, amount_minor: n + 1 }));

t.test('shows who is paid, what for and how much', async (t) => {
  const lines = [
    line(),
    line({ kind: 'bonus', sale_reference: null, sale_amount_minor: null, description: 'Bonus', amount_minor: 250_000 }),
    line({ kind: 'clawback', amount_minor: -990, description: 'Clawback' }),
  ];
  const [page] = await pagesOf(statement(lines));
  const texts = textsOf(page);
  for (const text of [
    'Payout statement',
    'Acme GmbH',
    'Ada Lovelace',
    'ada@partner.example.com',
    'S-2026-000123',
    'pyt_01h455vb4pex5vsknk084sn02q',
    '2026-10-01 to 2026-10-31',
    'Paid',
    '2026-11-17',
    'Bank transfer',
    'ends in 3000',
    'BANK-REF-1',
    '0.35 EUR',
    '3 lines',
    'Page 1 of 1',
  ])
    t.ok(texts.includes(text), text);
  for (const text of [
    '19.80 EUR',
    '2,500.00 EUR',
    '-9.90 EUR',
    '2026-10-03',
    'Bonus',
    'ch_0001',
    '99.00',
    '19.80',
    '2,500.00',
    '-9.90',
  ])
    t.ok(texts.includes(text), text);
  t.equal(texts.filter((text) => text === '2,509.90 EUR').length, 2, 'the total stands above and below the table');
});

t.test('leaves out what is not known', async (t) => {
  const { payout, ...rest } = statement();
  const pending = {
    ...payout,
    status: 'pending' as const,
    fee_minor: null,
    method: null,
    destination_hint: null,
    paid_at: null,
    external_id: null,
  };
  const texts = textsOf((await pagesOf({ ...rest, period_start: null, payout: pending }))[0]);
  for (const label of ['Paid on', 'Method', 'Account', 'Payment reference', 'Fee of the payment'])
    t.notOk(texts.includes(label), label);
  t.ok(texts.includes('Pending') && texts.includes('until 2026-10-31'));
});

t.test('repeats the header of the table, and numbers the pages', async (t) => {
  const pages = await pagesOf(statement(manyLines(70)));
  t.ok(pages.length > 2);
  for (const [at, page] of pages.entries()) {
    const texts = textsOf(page);
    for (const title of ['Date', 'Description', 'Sale reference', 'Sale amount (EUR)', 'Amount (EUR)'])
      t.ok(texts.includes(title));
    t.ok(texts.includes(`Page ${at + 1} of ${pages.length}`));
  }
  const references = pages.flatMap(textsOf).filter((text) => text.startsWith('ch_'));
  t.strictSame(
    references,
    manyLines(70).map(({ sale_reference }) => sale_reference),
    'each line stands once, in order',
  );
});

t.test('keeps the total beside a line, whatever the number of lines', async (t) => {
  for (let count = 0; count <= 60; count++) {
    const last = textsOf((await pagesOf(statement(manyLines(count)))).at(-1));
    t.ok(count === 0 || last.some((text) => text.startsWith('ch_')), `${count} lines`);
    t.ok(last.includes(count === 1 ? '1 line' : `${count} lines`));
  }
});

t.test('gives the same bytes for the same statement', async (t) => {
  const one = await buffer(statementPdf(statement(manyLines(40))));
  t.strictSame(
    one.toString('latin1').match(/D:\d{14}Z?/g),
    ['D:20261117091233Z'],
    'its only time is that of the payment',
  );
  t.ok(one.equals(await buffer(statementPdf(statement(manyLines(40))))));
  t.notOk(one.equals(await buffer(statementPdf(statement(manyLines(41))))));
});

t.test('aligns amounts at the right, and lets nothing overflow', async (t) => {
  const most = Number.MAX_SAFE_INTEGER;
  const wide = 'W'.repeat(300);
  const lines = [
    line({ amount_minor: most, sale_amount_minor: most, description: wide, sale_reference: wide }),
    line({ kind: 'clawback', amount_minor: -1, sale_amount_minor: 5 }),
  ];
  const value = statement(lines, {
    number: wide,
    program: { ...statement().program, name: wide },
    partner: { ...statement().partner, name: wide, email: wide },
  });
  value.payout = { ...value.payout, external_id: wide };
  for (const page of await pagesOf(value))
    for (const text of page) {
      const right = text.x + widthOf(text);
      t.ok(text.x >= 49 && right <= 546, `${text.text} ends at ${right}`);
      t.ok(text.y > 20 && text.y < 810, `${text.text} stands at ${text.y}`);
    }
  const ends = (await pagesOf(value))
    .flat()
    .filter(({ text }) => ['90,071,992,547,409.91', '-0.01'].includes(text))
    .map((text) => Math.round(text.x + widthOf(text)));
  t.equal(ends.filter((end) => end === 545).length, 2);
});

const measure = new PDFDocument({ autoFirstPage: false });
const widthOf = ({ text, size }: PdfText): number => measure.font('Helvetica').fontSize(size).widthOfString(text);

t.test('shows amounts exactly, with the digits of their currency', async (t) => {
  const cases: [number, string, string][] = [
    [123_456_789, 'EUR', '1,234,567.89'],
    [-5, 'EUR', '-0.05'],
    [0, 'JPY', '0'],
    [1_234_567, 'JPY', '1,234,567'],
    [1_234_567, 'KWD', '1,234.567'],
    [1_234_567, 'HUF', '12,345.67'],
    [Number.MAX_SAFE_INTEGER, 'EUR', '90,071,992,547,409.91'],
    [-Number.MAX_SAFE_INTEGER, 'KWD', '-9,007,199,254,740.991'],
  ];
  for (const [amount, currency, expected] of cases) t.equal(pdfAmount(amount, currency), expected);
  fc.assert(
    fc.property(
      fc.maxSafeInteger(),
      fc.constantFrom('EUR', 'JPY', 'KWD', 'CLF'),
      (amount, currency) => BigInt(pdfAmount(amount, currency).replaceAll(/[,.]/g, '')) === BigInt(amount),
    ),
  );
});

t.test('shows names of Latin, Greek, Cyrillic and Devanagari letters as they are', async (t) => {
  const names = [
    'Großmüller & Søn “Ærø” – 5 €',
    'Łukasz Żółć',
    'Αθήνα Ἀθῆναι',
    'Їжак Москва',
    'Işık Çağ',
    'Nguyễn Thị Ước',
    '₺ 5 № 7',
  ];
  for (const name of names) {
    const partner = { ...statement().partner, name, email: name };
    const lines = [line({ description: name, sale_reference: name })];
    const texts = textsOf((await pagesOf(statement(lines, { partner, program: { ...statement().program, name } })))[0]);
    t.same(texts.filter((text) => text === name).length, 5, name);
    t.notOk(texts.some((text) => text.includes('[…]')));
  }
  const hindi = { ...statement().partner, name: 'आशा शर्मा' };
  const pdf = await buffer(statementPdf(statement([line()], { partner: hindi })));
  t.match(pdf.toString('latin1'), /FontFile2/, 'the letters are embedded');
  t.ok(pdf.length < 60_000, 'and only those that are used');
});

t.test('says of characters of other scripts where they are, and never shows question marks for them', async (t) => {
  t.equal(pdfText('山田 🎉 سلام', 100), '[…] […] […]');
  t.equal(pdfText('a\u0000b\nc\u202e', 100), 'a b c');
  t.equal(pdfText('abcdef', 4), 'abc…');
  const partner = { ...statement().partner, name: 'Łukasz 山田' };
  const texts = textsOf((await pagesOf(statement([line()], { partner })))[0]);
  t.ok(texts.includes('Łukasz […]'));
  t.match(texts.join(' '), '[…] stands for characters that this document has no font for. They are in');
  t.notMatch(textsOf((await pagesOf(statement()))[0]).join(' '), 'stands for characters');
});

t.test('has each character that it shows in a font', async (t) => {
  const noto = (
    measure.font(embedded.regular) as unknown as { _font: { font: { hasGlyphForCodePoint(code: number): boolean } } }
  )._font.font;
  for (let code = 0x20; code < 0x11_0000; code++) {
    const character = String.fromCodePoint(code);
    const shown = pdfText(character, 10);
    if (shown === '' || shown === '[…]' || shown !== character) continue;
    if (!noto.hasGlyphForCodePoint(code)) t.fail(`U+${code.toString(16)}`);
  }
});

t.test('names PayPal and an email address once, and no account by the end of its domain', async (t) => {
  const value = statement([line()], { partner: { ...statement().partner, name: 'ada@partner.example.com' } });
  const payout = { ...value.payout, method: 'paypal', destination_hint: 'race' };
  const texts = textsOf((await pagesOf({ ...value, payout }))[0]);
  t.ok(texts.includes('PayPal') && texts.includes('…race@…'));
  t.equal(texts.filter((text) => text === 'ada@partner.example.com').length, 1);
});

t.test('draws 10,000 lines page by page', async (t) => {
  let chunks = 0;
  let bytes = 0;
  let longest = 0;
  for await (const chunk of statementPdf(statement(manyLines(10_000)))) {
    chunks += 1;
    bytes += chunk.length;
    longest = Math.max(longest, chunk.length);
  }
  t.ok(
    chunks > 300 && longest < 100_000 && bytes < 3_000_000,
    `${chunks} pieces of ${longest} bytes at most, ${bytes} in all`,
  );
});

t.test('draws no statement that does not add up', async (t) => {
  const { totals, payout } = statement();
  t.throws(
    () => statementPdf({ ...statement(), totals: { ...totals, bonus_minor: 1 } }),
    /has the bonus_minor 1, and its lines 0/,
  );
  t.throws(
    () => statementPdf({ ...statement(), payout: { ...payout, amount_minor: 1 } }),
    /has the total 1980, and its payout 1/,
  );
});

t.test('draws no further than its reader reads, and stops when that has gone', async (t) => {
  const document = statementPdf(statement(manyLines(2_000)));
  const few = statementPdf(statement(manyLines(2_000)));
  few.once('data', () => few.destroy());
  await once(few, 'close');
  // Lines that are drawn meanwhile for the first are not read by anybody.
  while (document.readableLength <= document.readableHighWaterMark) await setImmediate();
  for (let turn = 0; turn < 200; turn++) await setImmediate();
  t.ok(document.readableLength < 2 * document.readableHighWaterMark, `${document.readableLength} bytes wait`);
  t.equal(readPdf(await buffer(document)).length, (await pagesOf(statement(manyLines(2_000)))).length);
});
