import t from 'tap';
import { readBounce } from '../../../src/mail/incoming/bounces/bounce.ts';
import { readFeedbackReport } from '../../../src/mail/incoming/bounces/feedback_report.ts';
import { readMessage } from '../../../src/mail/incoming/message/message.ts';
import { crlf, mail, report } from './mails.ts';

/** Style of server → what its report says, and what is to be read in it. Written for this test after the formats of these servers. */
interface Case {
  name: string;
  raw: string;
  expected: [address: string, status: string | null, hard: boolean, action?: string][];
  id?: string;
}

const returned = `Return-Path: <ada@shop.example>
Received: from shop.example by mx.example; Mon, 2 Feb 2026 09:00:00 +0000
Message-ID: <fms_1@shop.example>
From: Ada <ada@shop.example>
To: grace@blog.example
Subject: A partner program for your blog

Hello Grace`;

/** A report with the parts of RFC 3464. */
const dsn = (fields: string, words = 'Your message could not be delivered.'): string =>
  report('delivery-status', [
    ['text/plain', words],
    ['message/delivery-status', `Reporting-MTA: dns; mx.example\n\n${fields}`],
    ['message/rfc822', returned],
  ]);
const one = (status: string, diagnostic: string, words?: string): string =>
  dsn(
    `Final-Recipient: rfc822; grace@blog.example\nAction: failed\nStatus: ${status}\nDiagnostic-Code: smtp; ${diagnostic}`,
    words,
  );
const server = (subject: string, text: string, from = 'MAILER-DAEMON@mx.example (Mail Delivery System)'): string =>
  mail({ From: from, To: 'ada@shop.example', Subject: subject }, text);
const qmail = (text: string): string =>
  server(
    'failure notice',
    `Hi. This is the qmail-send program at mx.example.
I'm afraid I wasn't able to deliver your message to the following addresses.
This is a permanent error; I've given up. Sorry it didn't work out.

${text}

--- Below this line is a copy of the message.

${returned}`,
  );
const exim = (text: string): string =>
  server(
    'Mail delivery failed: returning message to sender',
    `This message was created automatically by mail delivery software.

A message that you sent could not be delivered to one or more of its
recipients. This is a permanent error. The following address(es) failed:

${text}

------ This is a copy of the message, including all the headers. ------

${returned}`,
  );
const transcript = (text: string): string =>
  server(
    'Returned mail: see transcript for details',
    `The original message was received at Mon, 2 Feb 2026 09:00:00 GMT\nfrom shop.example\n\n${text}\n\n   ----- Original message follows -----\n\n${returned}`,
  );
const grace = 'grace@blog.example';
const dead = (status: string): Case['expected'] => [[grace, status, true]];
const soft = (status: string): Case['expected'] => [[grace, status, false]];

