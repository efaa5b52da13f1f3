import { randomBytes } from 'node:crypto';
import t from 'tap';
import { createVault } from '../../../src/core/encryption/vault.ts';
import { hashAddress } from '../../../src/program/tracking/visitor_address.ts';

const vault = createVault([randomBytes(32)]);
const hash = (ip: string) => hashAddress(vault, ip);

t.test('all notations of an IP address have one hash', async (t) => {
  for (const ip of ['2001:DB8::1', '2001:0db8:0:0:0:0:0:1', '2001:db8:0:0::1'])
    t.equal(hash(ip), hash('2001:db8::1'), ip);
  for (const ip of ['::ffff:192.0.2.7', '::FFFF:c000:207']) t.equal(hash(ip), hash('192.0.2.7'), ip);
});

t.test('different IP addresses have different hashes', async (t) => {
  const others = ['192.0.2.7', '192.0.2.8', '2001:db8::1', '2001:db8::2', '::1', '::ffff:0:1'];
  t.equal(new Set(others.map(hash)).size, others.length);
});
