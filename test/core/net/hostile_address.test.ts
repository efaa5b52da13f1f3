import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import { createServer, isIP, type Server } from 'node:net';
import { constants } from 'node:os';
import { setImmediate as endOfTurn } from 'node:timers/promises';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import type { Agent } from 'undici';
import { checkEndpointUrl } from '../../../src/core/net/address.ts';
import { createPinnedAgent } from '../../../src/core/net/agent.ts';
import { connectionOrigin } from '../../../src/core/net/origin.ts';
import { resolvePublicAddresses } from '../../../src/core/net/resolve.ts';
import { eventually } from '../../harness.ts';
import { stablePort } from '../../ports.ts';
import { effort } from '../../runner/effort.ts';
import {
  dotted,
  hex,
  IPV4_SPELLINGS,
  IPV6_SPELLINGS,
  ipv4,
  ipv6,
  isListedPublic,
  isListedPublic6,
  isListedPublicAddress,
} from './address_oracle.ts';
import { type RecordType, type Reply, startNameServer } from './name_server.ts';

const PRODUCTION = { allowPrivate: false, ownHosts: ['api.rail-service.com'] };
const ATTACKS = effort.hostile_addresses;
const AT_A_TIME = 40;
/** The tries of an attack that should reach a public address. */
const TRIES = 10;

/** The answers about a name when it is saved and when it is sent to. */
type Script = Record<'save' | 'send', Record<RecordType, Reply>>;
/** A URL; where it has a script, `{name}` in it stands for a name of its own. */
type Hostile = { url: string; script?: Script };

t.test(`${ATTACKS.toLocaleString('en')} hostile URLs and host answers lead to no connection inside`, async (t) => {
  const trap = await startTrap(t);
  const watching = spyOnConnections(t, trap.server);
  const stage = createStage();
  const { nameServers } = await startNameServer(t, stage.answer);
  const agent = createPinnedAgent({ ...PRODUCTION, nameServers });
  t.teardown(() => agent.destroy());
  const refusals = new Set<string>();
  const seen = { urls: 0, host_answers: 0, connections: 0 };

  /** @returns false where addresses that may be reached were not tried */
  const attack = async ({ url: template, script }: Hostile): Promise<boolean> => {
    const name = stage.begin(script);
    const text = template.replace('{name}', name);
    const checked = checkEndpointUrl(text, PRODUCTION);
    const url = checked.ok ? checked.url : URL.parse(text);
    if (script) seen.host_answers += 2;
    else seen.urls += 1;
    if (!url || !/^https?:$/.test(url.protocol)) return true;
    if (script) await resolvePublicAddresses(url.hostname, { allowPrivate: false, nameServers }).catch(() => {});
    stage.turnToSending(name);
    // A refused URL is sent to all the same: the connection is guarded by itself.
    const tried = new Set<string>();
    const { code, message } = await watching.run(tried, () => send(agent, url, name));
    stage.end(name);
    if (script && (code === 'address_not_allowed' || code === 'name_not_resolved')) refusals.add(message);
    seen.connections += tried.size;
    const those = `${JSON.stringify(text)} ${JSON.stringify(script ?? {})} led to ${[...tried]} (${message})`;
    if (![...tried].every(isListedPublicAddress)) throw new Error(`${those}, which is inside`);
    const reachable = script ? publicRecords(script.send) : checked.ok && isIP(bare(url)) ? [bare(url)] : [];
    if (reachable.length > 0 && tried.size === 0) return false;
    const known = new Set(reachable.map(canonical));
    if (known.size > 0 && ![...tried].every((address) => known.has(address)))
      throw new Error(`${those}: not what was checked`);
    return true;
  };

  /** On a busy machine the answers come later than a resolver waits for them: then a name is not found, or asked for again and led inside. */
  const attackUntilSeen = async (one: Hostile) => {
    for (let nth = 1; !(await attack(one)); nth++)
      if (nth === TRIES)
        throw new Error(`${JSON.stringify(one)} led nowhere ${TRIES} times: this test would see nothing`);
  };

  const seed = Date.now();
  t.comment(`seed ${seed}`);
  const attacks = samples(hostile(trap.port), ATTACKS, seed);
  await Promise.all(Array.from({ length: AT_A_TIME }, () => forEach(attacks, attackUntilSeen)));
  t.equal(trap.hits, 0);
  t.equal(refusals.size, 1, 'all that names are refused for is told in one sentence');
  t.ok(seen.urls + seen.host_answers >= ATTACKS, JSON.stringify(seen));

  const careless = createPinnedAgent({ allowPrivate: true, ownHosts: [], nameServers });
  t.teardown(() => careless.destroy());
  const tried = new Set<string>();
  await watching.run(tried, () => send(careless, new URL(`http://127.0.0.1:${trap.port}/`), 'careless'));
  t.same([trap.hits, [...tried]], [1, ['127.0.0.1']], 'a connection inside would have been seen');
});