const cases: Case[] = [
  {
    name: 'an address that was replaced, without a status',
    raw: one('5.0.0', '550 Address grace@blog.example has been replaced by g@new.example'),
    expected: dead('5.0.0'),
  },
  {
    name: 'an address that is in no list',
    raw: one('5.7.1', '553 sorry, your envelope recipient is in my badrcptto list', '(in reply to RCPT TO command)'),
    expected: dead('5.7.1'),
  },
  // RFC 3464
  {
    name: 'an unknown user',
    raw: one('5.1.1', '550 5.1.1 <grace@blog.example>: Recipient address rejected: User unknown'),
    expected: dead('5.1.1'),
    id: 'fms_1@shop.example',
  },
  { name: 'an unknown user without words', raw: one('5.1.1', '550'), expected: dead('5.1.1') },
  { name: 'an unknown domain', raw: one('5.1.2', 'Host or domain name not found'), expected: dead('5.1.2') },
  { name: 'an invalid address', raw: one('5.1.3', '501 5.1.3 Bad recipient address syntax'), expected: dead('5.1.3') },
  {
    name: 'an address that has moved',
    raw: one('5.1.6', '551 5.1.6 Mailbox has moved, no forwarding address'),
    expected: dead('5.1.6'),
  },
  {
    name: 'a sender whose address is invalid',
    raw: one('5.1.7', '550 5.1.7 Bad sender address syntax'),
    expected: soft('5.1.7'),
  },
  {
    name: 'a sender whose domain is unknown',
    raw: one('5.1.8', '553 5.1.8 Domain of sender address ada@shop.example does not exist'),
    expected: soft('5.1.8'),
  },
  {
    name: 'a domain with a null MX',
    raw: one('5.1.10', '556 5.1.10 Recipient address has null MX'),
    expected: dead('5.1.10'),
  },
  { name: 'a full mailbox', raw: one('5.2.2', '552 5.2.2 Mailbox full'), expected: soft('5.2.2') },
  {
    name: 'a full mailbox under the status of an unknown user',
    raw: one('5.1.1', '552 5.2.2 Over quota'),
    expected: soft('5.2.2'),
  },
  {
    name: 'a disabled account',
    raw: one('5.2.1', '550 5.2.1 The email account that you tried to reach is disabled'),
    expected: soft('5.2.1'),
  },
  {
    name: 'a message too large',
    raw: one('5.3.4', '552 5.3.4 Message size exceeds fixed limit'),
    expected: soft('5.3.4'),
  },
  { name: 'a host without any mail service', raw: one('5.4.4', '550 5.4.4 Invalid domain'), expected: dead('5.4.4') },
  { name: 'a routing loop', raw: one('5.4.6', '554 5.4.6 Too many hops, mail loop'), expected: soft('5.4.6') },
  { name: 'a policy', raw: one('5.7.1', '554 5.7.1 Message not accepted for policy reasons'), expected: soft('5.7.1') },
  { name: 'spam', raw: one('5.7.1', '550 5.7.1 Message content rejected as spam'), expected: soft('5.7.1') },
  {
    name: 'a blocklist under the status of an unknown user',
    raw: one('5.1.1', '550 5.7.1 Client host [192.0.2.1] blocked using zen.spamhaus.org'),
    expected: soft('5.7.1'),
  },
  {
    name: 'DMARC',
    raw: one(
      '5.7.26',
      "550-5.7.26 Unauthenticated email from shop.example is not accepted due to domain's DMARC policy",
    ),
    expected: soft('5.7.26'),
  },
  {
    name: 'a missing PTR',
    raw: one('5.7.25', '550 5.7.25 The IP address sending this message does not have a PTR record'),
    expected: soft('5.7.25'),
  },
  {
    name: 'relaying',
    raw: one('5.7.1', '554 5.7.1 <grace@blog.example>: Relay access denied'),
    expected: soft('5.7.1'),
  },
  { name: 'an unknown user under 5.0.0', raw: one('5.0.0', '550 No such user here'), expected: dead('5.0.0') },
  {
    name: 'an unknown user after the text was sent',
    raw: one(
      '5.0.0',
      '550 Unknown user grace@blog.example',
      '<grace@blog.example>: host mx.blog.example said: 550 Unknown user grace@blog.example (in reply to end of DATA command)',
    ),
    expected: soft('5.0.0'),
  },
  {
    name: 'a greylisting that never ended',
    raw: one('4.2.0', '450 4.2.0 Greylisted, please try again later'),
    expected: soft('4.2.0'),
  },
  {
    name: 'a sender that sends too much',
    raw: one('5.1.1', '550 5.1.1 192.0.2.1 has sent to too many recipients this hour'),
    expected: soft('5.1.1'),
  },
  {
    name: 'a delay',
    raw: dsn(
      `Final-Recipient: rfc822; ${grace}\nAction: delayed\nStatus: 4.4.1\nDiagnostic-Code: smtp; connect to mx.blog.example: Connection timed out`,
    ),
    expected: [[grace, '4.4.1', false, 'delayed']],
  },
  {
    name: 'a delivery',
    raw: dsn(`Final-Recipient: rfc822; ${grace}\nAction: delivered\nStatus: 2.1.5`),
    expected: [[grace, '2.1.5', false, 'delivered']],
  },
  {
    name: 'several recipients',
    raw: dsn(
      `Final-Recipient: rfc822; a@blog.example\nAction: failed\nStatus: 5.1.1\n\nFinal-Recipient: rfc822; b@blog.example\nAction: failed\nStatus: 5.2.2\n\nFinal-Recipient: rfc822; c@blog.example\nAction: delayed\nStatus: 4.2.1`,
    ),
    expected: [
      ['a@blog.example', '5.1.1', true],
      ['b@blog.example', '5.2.2', false],
      ['c@blog.example', '4.2.1', false, 'delayed'],
    ],
  },
  {
    name: 'the address that was written to, before it was forwarded',
    raw: dsn(
      `Original-Recipient: rfc822;${grace}\nFinal-Recipient: rfc822;g.hopper@old.example\nAction: failed\nStatus: 5.1.1`,
    ),
    expected: dead('5.1.1'),
  },
  {
    name: 'a diagnostic that is not folded',
    raw: dsn(
      `Final-Recipient: rfc822; ${grace}\nAction: failed\nStatus: 5.1.1\nDiagnostic-Code: smtp; 550-5.1.1 The email account that you tried to reach\n550-5.1.1 does not exist. Please check for typos`,
    ),
    expected: dead('5.1.1'),
  },
  {
    name: 'the fields of a report within the text',
    raw: server(
      'Delivery Status Notification (Failure)',
      `An error occurred while trying to deliver the mail to the following recipients:\n${grace}\n\nFinal-Recipient: rfc822; ${grace}\nAction: failed\nStatus: 5.1.1\nDiagnostic-Code: smtp; 550 5.1.1 user unknown`,
    ),
    expected: dead('5.1.1'),
  },
  {
    name: 'a report whose boundary never comes',
    raw: mail(
      {
        From: 'Mail Delivery System <MAILER-DAEMON@mx.example>',
        Subject: 'Undelivered Mail Returned to Sender',
        'Content-Type': 'multipart/report; report-type=delivery-status; boundary="gone"',
      },
      `Final-Recipient: rfc822; ${grace}\nAction: failed\nStatus: 5.1.1`,
    ),
    expected: dead('5.1.1'),
  },
  // qmail
  {
    name: 'qmail: no mailbox',
    raw: qmail(`<${grace}>:\nSorry, no mailbox here by that name. (#5.1.1)`),
    expected: dead('5.1.1'),
    id: 'fms_1@shop.example',
  },
  {
    name: 'qmail: a remote refusal',
    raw: qmail(
      `<${grace}>:\n192.0.2.9 does not like recipient.\nRemote host said: 550 5.1.1 User unknown\nGiving up on 192.0.2.9.`,
    ),
    expected: dead('5.1.1'),
  },
  {
    name: 'qmail: no host',
    raw: qmail(`<${grace}>:\nSorry, I couldn't find any host named blog.example. (#5.1.2)`),
    expected: dead('5.1.2'),
  },
  {
    name: 'qmail: no connection',
    raw: qmail(
      `<${grace}>:\nSorry, I wasn't able to establish an SMTP connection. (#4.4.1)\nI'm not going to try again; this message has been in the queue too long.`,
    ),
    expected: soft('4.4.1'),
  },
  {
    name: 'qmail: two recipients',
    raw: qmail(
      `<a@blog.example>:\nRemote host said: 552 5.2.2 Mailbox full\n\n<b@blog.example>:\nRemote host said: 550 5.1.1 User unknown`,
    ),
    expected: [
      ['a@blog.example', '5.2.2', false],
      ['b@blog.example', '5.1.1', true],
    ],
  },
  // Exim
  {
    name: 'Exim: an unknown user',
    raw: exim(
      `  ${grace}\n    SMTP error from remote mail server after RCPT TO:<${grace}>:\n    host mx.blog.example [192.0.2.9]: 550 5.1.1 <${grace}>: User unknown`,
    ),
    expected: dead('5.1.1'),
    id: 'fms_1@shop.example',
  },
  { name: 'Exim: an unrouteable address', raw: exim(`  ${grace}\n    Unrouteable address`), expected: dead('5.1.2') },
  {
    name: 'Exim: refused at the connection',
    raw: exim(
      `  ${grace}\n    SMTP error from remote mail server after initial connection:\n    host mx.blog.example [192.0.2.9]: 550 user unknown`,
    ),
    expected: soft('5.1.1'),
  },
  { name: 'Exim: retry timeout', raw: exim(`  ${grace}\n    retry timeout exceeded`), expected: soft('4.4.1') },
  {
    name: 'Exim: a delay',
    raw: server(
      'Warning: message 1abc delayed 24 hours',
      `This message was created automatically by mail delivery software.\nA message that you sent has not yet been delivered to one or more of its\nrecipients after more than 24 hours on the queue on mx.example.\n\nThe address to which the message has not yet been delivered is:\n\n  ${grace}\n    Delay reason: Connection timed out`,
    ),
    expected: [[grace, '4.4.1', false, 'delayed']],
  },
  // Postfix
  {
    name: 'Postfix without parts',
    raw: server(
      'Undelivered Mail Returned to Sender',
      `This is the mail system at host mx.example.\n\nI'm sorry to have to inform you that your message could not\nbe delivered to one or more recipients.\n\n<${grace}>: host mx.blog.example[192.0.2.9] said: 550 5.1.1\n    <${grace}>: Recipient address rejected: User unknown in virtual mailbox table (in\n    reply to RCPT TO command)`,
    ),
    expected: dead('5.1.1'),
  },
  // Sendmail
  {
    name: 'Sendmail: a transcript',
    raw: transcript(
      `   ----- The following addresses had permanent fatal errors -----\n<${grace}>\n    (reason: 550 5.1.1 User unknown)\n\n   ----- Transcript of session follows -----\n... while talking to mx.blog.example.:\n>>> RCPT To:<${grace}>\n<<< 550 5.1.1 User unknown`,
    ),
    expected: dead('5.1.1'),
    id: 'fms_1@shop.example',
  },
  {
    name: 'Sendmail: an unknown host',
    raw: transcript(
      `   ----- Transcript of session follows -----\n550 5.1.2 <${grace}>... Host unknown (Name server: blog.example: host not found)`,
    ),
    expected: dead('5.1.2'),
  },
  // Exchange and Outlook
  {
    name: 'Exchange 2003',
    raw: server(
      'Undeliverable: A partner program',
      `Your message\n\n  To:      ${grace}\n  Subject: A partner program\n  Sent:    Mon, 2 Feb 2026 09:00:00\n\ndid not reach the following recipient(s):\n\n${grace} on Mon, 2 Feb 2026 09:00:05\n    The recipient name is not recognized`,
      'System Administrator <postmaster@blog.example>',
    ),
    expected: dead('5.1.1'),
  },
  {
    name: 'Exchange Online',
    raw: server(
      'Undeliverable: A partner program',
      `Delivery has failed to these recipients or groups:\n\n${grace}\nThe email address you entered couldn't be found.\n\nDiagnostic information for administrators:\n\nGenerating server: X1.prod.outlook.com\n\n${grace}\nRemote Server returned '550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient not found by SMTP address lookup'`,
      'postmaster@blog.example',
    ),
    expected: dead('5.1.10'),
  },
  {
    name: 'Exchange Online: an edge that blocks',
    raw: one(
      '5.4.1',
      '550 5.4.1 Recipient address rejected: Access denied. AS(201806281)',
      `<${grace}>: said 550 5.4.1 (in reply to RCPT TO command)`,
    ),
    expected: dead('5.4.1'),
  },
  // Providers
  {
    name: 'Gmail: an address that is not found',
    raw: server(
      'Delivery Status Notification (Failure)',
      `** Address not found **\n\nYour message wasn't delivered to ${grace} because the address couldn't be found, or is unable to receive mail.\n\nThe response was:\n\n550 5.1.1 The email account that you tried to reach does not exist.`,
      'Mail Delivery Subsystem <mailer-daemon@googlemail.com>',
    ),
    expected: dead('5.1.1'),
  },
  {
    name: 'Gmail: no connection',
    raw: server(
      'Delivery Status Notification (Failure)',
      `Delivery to the following recipient failed permanently:\n\n     ${grace}\n\nTechnical details of permanent failure:\nThe recipient server did not accept our requests to connect.\n\n----- Original message -----\n\n${returned}`,
      'Mail Delivery Subsystem <mailer-daemon@googlemail.com>',
    ),
    expected: soft('4.4.1'),
    id: 'fms_1@shop.example',
  },
  {
    name: 'Yahoo',
    raw: server(
      'Failure Notice',
      `Sorry, we were unable to deliver your message to the following address.\n\n<${grace}>:\nRemote host said:\n554 delivery error: dd This user doesn't have a blog.example account (${grace}) [0]\n\n--- Below this line is a copy of the message.\n\n${returned}`,
    ),
    expected: dead('5.1.1'),
  },
  {
    name: 'mail.ru',
    raw: server(
      'Ваше сообщение не доставлено. Mail failure.',
      `Это письмо создано автоматически сервером Mail.Ru, отвечать на него не нужно.\n\nК сожалению, Ваше письмо не может быть доставлено одному или нескольким получателям:\n\n  ${grace}\n    SMTP error from remote mail server after RCPT TO:<${grace}>:\n    host mx.blog.example [192.0.2.9]: 550 5.1.1 User unknown`,
    ),
    expected: dead('5.1.1'),
  },
  {
    name: 'GMX',
    raw: server(
      'Mail delivery failed: returning message to sender',
      `This message was created automatically by mail delivery software.\n\nA message that you sent could not be delivered to one or more of\nits recipients. This is a permanent error. The following address\nfailed:\n\n"${grace}":\nSMTP error from remote server after RCPT command:\nhost: mx.blog.example\n5.1.1 User unknown`,
    ),
    expected: dead('5.1.1'),
  },
  {
    name: 'Zoho',
    raw: server(
      'Undelivered Mail Returned to Sender',
      `This message was created automatically by mail delivery software.\nA message that you sent could not be delivered to one or more of its recipients. This is a permanent error.\n\n${grace} Invalid Address, ERROR_CODE :550, ERROR_CODE :5.1.1 User Unknown`,
    ),
    expected: dead('5.1.1'),
  },
  {
    name: 'Lotus Notes',
    raw: server(
      'Undeliverable message',
      `------- Failure Reasons  --------\n\nUser not listed in public Name & Address Book\n${grace}\n\n------- Returned Message --------\n\n${returned}`,
      'postmaster@blog.example',
    ),
    expected: dead('5.1.1'),
  },
  {
    name: 'Domino',
    raw: dsn(
      `Final-Recipient: rfc822;${grace}\nAction: failed\nStatus: 5.1.1\nDiagnostic-Code: X-Notes; User not listed in Domino Directory`,
    ),
    expected: dead('5.1.1'),
  },
  {
    name: 'Courier',
    raw: server(
      'NOTICE: mail delivery status.',
      `This is a delivery status notification from mx.example, running the Courier mail server.\n\n                           UNDELIVERABLE MAIL\n\nYour message to the following recipients cannot be delivered:\n\n<${grace}>:\n    mx.blog.example [192.0.2.9]:\n>>> RCPT TO:<${grace}>\n<<< 550 User unknown.`,
      'Courier mail server <postmaster@mx.example>',
    ),
    expected: dead('5.1.1'),
  },
  {
    name: 'OpenSMTPD',
    raw: server(
      'Delivery status notification: error',
      `    Hi!\n\n    This is the MAILER-DAEMON, please DO NOT REPLY to this email.\n\n    An error has occurred while attempting to deliver a message for\n    the following list of recipients:\n\n${grace}: 550 5.1.1 User unknown\n\n    Below is a copy of the original message:\n\n${returned}`,
    ),
    expected: dead('5.1.1'),
  },
  {
    name: 'DragonFly',
    raw: server(
      'Mail delivery failed',
      `This is the DragonFly Mail Agent v0.13 at mx.example.\n\nThere was an error delivering your mail to <${grace}>.\n\nmx.blog.example [192.0.2.9] did not like our RCPT TO:\n550 5.1.1 User unknown\n\nMessage headers follow.\n\n${returned}`,
    ),
    expected: dead('5.1.1'),
    id: 'fms_1@shop.example',
  },
  {
    name: 'IMail',
    raw: server(
      'Undeliverable Mail',
      `Unknown user: ${grace}\n\n\nOriginal message follows.\n\n${returned}`,
      'postmaster@mx.example',
    ),
    expected: dead('5.1.1'),
  },
  {
    name: 'a German server',
    raw: server(
      'Unzustellbar: Partnerprogramm',
      `Ihre Nachricht an die folgenden Empfänger konnte nicht zugestellt werden:\n\n${grace}\nDer Empfänger ist unbekannt.`,
      'postmaster@blog.example',
    ),
    expected: dead('5.1.1'),
  },
  {
    name: 'a French server',
    raw: server(
      'Non remis : programme',
      `Votre message n'a pas pu être remis aux destinataires suivants :\n\n${grace}\nLa boîte aux lettres du destinataire est pleine.`,
      'postmaster@blog.example',
    ),
    expected: soft('5.2.2'),
  },
  {
    name: 'X-Failed-Recipients',
    raw: mail(
      {
        From: 'Mail Delivery System <Mailer-Daemon@mx.example>',
        Subject: 'Mail delivery failed',
        'X-Failed-Recipients': grace,
      },
      'The mailbox could not be found: no such user.',
    ),
    expected: dead('5.1.1'),
  },
  {
    name: 'a notification of Amazon SES',
    raw: mail(
      { From: 'AWS Notifications <no-reply@sns.amazonaws.com>', Subject: 'AWS Notification Message' },
      JSON.stringify({
        notificationType: 'Bounce',
        bounce: {
          bounceType: 'Permanent',
          bouncedRecipients: [{ emailAddress: grace, status: '5.1.1', diagnosticCode: 'smtp; 550 5.1.1 user unknown' }],
        },
        mail: { headers: [{ name: 'Message-ID', value: '<fms_1@shop.example>' }] },
      }),
    ),
    expected: dead('5.1.1'),
    id: 'fms_1@shop.example',
  },
];

