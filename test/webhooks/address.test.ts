import { createSocket, type RemoteInfo } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { rootCertificates, setDefaultCACertificates } from 'node:tls';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { type Agent, request } from 'undici';
import { checkEndpointUrl, isPublicAddress, resolvePublicAddresses } from '../../src/webhooks/address.ts';
import { createPinnedAgent, laneOrigin } from '../../src/webhooks/agent.ts';

const PRODUCTION = { allowPrivate: false, ownHosts: ['api.rail-service.com'] };
const DEVELOPMENT = { allowPrivate: true, ownHosts: ['api.rail-service.com'] };
/** Only our own name server is ever asked for it. */
const NAME = 'hooks.merchant-shop.com';
/** Global unicast by every list, yet given to nobody: packets to it go nowhere. */
const PUBLIC_IPV6_OF_NOBODY = '3ffe:0:0:0:0:0:0:1';

const words = (text: string) => text.trim().split(/\s+/);

const PUBLIC_ADDRESSES = words(`
  1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 168.63.129.15 168.63.129.17
  169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.0.3.0 192.167.255.255 192.169.0.0 198.17.255.255
  198.20.0.0 203.0.112.255 203.0.114.0 223.255.255.255
  ::ffff:8.8.8.8 ::FFFF:808:808 2000:: 2001:200:: 2001:db7:: 2001:db9:: 2001:4860:4860::8888 2003:: 2606:4700::1111
  2620:4f:8001:: 2a00:1450:4001:80b::200e 3fff:1000::`);

const OTHER_ADDRESSES = words(`
  0.0.0.0 0.255.255.255 10.0.0.0 10.255.255.255 100.64.0.0 100.100.100.200 100.127.255.255 127.0.0.1 127.255.255.255
  168.63.129.16 169.254.0.0 169.254.169.254 169.254.255.255 172.16.0.0 172.31.255.255 192.0.0.0 192.0.0.192 192.0.2.1
  192.31.196.1 192.52.193.1 192.88.99.1 192.168.0.1 192.175.48.1 198.18.0.0 198.19.255.255 198.51.100.1 203.0.113.1
  224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
  :: ::1 ::127.0.0.1 ::8.8.8.8 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:10.0.0.1 ::ffff:0:8.8.8.8 64:ff9b::7f00:1
  64:ff9b::8.8.8.8 64:ff9b:1::1 100::1 1fff:ffff:: 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:1ff:ffff::
  2001:db8::1 2002:7f00:1:: 2002:808:808:: 2620:4f:8000::1 3fff::1 3fff:fff:ffff:: 4000:: 5f00::1 fc00::1
  fd00:ec2::254 fe80::1 fec0::1 ff02::1
  fe80::1%eth0 2606:4700::1111%eth0 8.8.8.8%1 [2606:4700::1111] localhost 010.0.0.1 08.8.8.8 0x8.8.8.8 8.8.8
  8.8.8.8.8 8.8.8.256 134744072 ::ffff:8.8.8.8:1 1::2::3`);

const PUBLIC_URLS = words(`
  https://hooks.merchant-shop.com/rail http://hooks.merchant-shop.com HTTPS://Hooks.Merchant-Shop.COM./rail?a=b#c
  https://example.com/hook https://8.8.8.8/ https://[2606:4700::1111]:8443/ http://bücher.de/ http://a.b.c.d.e.com
  http://1.1.1.1:80/ http://shop.com:443 http://shop.com:1024 http://shop.com:3000 http://shop.com:8080
  http://shop.com:65535 http://notlocal.com http://mylocalhost.dev http://rail-service.com
  http://xapi.rail-service.com http://0x8080808/`);

const HOSTILE_URLS = {
  'another scheme': words(
    'ftp://shop.com/ file:///etc/passwd javascript:alert(1) ws://shop.com data:,x gopher://shop.com:70/',
  ),
  'no URL': [
    '',
    ...words('shop.com /rail http:// https://[::1 http://[fe80::1%25eth0]/ http://1.2.3.4.5/ http://256.256.256.256/'),
  ],
  userinfo: words(
    `http://user@shop.com/ http://user:password@shop.com/ http://:password@shop.com/ http://8.8.8.8:80@shop.com/`,
  ),
  length: [`https://shop.com/${'a'.repeat(2032)}`],
};