t.test('neither 100 dead name servers nor 100 that talk nonsense hold up a good name', async (t) => {
  const nonsense = Buffer.from('8180000100ff00000000', 'hex');
  const { nameServers, queries } = await startNameServer(t, (name, type) => {
    if (name.startsWith('dead')) return undefined;
    if (name.startsWith('nonsense')) return { garbage: nonsense };
    return type === 'A' ? ['1.2.3.4'] : [];
  });
  const resolve = (name: string) => resolvePublicAddresses(name, { allowPrivate: false, nameServers });
  /** Returns the results of the names, and those that had ended as the good one was answered. */
  const resolveAll = async () => {
    queries.splice(0);
    const ended = new Map<string, string>();
    const pending: Promise<unknown>[] = [];
    for (const kind of ['nonsense', 'dead']) {
      for (let i = 0; i < 100; i++) {
        const name = `${kind}${i}.shop.com`;
        pending.push(resolve(name).catch(({ code }) => ended.set(name, code)));
        await endOfTurn();
      }
    }
    const dead = () => new Set(queries.filter((query) => query.startsWith('A dead')));
    await eventually(() => dead().size === 100, 'all to be asked for');
    const good = await resolve('good.shop.com');
    const dead_before = [...ended.keys()].filter((name) => name.startsWith('dead'));
    await Promise.all(pending);
    return { good, dead_before, codes: [...ended.values()] };
  };
  let seen = await resolveAll();
  // A busy machine may stand still for as long as a dead server is waited for.
  for (let nth = 1; nth < TRIES && seen.dead_before.length > 0; nth++) seen = await resolveAll();
  t.same(seen.good, [{ address: '1.2.3.4', family: 4 }]);
  t.same(seen.dead_before, [], 'the dead are still waited for');
  t.same(seen.codes, new Array(200).fill('name_not_resolved'));
});

// ---- what is thrown at it

function hostile(trap_port: number): fc.Arbitrary<Hostile> {
  const port = fc.constantFrom(...['', '', `:${trap_port}`, ':80', ':8443', ':25', ':5432', ':0', ':65536', ':８０']);
  const before = fc.constantFrom('http://', 'https://', 'http://', 'https://', 'HTTP://', ...STARTS);
  const after = fc.constantFrom(
    '',
    '/',
    '/rail?a=b#c',
    '/@8.8.8.8/',
    '\\@8.8.8.8/',
    '#@8.8.8.8/',
    '?@8.8.8.8',
    '%00',
    '\t',
  );
  const url = fc.tuple(before, host(), port, after).map((parts) => ({ url: parts.join('') }));
  const answers = fc
    .record({ A: reply(ipv4Record()), AAAA: reply(ipv6Record()) })
    .map((records) => records satisfies Script['save']);
  const scripted = fc
    .tuple(port, answers, answers)
    .filter(([port]) => port === '' || port === `:${trap_port}`)
    .map(([port, save, send]) => ({ url: `http://{name}${port}/`, script: { save, send } }));
  return fc.oneof({ weight: 14, arbitrary: url }, { weight: 1, arbitrary: scripted });
}

const STARTS = [
  ...[
    'http:',
    'http:/',
    'http:\\\\',
    'http:///',
    ' http://',
    'ht\ntp://',
    '//',
    'ftp://',
    'file://',
    'gopher://',
    'ws://',
  ],
  ...[
    'http://8.8.8.8@',
    'http://user:password@',
    'http://8.8.8.8#@',
    'http://8.8.8.8\\@',
    'http://@',
    'https://shop.com:80@',
  ],
];

