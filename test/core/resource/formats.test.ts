import { type ClientRequest, get, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { isDeepStrictEqual } from 'node:util';
import { parse } from 'csv-parse/sync';
import { stringify } from 'csv-stringify/sync';
import fc from 'fast-check';
import pg from 'pg';
import sql from 'sql-template-tag';
import t from 'tap';
import { buildApi } from '../../../src/api.ts';
import { csvLine, textOfCell } from '../../../src/core/formats/csv.ts';
import { formatOf } from '../../../src/core/formats/format.ts';
import { fill } from '../../bench/rows.ts';
import { closeApi, eventually, type Json, linesOf, log, patient_api, services, startRail } from '../../harness.ts';

const rail = await startRail({ worker: false, audit: false });
const acme = { name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' };
const merchant = await rail.organization();
const program = await merchant.post('/v1/programs', acme);
const hostile = [
  '=1+1',
  '+49 30',
  '-5',
  '@SUM(A1)',
  '\tx',
  '＝1',
  "'",
  'a"b',
  'a,b',
  'a\nb',
  'a\r\nb',
  '',
  ' ',
  'grün 🎉',
];
for (const [nth, company_name] of hostile.entries()) {
  const fields = {
    email: `partner-${nth}@example.com`,
    company_name,
    metadata: { note: company_name, list: [1, null] },
  };
  await merchant.post('/v1/partners', { program_id: program.id, ...fields });
}

const big = await rail.organization();
const big_program = await big.post('/v1/programs', acme);
const client = new pg.Client({ connectionString: rail.url });
await client.connect();
t.teardown(() => client.end());
const count = 1_200;
await fill(client, { organization_id: big.organization_id, program_id: big_program.id }, count);
// More than fits into the buffers of a connection, so that whoever does not read holds up the service.
await client.query(`update program.partner set metadata = json_build_object('text', repeat('x', 15000))
  where organization_id = '${big.organization_id}'`);

interface Streamed {
  status: number;
  headers: IncomingMessage['headers'];
  text: string;
}

/** A response that is read when the test reads it. */
async function opened(path: string, { key = merchant.key, address = rail.address, headers = {} } = {}) {
  let request: ClientRequest | undefined;
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const options = { headers: { Authorization: `Bearer ${key}`, ...headers }, agent: false as const };
    request = get(new URL(path, address), options, resolve).on('error', reject);
  });
  response.on('error', () => {});
  return { request: request as ClientRequest, response };
}

async function streamed(path: string, options = {}): Promise<Streamed> {
  const { response } = await opened(path, options);
  return { status: response.statusCode as number, headers: response.headers, text: await text(response) };
}

const partnersOf = (id: string, more = ''): string => `/v1/partners?program_id=${id}${more}`;

const oracle = (rows: Json[], columns: string[], header = true): string =>
  stringify(rows, {
    ...{ columns, header, escape_formulas: true, record_delimiter: 'windows', quoted_match: /^$|[\r\n]/ },
    cast: { boolean: String, object: (value) => JSON.stringify(value) },
  });

async function wholeList(path: string, caller = merchant): Promise<Json[]> {
  const rows: Json[] = [];
  for (let more = true; more; ) {
    const cursor = rows.length > 0 ? `&starting_after=${rows.at(-1)?.id}` : '';
    const { data, has_more } = await caller.get(`${path}&limit=100${cursor}`);
    rows.push(...data);
    more = has_more;
  }
  return rows;
}

t.test('gives a list as CSV: a header, every row, nothing that a spreadsheet would run', async (t) => {
  const answer = await streamed(partnersOf(program.id, '&format=csv'));
  t.equal(answer.status, 200);
  t.match(answer.headers, {
    'content-type': 'text/csv; charset=utf-8',
    'content-disposition': 'attachment; filename="partners.csv"',
    'x-rail-version': /./,
    'rail-request-id': /^req_/,
  });
  const rows = await wholeList(partnersOf(program.id));
  t.equal(rows.length, hostile.length);
  t.equal(answer.text, oracle(rows, Object.keys(rows[0] as Json)), 'as another writer of CSV has it');
  for (const start of ['=1+1', '+49 30', '-5', '@SUM(A1)', '\tx', '＝1']) {
    t.match(answer.text, `,'${start},`);
    t.notMatch(answer.text, `,${start},`);
  }
});

t.test('gives CSV a byte order mark where that is asked for, and NDJSON none', async (t) => {
  const [plain, marked, lines] = await Promise.all(
    ['&format=csv', '&format=csv&bom=true', '&format=ndjson&bom=true'].map(async (more) => {
      const { response } = await opened(partnersOf(program.id, more));
      return Buffer.concat(await Array.fromAsync(response));
    }),
  );
  t.same(marked, Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), plain as Buffer]));
  t.equal(lines?.toString()[0], '{');
  t.equal((await merchant.request('GET', partnersOf(program.id, '&format=csv&bom=yes'))).status, 400);
});