const INSIDE_HOSTS = {
  loopback: words(`http://127.0.0.1/ http://127.1 http://0x7f.1/ http://0177.0.0.1 http://2130706433/ http://0x7f000001
    http://127.0.0.1./ http://[::1]/ http://[0:0:0:0:0:0:0:1]/ http://[::ffff:127.0.0.1]/ http://[::ffff:7f00:1]/
    http://[::127.0.0.1]/`),
  'loopback in disguise': [
    'http://12\t7.0.0.1/',
    ' http://127.0.0.1/',
    ...words(
      'http://１２７.０.０.１/ http://127。0。0。1/ http://①②⑦.0.0.1/ http://%31%32%37.0.0.1/ http:127.0.0.1 http:\\\\127.0.0.1',
    ),
  ],
  translated: words(
    'http://[64:ff9b::7f00:1]/ http://[64:ff9b:1::7f00:1]/ http://[2002:7f00:1::]/ http://[2001:0:7f00:1::]/',
  ),
  private: words(`http://0/ http://0.0.0.0/ http://[::]/ http://10.1.2.3 http://[fd00::1] http://[fe80::1]
    http://192.168.1.1:8080/`),
  metadata: words(`http://169.254.169.254/latest/ http://metadata.google.internal/ http://METADATA.google.internal./
    http://metadata.goog/ http://100.100.100.200/ http://168.63.129.16/ http://[fd00:ec2::254]/ http://metadata/
    http://metadata.tencentyun.com`),
  'reserved names': words(`http://localhost/ http://localhost. http://LOCALHOST../ http://a.localhost http://a.local
    http://a.local. http://a.internal http://a.lan http://a.home http://a.corp http://a.intranet http://a.private
    http://a.home.arpa http://a.test http://a.example http://a.invalid http://a.onion http://1.0.0.127.in-addr.arpa`),
  'single labels': words(
    'http://postgres/ http://intranet http://ai./ http://rail-api:8080/ http://ｌｏｃａｌｈｏｓｔ/ http://../',
  ),
  'our own hosts': words(`https://api.rail-service.com/v1/sales https://API.Rail-Service.com./
    https://db.api.rail-service.com/`),
};

const REFUSED_PORTS = {
  'system ports': [22, 25, 0, 1023, 444, 53],
  'ports of databases': [5432, 3306, 1433, 27017, 9200],
  'ports of caches and Docker': [6379, 11211, 2375, 2376],
};
const INSIDE_PORTS = Object.values(REFUSED_PORTS).flatMap((ports) => ports.map((port) => `http://shop.com:${port}/`));

// ---- addresses

t.test('takes public addresses and refuses the others', async (t) => {
  for (const address of PUBLIC_ADDRESSES) t.equal(isPublicAddress(address), true, `takes ${address}`);
  for (const address of OTHER_ADDRESSES) t.equal(isPublicAddress(address), false, `refuses ${address}`);
  for (const text of ['', ' 8.8.8.8', '8.8.8.8 ']) t.equal(isPublicAddress(text), false, `refuses '${text}'`);
});

t.test('judges every IPv4 address as the list of ranges does', async () => {
  fc.assert(
    fc.property(ipv4(), (integer) => isPublicAddress(dotted(integer)) === isListedPublic(integer)),
    { numRuns: 20_000 },
  );
});

t.test('judges every IPv6 address as its groups say, however it is written', async () => {
  const written = fc
    .tuple(ipv6(), fc.constantFrom(...IPV6_SPELLINGS))
    .map(([groups, spell]) => ({ address: spell(groups), groups }));
  fc.assert(
    fc.property(written, ({ address, groups }) => isPublicAddress(address) === isListedPublic6(groups)),
    { numRuns: 20_000 },
  );
});

// ---- URLs

t.test('takes an endpoint URL at a public host', async (t) => {
  for (const url of [...PUBLIC_URLS, `https://shop.com/${'a'.repeat(2031)}`]) {
    t.match(checkEndpointUrl(url, PRODUCTION), { ok: true, url: URL }, `takes ${url.slice(0, 60)}`);
  }
});

t.test('takes the trailing dots off a host, which TLS would not know it by', async (t) => {
  for (const policy of [PRODUCTION, DEVELOPMENT]) {
    const url = { href: 'https://hooks.merchant-shop.com/rail' };
    t.match(checkEndpointUrl('https://hooks.merchant-shop.com../rail', policy), { ok: true, url });
  }
});

t.test('refuses an endpoint URL that is hostile, and says what is wrong', async (t) => {
  for (const [kind, urls] of Object.entries({ ...HOSTILE_URLS, ...INSIDE_HOSTS, ports: INSIDE_PORTS })) {
    for (const url of urls) {
      const judgement = checkEndpointUrl(url, PRODUCTION);
      t.match(judgement, { ok: false, reason: /^The .+\.$/ }, `${kind}: refuses ${url.slice(0, 60)}`);
    }
  }
});

