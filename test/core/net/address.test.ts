import fc from 'fast-check';
import t from 'tap';
import { checkEndpointUrl, isPublicAddress } from '../../../src/core/net/address.ts';
import {
  dotted,
  IPV4_SPELLINGS,
  IPV6_SPELLINGS,
  ipv4,
  ipv6,
  isListedPublic,
  isListedPublic6,
} from './address_oracle.ts';

const PRODUCTION = { allowPrivate: false, ownHosts: ['api.rail-service.com'] };
const DEVELOPMENT = { allowPrivate: true, ownHosts: ['api.rail-service.com'] };

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

t.test('checks every IPv4 address as the list of ranges does', async () => {
  fc.assert(
    fc.property(ipv4(), (integer) => isPublicAddress(dotted(integer)) === isListedPublic(integer)),
    { numRuns: 20_000 },
  );
});

t.test('checks every IPv6 address as its groups say, however it is written', async () => {
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
      const check = checkEndpointUrl(url, PRODUCTION);
      t.match(check, { ok: false, reason: /^The .+\.$/ }, `${kind}: refuses ${url.slice(0, 60)}`);
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
      const check = checkEndpointUrl(text, PRODUCTION);
      if (!check.ok) return true;
      const host = check.url.hostname;
      if (/^\d+(\.\d+){3}$/.test(host))
        return isListedPublic(host.split('.').reduce((sum, part) => sum * 256 + Number(part), 0));
      return !host.startsWith('[') && host.includes('.') && !/(^|\.)localhost\.*$/.test(host);
    }),
    { numRuns: 20_000 },
  );
});
