import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer as createNetServer, type Socket } from 'node:net';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import t, { type Test } from 'tap';
import { type Agent, request } from 'undici';
import { createPinnedAgent } from '../../../src/core/net/agent.ts';
import { connectionOrigin } from '../../../src/core/net/origin.ts';
import { resolvePublicAddresses } from '../../../src/core/net/resolve.ts';
import { createAuthority } from '../../../src/demo/authority.ts';
import { startNameServer } from './name_server.ts';

const PRODUCTION = { allowPrivate: false, ownHosts: ['api.rail-service.com'] };
const DEVELOPMENT = { allowPrivate: true, ownHosts: ['api.rail-service.com'] };
/** Only our own name server is ever asked for it. */
const NAME = 'hooks.merchant-shop.com';
/** Global unicast by every list, yet given to nobody: packets to it go nowhere. */
const PUBLIC_IPV6_OF_NOBODY = '3ffe:0:0:0:0:0:0:1';

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

t.test('asks once for a connection and connects to what was checked, not to a second answer', async (t) => {
  const receiver = await startReceiver(t);
  const { nameServers, queries } = await startNameServer(t, (_name, type) => {
    if (type === 'A') return [];
    return [
      queries.filter((query) => query === `AAAA ${NAME}`).length === 1
        ? PUBLIC_IPV6_OF_NOBODY
        : '0:0:0:0:0:ffff:7f00:1',
    ];
  });
  const agent = startAgent(t, { ...PRODUCTION, nameServers, connectTimeoutMs: 2_000 });
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
  const sendIn = (key: string, path = '/') =>
    sendWithKey(agent, new URL(`http://127.0.0.1:${receiver.port}`), key, path);
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

t.test('gives each connection key a connection, so that a hung endpoint holds up no other on its host', async (t) => {
  const receiver = await startReceiver(t);
  const agent = startAgent(t, DEVELOPMENT);
  const url = new URL(`http://127.0.0.1:${receiver.port}/`);
  const sendIn = (key: string, path: string) => sendWithKey(agent, url, key, path);
  const hung = sendIn('whe_1/#?', '/wait-for-quick');
  for (let i = 0; i < 3; i++) t.equal(await sendIn('whe_2', i < 2 ? '/' : '/quick'), url.host);
  t.equal(await hung, url.host);
  t.equal(receiver.connections, 2);
});

t.test('sends again, once, what a kept connection was closed on, and nothing that a new one was', async (t) => {
  const seen: string[] = [];
  const server = createNetServer((socket) => {
    const nth = seen.push('') - 1;
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      const before = seen[nth] ?? '';
      const request = /POST (\S+)/.exec(chunk.toString())?.[1] ?? '';
      seen[nth] = before + request;
      if (request === '/new' || (before !== '' && request === '/kept')) return socket.destroy();
      if (request === '/begun' && before !== '') return socket.end('HTTP/1.1 2');
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const agent = startAgent(t, DEVELOPMENT);
  const sendTo = (path: string) => send(agent, `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`);

  await t.rejects(sendTo('/new'), { message: 'other side closed' });
  t.same(seen, ['/new']);
  t.equal(await sendTo('/first'), 'ok');
  t.equal(await sendTo('/kept'), 'ok');
  t.same(seen, ['/new', '/first/kept', '/kept']);
  await t.rejects(sendTo('/begun'), 'a response that had begun');
  await t.rejects(sendTo('/new'));
  t.equal(await sendTo('/first'), 'ok');
  await t.rejects(sendTo('/new'), 'not a third time');
  t.same(seen, ['/new', '/first/kept', '/kept/begun', '/new', '/first/new', '/new']);
});

t.test('tries no more than four addresses of each family', async (t) => {
  const { nameServers } = await startNameServer(t, (_name, type) =>
    Array.from({ length: 100 }, (_, i) =>
      type === 'A' ? `127.0.1.${i}` : `0:0:0:0:0:ffff:7f00:2${i.toString(16).padStart(2, '0')}`,
    ),
  );
  const agent = startAgent(t, { ...DEVELOPMENT, nameServers });
  const tried: string[] = [];
  const watch = (message: unknown) =>
    (message as { socket: Socket }).socket.on('connectionAttempt', (address) => tried.push(address));
  subscribe('net.client.socket', watch);
  t.teardown(() => unsubscribe('net.client.socket', watch));
  await t.rejects(send(agent, `http://${NAME}:1/`));
  t.equal(tried.filter((address) => address.includes(':')).length, 4);
  t.equal(tried.filter((address) => !address.includes(':')).length, 4);
});

t.test('asks TLS for the name in the URL, and believes a certificate for that name alone', async (t) => {
  const authority = createAuthority();
  // Those of other files of this process stay.
  const known = getCACertificates('default');
  setDefaultCACertificates([...known, authority.cert]);
  t.teardown(() => setDefaultCACertificates(known));
  const names: string[] = [];
  const server = createTlsServer(authority.issue({ name: NAME }), (request, response) => {
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

function startAgent(t: Test, options: Parameters<typeof createPinnedAgent>[0]): Agent {
  const agent = createPinnedAgent(options);
  t.teardown(() => agent.destroy());
  return agent;
}

async function send(agent: Agent, url: string): Promise<string> {
  const { body } = await request(url, { dispatcher: agent, method: 'POST', body: '{}' });
  return body.text();
}

async function sendWithKey(agent: Agent, url: URL, key: string, path: string): Promise<string> {
  const { body } = await agent.request({ origin: connectionOrigin(url, key), path, method: 'POST', body: '{}' });
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