t.test('gives the same reason for all hosts inside, so that nothing is learnt of them', async (t) => {
  const reasonOf = (url: string) => JSON.stringify(checkEndpointUrl(url, PRODUCTION));
  t.equal(new Set(Object.values(INSIDE_HOSTS).flat().map(reasonOf)).size, 1);
  t.equal(new Set(INSIDE_PORTS.map(reasonOf)).size, 1);
});

t.test('takes hosts and ports inside, but nothing else, where private addresses are allowed', async (t) => {
  for (const url of [...Object.values(INSIDE_HOSTS).flat(), ...INSIDE_PORTS]) {
    t.match(checkEndpointUrl(url, DEVELOPMENT), { ok: true }, `takes ${url}`);
  }
  for (const url of Object.values(HOSTILE_URLS).flat()) {
    t.match(checkEndpointUrl(url, DEVELOPMENT), { ok: false }, `refuses ${url.slice(0, 60)}`);
  }
});

t.test('sees through every spelling of an address in a URL', async () => {
  const written = fc
    .tuple(fc.constantFrom('http', 'https'), ipv4(), fc.constantFrom(...IPV4_SPELLINGS))
    .map(([scheme, integer, spell]) => ({ url: `${scheme}://${spell(integer)}/rail`, integer }));
  fc.assert(
    fc.property(written, ({ url, integer }) => checkEndpointUrl(url, PRODUCTION).ok === isListedPublic(integer)),
    { numRuns: 20_000 },
  );
});

t.test('never takes a URL whose host is a literal that is not public, whatever the URL', async () => {
  const piece = fc.constantFrom(
    ...'127.0.0.1 0x7f 017700000001 :: [ ] % @ / \\ # ? : . 。 ffff 1 0 10 localhost 64:ff9b:: ::ffff: 。 ％ ① \t'.split(
      ' ',
    ),
  );
  const anything = fc.oneof(
    fc.webUrl(),
    fc.string(),
    fc.array(piece).map((pieces) => `http://${pieces.join('')}`),
  );
  fc.assert(
    fc.property(anything, (text) => {
      const judgement = checkEndpointUrl(text, PRODUCTION);
      if (!judgement.ok) return true;
      const host = judgement.url.hostname;
      if (/^\d+(\.\d+){3}$/.test(host))
        return isListedPublic(host.split('.').reduce((sum, part) => sum * 256 + Number(part), 0));
      return !host.startsWith('[') && host.includes('.') && !/(^|\.)localhost\.*$/.test(host);
    }),
    { numRuns: 20_000 },
  );
});

// ---- resolving

t.test('gives all addresses of a name, by way of its CNAME', async (t) => {
  const { nameServers } = await startNameServer(t, (_name, type) =>
    type === 'A' ? ['cdn.other-shop.com.', '1.2.3.4', '1.2.3.5'] : [PUBLIC_IPV6_OF_NOBODY],
  );
  t.same(await resolvePublicAddresses(NAME, { allowPrivate: false, nameServers }), [
    { address: '1.2.3.4', family: 4 },
    { address: '1.2.3.5', family: 4 },
    { address: '3ffe::1', family: 6 },
  ]);
});

t.test('refuses a name when one of its addresses is not public', async (t) => {
  const table: Record<string, { A: string[]; AAAA: string[] }> = {
    'a.shop.com': { A: ['1.2.3.4', '10.0.0.1'], AAAA: [] },
    'b.shop.com': { A: ['1.2.3.4'], AAAA: ['0:0:0:0:0:0:0:1'] },
    'c.shop.com': { A: [], AAAA: ['0:0:0:0:0:ffff:7f00:1'] },
    'd.shop.com': { A: ['inside.shop.com.', '127.0.0.1'], AAAA: [PUBLIC_IPV6_OF_NOBODY] },
  };
  const { nameServers } = await startNameServer(t, (name, type) => table[name]?.[type]);
  for (const name of Object.keys(table)) {
    await t.rejects(
      resolvePublicAddresses(name, { allowPrivate: false, nameServers }),
      { code: 'address_not_allowed' },
      name,
    );
    t.ok(
      (await resolvePublicAddresses(name, { allowPrivate: true, nameServers })).length > 0,
      `${name} where private ones are allowed`,
    );
  }
});

t.test('judges a literal as it stands, and /etc/hosts names only where private addresses are allowed', async (t) => {
  const { nameServers, queries } = await startNameServer(t, () => []);
  t.same(await resolvePublicAddresses('[2606:4700::1111]', { allowPrivate: false, nameServers }), [
    { address: '2606:4700::1111', family: 6 },
  ]);
  await t.rejects(resolvePublicAddresses('[::ffff:7f00:1]', { allowPrivate: false, nameServers }), {
    code: 'address_not_allowed',
  });
  t.same(queries, [], 'nobody was asked about a literal');
  const [first] = await resolvePublicAddresses('localhost', { allowPrivate: true, nameServers });
  t.match(first?.address, /^(127\.0\.0\.1|::1)$/);
  await t.rejects(resolvePublicAddresses('localhost', { allowPrivate: false, nameServers }));
});

