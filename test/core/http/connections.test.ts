import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import t from 'tap';
import { buildApi } from '../../../src/api.ts';
import type { ServerLimits } from '../../../src/core/http/server.ts';
import { trustedProxies } from '../../../src/core/net/client_address.ts';
import {
  callerOf,
  closeApi,
  encryption_key,
  eventually,
  log,
  patient_api,
  services,
  startRail,
} from '../../harness.ts';
import { spawnRail } from '../../rail_process.ts';

const rail = await startRail({ worker: false });
const merchant = await rail.organization();

async function startApi(limits: Partial<ServerLimits>): Promise<number> {
  const app = await buildApi({ store: rail.store, services, log, limits: { ...patient_api, ...limits } });
  await app.listen({ port: 0, host: '127.0.0.1' });
  t.teardown(() => closeApi(app));
  return (app.server.address() as AddressInfo).port;
}

/** A connection, and what has come on it so far. */
interface Client {
  socket: Socket;
  text: string;
  /** The service has closed its side. */
  closed: boolean;
  /** And takes nothing more. */
  gone: boolean;
}

/** A client that never closes its side. */
async function open(port: number, first = ''): Promise<Client> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  const client = { socket, text: '', closed: false, gone: false };
  socket.on('error', () => {});
  socket.on('data', (chunk) => {
    client.text += chunk;
  });
  socket.on('end', () => {
    client.closed = true;
  });
  socket.on('close', () => {
    client.closed = true;
    client.gone = true;
  });
  t.teardown(() => socket.destroy());
  await Promise.race([once(socket, 'connect'), once(socket, 'close')]).catch(() => {});
  if (first) socket.write(first);
  return client;
}

const isClosed = (client: Client): Promise<void> => eventually(() => client.closed, 'the connection to be closed');
const codeIn = (text: string): string => JSON.parse(text.split('\r\n\r\n')[1] ?? '{}').error?.code;
const head = (...lines: string[]): string => [...lines, 'Host: rail', '', ''].join('\r\n');
const authorization = `Authorization: Bearer ${merchant.key}`;

t.test('a process of 400 file descriptors survives clients that send no HTTP and never close', async (t) => {
  const api = spawnRail(
    t,
    ['api'],
    {
      DATABASE_URL: rail.url,
      RAIL_ENCRYPTION_KEY: encryption_key.toString('base64'),
      PORT: '0',
      DATABASE_POOL_SIZE: '5',
    },
    400,
  );
  const [, port] = await api.until(/"port":(\d+),"msg":"api ready"/);
  const caller = callerOf(`http://127.0.0.1:${port}`, merchant.key, '');
  const garbage = await Promise.all(Array.from({ length: 600 }, () => open(Number(port), 'GARBAGE\r\n\r\n')));
  await eventually(() => garbage.every(({ closed }) => closed), 'all to be closed');
  const answers = () =>
    caller.request('GET', '/v1/programs').then(
      ({ status }) => status === 200,
      () => false,
    );
  await eventually(answers, 'an answer');

  const silent = await Promise.all(Array.from({ length: 600 }, () => open(Number(port))));
  await eventually(() => silent.filter(({ closed }) => closed).length >= 360, 'what is too many to be closed');
  t.ok(silent.filter(({ closed }) => !closed).length <= 240);
  for (const { socket } of silent) socket.destroy();
  await eventually(answers, 'room for another connection');
  await api.until(/the process has as many as it may hold/);
});

t.test(
  'a client that takes too long over its headers or its body answers 408, and its connection is closed',
  async (t) => {
    const port = await startApi({ headers_ms: 500, request_ms: 1_000 });
    const slow = [
      await open(port),
      await open(port, 'GET /v1/programs HTTP/1.1\r\n'),
      await open(
        port,
        head('POST /v1/programs HTTP/1.1', authorization, 'Content-Type: application/json', 'Content-Length: 9999'),
      ),
    ];
    const dripping = setInterval(() => {
      for (const { socket } of slow.slice(1)) if (socket.writable) socket.write('a');
    }, 100);
    t.teardown(() => clearInterval(dripping));
    for (const client of slow) {
      await isClosed(client);
      t.match(client.text, /^HTTP\/1\.1 408 Request Timeout\r\n/);
      t.match(client.text, /\r\nRail-Request-Id: req_/);
      t.equal(codeIn(client.text), 'request_timeout');
    }
  },
);

