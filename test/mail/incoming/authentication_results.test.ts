import t from 'tap';
import {
  type Authentication,
  isAuthentic,
  isForged,
  readAuthentication,
} from '../../../src/mail/incoming/message/authentication_results.ts';
import type { OwnServer } from '../../../src/mail/incoming/message/authserv.ts';
import { readMessage } from '../../../src/mail/incoming/message/message.ts';
import { crlf } from './mails.ts';

const hosts = ['shop.example', 'imap.host.example'];
const own = { imap_host: 'imap.host.example', hosts, authserv_id: 'shop.example' };
const unknown = { ...own, authserv_id: null };

/** @param values of Authentication-Results, the topmost first */
async function read(
  values: string[],
  from = 'Grace <grace@blog.example>',
  by: OwnServer = own,
): Promise<Authentication> {
  const fields = values.map((value) => `Authentication-Results: ${value}`);
  const raw = [...fields, ...from.split('\n').map((one) => `From: ${one}`), 'Subject: Hello', '', 'Hi'].join('\n');
  return readAuthentication(await readMessage(crlf(raw)), by);
}

const nothing = { dmarc: null, spf: null, dkim: null, spf_aligned: false, dkim_aligned: false, is_known: true };

type Case = [name: string, values: string[], verdict: 'authentic' | 'forged' | 'neither', from?: string];
const cases: Case[] = [
  ['no result at all', [], 'neither'],
  ['only that there is none', ['mx.shop.example; none'], 'neither'],
  ['an aligned SPF pass', ['mx.shop.example; spf=pass smtp.mailfrom=bounce@mail.blog.example'], 'authentic'],
  [
    'SPF of the greeting, without an envelope sender',
    ['mx.shop.example; spf=pass smtp.mailfrom=<> smtp.helo=mx.blog.example'],
    'authentic',
  ],
  [
    'an aligned signature',
    ['mx.shop.example 1; dkim=pass (2048-bit key) header.d=blog.example header.s=a'],
    'authentic',
  ],
  ['an aligned signature by its identity', ['mx.shop.example; dkim=pass header.i=@mail.blog.example'], 'authentic'],
  [
    'an aligned one among several signatures',
    [
      'mx.shop.example; dkim=fail header.d=blog.example; dkim=pass header.d=esp.example; dkim=pass header.d=blog.example',
    ],
    'authentic',
  ],
  ['DMARC alone', ['mx.shop.example; dmarc=pass (p=REJECT) header.from=blog.example'], 'authentic'],
  [
    'two fields of the own servers',
    ['mx1.shop.example; dkim=pass header.d=blog.example', 'mx2.shop.example; dmarc=pass header.from=blog.example'],
    'authentic',
  ],
  [
    'folded lines and signs of equality with blanks',
    ['mx.shop.example;\n\tspf = pass\n  smtp.mailfrom = blog.example'],
    'authentic',
  ],
  ['upper case', ['MX.Shop.Example; SPF=Pass smtp.mailfrom=grace@BLOG.example'], 'authentic'],
  [
    'a pass of another domain',
    ['mx.shop.example; spf=pass smtp.mailfrom=attacker.example; dkim=pass header.d=attacker.example; dmarc=none'],
    'neither',
  ],
  ['a domain that only ends alike', ['mx.shop.example; dkim=pass header.d=evilblog.example'], 'neither'],
  ['DMARC of another domain', ['mx.shop.example; dmarc=pass header.from=attacker.example'], 'neither'],
  [
    'DMARC that the other results contradict',
    [
      'mx.shop.example; spf=pass smtp.mailfrom=attacker.example; dkim=none',
      'mx.shop.example; dmarc=pass header.from=blog.example',
    ],
    'neither',
  ],
  ['a softfail', ['mx.shop.example; spf=softfail smtp.mailfrom=blog.example'], 'neither'],
  ['an SPF fail', ['mx.shop.example; spf=fail smtp.mailfrom=blog.example'], 'forged'],
  [
    'an SPF fail of a forwarder that keeps the signature',
    ['mx.shop.example; spf=fail smtp.mailfrom=list.example; dkim=pass header.d=blog.example'],
    'authentic',
  ],
  [
    'a DMARC fail',
    ['mx.shop.example; spf=pass smtp.mailfrom=attacker.example; dmarc=fail (p=none) header.from=blog.example'],
    'forged',
  ],
  [
    'two results of SPF that disagree',
    [
      'mx.shop.example; spf=softfail smtp.mailfrom=blog.example',
      'mx.shop.example; spf=pass smtp.mailfrom=blog.example',
    ],
    'neither',
  ],
  [
    'a forged field in the own name below the real one',
    [
      'mx.shop.example; spf=softfail smtp.mailfrom=attacker.example; dkim=none',
      'mx.shop.example; spf=pass smtp.mailfrom=blog.example; dkim=pass header.d=blog.example',
    ],
    'neither',
  ],
  [
    'the results of a stranger',
    ['mx.attacker.example; dmarc=pass header.from=blog.example; spf=pass smtp.mailfrom=blog.example'],
    'neither',
  ],
  [
    'the own name below a stranger',
    ['mx.attacker.example; none', 'mx.shop.example; dmarc=pass header.from=blog.example'],
    'neither',
  ],
  [
    'a stranger below the own result',
    [
      'mx.shop.example; dmarc=fail header.from=blog.example',
      'mx.attacker.example; dmarc=pass; spf=pass smtp.mailfrom=blog.example',
    ],
    'forged',
  ],
  [
    'results within a comment',
    ['mx.shop.example; spf=none (; dmarc=pass \\) ; dkim=pass header.d=blog.example) smtp.mailfrom=x.example'],
    'neither',
  ],
  [
    'results within quotes',
    [
      'mx.shop.example; spf=none reason="x; dkim=pass header.d=blog.example" smtp.mailfrom="a b smtp.mailfrom=blog.example"',
    ],
    'neither',
  ],
  [
    'two addresses in From',
    ['mx.shop.example; spf=pass smtp.mailfrom=blog.example'],
    'neither',
    'grace@blog.example, eve@attacker.example',
  ],
  [
    'two fields From',
    ['mx.shop.example; spf=pass smtp.mailfrom=blog.example'],
    'neither',
    'grace@blog.example\neve@attacker.example',
  ],
  ['no address in From', ['mx.shop.example; spf=pass smtp.helo=mx.blog.example'], 'neither', 'MAILER-DAEMON'],
  ['a field that is none', ['=;;=; (((((', 'mx.shop.example; spf=pass smtp.mailfrom=blog.example'], 'neither'],
];