t.test('reads bounces of many servers: address, status, and whether the address is dead', async (t) => {
  t.ok(cases.length >= 40, `${cases.length} styles`);
  for (const { name, raw, expected, id } of cases) {
    const bounce = readBounce(await readMessage(crlf(raw)));
    const found = bounce?.recipients.map(({ address, status, hard, action }) => [address, status, hard, action]);
    t.same(
      found,
      expected.map(([address, status, hard, action = 'failed']) => [address, status, hard, action]),
      name,
    );
    if (id) t.equal(bounce?.original_message_id, id, `${name}: the mail that bounced`);
  }
});

t.test('takes no person for a server', async (t) => {
  const people = {
    'an answer to a bounce': mail(
      { From: 'Bob <bob@blog.example>', Subject: 'Re: Undelivered Mail Returned to Sender' },
      'It bounced: the message could not be delivered. Use my other address.',
    ),
    'a forwarded bounce': mail(
      { From: 'Bob <bob@blog.example>', Subject: 'Fwd: failure notice' },
      `See below.\n\n---------- Forwarded message ---------\nFrom: MAILER-DAEMON\n\nHi. This is the qmail-send program. I wasn't able to deliver your message.\n\n${returned}`,
    ),
    'a person who complains of the post': mail(
      { From: 'Bob <bob@blog.example>', Subject: 'Delivery problem' },
      'The parcel could not be delivered, the recipient was unknown.',
    ),
    'a postmaster who writes': mail(
      { From: 'Bob <postmaster@blog.example>', Subject: 'Re: A partner program' },
      'Sounds good, please send the details.',
    ),
    'fields of a report in a discussion': mail(
      { From: 'Bob <bob@blog.example>', Subject: 'Question on DSN' },
      `What does this mean?\n\nFinal-Recipient: rfc822; ${grace}\nAction: failed\nStatus: 5.1.1`,
    ),
  };
  for (const [name, raw] of Object.entries(people)) t.equal(readBounce(await readMessage(crlf(raw))), undefined, name);
});

