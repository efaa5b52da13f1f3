import t from 'tap';
import { addressOf, no_proxies, trustedProxies } from '../../../src/core/net/client_address.ts';
import { bareAddress } from '../../../src/core/values/texts/bare_address.ts';

t.test('finds the address in what proxies write', async (t) => {
  const cases: [string, string | undefined][] = [
    ['203.0.113.7', '203.0.113.7'],
    ['203.0.113.7:52311', '203.0.113.7'],
    [' "203.0.113.7:52311" ', '203.0.113.7'],
    ['2001:db8::1', '2001:db8::1'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['[2001:db8::1]:443', '2001:db8::1'],
    ['"[2001:db8::1]:443"', '2001:db8::1'],
    ['fe80::1%eth0', 'fe80::1'],
    ['[fe80::1%25eth0]:80', 'fe80::1'],
    ['::ffff:203.0.113.7', '::ffff:203.0.113.7'],
    ['[::ffff:203.0.113.7]:80', '::ffff:203.0.113.7'],
    ...['', 'unknown', '_hidden', '203.0.113', '203.0.113.256:80', '203.0.113.7:', '203.0.113.7, 10.0.0.1'].map(
      (text) => [text, undefined] as [string, undefined],
    ),
    ['2001:db8::g', undefined],
    [`${'1'.repeat(100_000)}:1`, undefined],
  ];
  for (const [written, address] of cases) t.equal(bareAddress(written), address, written.slice(0, 40));
  t.equal(addressOf({ ip: '203.0.113.7:1' }), '203.0.113.7');
  t.equal(addressOf({ ip: 'unknown' }), 'unknown');
});

t.test('believes as many proxies as are said, or those of the networks, and nobody else', async (t) => {
  t.notOk(no_proxies('127.0.0.1', 0));
  const two = trustedProxies('2');
  t.same(
    [0, 1, 2].map((hop) => two('8.8.8.8', hop)),
    [true, true, false],
  );
  const networks = trustedProxies('10.0.0.0/8, 2001:db8::/32,192.0.2.1');
  for (const address of [
    '10.1.2.3',
    '10.1.2.3:80',
    '::ffff:10.1.2.3',
    '2001:db8:1::5',
    '[2001:db8::5]:80',
    '192.0.2.1',
  ]) {
    t.ok(networks(address, 5), address);
  }
  for (const address of ['11.0.0.1', '192.0.2.2', '2001:db9::1', '127.0.0.1', 'unknown', '']) {
    t.notOk(networks(address, 0), address);
  }
  for (const setting of [
    '',
    'loopback',
    '10.0.0.0/33',
    '10.0.0',
    '::1/129',
    ...['0.0.0.0/0', '::/0', '10.0.0.0/8, ::/00'],
    '10.0.0.0/8,,',
    '12',
    '-1',
    'example.com',
  ]) {
    t.throws(() => trustedProxies(setting), RangeError, setting);
  }
});
