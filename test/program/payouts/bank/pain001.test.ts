import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { memoryPages, validateXML } from 'xmllint-wasm';
import { fractionDigits } from '../../../../src/core/values/money.ts';
import {
  type PaymentBlock,
  type PaymentFile,
  pain001,
  paymentInformationId,
} from '../../../../src/program/payouts/bank/pain001.ts';
import { type Transfer, transferRefusal } from '../../../../src/program/payouts/bank/transfer.ts';
import { all, type Node, one, readXml } from './xml_tree.ts';

/** Data that are shared beside a checkout and are no part of it. */
const shared = process.env.RAIL_SHARED_DATA ?? join(import.meta.dirname, '../../../../../shared/data');
const schema_file = join(shared, 'iso20022/pain.001.001.09.xsd');

const message_id = 'batch_01h455vb4pex5vsknk084sn02q';
const keyOf = (n: number) => `pyt_01h455vb4pex5vsknk084sn02q-${n}`;
const debtor = { name: 'Acme & Søn GmbH', iban: 'DE89370400440532013000', bic: 'COBADEFFXXX' };
const iban = { account_holder: 'Ada Lovelace', iban: 'FR1420041010050500013M02606', bic: 'BNPAFRPP' };
const account = { account_holder: 'Grace Hopper', account_number: '000123456789', routing_number: '021000021' };
const sepa = /^[A-Za-z0-9/\-?:().,'+ ]*$/;

type Block = Omit<PaymentBlock, 'transfer_count' | 'total_minor'> & { transfers: Transfer[] };

/** The chunks of a file, whose totals follow from its transfers. */
async function written(blocks: Block[], changes: Partial<PaymentFile> = {}): Promise<string[]> {
  const transfersOf = new Map<PaymentBlock, Transfer[]>();
  for (const { transfers, ...terms } of blocks) {
    const total_minor = transfers.reduce((sum, { amount_minor }) => sum + BigInt(Math.trunc(amount_minor)), 0n);
    transfersOf.set({ ...terms, transfer_count: transfers.length, total_minor }, transfers);
  }
  const file = {
    message_id,
    created_at: '2026-11-22T10:11:12.345Z',
    debtor,
    blocks: [...transfersOf.keys()],
    ...changes,
  };
  return Array.fromAsync(pain001(file, (block) => transfersOf.get(block) ?? []));
}

const transfer = (changes: Partial<Transfer> = {}): Transfer => ({
  key: keyOf(1),
  amount_minor: 12345,
  creditor: iban,
  remittance: 'Acme partner program 2026-10',
  ...changes,
});
const block = (changes: Partial<Block> = {}): Block => ({
  method: 'bank_transfer',
  currency: 'EUR',
  execution_date: '2026-12-15',
  transfers: [transfer()],
  ...changes,
});
const example: Block[] = [
  block({ transfers: [transfer(), transfer({ key: keyOf(2), amount_minor: 5, remittance: '' })] }),
  block({ currency: 'USD', transfers: [transfer({ creditor: account })] }),
  block({ currency: 'JPY', method: 'wire', transfers: [transfer({ amount_minor: 150000 })] }),
  block({
    currency: 'KWD',
    method: 'wire',
    execution_date: '2026-12-16',
    transfers: [transfer({ amount_minor: 1234 })],
  }),
];

t.test('writes header, blocks and transfers in the order of the schema', async (t) => {
  const root = readXml((await written(example)).join(''));
  t.equal(root.attributes, 'xmlns="urn:iso:std:iso:20022:tech:xsd:pain.001.001.09"');
  const [message] = root.children as [Node];
  t.strictSame(outline(message.children[0] as Node), 'GrpHdr(MsgId CreDtTm NbOfTxs CtrlSum InitgPty(Nm))');
  t.equal(one(message, 'GrpHdr', 'MsgId'), 'batch-01h455vb4pex5vsknk084sn02q');
  t.equal(one(message, 'GrpHdr', 'CreDtTm'), '2026-11-22T10:11:12Z');
  t.equal(one(message, 'GrpHdr', 'NbOfTxs'), '5');
  t.equal(one(message, 'GrpHdr', 'CtrlSum'), '150248.184');
  t.equal(one(message, 'GrpHdr', 'InitgPty', 'Nm'), 'Acme + Son GmbH');
  const iban_transfer =
    'CdtTrfTxInf(PmtId(EndToEndId) Amt(InstdAmt) CdtrAgt(FinInstnId(BICFI)) Cdtr(Nm) CdtrAcct(Id(IBAN)) RmtInf(Ustrd))';
  const head =
    'NbOfTxs CtrlSum PmtTpInf(SvcLvl(Cd)) ReqdExctnDt(Dt) Dbtr(Nm) DbtrAcct(Id(IBAN)) DbtrAgt(FinInstnId(BICFI))';
  t.strictSame(all(message, 'PmtInf').map(outline), [
    `PmtInf(PmtInfId PmtMtd ${head} ChrgBr ${iban_transfer} ${iban_transfer.replace(' RmtInf(Ustrd)', '')})`,
    `PmtInf(PmtInfId PmtMtd ${head.replace(' PmtTpInf(SvcLvl(Cd))', '')} CdtTrfTxInf(PmtId(EndToEndId) Amt(InstdAmt) CdtrAgt(FinInstnId(ClrSysMmbId(ClrSysId(Cd) MmbId))) Cdtr(Nm) CdtrAcct(Id(Othr(Id))) RmtInf(Ustrd)))`,
    `PmtInf(PmtInfId PmtMtd ${head} ${iban_transfer})`,
    `PmtInf(PmtInfId PmtMtd ${head} ${iban_transfer})`,
  ]);
});

const outline = ({ name, children }: Node): string =>
  children.length === 0 ? name : `${name}(${children.map(outline).join(' ')})`;

t.test('gives each block its totals, service level, date and charges', async (t) => {
  const message = readXml((await written(example)).join('')).children[0] as Node;
  const shown = all(message, 'PmtInf').map((info) => ({
    id: one(info, 'PmtInfId'),
    count: one(info, 'NbOfTxs'),
    sum: one(info, 'CtrlSum'),
    level: all(info, 'PmtTpInf', 'SvcLvl', 'Cd')[0]?.text,
    date: one(info, 'ReqdExctnDt', 'Dt'),
    charges: all(info, 'ChrgBr')[0]?.text,
    amounts: all(info, 'CdtTrfTxInf', 'Amt', 'InstdAmt').map(({ attributes, text }) => `${attributes} ${text}`),
  }));
  const id = (n: number) => `batch-01h455vb4pex5vsknk084sn02q-${n}`;
  t.strictSame(shown, [
    {
      id: id(1),
      count: '2',
      sum: '123.50',
      level: 'SEPA',
      date: '2026-12-15',
      charges: 'SLEV',
      amounts: ['Ccy="EUR" 123.45', 'Ccy="EUR" 0.05'],
    },
    {
      id: id(2),
      count: '1',
      sum: '123.45',
      level: undefined,
      date: '2026-12-15',
      charges: undefined,
      amounts: ['Ccy="USD" 123.45'],
    },
    {
      id: id(3),
      count: '1',
      sum: '150000',
      level: 'URGP',
      date: '2026-12-15',
      charges: undefined,
      amounts: ['Ccy="JPY" 150000'],
    },
    {
      id: id(4),
      count: '1',
      sum: '1.234',
      level: 'URGP',
      date: '2026-12-16',
      charges: undefined,
      amounts: ['Ccy="KWD" 1.234'],
    },
  ]);
  t.equal(paymentInformationId(message_id, 0), id(1));
  t.equal(paymentInformationId(message_id, 122).length, 35, 'the id of the 123rd block is cut at its front');
});

t.test('names the account of a routing number by USABA', async (t) => {
  const info = all(readXml((await written(example)).join('')), 'CstmrCdtTrfInitn', 'PmtInf')[1] as Node;
  t.equal(one(info, 'CdtTrfTxInf', 'CdtrAgt', 'FinInstnId', 'ClrSysMmbId', 'ClrSysId', 'Cd'), 'USABA');
  t.equal(one(info, 'CdtTrfTxInf', 'CdtrAgt', 'FinInstnId', 'ClrSysMmbId', 'MmbId'), '021000021');
  t.equal(one(info, 'CdtTrfTxInf', 'CdtrAcct', 'Id', 'Othr', 'Id'), '000123456789');
});

t.test('writes the same bytes each time', async (t) => {
  t.strictSame(await written(example), await written(example));
});

t.test('refuses a block whose transfers differ from its count or total', async (t) => {
  const file = (transfer_count: number, total_minor: bigint): PaymentFile => ({
    message_id,
    created_at: '2026-11-22T10:11:12Z',
    debtor,
    blocks: [{ method: 'bank_transfer', currency: 'EUR', execution_date: '2026-12-15', transfer_count, total_minor }],
  });
  const transfers = [transfer(), transfer({ key: keyOf(2) })];
  for (const [count, total] of [
    [1, 24690n],
    [3, 24690n],
    [2, 24689n],
    [2, 24691n],
  ] as const)
    await t.rejects(Array.fromAsync(pain001(file(count, total), () => transfers)), {
      message: `The block bank_transfer EUR of 2026-12-15 says ${count} transfers of ${total} in minor units; there are 2 of 24690.`,
    });
  await t.resolves(Array.fromAsync(pain001(file(2, 24690n), () => transfers)));
});

t.test('refuses what cannot be written, before and while it is written', async (t) => {
  const terms = { method: 'bank_transfer', currency: 'EUR' } as const;
  const cases: [Partial<Transfer>, RegExp][] = [
    [{ amount_minor: 0 }, /not a positive integer/],
    [{ amount_minor: -1 }, /not a positive integer/],
    [{ amount_minor: 1.5 }, /not a positive integer/],
    [{ amount_minor: 100_000_000_000 }, /above 999,999,999.99 EUR/],
    [{ key: keyOf(10_000) }, /1 to 35 letters/],
    [{ key: 'a<b' }, /1 to 35 letters/],
    [{ creditor: { ...iban, account_holder: '\u0000\u200d ' } }, /no name/],
    [{ creditor: { ...iban, iban: 'FR1420041010050500013M02607' } }, /IBAN/],
    [{ creditor: { ...iban, bic: 'BNP"><' } }, /BIC/],
    [{ creditor: account }, /needs an IBAN/],
    [{ creditor: { ...account, account_number: '1</Id>' } }, /account number/],
    [{ creditor: { ...account, routing_number: '12345678' } }, /routing number/],
  ];
  for (const [changes, message] of cases) {
    t.match(transferRefusal(terms, transfer(changes)), message);
    await t.rejects(written([block({ transfers: [transfer(changes)] })]), { name: 'RangeError', message });
  }
  t.equal(transferRefusal(terms, transfer({ key: keyOf(9999), amount_minor: 99_999_999_999 })), null);
  t.equal(transferRefusal({ ...terms, currency: 'USD' }, transfer({ creditor: account })), null);
});

t.test('refuses a debtor, date or message id that no bank takes', async (t) => {
  await t.rejects(written([block()], { debtor: { ...debtor, iban: 'DE<' } }), /IBAN of the debtor/);
  await t.rejects(written([block()], { debtor: { ...debtor, bic: 'X' } }), /BIC of the debtor/);
  await t.rejects(written([block()], { debtor: { ...debtor, name: '' } }), /debtor has no name/);
  await t.rejects(written([block({ execution_date: '15.12.2026' })]), /execution date/);
  await t.rejects(written([block({ currency: 'E"R' })]), /currency of a block/);
  await t.rejects(written([block()], { message_id: `${message_id}-1234` }), /longer than 35/);
  await t.rejects(written([]), /at least one block/);
});

t.test('leaves a control sum out that the schema cannot hold', async (t) => {
  const most = Number.MAX_SAFE_INTEGER;
  const transfers = Array.from({ length: 120 }, (_, n) => transfer({ key: keyOf(n), amount_minor: most }));
  const message = readXml((await written([block({ currency: 'USD', transfers })])).join('')).children[0] as Node;
  t.strictSame(all(message, 'GrpHdr', 'CtrlSum'), []);
  t.equal(one(message, 'GrpHdr', 'NbOfTxs'), '120');
  t.equal(all(message, 'PmtInf', 'CdtTrfTxInf', 'Amt', 'InstdAmt')[0]?.text, '90071992547409.91');
});

const currencies = fc.constantFrom('USD', 'GBP', 'JPY', 'KWD', 'HUF', 'IQD', 'CLF', 'EUR');
const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 200 }),
  fc.string({ unit: 'grapheme', maxLength: 300 }),
);
const blocksOfAnything = fc.array(
  fc.record({
    method: fc.constantFrom('bank_transfer' as const, 'wire' as const),
    currency: currencies,
    execution_date: fc.constantFrom('2026-12-15', '2027-02-28'),
    transfers: fc.array(
      fc.record({
        key: fc.nat(9999).map(keyOf),
        amount_minor: fc.integer({ min: 1, max: 99_999_999_999 }),
        creditor: anyText.map((name) => ({ ...iban, account_holder: `${name}x` })),
        remittance: anyText,
      }),
      { minLength: 1, maxLength: 4 },
    ),
  }),
  { minLength: 1, maxLength: 4 },
);