t.test('reads feedback reports', async (t) => {
  const arf = report('feedback-report', [
    ['text/plain', 'This is an email abuse report for an email message.'],
    [
      'message/feedback-report',
      `Feedback-Type: abuse\nUser-Agent: FBL/1.0\nVersion: 1\nOriginal-Rcpt-To: <Grace@blog.example>`,
    ],
    ['message/rfc822', returned],
  ]);
  t.same(readFeedbackReport(await readMessage(crlf(arf))), {
    feedback_type: 'abuse',
    recipients: [grace],
    original_message_id: 'fms_1@shop.example',
  });
  const of_hotmail = mail(
    {
      From: 'staff@hotmail.com',
      Subject: 'complaint about message from 192.0.2.1',
      'Content-Type': 'multipart/mixed; boundary=b',
    },
    `--b\nContent-Type: message/rfc822\n\nX-HmXmrOriginalRecipient: ${grace}\n${returned}\n--b--`,
  );
  t.same(readFeedbackReport(await readMessage(crlf(of_hotmail)))?.recipients, [grace], 'without a part of its own');
  t.equal(readFeedbackReport(await readMessage(crlf(one('5.1.1', '550 User unknown')))), undefined, 'a bounce is none');
  const of_amazon = mail(
    { From: 'no-reply@sns.amazonaws.com', Subject: 'AWS Notification Message' },
    JSON.stringify({
      notificationType: 'Complaint',
      complaint: { complainedRecipients: [{ emailAddress: grace }] },
      mail: {},
    }),
  );
  t.same(readFeedbackReport(await readMessage(crlf(of_amazon)))?.recipients, [grace], 'as JSON');
});
