import t from 'tap';
import { classifyMail, classifyMessage, type MailContext, type Meaning } from '../../../src/mail/incoming/classify.ts';
import { plainMessage } from '../../../src/mail/incoming/message/message.ts';
import { crlf, mail, report } from './mails.ts';

const meaning: Meaning = { kind: 'positive', confidence: 0.9, language: 'en', unsubscribe: false };
const context = (means: Partial<Meaning> = {}): MailContext => ({
  own_addresses: ['Ada@Shop.example'],
  readMeaning: () => ({ ...meaning, ...means }),
  now: new Date('2026-02-03T10:00:00Z'),
});
const classified = (raw: string, means?: Partial<Meaning>) => classifyMail(crlf(raw), context(means));
const bounce = (fields: Record<string, string>): string =>
  mail(
    { From: 'MAILER-DAEMON@mx.example', Subject: 'Undelivered Mail Returned to Sender', ...fields },
    '<grace@blog.example>: 550 5.1.1 User unknown\nYour message could not be delivered.',
  );

t.test('classifies in the order in which one kind hides another', async (t) => {
  const kinds: [name: string, raw: string, kind: string][] = [
    ['a copy of what was sent', mail({ From: 'Ada <ada@shop.example>' }, 'Hello Grace'), 'own'],
    [
      'a copy whose words would be an automatic reply',
      mail({ From: 'ada@shop.example', Subject: 'Automatic reply: x' }, 'Away.'),
      'own',
    ],
    [
      'a report that names the inbox as its sender',
      bounce({ From: 'ada@shop.example', 'X-Failed-Recipients': 'grace@blog.example' }),
      'bounce',
    ],
    [
      'a complaint that is Auto-Submitted',
      report('feedback-report', [['message/feedback-report', 'Feedback-Type: abuse']]),
      'complaint',
    ],
    ['a bounce that is Auto-Submitted', bounce({ 'Auto-Submitted': 'auto-replied' }), 'bounce'],
    [
      'an automatic reply that asks to be taken off',
      mail({ 'Auto-Submitted': 'auto-replied' }, 'Please unsubscribe me.'),
      'auto_reply',
    ],
    ['a mail to a List-Unsubscribe address', mail({ Subject: 'unsubscribe fms_0123456789' }, ''), 'unsubscribe'],
    [
      'such a mail that a program sends',
      mail({ Subject: 'unsubscribe fms_0123456789', 'Auto-Submitted': 'auto-generated' }, ''),
      'unsubscribe',
    ],
    ['a person', mail({}, 'Sounds good!'), 'reply'],
  ];
  for (const [name, raw, kind] of kinds) t.equal((await classified(raw)).kind, kind, name);
});

t.test('reads the reports of servers that are HTML alone', async (t) => {
  const html = (fields: Record<string, string>, body: string) =>
    classified(mail({ 'Content-Type': 'text/html; charset=utf-8', ...fields }, `<html><body>${body}</body></html>`));
  const link = '<a href="mailto:grace@blog.example">grace@blog.example</a>';
  const from = { From: 'postmaster@mx.example', Subject: 'Undeliverable: Hello' };
  for (const [body, hard] of [
    [`<p>Your message to ${link} couldn't be delivered.</p><p>grace wasn't found at blog.example.</p>`, true],
    [`<p>Delivery has failed to these recipients:</p><p>${link}<br>The recipient's mailbox is full.</p>`, false],
  ] as const)
    t.match(await html(from, body), { kind: 'bounce', recipients: [{ address: 'grace@blog.example', hard }] });
  t.match(await html({}, '<p>Your message could not be delivered to my boss, but I am interested.</p>'), {
    kind: 'reply',
  });
});

t.test('tells what is known of each kind, and nothing else', async (t) => {
  t.match(await classified(bounce({})), {
    kind: 'bounce',
    recipients: [{ address: 'grace@blog.example', status: '5.1.1', hard: true, action: 'failed' }],
    text: '',
    reply_kind: null,
  });
  t.match(await classified(mail({ Subject: 'Automatic reply: x' }, 'I am back on 12 March.')), {
    kind: 'auto_reply',
    resumes_on: '2026-03-12',
    reply_kind: null,
  });
  t.match(await classified(mail({ Subject: 'unsubscribe fms_0123456789' }, '')), { unsubscribe_id: 'fms_0123456789' });
  t.match(
    await classified(mail({ Subject: 'unsubscribe', 'X-Apple-Unsubscribe': 'true' }, 'Apple Mail sent this email')),
    {
      kind: 'unsubscribe',
      unsubscribe_id: null,
    },
  );
  t.match(
    await classified(mail({}, 'Yes.\n\nOn Mon, Feb 2, 2026 at 10:04 AM Ada <ada@shop.example> wrote:\n> Hello')),
    {
      kind: 'reply',
      text: 'Yes.',
      language: 'en',
      reply_kind: 'positive',
      confidence: 0.9,
      needs_review: false,
      recipients: [],
    },
  );
});

t.test('takes a wish to get no more mail as an unsubscribe, unless it comes with anger', async (t) => {
  t.match(await classified(mail({}, 'Please remove me.'), { unsubscribe: true, kind: 'negative' }), {
    kind: 'unsubscribe',
    text: 'Please remove me.',
  });
  t.match(await classified(mail({}, 'Remove me, you spammers!'), { unsubscribe: true, kind: 'angry' }), {
    kind: 'reply',
    reply_kind: 'angry',
  });
  for (const subject of ['Unsubscribe?', 'Re: unsubscribe fms_1 fms_2', 'How do I unsubscribe'])
    t.equal((await classified(mail({ Subject: subject }, 'Sounds good!'))).kind, 'reply', subject);
});

t.test('marks for review what is uncertain or could not be read', async (t) => {
  t.match(await classified(mail({}, 'Hm.'), { confidence: 0.5 }), {
    kind: 'reply',
    reply_kind: 'positive',
    needs_review: true,
  });
  t.match(await classified(mail({}, '')), { kind: 'reply', text: '', needs_review: true });
  t.match(await classified(mail({}, '> Hello Grace')), { kind: 'reply', text: '', needs_review: true });
  t.match(await classified(mail({ 'Content-Type': 'multipart/alternative; boundary=gone' }, 'Sounds good!')), {
    kind: 'reply',
    text: 'Sounds good!',
    needs_review: true,
  });
  t.match(await classifyMail(new Uint8Array(), context()), { kind: 'reply', text: '' });
});

t.test('classifies a text as it classifies a mail', async (t) => {
  const text = 'Yes.\n\nOn 02/02/2026 10:04, Ada wrote:\n> Hello';
  t.match(classifyMessage(plainMessage({ subject: 'Re: A program', text }), context()), {
    kind: 'reply',
    text: 'Yes.',
  });
  t.match(classifyMessage(plainMessage({ subject: 'Out of office', text: 'Back on Monday.' }), context()), {
    kind: 'auto_reply',
    resumes_on: '2026-02-09',
  });
});