t.test('says that a name could not be resolved when it has no address', async (t) => {
  const { nameServers } = await startNameServer(t, () => []);
  await t.rejects(resolvePublicAddresses(NAME, { allowPrivate: false, nameServers }), {
    code: 'name_not_resolved',
    message: /A or AAAA record/,
  });
  await t.rejects(resolvePublicAddresses(`${'a'.repeat(64)}.com`, { allowPrivate: false, nameServers }), {
    code: 'name_not_resolved',
  });
});

t.test('takes the A records of a name whose server is dumb for AAAA', async (t) => {
  const { nameServers } = await startNameServer(t, (_name, type) => (type === 'A' ? ['1.2.3.4'] : undefined));
  t.same(await resolvePublicAddresses(NAME, { allowPrivate: false, nameServers, timeoutMs: 300 }), [
    { address: '1.2.3.4', family: 4 },
  ]);
});

t.test(
  'gives up on dead name servers within the limit, and neither they nor malformed answers hold up others',
  async (t) => {
    const { nameServers } = await startNameServer(t, (name, type) => {
      if (name.startsWith('dead')) return undefined;
      return name.startsWith('malformed') || type === 'A' ? ['1.2.3.4'] : [];
    });
    const other = await startNameServer(t, (_name, type) => (type === 'A' ? ['1.2.3.5'] : []));
    const ended: string[] = [];
    const stop = new AbortController();
    const patience = { nameServers, signal: stop.signal, timeoutMs: 60_000 };
    const patient = resolvePublicAddresses('dead.shop.com', { allowPrivate: false, ...patience });
    patient.catch(() => ended.push('patient'));
    const dead = Array.from({ length: 50 }, async (_, i) => {
      const resolution = resolvePublicAddresses(`dead${i}.shop.com`, {
        allowPrivate: false,
        nameServers,
        timeoutMs: 1_500,
      });
      await resolution.catch((error) => ended.push(error.code));
    });
    await resolvePublicAddresses('malformed.shop.com', { allowPrivate: false, nameServers }).catch(() => undefined);
    await resolvePublicAddresses('alive.shop.com', { allowPrivate: false, nameServers });
    await resolvePublicAddresses(NAME, { allowPrivate: false, nameServers: other.nameServers });
    t.same(ended, [], 'the others were answered first');
    await Promise.all(dead);
    t.same(ended, new Array(50).fill('name_not_resolved'), 'and each kept to its own limit');
    stop.abort();
    await t.rejects(patient, { name: 'AbortError' });
  },
);

t.test('stops resolving when it is told to, with the reason given', async (t) => {
  const { nameServers } = await startNameServer(t, () => undefined);
  const stop = new AbortController();
  const resolution = resolvePublicAddresses(NAME, { allowPrivate: false, nameServers, signal: stop.signal });
  stop.abort(new Error('the worker stops'));
  await t.rejects(resolution, { message: 'the worker stops' });
});

// ---- connecting

t.test('opens no connection to a name that has moved inside since it was saved', async (t) => {
  const receiver = await startReceiver(t);
  let asked = 0;
  const { nameServers } = await startNameServer(t, (_name, type) => {
    if (type === 'AAAA') return [];
    asked += 1;
    return [asked === 1 ? '1.2.3.4' : '127.0.0.1'];
  });
  await resolvePublicAddresses(NAME, { allowPrivate: false, nameServers });
  const agent = startAgent(t, { ...PRODUCTION, nameServers });
  await t.rejects(send(agent, `http://${NAME}:${receiver.port}/`), {
    code: 'address_not_allowed',
    message: /public internet addresses/,
  });
  t.equal(asked, 2);
  t.equal(receiver.connections, 0);
});

t.test('asks once for a connection and connects to what was judged, not to a second answer', async (t) => {
  const receiver = await startReceiver(t);
  const { nameServers, queries } = await startNameServer(t, (_name, type) => {
    if (type === 'A') return [];
    return [
      queries.filter((query) => query === `AAAA ${NAME}`).length === 1
        ? PUBLIC_IPV6_OF_NOBODY
        : '0:0:0:0:0:ffff:7f00:1',
    ];
  });
  const agent = startAgent(t, { ...PRODUCTION, nameServers, connectTimeoutMs: 400 });
  await t.rejects(send(agent, `http://${NAME}:${receiver.port}/`));
  t.same(queries.toSorted(), [`A ${NAME}`, `AAAA ${NAME}`]);
  await t.rejects(send(agent, `http://${NAME}:${receiver.port}/`), { code: 'address_not_allowed' });
  t.equal(receiver.connections, 0);
});

