import t from 'tap';
import { resolvePublicAddresses } from '../../../src/core/net/resolve.ts';
import { startNameServer } from './name_server.ts';

/** Only our own name server is ever asked for it. */
const NAME = 'hooks.merchant-shop.com';
/** Global unicast by every list, yet given to nobody: packets to it go nowhere. */
const PUBLIC_IPV6_OF_NOBODY = '3ffe:0:0:0:0:0:0:1';

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

t.test(
  'says the same of a name that is not there and of one that lies inside, so that nothing is learnt',
  async (t) => {
    const { nameServers } = await startNameServer(t, (name) => (name.startsWith('db') ? ['10.0.0.7'] : { rcode: 3 }));
    const said = async (name: string): Promise<string> =>
      resolvePublicAddresses(name, { allowPrivate: false, nameServers }).then(
        () => 'it is public',
        ({ message }) => message,
      );
    t.match(await said('db.merchant-shop.com'), /public internet addresses/);
    t.equal(await said('db.merchant-shop.com'), await said('nobody.merchant-shop.com'));
  },
);

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
