/** Reports of servers that follow no standard, told from what people write about such reports. */
import t from 'tap';
import { readBounce } from '../../../src/mail/incoming/bounces/bounce.ts';
import { readFeedbackReport } from '../../../src/mail/incoming/bounces/feedback_report.ts';
import { readMessage } from '../../../src/mail/incoming/message/message.ts';
import { crlf, mail } from './mails.ts';

const grace = 'grace@blog.example';
const returned = `Received: from shop.example by mx.example; Mon, 2 Feb 2026 09:00:00 +0000
Message-ID: <fms_1@shop.example>
From: Ada <ada@shop.example>
To: ${grace}
Subject: Your account is full of ideas

Hello`;
const parts = (...texts: [type: string, text: string][]): string =>
  `${texts.map(([type, text]) => `--b1\nContent-Type: ${type}\n\n${text}\n`).join('\n')}--b1--`;

interface Report {
  name: string;
  from: string;
  subject: string;
  text: string;
  hard: boolean;
  fields?: Record<string, string>;
}
const mixed = { 'Content-Type': 'multipart/mixed; boundary="b1"' };
const reports: Report[] = [
  {
    name: 'the words of a server in a part of its own',
    from: 'postmaster@mail.blog.example',
    subject: '[BOUNCE]',
    text: parts(
      ['text/plain', `Message details:\n  Subject: Hello\n  MAIL FROM: ada@shop.example\n  RCPT TO: ${grace}`],
      ['text/plain', '550 - Requested action not taken: no such user here'],
      ['message/rfc822', returned],
    ),
    fields: mixed,
    hard: true,
  },
  {
    name: 'the fields of the mail before the reason',
    from: 'Internet Mail Delivery <postmaster@mx.example>',
    subject: 'Delivery Notification: Delivery has failed',
    text: `This report relates to a message you sent with the following header fields:

  Return-path: <ada@shop.example>
  Message-id: <fms_1@shop.example>
  From: Ada <ada@shop.example>
  To: ${grace}
  Subject: Your mailbox is full

Your message cannot be delivered to the following recipients:

  Recipient address: ${grace}
  Reason: Remote SMTP server has rejected address
  Diagnostic code: smtp;550 5.1.1 <${grace}>... User Unknown`,
    hard: true,
  },
  {
    name: 'a mobile provider',
    from: 'post_master@mobile.example',
    subject: 'Undeliverable Message',
    text: 'Message could not be delivered to mobile.\nError: No valid recipients for this MM',
    hard: true,
  },
  {
    name: 'a sender that takes no answers',
    from: 'no-reply@mta.isp.example',
    subject: 'Mail System Error - Returned Mail',
    text: `Your mail sent on: Mon, 2 Feb 2026 11:04:47 +0900\n     Could not be delivered to: <${grace}>\n     As their mailbox is full.\n\n${returned}`,
    hard: false,
  },
  {
    name: 'a server that names itself without an address',
    from: '"Courier mail server at mx.example" <@>',
    subject: 'NOTICE: mail delivery status.',
    text: `UNDELIVERABLE MAIL\n\nYour message to the following recipients cannot be delivered:\n\n<${grace}>:\n<<< No such domain.\n\n${returned}`,
    hard: true,
  },
  {
    name: 'a gateway in Japanese',
    from: 'InterScan MSS <gateway@mx.example>',
    subject: 'メール配信に失敗しました',
    text: `Sent <<< RCPT TO:<${grace}>\nReceived >>> 550 5.1.1 unknown user.\nUnable to deliver message to <${grace}>`,
    hard: true,
  },
  {
    name: 'a provider in Korean',
    from: 'mailer-daemon@provider.example',
    subject: `[발송실패 안내] ${grace}로 메일이 전송되지 못했습니다.`,
    text: `${grace}\n550 5.1.1 존재하지 않는 사용자`,
    hard: true,
  },
  {
    name: 'a server in a language that is not known, by the code',
    from: 'postmaster@mx.example',
    subject: 'Az üzenet kézbesítése sikertelen',
    text: `Az üzenetet nem lehetett kézbesíteni a következő címre: ${grace}\nA cím nem létezik (550 5.1.1)`,
    hard: true,
  },
  {
    name: 'an unknown user after the text was sent',
    from: 'MAILER-DAEMON@mx.example',
    subject: 'failure notice',
    text: `Hi. This is the qmail-send program at mx.example.\n\n<${grace}>:\n192.0.2.153 failed after I sent the message.\nRemote host said: 550 User unknown\n\n--- Below this line is a copy of the message.\n\n${returned}`,
    hard: false,
  },
  {
    name: 'the verdict of PowerMTA',
    from: 'Mail Delivery Subsystem <postmaster@mx.example>',
    subject: 'Delivery report',
    text: parts(
      ['text/plain', 'Your message was not delivered.'],
      [
        'message/delivery-status',
        `Reporting-MTA: dns; mx.example\n\nFinal-Recipient: rfc822; ${grace}\nAction: failed\nStatus: 5.2.1\nDiagnostic-Code: smtp;550 5.2.1 User Unknown\nX-PowerMTA-BounceCategory: bad-mailbox`,
      ],
    ),
    fields: { 'Content-Type': 'multipart/report; report-type=delivery-status; boundary="b1"' },
    hard: true,
  },
];