t.test('opens no connection when a private address hides among public ones', async (t) => {
  const receiver = await startReceiver(t);
  const { nameServers } = await startNameServer(t, (_name, type) =>
    type === 'A' ? ['127.0.0.1'] : [PUBLIC_IPV6_OF_NOBODY],
  );
  const agent = startAgent(t, { ...PRODUCTION, nameServers });
  await t.rejects(send(agent, `http://${NAME}:${receiver.port}/`), { code: 'address_not_allowed' });
  t.equal(receiver.connections, 0);
});

t.test('opens no connection to a literal, a name or a port that would not be saved', async (t) => {
  const receiver = await startReceiver(t);
  const { nameServers } = await startNameServer(t, (_name, type) => (type === 'A' ? ['127.0.0.1'] : []));
  const agent = startAgent(t, { ...PRODUCTION, nameServers });
  for (const host of [
    '127.0.0.1',
    '2130706433',
    '0x7f.1',
    '[::ffff:127.0.0.1]',
    '[::1]',
    'localhost',
    'localhost.',
    'a.localhost',
    'api.rail-service.com',
  ]) {
    await t.rejects(send(agent, `http://${host}:${receiver.port}/`), { code: 'address_not_allowed' }, `http://${host}`);
    await t.rejects(
      send(agent, `https://${host}:${receiver.port}/`),
      { code: 'address_not_allowed' },
      `https://${host}`,
    );
  }
  await t.rejects(send(agent, 'http://8.8.8.8:25/'), { code: 'address_not_allowed' });
  t.equal(receiver.connections, 0);
});

t.test('fails with the reason when a name does not resolve', async (t) => {
  const { nameServers } = await startNameServer(t, () => []);
  const agent = startAgent(t, { ...PRODUCTION, nameServers });
  await t.rejects(send(agent, `https://${NAME}/`), { code: 'name_not_resolved' });
});

t.test(
  'reaches names and literals inside where private addresses are allowed, over one connection for each origin',
  async (t) => {
    const receiver = await startReceiver(t);
    const { nameServers, queries } = await startNameServer(t, (_name, type) => (type === 'A' ? ['127.0.0.1'] : []));
    const agent = startAgent(t, { ...DEVELOPMENT, nameServers });
    for (let i = 0; i < 5; i++)
      t.equal(await send(agent, `http://${NAME}:${receiver.port}/`), `${NAME}:${receiver.port}`);
    t.equal(receiver.connections, 1);
    t.equal(queries.length, 2, 'one A and one AAAA query for five requests');
    t.equal(await send(agent, `http://127.0.0.1:${receiver.port}/`), `127.0.0.1:${receiver.port}`);
    t.equal(await send(agent, `http://localhost:${receiver.port}/`), `localhost:${receiver.port}`);
    t.equal(receiver.connections, 3);
  },
);

t.test('sends nothing over a connection that has grown old, but resolves the name again', async (t) => {
  const receiver = await startReceiver(t);
  const { nameServers, queries } = await startNameServer(t, (_name, type) => (type === 'A' ? ['127.0.0.1'] : []));
  const agent = startAgent(t, { ...DEVELOPMENT, nameServers, maxAgeMs: 0 });
  for (let i = 1; i <= 20; i++) {
    t.equal(await send(agent, `http://${NAME}:${receiver.port}/`), `${NAME}:${receiver.port}`);
    t.equal(receiver.connections, i);
    t.equal(queries.length, 2 * i);
  }
});

t.test('closes an old connection that always has requests waiting, too', async (t) => {
  const receiver = await startReceiver(t);
  const agent = startAgent(t, { ...DEVELOPMENT, maxAgeMs: 0 });
  const url = `http://127.0.0.1:${receiver.port}/`;
  await send(agent, url);
  await Promise.all(Array.from({ length: 5 }, () => send(agent, url)));
  t.equal(receiver.connections, 5, 'the first, one for two requests, and three');
});

t.test('closes the connections least recently used, and none in use, when there are too many', async (t) => {
  const receiver = await startReceiver(t);
  const agent = startAgent(t, { ...DEVELOPMENT, maxConnections: 3 });
  const sendIn = (lane: string, path = '/') =>
    sendInLane(agent, new URL(`http://127.0.0.1:${receiver.port}`), lane, path);
  const hung = sendIn('hung', '/wait-for-quick');
  for (let i = 0; i < 100; i++) {
    await sendIn(`whe_${i}`);
    await sendIn('whe_0');
  }
  t.equal(receiver.connections, 101, 'the one used all the time was kept');
  await sendIn('whe_0', '/quick');
  t.equal(await hung, `127.0.0.1:${receiver.port}`);
  t.ok(receiver.open <= 3 + 1, `${receiver.open} are open`);
});