const NAMES = [
  ...[
    'localhost',
    'LOCALHOST.',
    'a.localhost',
    'metadata',
    'metadata.google.internal',
    'metadata.goog.',
    'db.corp',
    'x.local',
  ],
  ...[
    'ip6-localhost',
    'localhost.localdomain',
    'postgres',
    'router.lan',
    '1.0.0.127.in-addr.arpa',
    'a.test',
    'x.onion',
  ],
  ...[
    'api.rail-service.com',
    'db.api.rail-service.com.',
    '127.0.0.1.nip.io',
    '7f000001.shop.com',
    'ｌｏｃａｌｈｏｓｔ',
    'loc%61lhost',
  ],
  ...[
    '[::1]',
    '[::]',
    '[fe80::1%25eth0]',
    '[::1',
    '::1',
    '[127.0.0.1]',
    '127.0.0.1.',
    '127.1',
    '0',
    '0x7f.1',
    '①②⑦.0.0.1',
    '',
  ],
  ...['127.0.0.1%00.shop.com', '127.0.0.1\t', '127。0。0。1', '1.2.3.4.5', '256.256.256.256', '4294967296', '-1', '..'],
];

function host(): fc.Arbitrary<string> {
  const four = fc.tuple(ipv4(), fc.constantFrom(...IPV4_SPELLINGS)).map(([integer, spell]) => spell(integer));
  const six = fc.tuple(ipv6(), fc.constantFrom(...IPV6_SPELLINGS)).map(([groups, spell]) => `[${spell(groups)}]`);
  const carried = fc.tuple(ipv4(), fc.constantFrom(...CARRIERS)).map(([integer, carry]) => `[${carry(integer)}]`);
  const mangled = fc
    .tuple(
      four,
      fc.constantFrom('.', '%2e', '%', '\t', '\n', ':', '@', '\\', '/', '0', '0x', '。', '\u00ad'),
      fc.nat(15),
    )
    .map(([text, mark, at]) => text.slice(0, at) + mark + text.slice(at));
  return fc.oneof(four, six, carried, mangled, fc.constantFrom(...NAMES), fc.domain());
}

/** NAT64, 6to4, Teredo, ISATAP, compatible and translated addresses: an IPv4 address inside an IPv6 one. */
const CARRIERS = ['64:ff9b::', '64:ff9b:1::', '::', '::ffff:0:', '::ffff:', 'fe80::5efe:']
  .map((prefix) => (integer: number) => `${prefix}${dotted(integer)}`)
  .concat(
    (integer) => `2002:${hex(integer >>> 16)}:${hex(integer & 0xffff)}::1`,
    (integer) => `2001:0:0:0:0:0:${hex(~integer >>> 16)}:${hex(~integer & 0xffff)}`,
  );

const ipv4Record = (): fc.Arbitrary<string> =>
  fc.oneof({ weight: 4, arbitrary: ipv4().filter(isListedPublic) }, { weight: 1, arbitrary: ipv4() }).map(dotted);

const ipv6Record = (): fc.Arbitrary<string> =>
  fc
    .oneof({ weight: 4, arbitrary: ipv6().filter(isListedPublic6) }, { weight: 1, arbitrary: ipv6() })
    .map((groups) => groups.map(hex).join(':'));

function reply(record: fc.Arbitrary<string>): fc.Arbitrary<Reply> {
  const records = fc.array(record, { maxLength: 4 });
  const chain = fc.array(fc.constantFrom('cdn.other-shop.com.', 'localhost.', 'db.corp.'), { maxLength: 8 });
  return fc.oneof(
    { weight: 6, arbitrary: fc.tuple(chain, records).map(([chain, records]) => ({ records: [...chain, ...records] })) },
    { weight: 1, arbitrary: records.map((records) => ({ records, isTruncated: true })) },
    {
      weight: 1,
      arbitrary: fc
        .array(record, { minLength: 100, maxLength: 100 })
        .map((records) => ({ records, isTruncated: true })),
    },
    { weight: 1, arbitrary: fc.constantFrom({ rcode: 2 }, { rcode: 3 }, { rcode: 5 }) },
    {
      weight: 1,
      arbitrary: fc
        .uint8Array({ minLength: 10, maxLength: 64 })
        .map((bytes) => ({ garbage: Buffer.from([0x81, 0x80, ...bytes]) })),
    },
  );
}

