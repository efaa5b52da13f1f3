import fc from 'fast-check';
import t from 'tap';
import { Problem } from '../../../../src/core/values/problem.ts';
import { readBankReport } from '../../../../src/program/payouts/bank/bank_report.ts';

const good =
  '<Document><CstmrPmtStsRpt><OrgnlGrpInfAndSts><OrgnlMsgId>M</OrgnlMsgId></OrgnlGrpInfAndSts></CstmrPmtStsRpt></Document>';
const laughs = `<!DOCTYPE lolz [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>${good.replace('>M<', '>&b;<')}`;
const external = `<!DOCTYPE x SYSTEM "file:///etc/passwd">${good}`;
const utf16 = (bytes: Buffer) => Buffer.concat([Buffer.from([0xff, 0xfe]), bytes]);

t.test('reads bytes and text, with and without a byte order mark', async (t) => {
  for (const file of [
    good,
    Buffer.from(good),
    new TextEncoder().encode(good),
    `\uFEFF${good}`,
    Buffer.from(`\uFEFF \n${good}\n`),
    utf16(Buffer.from(good, 'utf16le')),
    Buffer.from(good, 'utf16le'),
    utf16(Buffer.from(good, 'utf16le')).swap16(),
  ])
    t.match(readBankReport(file), { kind: 'pain.002', message_id: 'M', statuses: [] });
});

const hostile: Record<string, [file: string | Uint8Array, message: RegExp]> = {
  'an entity bomb': [laughs, /has a <!DOCTYPE declaration.*Remove the declaration/],
  'an external entity': [external, /<!DOCTYPE/],
  'a lower-case doctype': [`<!doctype x>${good}`, /<!doctype/],
  'an entity without a doctype': [good.replace('>M<', '>&b;<'), /unknown entity '&b;'.*'&amp;'/],
  'an ampersand alone': [good.replace('>M<', '>A & B<'), /unknown entity '&'/],
  '50 MB': [Buffer.alloc(50_000_000, ' '), /has 50000000 bytes, and the limit is 10485760.*several reports/],
  '50 MB of text': ['x'.repeat(50_000_000), /50000000 bytes/],
  'as many elements as fit': [
    `<Document>${'<a/>'.repeat(2_000_000)}</Document>`,
    /2000002 tags, and the limit is 800000/,
  ],
  'as many closing tags as fit': [`<Document>${'</'.repeat(2_000_000)}`, /2000001 tags/],
  'a tag of many attributes': [`<Document ${'a="" '.repeat(3000)}/>`, /An element of the report has more than 10000/],
  'a text without an end': [
    good.replace('>M<', `>${'x'.repeat(1_000_000)}<`),
    /An element of the report has more than/,
  ],
  'nesting 10,000 deep': [`${'<a>'.repeat(10_000)}${'</a>'.repeat(10_000)}`, /Maximum nested tags/],
  'nesting without an end': ['<Document>'.repeat(100_000), /not valid XML|nested/],
  'invalid UTF-8': [Buffer.concat([Buffer.from(good), Buffer.from([0xc3, 0x28])]), /not valid UTF-8.*Save it as UTF-8/],
  'Latin-1': [Buffer.from(good.replace('>M<', '>Ä<'), 'latin1'), /not valid UTF-8/],
  'half of UTF-16': [utf16(Buffer.from(good, 'utf16le')).subarray(1), /encoding that it names.*Save it as UTF-8/],
  'an unknown encoding': [
    Buffer.from(`<?xml version="1.0" encoding="EBCDIC-1"?>${good.replace('>M<', '>Ä<')}`, 'latin1'),
    /encoding that it names/,
  ],
  'NUL characters': [good.replace('>M<', '>M\0<'), /NUL/],
  'a pacs.008': ['<Document><FIToFICstmrCdtTrf/></Document>', /the message FIToFICstmrCdtTrf\. Send a pain\.002/],
  'the payment file itself': [
    '<Document><CstmrCdtTrfInitn/></Document>',
    /a pain\.001 payment file, which goes to the bank/,
  ],
  'an account statement': ['<Document><BkToCstmrStmt/></Document>', /camt\.053 account statement/],
  'another root': ['<html><body/></html>', /root element is html/],
  'two roots': [`${good}<Document/>`, /not valid XML|element Document occurs 2 times|single root/],
  'a message beside another': [
    '<Document><CstmrPmtStsRpt/><BkToCstmrDbtCdtNtfctn/></Document>',
    /a Document with one message/,
  ],
  'an empty document': ['<Document/>', /a Document with one message/],
  JSON: ['{"status": "ACSC"}', /not valid XML/],
  CSV: ['id,status\n1,ACSC\n', /not valid XML|single root/],
  nothing: ['', /is empty/],
  'white space': [' \n\t', /is empty/],
  'an element that is not closed': [good.replace('</OrgnlMsgId>', ''), /not valid XML/],
  'a prototype': [good.replaceAll('OrgnlGrpInfAndSts', '__proto__'), /not valid XML/],
  'a method of objects': ['<Document><toString>1</toString></Document>', /the message/],
  'an empty status report': ['<Document><CstmrPmtStsRpt/></Document>', /OrgnlMsgId is missing/],
};
for (const [name, [file, message]] of Object.entries(hostile))
  t.test(`refuses ${name} with a clear error`, async (t) => {
    t.throws(() => readBankReport(file), { name: 'Problem', code: 'invalid_parameter', message });
  });

t.test('cuts long texts, and leaves out what Postgres cannot store', async (t) => {
  const read = (text: string) => {
    const report = readBankReport(good.replace('<OrgnlMsgId>', `<GrpSts>${text}</GrpSts><OrgnlMsgId>`));
    return report.kind === 'pain.002' ? report.group.status : undefined;
  };
  t.equal(read('x'.repeat(9000))?.length, 1000);
  t.match(read('a&#0;b&#xD800;c&#7;d&#233;'), /^a ?b ?c ?dé$/);
  t.equal(read('A &amp; B &lt;'), 'A & B <');
});

t.test('answers anything with a report or a Problem', async (t) => {
  const parts = fc.constantFrom(
    '<',
    '>',
    '/',
    '&',
    ';',
    '<Document>',
    '</Document>',
    '<CstmrPmtStsRpt>',
    '</CstmrPmtStsRpt>',
    '<![CDATA[',
    ']]>',
    '<!--',
    '-->',
    '<?xml',
    '?>',
    'M',
    '"',
    '=',
    ' ',
    '<TxSts>',
    '<x a="',
    '\n',
  );
  const pieces = fc.array(fc.oneof(parts, fc.string({ unit: 'binary', maxLength: 5 })), { maxLength: 40 });
  const mutated = fc
    .tuple(fc.nat(good.length), fc.nat(20), pieces)
    .map(([at, length, put]) => good.slice(0, at) + put.join('') + good.slice(at + length));
  fc.assert(
    fc.property(
      fc.oneof(
        pieces.map((list) => list.join('')),
        mutated,
        fc.uint8Array({ maxLength: 60 }),
      ),
      (file) => {
        try {
          return ['pain.002', 'camt.054'].includes(readBankReport(file).kind);
        } catch (error) {
          if (error instanceof Problem) return true;
          throw error;
        }
      },
    ),
    { numRuns: 2000 },
  );
  t.pass();
});
