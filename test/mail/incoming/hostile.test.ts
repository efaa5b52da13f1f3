import t from 'tap';
import { classifyMail, type MailContext } from '../../../src/mail/incoming/classify.ts';
import { readMessage } from '../../../src/mail/incoming/message/message.ts';
import { shorten } from '../../../src/mail/incoming/message/shorten.ts';
import { numbers } from '../../numbers.ts';
import { effort } from '../../runner/effort.ts';
import { crlf, mail, report } from './mails.ts';

const context: MailContext = {
  own_addresses: [],
  readMeaning: () => ({ kind: 'positive', confidence: 0.9, language: 'en', unsubscribe: false }),
  now: new Date('2026-02-03T10:00:00Z'),
};
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const nested = (depth: number): string => {
  let body = 'Content-Type: text/plain\n\nSounds good!';
  for (let level = depth; level > 0; level -= 1)
    body = `Content-Type: multipart/mixed; boundary=b${level}\n\n--b${level}\n${body}\n--b${level}--`;
  return `From: grace@blog.example\n${body}`;
};

/** The mails that are mutated: one of each kind. */
const seeds = [
  mail(
    {},
    'Sounds good!\n\nOn Mon, Feb 2, 2026 at 10:04 AM Ada <ada@shop.example> wrote:\n> Hello Grace\n> would you join?\n\n-- \nGrace',
  ),
  report('delivery-status', [
    ['text/plain', 'Your message could not be delivered.'],
    [
      'message/delivery-status',
      'Reporting-MTA: dns; mx\n\nFinal-Recipient: rfc822; grace@blog.example\nAction: failed\nStatus: 5.1.1\nDiagnostic-Code: smtp; 550 5.1.1 User unknown',
    ],
    ['message/rfc822', 'Message-ID: <fms_1@shop.example>\nTo: grace@blog.example\nSubject: A program\n\nHello'],
  ]),
  mail(
    { Subject: 'Automatic reply: x', 'Content-Transfer-Encoding': 'base64' },
    Buffer.from('I am away until 12 March 2026.').toString('base64'),
  ),
  mail(
    { 'Content-Type': 'text/html; charset=iso-2022-jp', 'Content-Transfer-Encoding': 'quoted-printable' },
    '<div>Sounds=20good<blockquote type=3D"cite">Hello</blockquote></div>',
  ),
  mail(
    { From: 'MAILER-DAEMON@mx.example', Subject: 'failure notice' },
    'Hi. This is the qmail-send program.\n\n<grace@blog.example>:\nRemote host said: 550 5.1.1 User unknown\n\n--- Below this line is a copy of the message.\n\nMessage-ID: <a@b>\nTo: c@d.example\nSubject: x',
  ),
  mail(
    { Subject: '=?utf-8?B?w4FiYw==?= =?iso-8859-1?Q?=E9?=', 'Content-Type': 'multipart/alternative; boundary="b"' },
    '--b\nContent-Type: text/plain; charset=utf-16\n\nSounds good\n--b\nContent-Type: text/html\n\n<p>Sounds good</p>\n--b--',
  ),
];

const pieces = [
  '\r\n',
  '\n\n',
  '--b1\r\n',
  '--',
  '=?utf-8?B?',
  '?=',
  '\0',
  '\u{1F600}',
  '<',
  '>',
  '"',
  ';',
  'boundary=',
  'charset="x"',
  'Content-Type: message/rfc822\n\n',
  'Content-Transfer-Encoding: base64\n',
  '<div>'.repeat(50),
  '<blockquote>'.repeat(50),
  '> '.repeat(200),
  '(('.repeat(100),
  'a@'.repeat(100),
  '9'.repeat(300),
  'On '.repeat(100),
  ' wrote:',
];

/** Cuts, repeats, inserts and changes bytes somewhere. */
function mutate(text: string, next: (below: number) => number): Uint8Array {
  let raw = Buffer.from(crlf(text));
  for (let count = 1 + next(6); count > 0; count -= 1) {
    const at = next(raw.length + 1);
    const to = Math.min(raw.length, at + next(200));
    const edits = [
      () => Buffer.concat([raw.subarray(0, at), raw.subarray(to)]),
      () => Buffer.concat([raw.subarray(0, to), raw.subarray(at, to), raw.subarray(at)]),
      () => Buffer.concat([raw.subarray(0, at), Buffer.from(pieces[next(pieces.length)] as string), raw.subarray(at)]),
      () => Buffer.concat([raw.subarray(0, at), Buffer.from([next(256), next(256), next(256)]), raw.subarray(at)]),
      () => raw.subarray(0, at),
    ];
    raw = (edits[next(edits.length)] as () => Buffer<ArrayBuffer>)();
  }
  return raw;
}

t.test(`${effort.hostile_mails.toLocaleString('en')} mutated mails are classified, none of them slowly`, async (t) => {
  const next = numbers(20_260_203);
  const kinds = new Set<string>();
  for (let count = 0; count < effort.hostile_mails; count += 1) {
    const classified = await classifyMail(mutate(seeds[count % seeds.length] as string, next), context);
    kinds.add(classified.kind);
    if (!JSON.stringify(classified).includes('"kind"')) t.fail('no answer');
  }
  for (const kind of ['bounce', 'auto_reply', 'reply']) t.ok(kinds.has(kind), `${kind} is among them`);
});