// ---- where it is thrown

/** Plays the scripts. Whoever asks more than once in an act is led inside, and so is who asks for a name that has no script. */
function createStage() {
  const acts = new Map<string, { script: Script; act: keyof Script; asked: Set<RecordType> }>();
  const inside = { A: ['127.0.0.1'], AAAA: ['0:0:0:0:0:0:0:1'] };
  let names = 0;
  return {
    begin(script: Script | undefined): string {
      const name = `n${++names}.merchant-shop.com`;
      if (script) acts.set(name, { script, act: 'save', asked: new Set() });
      return name;
    },
    turnToSending(name: string) {
      const playing = acts.get(name);
      if (playing) acts.set(name, { ...playing, act: 'send', asked: new Set() });
    },
    end: (name: string) => acts.delete(name),
    answer(name: string, type: RecordType, transport: 'udp' | 'tcp') {
      const playing = acts.get(name);
      if (!playing || (transport === 'udp' && playing.asked.has(type))) return inside[type];
      playing.asked.add(type);
      return playing.script[playing.act][type];
    },
  };
}

/** Returns the addresses that must be connected to: of a name that has no others, when neither answer is broken. */
function publicRecords({ A, AAAA }: Record<RecordType, Reply>): string[] {
  if (!A.records || !AAAA.records) return [];
  const addresses = [...A.records, ...AAAA.records].filter((record) => !record.endsWith('.'));
  return addresses.every(isListedPublicAddress) ? addresses : [];
}

async function send(agent: Agent, url: URL, key: string): Promise<{ code?: string; message: string }> {
  try {
    const origin = connectionOrigin(url, key);
    const { body } = await agent.request({ origin, path: url.pathname, method: 'POST', body: '{}' });
    await body.dump();
    return { message: 'it was answered' };
  } catch (error) {
    return error as Error;
  }
}

function* samples<T>(arbitrary: fc.Arbitrary<T>, count: number, seed: number): Generator<T> {
  const size = 1_000;
  for (let i = 0; i < count / size; i++) yield* fc.sample(arbitrary, { numRuns: size, seed: seed + i });
}

async function forEach<T>(queue: Iterator<T>, work: (one: T) => Promise<void>): Promise<void> {
  for (let next = queue.next(); !next.done; next = queue.next()) {
    await work(next.value);
    // Refusals alone would never let the event loop turn, and the name server is in this process.
    await endOfTurn();
  }
}

const bare = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '');
const canonical = (address: string): string => (address.includes(':') ? bare(new URL(`http://[${address}]`)) : address);

/**
 * Notes the addresses that the system is told to connect to, for whoever runs in it: taken where Node hands them over, below all that it
 * does with names. The public ones are nobody's business: those connections end there.
 */
function spyOnConnections(t: Test, server: Server): AsyncLocalStorage<Set<string>> {
  const watching = new AsyncLocalStorage<Set<string>>();
  const handle = Object.getPrototypeOf((server as unknown as { _handle: object })._handle);
  for (const method of ['connect', 'connect6'] as const) {
    const connect = handle[method];
    handle[method] = function (request: object, address: string, port: number) {
      watching.getStore()?.add(canonical(address));
      return isListedPublicAddress(address) ? -constants.errno.ENETUNREACH : connect.call(this, request, address, port);
    };
    t.teardown(() => {
      handle[method] = connect;
    });
  }
  return watching;
}

/** Listens on one port of both loopback addresses, and counts who comes. */
async function startTrap(t: Test): Promise<{ server: Server; port: number; hits: number }> {
  const port = await stablePort();
  const first = await listen(t, '127.0.0.1', port);
  const second = await listen(t, '::1', port).catch(() => undefined);
  const trap = { server: first, port, hits: 0 };
  for (const server of [first, second]) {
    server?.on('connection', (socket) => {
      trap.hits += 1;
      socket.destroy();
    });
  }
  return trap;
}

async function listen(t: Test, host: string, port: number): Promise<Server> {
  const server = createServer().listen(port, host);
  await once(server, 'listening');
  t.teardown(() => server.close());
  return server;
}