t.test('writes any names, amounts and currencies within the lengths and characters that a bank takes', async (t) => {
  await fc.assert(
    fc.asyncProperty(blocksOfAnything, async (blocks) => {
      const message = readXml((await written(blocks)).join('')).children[0] as Node;
      checkTotals(message, blocks);
      for (const { text } of leaves(message)) if (!sepa.test(text.trim())) throw new Error(`${text} is not SEPA`);
      for (const info of all(message, 'PmtInf')) for (const paid of all(info, 'CdtTrfTxInf')) checkLengths(paid);
    }),
    { numRuns: 300 },
  );
  t.pass();
});

function checkTotals(message: Node, blocks: Block[]): void {
  const exact = (text: string): bigint =>
    BigInt(text.replace('.', '')) * 10n ** BigInt(6 - (text.split('.')[1]?.length ?? 0));
  const infos = all(message, 'PmtInf');
  const amounts = infos.map((info) => all(info, 'CdtTrfTxInf', 'Amt', 'InstdAmt').map(({ text }) => exact(text)));
  const sums = amounts.map((list) => list.reduce((sum, amount) => sum + amount, 0n));
  for (const [at, info] of infos.entries()) {
    const { currency, transfers } = blocks[at] as Block;
    same(exact(one(info, 'CtrlSum')), sums[at]);
    same(one(info, 'NbOfTxs'), String(transfers.length));
    const scale = 10n ** BigInt(6 - fractionDigits(currency));
    same(
      sums[at],
      transfers.reduce((sum, { amount_minor }) => sum + BigInt(amount_minor) * scale, 0n),
    );
  }
  same(
    exact(one(message, 'GrpHdr', 'CtrlSum')),
    sums.reduce((sum, amount) => sum + amount, 0n),
  );
  same(one(message, 'GrpHdr', 'NbOfTxs'), String(amounts.flat().length));
}