t.test('reads what it can of bombs, in bounded memory', async (t) => {
  const whole = 'Sounds good!';
  const attachment = (size: number): string =>
    mail(
      { 'Content-Type': 'multipart/mixed; boundary=b' },
      `--b\nContent-Type: application/zip\nContent-Transfer-Encoding: base64\n\n${`${'A'.repeat(76)}\n`.repeat(size / 77)}\n--b\nContent-Type: text/plain\n\n${whole}\n--b--`,
    );
  const { bytes: kept, whole: is_whole } = shorten(bytes(attachment(20 << 20)));
  t.ok(kept.length < 2 << 20, `${kept.length} bytes are kept of 20 MiB`);
  t.equal(is_whole, true, 'and no part is missing');
  t.match(
    await classifyMail(bytes(attachment(20 << 20)), context),
    { kind: 'reply', text: whole, needs_review: false },
    'a text behind a large attachment',
  );

  const bombs: Record<string, () => Uint8Array> = {
    '50 MiB on one line': () => bytes(mail({}, 'x'.repeat(50 << 20))),
    'more than 50 MiB': () => bytes(mail({}, 'x\n'.repeat((50 << 20) / 2 + 1))),
    'a header of 8 MiB': () => bytes(`X-Long: ${'x'.repeat(8 << 20)}\n\nHello`),
    '100,000 fields': () => bytes(`${'X-Field: x\n'.repeat(100_000)}\nHello`),
    '100,000 parts': () => bytes(mail({ 'Content-Type': 'multipart/mixed; boundary=b' }, '--b\n\nx\n'.repeat(100_000))),
    '1,000 parts deep': () => bytes(nested(1_000)),
    'a mail in a mail in a mail': () =>
      bytes(mail({ 'Content-Type': 'message/rfc822' }, 'Content-Type: message/rfc822\n\n'.repeat(1_000))),
    '100,000 addresses': () => bytes(mail({ To: 'a@b.example,'.repeat(100_000) }, 'Hello')),
    '20,000 references': () => bytes(mail({ References: '<a@b.example> '.repeat(20_000) }, 'Hello')),
    '10,000 elements deep': () =>
      bytes(mail({ 'Content-Type': 'text/html' }, `${'<div><blockquote>'.repeat(10_000)}Hello`)),
    '50,000 lines of quotes': () =>
      bytes(mail({}, '> On Mon, 1 Feb 2026 at 10:00, A <a@b.example> wrote:\n'.repeat(50_000))),
    '100,000 beginnings of attributions': () => bytes(mail({}, 'On 1 Feb 2026 Ada <ada\n'.repeat(100_000))),
    'a bounce of 100,000 recipients': () =>
      bytes(
        report('delivery-status', [
          [
            'message/delivery-status',
            'Final-Recipient: rfc822; a@b.example\nAction: failed\nStatus: 5.1.1\n\n'.repeat(100_000),
          ],
        ]),
      ),
    'nothing but bytes': () => Uint8Array.from({ length: 1 << 20 }, (_, index) => (index * 7_919) % 256),
  };
  for (const [name, make] of Object.entries(bombs)) {
    const raw = make();
    const before = process.memoryUsage().rss;
    const classified = await classifyMail(raw, context);
    t.ok(classified.kind, `${name}: ${classified.kind}`);
    const grown = (process.memoryUsage().rss - before) >> 20;
    t.ok(grown < 300, `${name}: ${grown} MiB more`);
  }
});

t.test('classifies runs of one sign in a time that grows with their length', async (t) => {
  const of_server = {
    From: 'Mail Delivery Subsystem <mailer-daemon@mx.example>',
    Subject: 'Returned mail: see transcript',
  };
  const dashes = '-'.repeat(2_000);
  const bounced = mail(
    of_server,
    `Your mail could not be delivered. Please check the address\n${dashes}\n<a@b.example>`,
  );
  t.match(await classifyMail(bytes(bounced), context), { kind: 'bounce' }, 'a line of dashes behind an address');
  const unknown = mail(of_server, `Your mail could not be delivered to <a@b.example>: user ${dashes} unknown`);
  t.match(await classifyMail(bytes(unknown), context), { kind: 'bounce', recipients: [{ reason: 'user_unknown' }] });
  const blanks = mail({}, `Sounds good${' '.repeat(99_000)}!`);
  t.match(await classifyMail(bytes(blanks), context), { kind: 'reply' }, 'blanks within a line');
  const separators = mail({}, `${'\u2028'.repeat(80_000)}x`);
  t.match(await classifyMail(bytes(separators), context), { kind: 'reply' }, 'line separators');
  const suppressing = mail({ 'X-Auto-Response-Suppress': 'oof '.repeat(60_000) }, 'Sounds good!');
  t.match(await classifyMail(bytes(suppressing), context), { kind: 'reply' }, 'one word in a field, over and over');
});

t.test('marks as unread what is beyond the limits', async (t) => {
  t.equal((await readMessage(bytes(nested(20)))).text.trim(), 'Sounds good!', 'twenty deep is read');
  t.equal((await readMessage(bytes(nested(1_000)))).readable, false, 'a thousand deep is not');
  const broken = await readMessage(
    bytes(mail({ 'Content-Type': 'text/plain; charset=no-such-charset' }, 'Sounds good!')),
  );
  t.match(broken, { text: /Sounds good!/ }, 'an unknown charset');
  const injected = await readMessage(
    bytes(
      'Subject: a\r\n b\rc\nFrom: Grace\0 <grace@blog.example>\nMessage-ID: <a\0@b>\nReferences: <c\0@d>\n\nHello\0',
    ),
  );
  t.match(injected, { message_id: 'a@b', answers: ['c@d'] });
  t.notMatch(
    `${injected.subject}${injected.from_name}${injected.text.trim()}`,
    /[\r\n\0]/,
    'no line break or NUL comes out of a field',
  );
});
