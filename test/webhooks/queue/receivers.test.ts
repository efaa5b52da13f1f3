import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { gzipSync } from 'node:zlib';
import t, { type Test } from 'tap';
import { createAuthority } from '../../../src/demo/authority.ts';
import { startNameServer } from '../../core/net/name_server.ts';
import { type RawReceiver, response, startRawReceiver } from '../../core/net/raw_receiver.ts';
import { eventually, type Json, startRail, startReceiver } from '../../harness.ts';
import { startProcess, stopClocks } from '../../processes.ts';
import { deliverTo, openListeningShop } from '../../shop.ts';
import { holdQueue } from './held_queue.ts';

t.jobs = 40;

const LATE = 'No complete response within 10 seconds.';
const BROKEN = 'The connection failed or was closed before the response was complete.';
/** Longer than any attempt: what is not over by then was not cut off. */
const for_ever_ms = 60_000;

const rail = await startRail({ worker: false });
await stopClocks(rail);
const { nameServers } = await startNameServer(t, async (name, type) => {
  if (name.startsWith('slow')) await sleep(700);
  return type === 'A' ? ['127.0.0.1'] : [];
});
const authority = createAuthority();
await startProcess('worker', rail.url, {
  RAIL_WEBHOOK_NAME_SERVERS: nameServers.join(),
  NODE_EXTRA_CA_CERTS: join(t.testdir({ 'authority.pem': authority.cert }), 'authority.pem'),
});

/** The tests run beside each other, because some of them wait for the ten seconds to pass. */
const test = (name: string, run: (t: Test) => Promise<void>) => t.test(name, { buffered: true }, run);

// ---- ten seconds over everything

const hangs: Record<string, () => Promise<Pick<RawReceiver, 'url' | 'open'>>> = {
  'accepts no connection': startWall,
  'accepts and says nothing': () => startRawReceiver(() => {}),
  'hangs amid the headers': () => startRawReceiver((socket) => socket.write('HTTP/1.1 200 OK\r\nX-Header: an')),
  'hangs after the headers of a failure': () => startRawReceiver((socket) => socket.write('HTTP/1.1 500 No\r\n\r\n')),
  'drips headers': () => startRawReceiver((socket) => drip(socket, 'HTTP/1.1 200 OK\r\n', (i) => `X-${i}: drop\r\n`)),
  'goes on saying that it is processing': () =>
    startRawReceiver((socket) => drip(socket, '', () => 'HTTP/1.1 102 Processing\r\n\r\n')),
  'never shakes hands': () =>
    startRawReceiver(() => {}, { host: 'hooks.acme-shop.com', tls: { SNICallback: () => {} } }),
  'takes a little too long over each of name, TLS and headers': () => {
    const identity = authority.issue({ name: 'slow.acme-shop.com' });
    const SNICallback = (_name: string, done: (error: null) => void) => setTimeout(done, 3_000, null);
    return startRawReceiver(
      async (socket) => {
        await sleep(3_000);
        drip(socket, 'HTTP/1.1 200 OK\r\n', (i) => `X-${i}: drop\r\n`);
      },
      { host: 'slow.acme-shop.com', tls: { ...identity, SNICallback } },
    );
  },
};

for (const [does, start] of Object.entries(hangs)) {
  test(`gives up after ten seconds on a receiver that ${does}`, async (t) => {
    const receiver = await start();
    const outcome = await deliverTo(rail, receiver.url);
    t.match(outcome, { status: 'pending', attempt: 1, status_code: null, response_body: null, error: LATE });
    await eventually(() => receiver.open === 0, 'the connection to be closed');
  });
}

