/** One sign, over and over, in every place of a mail: none of them makes classifying take longer than it may. */
import t from 'tap';
import { TookTooLong } from '../../../src/core/threads/timed_thread.ts';
import { openClassifier } from '../../../src/recruitment/reading/classifier.ts';
import { crlf, mail, report } from './mails.ts';

const length = 60_000;
const signs = [
  ' ',
  '\t',
  '\u00a0',
  '\u2028',
  '\n',
  '-',
  '_',
  '=',
  '*',
  '>',
  '<',
  '"',
  "'",
  '(',
  '[',
  '{',
  ',',
  ';',
  ':',
  '.',
  '@',
  '/',
  '\\',
  '|',
  '?',
  '&',
  '#',
  '0',
  'a',
  'é',
  '中',
  '\u200b',
];
const words = [
  '> ',
  'oof ',
  '<a@b.example>',
  'a@',
  'address ',
  'On ',
  'user host ',
  '550 ',
  '&nbsp;',
  '=?',
  'message-id:',
  '>>> DATA ',
];

const server = { From: 'Mail Delivery Subsystem <mailer-daemon@mx.example>', Subject: 'Returned mail: see transcript' };
const places: Record<string, (run: string) => string> = {
  'a text': (run) => mail({}, `Sounds good${run}x`),
  'a text in base64': (run) =>
    mail(
      { 'Content-Transfer-Encoding': 'base64' },
      Buffer.from(`Sounds good${run}x`).toString('base64').replace(/.{76}/g, '$&\n'),
    ),
  HTML: (run) => mail({ 'Content-Type': 'text/html; charset=utf-8' }, `<p>Sounds good${run}x</p>`),
  'a style': (run) => mail({ 'Content-Type': 'text/html' }, `<p style="${run}">Sounds good</p>`),
  'a subject': (run) => mail({ Subject: `Re: ${run}x` }, 'Sounds good'),
  'a name': (run) => mail({ From: `${run} <grace@blog.example>` }, 'Sounds good'),
  'a field of programs': (run) => mail({ 'X-Auto-Response-Suppress': `${run}x` }, 'Sounds good'),
  references: (run) => mail({ References: `${run}x`, 'In-Reply-To': `${run}x` }, 'Sounds good'),
  'results of a server': (run) =>
    mail({ 'Authentication-Results': `mx.shop.example; dmarc${run}=${run}fail` }, 'Sounds good'),
  'a type': (run) => mail({ 'Content-Type': `text/plain;${run};${run}=x` }, 'Sounds good'),
  'the words of a report': (run) =>
    mail(server, `Your message could not be delivered. Please check the address${run}\n<a@b.example>`),
  'a diagnostic': (run) =>
    report('delivery-status', [
      ['text/plain', 'Your message could not be delivered.'],
      [
        'message/delivery-status',
        `Reporting-MTA: dns; mx\n\nFinal-Recipient: rfc822; a@b.example\nAction: failed\nDiagnostic-Code: smtp; 550 user${run}x`,
      ],
    ]),
  'what is returned': (run) =>
    report('delivery-status', [
      ['text/plain', 'Your message could not be delivered.'],
      ['message/rfc822', `Message-ID:${run}x\nTo: ${run}\nSubject: ${run}\n\nHello`],
    ]),
};

const classifier = openClassifier();
const own_server = { imap_host: 'imap.gmail.com', hosts: ['shop.example'], authserv_id: 'shop.example' };
t.teardown(() => classifier.close());

for (const [place, write] of Object.entries(places))
  t.test(place, async (t) => {
    for (const unit of [...signs, ...words]) {
      const raw = crlf(write(unit.repeat(length / unit.length)));
      const asked = { mail: raw, arrived_at: new Date(), own_addresses: [], own_server };
      const classified = await classifier.ask(asked).catch((error) => {
        if (error instanceof TookTooLong) return undefined;
        throw error;
      });
      if (!classified?.classification.kind) t.fail(`${JSON.stringify(unit)} takes too long`);
    }
    t.pass('is classified in time');
  });