for (const { name, from, subject, text, hard, fields } of reports)
  t.test(`reads ${name}`, async (t) => {
    const bounce = readBounce(await readMessage(crlf(mail({ From: from, Subject: subject, ...fields }, text))));
    t.match(bounce, { recipients: [{ action: 'failed', hard }] });
  });

t.test('a group of RFC 3464 without an action is a delay where the words say so', async (t) => {
  const status = (words: string) =>
    parts(
      ['text/plain', words],
      ['message/delivery-status', `Reporting-MTA: dns; mx.example\n\nFinal-Recipient: rfc822; ${grace}\nStatus: 4.4.1`],
    );
  const fields = { 'Content-Type': 'multipart/report; report-type=delivery-status; boundary="b1"' };
  const actionOf = async (Subject: string, words: string) =>
    readBounce(await readMessage(crlf(mail({ From: 'MAILER-DAEMON@mx.example', Subject, ...fields }, status(words)))))
      ?.recipients[0]?.action;
  t.equal(
    await actionOf('Delivery delayed', 'Your message has not yet been delivered. It will be retried.'),
    'delayed',
  );
  t.equal(await actionOf('Returned mail', 'Your message could not be delivered.'), 'failed');
});

t.test('what people write about reports is none', async (t) => {
  const cases: [from: string, subject: string, text: string][] = [
    [
      'Grace <grace@blog.example>',
      'Undelivered mail?',
      `It was returned to sender, it could not be delivered.\n\n${returned}`,
    ],
    [
      'Grace <grace@blog.example>',
      'Mail delivery problem',
      'My mailbox was full, mail could not be delivered. Please send it again.',
    ],
    [
      'Grace <postmaster@blog.example>',
      'Re: Hello',
      'Your mail was not delivered to Joe, who has left. I am interested.',
    ],
    [
      'Grace <postmaster@blog.example>',
      'Re: Hello',
      'My answer came back with "550 5.1.1 User unknown". I am interested.',
    ],
    ['Grace <grace@blog.example>', 'Hallo', 'Meine Antwort kam zurück: "550 5.1.1". Gerne mehr davon.'],
    ['Parcels <shipping@parcel.example>', 'Delivery notification', 'Your parcel could not be delivered today.'],
    [
      'Grace <admin@blog.example>',
      'Re: Undeliverable: Hello',
      `It works again.\n\n> Delivery has failed to these recipients\n${returned}`,
    ],
  ];
  for (const [From, Subject, text] of cases)
    t.equal(readBounce(await readMessage(crlf(mail({ From, Subject }, text)))), undefined, Subject);
});

t.test('a complaint without the part of RFC 5965 is known by its words', async (t) => {
  const text = parts(
    ['text/plain', 'This is an email abuse report for an email message received from IP 192.0.2.1 on Mon, 2 Feb 2026'],
    ['message/rfc822', returned],
  );
  const from = { From: 'complaints@provider.example', Subject: 'Email Feedback Report for IP 192.0.2.1', ...mixed };
  t.match(readFeedbackReport(await readMessage(crlf(mail(from, text)))), { original_message_id: 'fms_1@shop.example' });
});