const slow_bodies: Record<string, [body: string, (socket: Socket) => unknown]> = {
  'sends no body': ['', (socket) => socket.write('HTTP/1.1 200 OK\r\n\r\n')],
  'stops amid the body': ['half', (socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf')],
  'drips a body': ['..', (socket) => drip(socket, 'HTTP/1.1 200 OK\r\nContent-Length: 60\r\n\r\n', () => '.')],
  'drips a body in chunks': [
    '..',
    (socket) => drip(socket, 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', () => '1\r\n.\r\n'),
  ],
};

for (const [does, [body, answer]] of Object.entries(slow_bodies)) {
  test(`takes a 2xx of a receiver that ${does} then, and reads on for the rest of the ten seconds`, async (t) => {
    const receiver = await startRawReceiver(answer);
    const outcome = await deliverTo(rail, receiver.url);
    t.match(outcome, { status: 'delivered', attempt: 1, status_code: 200, error: null });
    t.equal(outcome.response_body.slice(0, body.length || 1), body);
    t.ok(outcome.duration_ms >= 9_000, 'it was not cut off early');
    await eventually(() => receiver.open === 0, 'the connection to be closed');
  });
}

test('waits for a receiver that is slow', async (t) => {
  const receiver = await startRawReceiver(async (socket) => {
    await sleep(1_500);
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n');
    await sleep(1_500);
    socket.write('late');
  });
  t.match(await deliverTo(rail, receiver.url), { status: 'delivered', status_code: 200, response_body: 'late' });
});

test('lets one endpoint wait for no other on the same host', async (t) => {
  const both = Promise.withResolvers<void>();
  const receiver = await startRawReceiver(async (socket) => {
    if (receiver.requests.length === 2) both.resolve();
    await both.promise;
    socket.write(response(200));
  });
  const shops = await Promise.all(
    ['/one', '/other'].map((path) => openListeningShop(rail, new URL(path, receiver.url).href)),
  );
  await Promise.all(shops.map(({ happen }) => happen()));
  for (const { attempted } of shops) t.match(await attempted(1), [{ status: 'delivered', attempt: 1 }]);
});

// ---- what acknowledges and what does not

test('takes any 2xx, and nothing else', async (t) => {
  const acknowledging = [200, 201, 202, 203, 204, 205, 206, 207, 226, 250, 299];
  const others = [300, 304, 400, 401, 404, 410, 418, 429, 500, 502, 503, 599, 600, 999];
  const statuses = [...acknowledging, ...others];
  const receiver = await startRawReceiver((socket, nth) => {
    const status = statuses[nth] as number;
    socket.write([204, 304].includes(status) ? `HTTP/1.1 ${status} None\r\n\r\n` : response(status, 'body'));
  });
  const { attempted, happen } = await openListeningShop(rail, receiver.url);
  for (const _ of statuses) await happen();
  const log = await attempted(statuses.length);
  t.same(
    log.map(({ status, attempts: [only] }) => [only.status_code, status, only.error]).toSorted(byFirst),
    statuses.map((status) =>
      acknowledging.includes(status)
        ? [status, 'delivered', null]
        : [status, 'pending', `The endpoint answered ${status}.`],
    ),
  );
});

test('follows no redirect', async (t) => {
  const statuses = [301, 302, 303, 307, 308];
  const trap = await startReceiver();
  const receiver = await startRawReceiver((socket, nth) =>
    socket.write(response(statuses[nth] as number, '', `Location: ${trap.url}\r\nRefresh: 0; url=${trap.url}\r\n`)),
  );
  const { attempted, happen } = await openListeningShop(rail, receiver.url);
  for (const _ of statuses) await happen();
  const log = await attempted(statuses.length);
  t.same(
    log.map(({ status, attempts: [only] }) => [only.status_code, status]).toSorted(byFirst),
    statuses.map((status) => [status, 'pending']),
  );
  t.equal(receiver.requests.length, statuses.length);
  t.equal(trap.received.length, 0);
});

// ---- what is not a response

const faults: Record<string, (socket: Socket) => unknown> = {
  'closes without a word': (socket) => socket.end(),
  'resets the connection': (socket) => socket.resetAndDestroy(),
  'closes amid the headers': (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-'),
  'closes amid the body of a failure': (socket) => socket.end('HTTP/1.1 500 No\r\nContent-Length: 9\r\n\r\nhalf'),
  'speaks another protocol': (socket) => socket.write('SSH-2.0-OpenSSH_9.9\r\n'),
  'speaks nonsense': (socket) => socket.write(Buffer.from('00ff00fe8000deadbeef0d0a0d0a', 'hex')),
  'gives no number for a status': (socket) => socket.write('HTTP/1.1 OK\r\n\r\n'),
  'names two lengths': (socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nok'),
  'switches protocols': (socket) =>
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'),
  'sends headers without end': (socket) => flood(socket, 'HTTP/1.1 200 OK\r\n', 'X-Header: more and more\r\n'),
  'sends one header without end': (socket) => flood(socket, 'HTTP/1.1 200 OK\r\nX-Header: ', 'more and more'),
};

for (const [does, fault] of Object.entries(faults)) {
  test(`counts a failed attempt, once, where a receiver ${does}, and delivers what comes next`, async (t) => {
    const receiver = await startRawReceiver((socket, nth) => (nth === 0 ? fault(socket) : socket.write(response(200))));
    const { attempted, happen } = await openListeningShop(rail, receiver.url);
    await happen();
    await attempted(1);
    await happen();
    const [failed, delivered] = (await attempted(2)) as [Json, Json];
    t.match(failed, {
      status: 'pending',
      attempt: 1,
      attempts: [{ status_code: null, response_body: null, error: BROKEN }],
    });
    t.match(delivered, { status: 'delivered', attempt: 1 });
    t.equal(receiver.requests.length, 2);
  });
}

const broken_bodies: Record<string, (socket: Socket) => unknown> = {
  'closes amid the body': (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf'),
  'resets amid the body': (socket) =>
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf', () =>
      // Once what was written is read: the reset discards the rest.
      setTimeout(() => socket.resetAndDestroy(), 5_000),
    ),
  'closes amid a chunk': (socket) => socket.end('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf'),
  'counts its chunks wrong': (socket) =>
    socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n'),
};

for (const [does, breakOff] of Object.entries(broken_bodies)) {
  test(`takes a 2xx of a receiver that ${does}, and delivers what comes next`, async (t) => {
    const receiver = await startRawReceiver((socket, nth) =>
      nth === 0 ? breakOff(socket) : socket.write(response(200)),
    );
    const { attempted, happen } = await openListeningShop(rail, receiver.url);
    await happen();
    await attempted(1);
    await happen();
    const log = await attempted(2);
    t.match(log[0], {
      status: 'delivered',
      attempts: [{ status_code: 200, response_body: 'half', error: null }],
    });
    t.match(log[1], { status: 'delivered', attempt: 1 });
    t.equal(receiver.requests.length, 2);
  });
}

test('says of a receiver that is not there that the connection was refused', async (t) => {
  t.match(await deliverTo(rail, 'http://127.0.0.1:1/'), { status: 'pending', error: 'The connection was refused.' });
});

// ---- responses of every kind

const takes: Record<string, { says: string | Buffer; logs: string; closes?: true }> = {
  'HTTP/1.0': { says: 'HTTP/1.0 200 OK\r\nServer: old\r\n\r\nbye', logs: 'bye', closes: true },
  'a body that ends with the connection': { says: 'HTTP/1.1 200 OK\r\n\r\nbye', logs: 'bye', closes: true },
  'no body at all': { says: 'HTTP/1.1 204 No Content\r\n\r\n', logs: '' },
  'no reason and no headers': { says: 'HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n', logs: '' },
  'chunks and trailers': {
    says: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Trailer: 1\r\n\r\n',
    logs: 'ok',
  },
  'informational responses before it': {
    says: `HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </>\r\n\r\n${response(200, 'ok')}`,
    logs: 'ok',
  },
  'text of other languages': { says: response(200, 'Grüße, 世界'), logs: 'Grüße, 世界' },
  'what is no text': {
    says: Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n`), Buffer.from([65, 0, 255])]),
    logs: 'A\ufffd\ufffd',
  },
};

for (const [kind, { says, logs, closes }] of Object.entries(takes)) {
  test(`takes a response with ${kind}`, async (t) => {
    const receiver = await startRawReceiver((socket) => (closes ? socket.end(says) : socket.write(says)));
    t.match(await deliverTo(rail, receiver.url), { status: 'delivered', response_body: logs, error: null });
    t.equal(receiver.requests.length, 1);
  });
}

test('reads 16 KiB of a response and no further', async (t) => {
  const receiver = await startRawReceiver((socket) =>
    flood(socket, 'HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n', 'abcdefgh'),
  );
  const outcome = await deliverTo(rail, receiver.url);
  t.match(outcome, { status: 'delivered', status_code: 200, error: null });
  t.equal(outcome.response_body, 'abcdefgh'.repeat(2_048));
  await eventually(() => receiver.open === 0, 'the receiver to see that nobody reads any more');
});

test('never decompresses: a compressed response is kept as it came', async (t) => {
  const bodies = [gzipSync('a small one'), gzipSync(Buffer.alloc(50_000_000))];
  const receiver = await startRawReceiver((socket, nth) => {
    const body = bodies[nth] as Buffer;
    socket.write(`HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ${body.length}\r\n\r\n`);
    socket.write(body);
  });
  const { attempted, happen } = await openListeningShop(rail, receiver.url);
  await happen();
  await attempted(1);
  await happen();
  t.same(
    (await attempted(2)).map(({ status, attempts: [only] }) => [status, only.response_body]),
    bodies.map((body) => ['delivered', body.subarray(0, 16_384).toString('utf8').replaceAll('\0', '\ufffd')]),
  );
  t.notMatch(receiver.requests.join(), /accept-encoding/i);
});

// ---- connections that are kept

test('believes no response that nobody asked for', async (t) => {
  const receiver = await startRawReceiver((socket, nth) =>
    socket.write(nth === 0 ? response(200, 'mine') + response(200, 'not mine') : response(410, 'gone')),
  );
  const { attempted, happen } = await openListeningShop(rail, receiver.url);
  await happen();
  await attempted(1);
  await happen();
  const [, second] = await attempted(2);
  t.match(second, { status: 'pending', attempts: [{ status_code: 410, response_body: 'gone' }] });
});

test('uses a connection again, and notices when the receiver has closed it', async (t) => {
  const receiver = await startRawReceiver((socket, nth) => {
    if (nth < 2) socket.write(response(200));
    else socket.end(response(200));
  });
  const { attempted, happen, endpoint } = await openListeningShop(rail, receiver.url);
  // An idle connection is kept for some seconds only.
  const held = await holdQueue(rail, endpoint.id);
  await Promise.all([happen(), happen(), happen()]);
  await held.release(3);
  await attempted(3);
  await happen();
  t.ok((await attempted(4)).every(({ status, attempt }) => status === 'delivered' && attempt === 1));
  t.same([receiver.requests.length, receiver.connections], [4, 2], 'three over the first, and none twice');
});

test('delivers in the same attempt what a kept connection was closed on', async (t) => {
  const receiver = await startRawReceiver((socket, nth) =>
    nth === 1 ? socket.destroy() : socket.write(response(200)),
  );
  const { attempted, happen, endpoint } = await openListeningShop(rail, receiver.url);
  // An idle connection is kept for some seconds only.
  const held = await holdQueue(rail, endpoint.id);
  await Promise.all([happen(), happen()]);
  await held.release(2);
  t.match(await attempted(2), [
    { status: 'delivered', attempt: 1 },
    { status: 'delivered', attempt: 1 },
  ]);
  const [, lost, again] = receiver.requests;
  t.same([receiver.requests.length, receiver.connections], [3, 2]);
  t.equal(again, lost);
});

/** The log is not in the order of the sequence within a millisecond. */
const byFirst = ([one]: unknown[], [other]: unknown[]): number => (one as number) - (other as number);

// ---- what the receivers do

/** Something a second until the socket is closed, or for a minute. */
async function drip(socket: Socket, first: string, drop: (i: number) => string): Promise<void> {
  socket.write(first);
  for (let i = 0; i < for_ever_ms / 1_000 && !socket.destroyed; i++) {
    socket.write(drop(i));
    await sleep(1_000);
  }
}

/** As fast as it is read, until the socket is closed. */
async function flood(socket: Socket, first: string, more: string): Promise<void> {
  socket.write(first);
  const chunk = more.repeat(1_000);
  while (!socket.destroyed) {
    if (socket.write(chunk)) await sleep(0);
    else await Promise.race([once(socket, 'drain'), once(socket, 'close')]).catch(() => {});
  }
}

/** Nobody accepts here, and the few places to wait in are taken: what comes to it never gets a connection. */
async function startWall(): Promise<{ url: string; open: number }> {
  const source = `
    const { createServer } = require('node:net');
    const { parentPort } = require('node:worker_threads');
    const server = createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
      parentPort.postMessage(server.address().port);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    });`;
  const wall = new Worker(source, { eval: true });
  const [port] = (await once(wall, 'message')) as [number];
  const waiting = Array.from({ length: 4 }, () => connect(port, '127.0.0.1').on('error', () => {}));
  await Promise.all(waiting.slice(0, 2).map((socket) => once(socket, 'connect')));
  t.teardown(async () => {
    for (const socket of waiting) socket.destroy();
    await wall.terminate();
  });
  return { url: `http://127.0.0.1:${port}/`, open: 0 };
}