function checkLengths(paid: Node): void {
  const name = one(paid, 'Cdtr', 'Nm');
  if (name.length < 1 || name.length > 70) throw new Error(`the name has ${name.length} characters`);
  for (const { text } of all(paid, 'RmtInf', 'Ustrd'))
    if (text.length < 1 || text.length > 140) throw new Error(`the remittance has ${text.length} characters`);
  if (!/^pyt-[0-9a-z]{26}-\d+$/.test(one(paid, 'PmtId', 'EndToEndId'))) throw new Error('the EndToEndId is no key');
}

const leaves = (node: Node): Node[] => (node.children.length === 0 ? [node] : node.children.flatMap(leaves));

function same(one: unknown, other: unknown): void {
  if (one !== other) throw new Error(`${one} is not ${other}`);
}

t.test('yields 100,000 transfers in small pieces, reading each when it is written', async (t) => {
  const count = 100_000;
  let read = 0;
  let characters = 0;
  let ahead = 0;
  let longest = 0;
  let payments = 0;
  const file: PaymentFile = {
    message_id,
    created_at: '2026-11-22T10:11:12Z',
    debtor,
    blocks: [
      {
        method: 'bank_transfer',
        currency: 'USD',
        execution_date: '2026-12-15',
        transfer_count: count,
        total_minor: BigInt(count),
      },
    ],
  };
  const one_transfer = transfer({ amount_minor: 1, creditor: account });
  const transfers = function* () {
    for (; read < count; read++) yield one_transfer;
  };
  for await (const chunk of pain001(file, transfers)) {
    characters += chunk.length;
    longest = Math.max(longest, chunk.length);
    payments += chunk.match(/<CdtTrfTxInf>/g)?.length ?? 0;
    ahead = Math.max(ahead, read - payments);
  }
  t.equal(payments, count);
  t.ok(characters > 30_000_000 && longest < 40_000 && ahead < 2, `${longest} characters at most, ${ahead} read ahead`);
});

const skip = existsSync(schema_file) ? false : `${schema_file} is not there: set RAIL_SHARED_DATA`;
t.test('is valid by the schema of pain.001.001.09', { skip }, async (t) => {
  const schema = await readFile(schema_file, 'utf8');
  const most = { initialMemoryPages: 256, maxMemoryPages: memoryPages.GiB };
  const anything = fc.sample(blocksOfAnything, { numRuns: 40, seed: 7 });
  const files = [example, ...anything].map(async (blocks) => (await written(blocks)).join(''));
  const xml = (await Promise.all(files)).map((contents, n) => ({ fileName: `${n}.xml`, contents }));
  const { valid, errors } = await validateXML({ xml, schema, ...most });
  t.strictSame(errors, []);
  t.ok(valid);
  const wrong = (xml[0]?.contents ?? '').replace('<PmtMtd>TRF</PmtMtd>', '');
  t.notOk((await validateXML({ xml: wrong, schema, ...most })).valid, 'a file without PmtMtd is not valid');
});