for (const [name, values, verdict, from] of cases)
  t.test(name, async (t) => {
    const found = await read(values, from);
    t.equal(isAuthentic(found), verdict === 'authentic', JSON.stringify(found));
    t.equal(isForged(found), verdict === 'forged', JSON.stringify(found));
  });

t.test('knows the names of large providers by the hosts of a login', async (t) => {
  const pass = 'spf=pass smtp.mailfrom=blog.example';
  for (const [imap_host, value] of [
    ['imap.gmail.com', `mx.google.com; ${pass}`],
    ['outlook.office365.com', `${pass}; dkim=none`],
    ['imap.mail.me.com', `spf.icloud.com; ${pass}`],
    ['imap.fastmail.com', `mx5.messagingengine.com; ${pass}`],
  ] as const) {
    const by = { imap_host, hosts: ['shop.example', imap_host], authserv_id: null };
    t.ok(isAuthentic(await read([value], undefined, by)), value);
    t.notOk(isAuthentic(await read([`mx.shop.example; ${pass}`], undefined, by)), 'another name is not its own');
  }
  t.same(await read([pass]), nothing, 'a server that signs with no name is none of ours');
  t.same(await read([`mx.google.com; ${pass}`]), nothing);
});

t.test('of a server that may write nothing, what a sender planted proves nothing, and a failure counts', async (t) => {
  for (const name of ['mx.shop.example', 'shop.example', 'imap.host.example', 'mail.host.example']) {
    const planted = `${name}; spf=pass smtp.mailfrom=blog.example; dkim=pass header.d=blog.example; dmarc=pass header.from=blog.example`;
    t.notOk(isAuthentic(await read([planted], undefined, unknown)), planted);
    t.notOk(isForged(await read([planted], undefined, unknown)), planted);
    t.ok(isForged(await read([`${name}; dmarc=fail header.from=blog.example`, planted], undefined, unknown)), name);
  }
  t.notOk(
    isAuthentic(await read(['mail.host.example; spf=pass smtp.mailfrom=blog.example'])),
    'a host that is not named',
  );
});

t.test('reads a long field in a time that grows with its length', async (t) => {
  for (const sign of ['(', '"', ';', '=', ' ', '\\', 'a=b ', '()'])
    t.ok(await read([`mx.shop.example; ${sign.repeat(200_000)}`, 'mx.shop.example; spf=fail']));
});