t.test('writes no two texts alike: an import takes back each', async (t) => {
  const text = fc.oneof(fc.string(), fc.stringMatching(/^'{0,3}[=+\-@\t]?a?$/));
  fc.assert(
    fc.property(text, (one) => {
      const [[cell]] = parse(csvLine(['a'])({ a: one })) as [[string]];
      t.equal(textOfCell(cell), one);
    }),
  );
});

t.test('gives a list as NDJSON: the objects of the JSON list', async (t) => {
  const answer = await streamed(partnersOf(program.id, '&format=ndjson'));
  t.match(answer.headers, {
    'content-type': 'application/x-ndjson; charset=utf-8',
    'content-disposition': 'attachment; filename="partners.ndjson"',
  });
  t.strictSame(linesOf(answer.text), await wholeList(partnersOf(program.id)));
});

t.test('gives all rows of a long list in its order, of whatever size they are', async (t) => {
  for (const path of ['/v1/sales', '/v1/partners', '/v1/commissions/maturing']) {
    const url = `${path}?program_id=${big_program.id}`;
    const rows = await wholeList(url, big);
    t.equal(rows.length, count, path);
    const { key } = big;
    const { text: ndjson } = await streamed(`${url}&format=ndjson`, { key });
    t.ok(isDeepStrictEqual(linesOf(ndjson), rows), `${path} as NDJSON`);
    const { text: csv } = await streamed(`${url}&format=csv`, { key });
    t.ok(csv === oracle(rows, Object.keys(rows[0] as Json)), `${path} as CSV`);
  }
});

t.test('filters as the list does', async (t) => {
  const [{ email }] = (await wholeList(partnersOf(program.id))) as [Json];
  const { text: ndjson } = await streamed(partnersOf(program.id, `&format=ndjson&email=${email}`));
  t.same(
    linesOf(ndjson).map((row) => row.email),
    [email],
  );
  t.equal((await streamed(partnersOf(program.id, '&format=ndjson&status=suspended'))).text, '');
  const { text: csv } = await streamed(partnersOf(program.id, '&format=csv&status=suspended'));
  t.match(csv, /^id,object,program_id,[^\n]*updated_at\r\n$/, 'an empty list is a header');
});

t.test('expands in NDJSON alone, and includes stats in both', async (t) => {
  const path = partnersOf(program.id, '&expand=group&include[]=stats');
  const rows = await wholeList(path);
  t.strictSame(linesOf((await streamed(`${path}&format=ndjson`)).text), rows);
  const refused = await merchant.request('GET', partnersOf(program.id, '&expand=group&format=csv'));
  t.match(refused, { status: 400, body: { error: { code: 'invalid_expand', param: 'expand' } } });
  const { text: csv } = await streamed(partnersOf(program.id, '&include[]=stats&format=csv'));
  const [row] = rows as [Json];
  const stats = Object.keys(row.stats).map((field) => `stats.${field}`);
  t.ok(csv.split('\r\n')[0]?.endsWith(`updated_at,${stats.join(',')}`));
  t.ok(csv.includes(`,${row.updated_at},${Object.values(row.stats).join(',')}\r\n`));
});

t.test('refuses what is for pages, and answers errors in JSON', async (t) => {
  for (const [query, code, param] of [
    ['limit=5', 'invalid_parameter', 'limit'],
    ['starting_after=x', 'invalid_parameter', 'starting_after'],
    ['ending_before=x', 'invalid_parameter', 'ending_before'],
    ['misspelt=1', 'unknown_parameter', 'misspelt'],
  ] as const) {
    const answer = await merchant.request('GET', partnersOf(program.id, `&format=csv&${query}`));
    t.match(answer, { status: 400, body: { error: { code, param } } }, query);
  }
  const unknown = await merchant.request('GET', partnersOf(program.id, '&format=xlsx'));
  t.match(unknown, { status: 400, body: { error: { code: 'invalid_parameter', param: 'format' } } });
  const foreign = await merchant.request('GET', partnersOf(big_program.id, '&format=ndjson'));
  t.match(foreign, { status: 404, body: { error: { code: 'resource_not_found', param: 'program_id' } } });
});

t.test('takes the format from Accept where the query names none', async (t) => {
  const typeOf = async (Accept: string, query = '') =>
    (await streamed(partnersOf(program.id, query), { headers: { Accept } })).headers['content-type']?.split(';')[0];
  t.equal(await typeOf('text/csv'), 'text/csv');
  t.equal(await typeOf('application/x-ndjson'), 'application/x-ndjson');
  t.equal(await typeOf('text/csv', '&format=json'), 'application/json');
  t.equal(await typeOf('text/csv', '&format=ndjson'), 'application/x-ndjson');
  for (const [accept, format] of [
    ['*/*', 'json'],
    ['text/html,application/xhtml+xml,*/*;q=0.8', 'json'],
    ['application/json, text/csv', 'json'],
    ['text/csv;q=0.5, application/json', 'json'],
    ['application/json;q=0.5, Text/CSV', 'csv'],
    ['text/csv;q=0', 'json'],
    ['application/x-ndjson;q=0.9, text/csv;q=0.8', 'ndjson'],
  ] as const) {
    t.equal(formatOf(undefined, accept), format, accept);
  }
});

t.test('answers HEAD with the headers alone', async (t) => {
  const response = await fetch(new URL(partnersOf(program.id, '&format=csv'), rail.address), {
    method: 'HEAD',
    headers: { Authorization: `Bearer ${merchant.key}` },
  });
  t.equal(response.status, 200);
  t.match(response.headers.get('content-type'), /^text\/csv/);
  t.equal(await response.text(), '');
});

t.test('writes CSV as another writer does, for any values', async (t) => {
  const value = fc.oneof(
    // The other writer lets a formula follow a line break, and one behind an apostrophe is not told from it.
    fc.string({ unit: 'grapheme' }).filter((one) => !/^(?:\n|'+[=+\-@\t\r\n＝＋－＠])/.test(one)),
    fc.constantFrom('=', '-1', '+', '@', '\t', '\r', '"', ',', ''),
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
    fc.array(fc.string(), { maxLength: 3 }),
    fc.dictionary(fc.string(), fc.integer(), { maxKeys: 3, noNullPrototype: true }),
  );
  const columns = ['a', 'b', 'c'];
  fc.assert(
    fc.property(fc.record({ a: value, b: value, c: value }), (row) => {
      t.equal(csvLine(columns)(row), oracle([row], columns, false));
    }),
  );
});

/** The connections that read for somebody. */
const readers = async (): Promise<number> => {
  const [row] = await rail.query<{ count: number }>(sql`
    select count(*) as count from pg_stat_activity
    where datname = current_database() and state like 'idle in transaction%' and query like 'fetch %'`);
  return row?.count as number;
};
const big_path = partnersOf(big_program.id, '&format=ndjson');

t.test('reads two at a time for an organization, and lets go of one that the client leaves', async (t) => {
  const { key } = big;
  const [one, other] = [await opened(big_path, { key }), await opened(big_path, { key })];
  t.same([one.response.statusCode, other.response.statusCode], [200, 200]);
  const third = await big.request('GET', big_path);
  t.match(third, { status: 429, headers: { 'retry-after': '5' }, body: { error: { code: 'rate_limit_exceeded' } } });
  t.equal((await streamed(partnersOf(program.id, '&format=csv'))).status, 200, 'others are not held up');
  one.request.destroy();
  other.request.destroy();
  await eventually(() => rail.app.open_streams.size === 0, 'the streams to end');
  t.equal(await readers(), 0);
  t.equal((await streamed(big_path, { key })).status, 200);
});

t.test('lets go of one that the client leaves before its first part is there', async (t) => {
  await client.query('begin');
  await client.query('lock table program.partner in access exclusive mode');
  const arrived = new Promise<ServerResponse>((resolve) => {
    rail.app.server.once('request', (_, response: ServerResponse) => resolve(response));
  });
  const request = get(`${rail.address}${big_path}`, { agent: false, headers: { Authorization: `Bearer ${big.key}` } });
  request.on('error', () => {});
  const response = await arrived;
  await eventually(() => rail.app.open_streams.size === 1, 'the stream to begin');
  request.destroy();
  await eventually(() => response.destroyed, 'the client to have left');
  await client.query('rollback');
  await eventually(() => rail.app.open_streams.size === 0, 'the stream to end');
  t.equal(await readers(), 0);
});

t.test('breaks the connection when it fails in the middle', async (t) => {
  const { response } = await opened(big_path, { key: big.key });
  await eventually(async () => {
    const ended = await rail.query(sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and state <> 'idle' and query like 'fetch %'`);
    return ended.length === 1;
  }, 'the connection that reads to be ended');
  await t.rejects(text(response), { code: 'ECONNRESET' });
  t.equal(response.complete, false);
});

t.test('cuts off a reader that pauses for too long, or takes too little on average', async (t) => {
  for (const limits of [{ reader_pause_ms: 100 }, { reader_pause_ms: 1_000, reader_bytes_per_s: 1e9 }]) {
    const app = await buildApi({ store: rail.store, services, log, limits: { ...patient_api, ...limits } });
    await app.listen({ port: 0, host: '127.0.0.1' });
    const address = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
    const { response } = await opened(big_path, { key: big.key, address });
    await eventually(() => app.open_streams.size === 0, 'the stream to end');
    t.equal(await readers(), 0);
    await t.rejects(text(response), { code: 'ECONNRESET' });
    await closeApi(app);
  }
});
