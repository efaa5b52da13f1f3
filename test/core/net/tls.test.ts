import { join } from 'node:path';
import t from 'tap';
import { createAuthority, type Identity, selfSigned } from '../../../src/demo/authority.ts';
import { startRail, startReceiver } from '../../harness.ts';
import { startProcess } from '../../processes.ts';
import { deliverTo } from '../../shop.ts';
import { startNameServer } from './name_server.ts';
import { type RawOptions, response, startRawReceiver } from './raw_receiver.ts';

const NAME = 'hooks.acme-shop.com';
const day_ms = 86_400_000;

const authority = createAuthority();
const rail = await startRail({ worker: false });
const { nameServers } = await startNameServer(t, (_name, type) => (type === 'A' ? ['127.0.0.1'] : []));
await startProcess('worker', rail.url, {
  RAIL_WEBHOOK_NAME_SERVERS: nameServers.join(),
  NODE_EXTRA_CA_CERTS: join(t.testdir({ 'authority.pem': authority.cert }), 'authority.pem'),
});

const startTls = (identity: Identity, more: RawOptions['tls'] = {}) =>
  startRawReceiver((socket) => socket.write(response(200, 'ok')), { host: NAME, tls: { ...identity, ...more } });

t.test('asks TLS for the name in the URL, at the address that was checked', async (t) => {
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    const receiver = await startTls(authority.issue({ name: NAME }), { minVersion: version, maxVersion: version });
    t.match(await deliverTo(rail, receiver.url), { status: 'delivered', status_code: 200, response_body: 'ok' });
    t.same(receiver.names, [NAME]);
    t.match(receiver.requests[0], new RegExp(`^POST /hook HTTP/1.1\r\nhost: ${NAME}:${receiver.port}\r\n`, 'i'));
  }
});

t.test('takes a certificate for every name below one', async (t) => {
  const receiver = await startTls(authority.issue({ name: '*.acme-shop.com' }));
  t.match(await deliverTo(rail, receiver.url), { status: 'delivered' });
});

const unbelievable: Record<string, Identity> = {
  'is for another name': authority.issue({ name: 'hooks.other-shop.com' }),
  'is for names below this one': authority.issue({ name: `*.${NAME}` }),
  'has expired': authority.issue({ name: NAME, not_after: new Date(Date.now() - day_ms) }),
  'is not valid yet': authority.issue({ name: NAME, not_before: new Date(Date.now() + day_ms) }),
  'vouches for itself': selfSigned({ name: NAME }),
  'an unknown authority issued': createAuthority('Another authority').issue({ name: NAME }),
};

for (const [fault, identity] of Object.entries(unbelievable)) {
  t.test(`sends nothing to a receiver whose certificate ${fault}, and says so`, async (t) => {
    const receiver = await startTls(identity);
    t.match(await deliverTo(rail, receiver.url), {
      status: 'pending',
      status_code: null,
      error: 'The TLS certificate was not accepted.',
    });
    t.same(receiver.requests, []);
  });
}

t.test('sends nothing to a receiver that wants a certificate of ours', async (t) => {
  const receiver = await startTls(authority.issue({ name: NAME }), { requestCert: true, ca: authority.cert });
  t.match(await deliverTo(rail, receiver.url), { status: 'pending', status_code: null });
  t.same(receiver.requests, []);
});

t.test('speaks no TLS older than 1.2, and none to a receiver that has none', async (t) => {
  const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
  const plain = await startReceiver();
  const receivers = [(await startTls(authority.issue({ name: NAME }), old)).url, plain.url.replace('http:', 'https:')];
  for (const url of receivers) t.match(await deliverTo(rail, url), { status: 'pending', status_code: null });
  t.equal(plain.received.length, 0);
});
