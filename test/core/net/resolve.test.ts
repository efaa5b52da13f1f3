import t from 'tap';
import { resolvePublicAddresses } from '../../../src/core/net/resolve.ts';
import { startNameServer } from './name_server.ts';

/** Only our own name server is ever asked for it. */
const NAME = 'hooks.merchant-shop.com';
/** Global unicast by every list, yet given to nobody: packets to it go nowhere. */
const PUBLIC_IPV6_OF_NOBODY = '3ffe:0:0:0:0:0:0:1';
/** The tries of tests that depend on seconds: a busy machine may stand still for as long, and the timers of a process go off before it reads what has come. */
const most_tries = 10;

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

t.test('checks a literal as it stands, and /etc/hosts names only where private addresses are allowed', async (t) => {
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
  t.same(await resolvePublicAddresses(NAME, { allowPrivate: false, nameServers, timeoutMs: 2_000 }), [
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
    /** Returns the names that had ended as the good ones were answered, and as the dead ones were given up whose limit was shorter. */
    const ask = async () => {
      const ended: string[] = [];
      const stop = new AbortController();
      const resolve = (name: string, more = {}) =>
        resolvePublicAddresses(name, { allowPrivate: false, nameServers, ...more });
      const patient = resolve('dead.shop.com', { signal: stop.signal, timeoutMs: 60_000 });
      patient.catch(() => ended.push('patient'));
      const dead = Array.from({ length: 50 }, (_, i) =>
        resolve(`dead${i}.shop.com`, { timeoutMs: 1_500 }).catch(({ code }) => ended.push(code)),
      );
      await resolve('malformed.shop.com').catch(() => undefined);
      await resolve('alive.shop.com');
      await resolve(NAME, { nameServers: other.nameServers });
      const by_good = [...ended];
      await Promise.all(dead);
      const by_dead = [...ended];
      stop.abort();
      return { by_good, by_dead, reason: await patient.catch(({ name }) => name) };
    };
    let seen = await ask();
    for (let tries = 1; tries < most_tries && (seen.by_good.length > 0 || seen.by_dead.includes('patient')); tries++)
      seen = await ask();
    t.same(seen.by_good, [], 'the others were answered first');
    t.same(seen.by_dead, new Array(50).fill('name_not_resolved'), 'and each kept to its own limit');
    t.equal(seen.reason, 'AbortError');
  },
);

t.test('stops resolving when it is told to, with the reason given', async (t) => {
  const { nameServers } = await startNameServer(t, () => undefined);
  const stop = new AbortController();
  const resolution = resolvePublicAddresses(NAME, { allowPrivate: false, nameServers, signal: stop.signal });
  stop.abort(new Error('the worker stops'));
  await t.rejects(resolution, { message: 'the worker stops' });
});