t.test('keeps nothing of origins that are refused, dead or gone', async (t) => {
  const receiver = await startReceiver(t);
  const { nameServers } = await startNameServer(t, (name, type) =>
    type === 'A' && !name.startsWith('nowhere') ? ['127.0.0.1'] : [],
  );
  const strict = startAgent(t, { ...PRODUCTION, nameServers });
  const lenient = startAgent(t, { ...DEVELOPMENT, nameServers });
  const dead = Array.from({ length: 50 }, (_, i) => `http://dead${i}.shop.com:1/`);
  const nowhere = Array.from({ length: 50 }, (_, i) => `http://nowhere${i}.shop.com/`);
  const refused = await Promise.allSettled([...dead, ...nowhere].map((url) => send(strict, url)));
  const failed = await Promise.allSettled(dead.map((url) => send(lenient, url)));
  t.notOk([...refused, ...failed].some((outcome) => outcome.status === 'fulfilled'));
  t.same(Object.keys(strict.stats), []);
  t.same(Object.keys(lenient.stats), []);
  await send(lenient, `http://${NAME}:${receiver.port}/`);
  t.same(Object.keys(lenient.stats), [`http://${NAME}:${receiver.port}`]);
  const gone = once(lenient, 'disconnect');
  receiver.server.closeAllConnections();
  await gone;
  t.same(Object.keys(lenient.stats), []);
});

t.test('gives each lane a connection, so that a hung endpoint holds up no other on its host', async (t) => {
  const receiver = await startReceiver(t);
  const agent = startAgent(t, DEVELOPMENT);
  const url = new URL(`http://127.0.0.1:${receiver.port}/`);
  const sendIn = (lane: string, path: string) => sendInLane(agent, url, lane, path);
  const hung = sendIn('whe_1/#?', '/wait-for-quick');
  for (let i = 0; i < 3; i++) t.equal(await sendIn('whe_2', i < 2 ? '/' : '/quick'), url.host);
  t.equal(await hung, url.host);
  t.equal(receiver.connections, 2);
});