t.test('a body without end is not read any further after a refusal', async (t) => {
  const port = await startApi({});
  const gigabyte = 'Content-Length: 1000000000';
  for (const [code, ...lines] of [
    ['missing_api_key', gigabyte],
    ['missing_api_key', 'Transfer-Encoding: chunked'],
    ['invalid_api_key', gigabyte, 'Authorization: Bearer rail_live_nobody'],
    ['payload_too_large', gigabyte, authorization],
  ]) {
    const client = await open(port, head('POST /v1/programs HTTP/1.1', 'Content-Type: application/json', ...lines));
    const chunk = 'a'.repeat(65_536);
    const chunked = lines[0]?.startsWith('Transfer') ? `10000\r\n${chunk}\r\n` : chunk;
    const room = () => new Promise((resolve) => client.socket.once('drain', resolve));
    while (!client.gone && client.socket.bytesWritten < 100_000_000) {
      if (!client.socket.write(chunked)) await Promise.race([room(), sleep(50)]);
      client.socket.removeAllListeners('drain');
    }
    t.ok(client.gone);
    t.equal(codeIn(client.text), code);
    t.match(client.text, /\r\nConnection: close\r\n/i);
    t.ok(
      client.socket.bytesWritten - client.socket.writableLength < 20_000_000,
      `${client.socket.bytesWritten} bytes were sent`,
    );
  }
});

t.test('a small body that was refused leaves its connection open', async (t) => {
  const port = await startApi({});
  const lines = ['POST /v1/programs HTTP/1.1', 'Content-Type: application/json'];
  const client = await open(port, head(...lines, 'Content-Length: 60000'));
  await eventually(() => client.text.includes('missing_api_key'), 'the answer');
  client.socket.write(`${' '.repeat(60_000)}${head('GET /v1/programs HTTP/1.1', authorization, 'Connection: close')}`);
  await isClosed(client);
  t.match(client.text, /missing_api_key.*HTTP\/1\.1 200 OK/s);
});

t.test('says once that a proxy is not trusted', async (t) => {
  const written: { level: number; msg: string }[] = [];
  const own_log = pino({}, { write: (line: string) => void written.push(JSON.parse(line)) });
  const warnings = () => written.filter(({ msg }) => msg.includes('TRUSTED_PROXIES'));
  const ask = async (limits: Partial<ServerLimits>, headers: Record<string, string>) => {
    const app = await buildApi({ store: rail.store, services, log: own_log, limits: { ...patient_api, ...limits } });
    await app.listen({ port: 0, host: '127.0.0.1' });
    const { port } = app.server.address() as AddressInfo;
    for (let n = 0; n < 3; n++) await fetch(`http://127.0.0.1:${port}/healthz`, { headers });
    await closeApi(app);
  };
  await ask({ proxies: trustedProxies('10.0.0.0/8') }, {});
  await ask({ proxies: trustedProxies('127.0.0.1/32') }, { 'X-Forwarded-For': '203.0.113.7' });
  await ask({ proxies: trustedProxies('1') }, { 'X-Forwarded-For': '203.0.113.7' });
  t.same(warnings(), []);
  await ask({ proxies: trustedProxies('10.0.0.0/8') }, { 'X-Forwarded-For': '203.0.113.7' });
  t.equal(warnings().length, 1);
  t.match(warnings()[0], { level: 40, msg: /^A request from 127\.0\.0\.1 has the header X-Forwarded-For/ });
});

t.test('a public address may make so many requests without a valid key in each second', async (t) => {
  const port = await startApi({ address_rate: 1 });
  const ask = (path: string, address: string, key = '') =>
    callerOf(`http://127.0.0.1:${port}`, key, '').request('GET', path, undefined, { 'X-Forwarded-For': address });
  const burst = (path: string, address: string, key?: string) =>
    Promise.all(Array.from({ length: 40 }, () => ask(path, address, key)));
  t.equal((await ask('/v1/programs', '1.1.1.1', merchant.key)).status, 200);
  for (const [path, key] of [
    ['/healthz'],
    ['/r/nothing'],
    ['/v1/nothing'],
    ['/v1/programs'],
    ['/v1/programs', 'rail_live_nobody'],
  ] as const) {
    const refused = (await burst(path, '1.1.1.1', key)).filter(({ status }) => status === 429);
    t.not(refused.length, 0, `${path} of one address`);
    for (const { headers, body } of refused) {
      t.equal(headers['retry-after'], '1');
      t.match(body.error, { code: 'rate_limit_exceeded', message: /^Your address may make 1 requests? per second/ });
    }
    const known = await ask('/v1/programs', '1.1.1.1', merchant.key);
    t.equal(known.status, 200, 'a valid key is not concerned');
  }
  const far = await Promise.all(Array.from({ length: 40 }, (_, nth) => ask('/healthz', `2606:4700:0:1::${nth + 1}`)));
  t.ok(
    far.some(({ status }) => status === 429),
    'a network of IPv6 is one address',
  );
  const with_ports = await Promise.all(
    Array.from({ length: 40 }, (_, nth) => ask('/healthz', `1.1.1.2:${50_000 + nth}`)),
  );
  t.ok(
    with_ports.some(({ status }) => status === 429),
    'an address is one, whatever the port that a proxy writes with it',
  );
  for (const address of ['10.0.0.1', '127.0.0.1', 'not an address']) {
    t.ok(
      (await burst('/healthz', address)).every(({ status }) => status === 200),
      `${address} is not public`,
    );
  }
  const many = await Promise.all(Array.from({ length: 40 }, (_, nth) => ask('/healthz', `1.0.0.${nth + 1}`)));
  t.ok(
    many.every(({ status }) => status === 200),
    'each address counts by itself',
  );
});
