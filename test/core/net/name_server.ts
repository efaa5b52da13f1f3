import { createSocket, type RemoteInfo } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { Test } from 'tap';
import { stablePort } from '../../ports.ts';

export type RecordType = 'A' | 'AAAA';
export type Transport = 'udp' | 'tcp';

export interface Reply {
  /** Addresses, perhaps after the name of a CNAME (it ends with a dot); of MX the preference and the name: `10 mail.example.com`. */
  records?: string[];
  /** 2: the server failed, 3: there is no such name. */
  rcode?: number;
  /** True if UDP gets none of the records, but word to ask by TCP. */
  isTruncated?: boolean;
  /** Sent as it is, after the query's id. */
  garbage?: Buffer;
}

/** Records, or a whole reply; undefined is no answer at all. */
export type Answer = (
  name: string,
  type: RecordType,
  transport: Transport,
) => string[] | Reply | undefined | Promise<string[]>;

/** The mail exchangers of a name, such as `10 mail.example.com`. */
export type ExchangerAnswer = (name: string) => string[] | Reply;

/** The TXT records of a name. */
export type TextAnswer = (name: string) => string[] | Reply | undefined;

/** A DNS server on loopback, by UDP and TCP. */
export async function startNameServer(
  t: Test,
  answer: Answer,
  exchangersOf: ExchangerAnswer = () => [],
  textsOf: TextAnswer = () => [],
) {
  const queries: string[] = [];
  const replyTo = async (query: Buffer, transport: Transport): Promise<Buffer | undefined> => {
    const { name, type, end } = readQuestion(query);
    queries.push(`${type} ${name}`);
    const given =
      type === 'MX' ? exchangersOf(name) : type === 'TXT' ? textsOf(name) : await answer(name, type, transport);
    return given && writeReply(query, end, type, Array.isArray(given) ? { records: given } : given, transport);
  };

  const streams = createServer((socket) => {
    socket.on('error', () => {});
    let rest = Buffer.alloc(0);
    const respond = async (query: Buffer) => {
      const reply = await replyTo(query, 'tcp');
      if (reply) socket.write(Buffer.concat([uint16(reply.length), reply]));
    };
    socket.on('data', (chunk) => {
      rest = Buffer.concat([rest, chunk]);
      while (rest.length >= 2 && rest.length >= 2 + rest.readUInt16BE()) {
        const end = 2 + rest.readUInt16BE();
        respond(rest.subarray(2, end));
        rest = rest.subarray(end);
      }
    });
  });
  // The same one of both: a port that the system gives out for TCP may be that of any client by UDP.
  const port = await stablePort();
  streams.listen(port, '127.0.0.1');
  await once(streams, 'listening');

  const datagrams = createSocket('udp4');
  datagrams.on('message', async (query: Buffer, from: RemoteInfo) => {
    const reply = await replyTo(query, 'udp');
    if (reply) datagrams.send(reply, from.port, from.address);
  });
  datagrams.bind(port, '127.0.0.1');
  await once(datagrams, 'listening');
  t.teardown(() => {
    datagrams.close();
    streams.close();
  });
  return { nameServers: [`127.0.0.1:${port}`], queries };
}

type Asked = RecordType | 'MX' | 'TXT';
const type_names: Record<number, Asked> = { 1: 'A', 15: 'MX', 16: 'TXT', 28: 'AAAA' };
const type_numbers: Record<Asked, number> = { A: 1, MX: 15, TXT: 16, AAAA: 28 };

const encoders: Record<Asked, (value: string) => Buffer> = {
  ...{ A: encodeAddress, AAAA: encodeAddress, MX: encodeExchange, TXT: encodeText },
};

function readQuestion(query: Buffer): { name: string; type: Asked; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length).toLowerCase());
    at += 1 + length;
  }
  return { name: labels.join('.'), type: type_names[query.readUInt16BE(at + 1)] ?? 'AAAA', end: at + 5 };
}

function writeReply(
  query: Buffer,
  end: number,
  type: Asked,
  { records = [], rcode = 0, isTruncated = false, garbage }: Reply,
  transport: Transport,
): Buffer {
  const id = query.subarray(0, 2);
  if (garbage) return Buffer.concat([id, garbage]);
  const isCut = isTruncated && transport === 'udp';
  const sent = isCut ? [] : records;
  const flags = uint16(0x8180 | (isCut ? 0x0200 : 0) | rcode);
  const counts = [1, sent.length, 0, 0].map(uint16);
  return Buffer.concat([id, flags, ...counts, query.subarray(12, end), ...writeRecords(type, sent)]);
}

function writeRecords(type: Asked, values: string[]): Buffer[] {
  let owner = Buffer.from([0xc0, 12]);
  return values.map((value) => {
    const isCname = value.endsWith('.') && type !== 'TXT';
    const data = isCname ? encodeName(value) : encoders[type](value);
    const kind = isCname ? 5 : type_numbers[type];
    const record = Buffer.concat([owner, ...[kind, 1, 0, 60, data.length].map(uint16), data]);
    if (isCname) owner = Buffer.from(data);
    return record;
  });
}

function encodeName(name: string): Buffer {
  return Buffer.concat(
    name.split('.').map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label, 'latin1')])),
  );
}

/** The null MX of RFC 7505 has the empty name: `0 .`. */
function encodeExchange(value: string): Buffer {
  const [preference, name = ''] = value.split(' ');
  return Buffer.concat([uint16(Number(preference)), name === '.' ? Buffer.from([0]) : encodeName(`${name}.`)]);
}

/** In strings of at most 255 characters. */
function encodeText(value: string): Buffer {
  const strings = value.match(/.{1,255}/gs) ?? [''];
  return Buffer.concat(strings.flatMap((string) => [Buffer.from([string.length]), Buffer.from(string, 'latin1')]));
}

/** IPv6 with all its eight groups. */
function encodeAddress(address: string): Buffer {
  if (!address.includes(':')) return Buffer.from(address.split('.').map(Number));
  return Buffer.concat(address.split(':').map((group) => uint16(Number.parseInt(group, 16))));
}

function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value);
  return bytes;
}