t.test('asks TLS for the name in the URL, and believes a certificate for that name alone', async (t) => {
  setDefaultCACertificates([...rootCertificates, CERTIFICATE]);
  t.teardown(() => setDefaultCACertificates([...rootCertificates]));
  const names: string[] = [];
  const server = createTlsServer({ key: KEY, cert: CERTIFICATE }, (request, response) => {
    names.push((request.socket as unknown as { servername: string }).servername);
    response.end(request.headers.host);
  });
  const port = await listen(t, server);
  const { nameServers } = await startNameServer(t, (_name, type) => (type === 'A' ? ['127.0.0.1'] : []));
  const agent = startAgent(t, { ...DEVELOPMENT, nameServers });
  t.equal(await send(agent, `https://${NAME}:${port}/`), `${NAME}:${port}`);
  await t.rejects(send(agent, `https://www.merchant-shop.com:${port}/`), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
  await t.rejects(send(agent, `https://127.0.0.1:${port}/`), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
  t.same(names, [NAME]);
});

// ---- an oracle of its own: first and last address of each range, as integers

function isListedPublic(integer: number): boolean {
  return !IPV4_RANGES.some(([first, last]) => integer >= first && integer <= last);
}

function isListedPublic6(groups: number[]): boolean {
  const [a = 0, b = 0, c = 0] = groups;
  const [g = 0, h = 0] = groups.slice(6);
  if (groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff) return isListedPublic(g * 65_536 + h);
  if (a < 0x2000 || a > 0x3fff) return false;
  if (a === 0x2001) return b >= 0x200 && b !== 0xdb8;
  return a !== 0x2002 && !(a === 0x2620 && b === 0x4f && c === 0x8000) && !(a === 0x3fff && b < 0x1000);
}

const IPV4_RANGES = (
  [
    ['0.0.0.0', '0.255.255.255'],
    ['10.0.0.0', '10.255.255.255'],
    ['100.64.0.0', '100.127.255.255'],
    ['127.0.0.0', '127.255.255.255'],
    ['168.63.129.16', '168.63.129.16'],
    ['169.254.0.0', '169.254.255.255'],
    ['172.16.0.0', '172.31.255.255'],
    ['192.0.0.0', '192.0.0.255'],
    ['192.0.2.0', '192.0.2.255'],
    ['192.31.196.0', '192.31.196.255'],
    ['192.52.193.0', '192.52.193.255'],
    ['192.88.99.0', '192.88.99.255'],
    ['192.168.0.0', '192.168.255.255'],
    ['192.175.48.0', '192.175.48.255'],
    ['198.18.0.0', '198.19.255.255'],
    ['198.51.100.0', '198.51.100.255'],
    ['203.0.113.0', '203.0.113.255'],
    ['224.0.0.0', '255.255.255.255'],
  ] as const
).map(
  (range) =>
    range.map((text) => text.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)) as [number, number],
);

/** Anywhere, inside the ranges, and at their edges. */
function ipv4(): fc.Arbitrary<number> {
  const max = 2 ** 32 - 1;
  const within = fc.constantFrom(...IPV4_RANGES).chain(([first, last]) => fc.integer({ min: first, max: last }));
  const edges = IPV4_RANGES.flatMap(([first, last]) => [first - 1, first, last, last + 1]).filter(
    (edge) => edge >= 0 && edge <= max,
  );
  return fc.oneof(fc.integer({ min: 0, max }), within, fc.constantFrom(...edges));
}

function ipv6(): fc.Arbitrary<number[]> {
  const group = fc.oneof(fc.integer({ min: 0, max: 0xffff }), fc.constant(0));
  const starts = [
    [0x2001],
    [0x2001, 0xdb8],
    [0x2001, 0x1ff],
    [0x2001, 0x200],
    [0x2002],
    [0x2620, 0x4f, 0x8000],
    [0x3fff, 0xfff],
    [0x3fff, 0x1000],
  ];
  const otherStarts = [
    [],
    [0, 0, 0, 0, 0, 0xffff],
    [0, 0, 0, 0, 0, 0],
    [0, 0, 0, 0, 0xffff, 0],
    [0x64, 0xff9b],
    [0x2606],
    [0x1fff],
    [0x4000],
    [0xfe80],
  ];
  return fc
    .tuple(fc.constantFrom<number[]>(...starts, ...otherStarts), fc.array(group, { minLength: 8, maxLength: 8 }))
    .map(([start, groups]) => [...start, ...groups].slice(0, 8));
}

const dotted = (integer: number) => [24, 16, 8, 0].map((shift) => (integer >>> shift) & 255).join('.');
const hex = (group: number) => group.toString(16);
const fullWidth = (text: string) => text.replace(/[0-9]/g, (digit) => String.fromCodePoint(0xff10 + Number(digit)));

const IPV4_SPELLINGS: ((integer: number) => string)[] = [
  dotted,
  (integer) => `${integer}`,
  (integer) => `0x${hex(integer)}`,
  (integer) => `0X${hex(integer).toUpperCase().padStart(12, '0')}`,
  (integer) => `0${integer.toString(8)}`,
  (integer) => `${integer >>> 24}.${integer & 0xffffff}`,
  (integer) => `0x${hex(integer >>> 24)}.0${((integer >>> 16) & 255).toString(8)}.${integer & 0xffff}`,
  (integer) => dotted(integer).replace(/\d+/g, (part) => `0${Number(part).toString(8)}`),
  (integer) => fullWidth(dotted(integer)),
  (integer) => dotted(integer).replaceAll('.', '。'),
  (integer) => dotted(integer).replace(/\d/g, (digit) => `%3${digit}`),
  (integer) => `${dotted(integer)}.`,
  (integer) => `[::ffff:${dotted(integer)}]`,
  (integer) => `[::FFFF:${hex(integer >>> 16)}:${hex(integer & 0xffff)}]`,
  (integer) => `[0:0:0:0:0:ffff:${hex(integer >>> 16)}:${hex(integer & 0xffff)}]:8443`,
];

const IPV6_SPELLINGS: ((groups: number[]) => string)[] = [
  (groups) => groups.map(hex).join(':'),
  (groups) => groups.map((group) => hex(group).toUpperCase().padStart(4, '0')).join(':'),
  (groups) => new URL(`http://[${groups.map(hex).join(':')}]`).hostname.slice(1, -1),
  (groups) => `${groups.slice(0, 6).map(hex).join(':')}:${dotted((groups[6] ?? 0) * 65_536 + (groups[7] ?? 0))}`,
];

// ---- servers

function startAgent(t: Test, options: Parameters<typeof createPinnedAgent>[0]): Agent {
  const agent = createPinnedAgent(options);
  t.teardown(() => agent.destroy());
  return agent;
}

async function send(agent: Agent, url: string): Promise<string> {
  const { body } = await request(url, { dispatcher: agent, method: 'POST', body: '{}' });
  return body.text();
}

async function sendInLane(agent: Agent, url: URL, lane: string, path: string): Promise<string> {
  const { body } = await agent.request({ origin: laneOrigin(url, lane), path, method: 'POST', body: '{}' });
  return body.text();
}

async function listen(t: Test, server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** Answers with the host it was asked for; `/wait-for-quick` is answered once `/quick` has come. */
async function startReceiver(t: Test) {
  const quick = Promise.withResolvers<void>();
  const server = createServer(async (request, response) => {
    if (request.url === '/quick') quick.resolve();
    if (request.url === '/wait-for-quick') await quick.promise;
    response.end(request.headers.host);
  });
  const receiver = { server, port: await listen(t, server), connections: 0, open: 0 };
  server.on('connection', (socket) => {
    receiver.connections += 1;
    receiver.open += 1;
    socket.on('close', () => {
      receiver.open -= 1;
    });
  });
  return receiver;
}

type RecordType = 'A' | 'AAAA';
/** Addresses, perhaps after the name of a CNAME (it ends with a dot); undefined is no answer at all. */
type Answer = (name: string, type: RecordType) => string[] | undefined;

/** A DNS server on loopback. */
async function startNameServer(t: Test, answer: Answer) {
  const queries: string[] = [];
  const socket = createSocket('udp4');
  socket.on('message', (query: Buffer, from: RemoteInfo) => {
    const { name, type, end } = readQuestion(query);
    queries.push(`${type} ${name}`);
    const values = answer(name, type);
    if (values !== undefined) socket.send(writeAnswer(query, end, type, values), from.port, from.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  t.teardown(() => socket.close());
  return { nameServers: [`127.0.0.1:${socket.address().port}`], queries };
}

function readQuestion(query: Buffer): { name: string; type: RecordType; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length).toLowerCase());
    at += 1 + length;
  }
  return { name: labels.join('.'), type: query.readUInt16BE(at + 1) === 1 ? 'A' : 'AAAA', end: at + 5 };
}

function writeAnswer(query: Buffer, end: number, type: RecordType, values: string[]): Buffer {
  const header = Buffer.from(query.subarray(0, 12));
  header.writeUInt16BE(0x8180, 2);
  [1, values.length, 0, 0].forEach((count, i) => {
    header.writeUInt16BE(count, 4 + 2 * i);
  });
  let owner = Buffer.from([0xc0, 12]);
  const records = values.map((value) => {
    const isCname = value.endsWith('.');
    const data = isCname ? encodeName(value) : encodeAddress(value);
    const fixed = Buffer.alloc(10);
    fixed.writeUInt16BE(isCname ? 5 : type === 'A' ? 1 : 28, 0);
    fixed.writeUInt16BE(1, 2);
    fixed.writeUInt32BE(60, 4);
    fixed.writeUInt16BE(data.length, 8);
    const record = Buffer.concat([owner, fixed, data]);
    if (isCname) owner = Buffer.from(data);
    return record;
  });
  return Buffer.concat([header, query.subarray(12, end), ...records]);
}

function encodeName(name: string): Buffer {
  return Buffer.concat(
    name.split('.').map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label, 'latin1')])),
  );
}

/** IPv6 with all its eight groups. */
function encodeAddress(address: string): Buffer {
  if (!address.includes(':')) return Buffer.from(address.split('.').map(Number));
  return Buffer.from(
    address
      .split(':')
      .map((group) => group.padStart(4, '0'))
      .join(''),
    'hex',
  );
}

/** A key and a certificate of itself for hooks.merchant-shop.com, 2020 to 2120, made for this test. */
const KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgjNyWzmG+RSoJ5M5h
MCuPDyk64Fsw/Fm9xUNj9Cw87F2hRANCAAT1dFm95R8HnLypI3wnxG1uH4J2tWhh
JN394zgnoHjEUt5rgLoyA+NtG7dKGUNQ/y/ZoTtE4ygFBvw6WC7rNTN7
-----END PRIVATE KEY-----
`;

const CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBbjCCARWgAwIBAgIBATAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAlSYWlsIHRl
c3QwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBQxEjAQBgNVBAMM
CVJhaWwgdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABPV0Wb3lHwecvKkj
fCfEbW4fgna1aGEk3f3jOCegeMRS3muAujID420bt0oZQ1D/L9mhO0TjKAUG/DpY
Lus1M3ujVjBUMA8GA1UdEwEB/wQFMAMBAf8wIgYDVR0RBBswGYIXaG9va3MubWVy
Y2hhbnQtc2hvcC5jb20wHQYDVR0OBBYEFOg/lqM5IbNJWwhBM7zFwKM5+5alMAoG
CCqGSM49BAMCA0cAMEQCIH5mA7TFFIO7liJDthbDLQ94PY5MXJ37YMHP7umf5G/J
AiBNe+xkLEgByAXFC8ebGmKPPTaChkXQ/i8RqqjLK0IXWg==
-----END CERTIFICATE-----

`;
