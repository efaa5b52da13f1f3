import t from 'tap';
import { operations } from '../../../src/operations.ts';
import { type Answer, startRail } from '../../harness.ts';
import { fieldsOf } from '../../samples.ts';

const rail = await startRail({ worker: false });
const merchant = await rail.organization();
const program = await merchant.post('/v1/programs', {
  name: 'Acme',
  website_url: 'https://acme.example.com',
  currency: 'USD',
});
const newPartner = (fields: string): Promise<Answer> =>
  merchant.request('POST', '/v1/partners', `{"program_id": "${program.id}", "email": "ada@example.com", ${fields}}`);

type Test = Parameters<Parameters<typeof t.test>[0]>[0];
function isRefused(t: Test, { status, body }: Answer, code: string, message: RegExp, param?: string): void {
  t.equal(status, 400);
  t.match(body.error, { code, message });
  t.equal(body.error.param, param);
}

const list = (item: string, count: number): string => `[${Array(count).fill(item).join()}]`;
const object = (count: number): string =>
  `{${Array.from({ length: count }, (_, nth) => `"key${nth}": ${nth}`).join()}}`;

t.test('a body may hold 10,000 values, and one more is refused before any of them is looked at', async (t) => {
  // Besides the list: the body, two fields and the metadata.
  const withList = (count: number) => newPartner(`"metadata": {"list": ${list('0', count)}}`);
  isRefused(t, await withList(9_995), 'invalid_parameter', /'metadata' may have at most 16 KiB/, 'metadata');
  isRefused(t, await withList(9_996), 'invalid_parameter', /^The body holds more than 10,000 values\. Send/);
});

t.test('a body of 64 levels is read, and one of 65 is refused', async (t) => {
  const nested = (depth: number) => newPartner(`"metadata": {"a": ${'['.repeat(depth - 2)}${']'.repeat(depth - 2)}}`);
  t.equal((await nested(64)).status, 201);
  isRefused(t, await nested(65), 'invalid_parameter', /^The body is nested more than 64 levels deep\. Reduce/);
});

t.test('every operation refuses bodies that are built to be slow to read', async (t) => {
  const hostile = [
    list('[]', 30_000),
    list('[[[[0]]]]', 9_000),
    list('{}', 30_000),
    list('{"a":{"b":{}}}', 9_000),
    object(12_000),
    list('1e400', 15_000),
    list('"a"', 20_000),
  ];
  // A bulk may hold more: each of its objects is bounded by its schema.
  const writing = operations.filter(({ method, bulk_of }) => method !== 'GET' && !bulk_of);
  t.ok(writing.length > hostile.length);
  const wrong: string[] = [];
  for (const [nth, { method, path, name, body }] of writing.entries()) {
    const [field = 'metadata'] = Object.keys(fieldsOf(body).properties);
    // They are refused before the operation is known: each of them comes to many operations.
    const text = `{"${field}": ${hostile[nth % hostile.length]}}`;
    const { status, body: answer } = await merchant.request(method, path.replaceAll(/\{\w+\}/g, 'x'), text);
    const { code, message } = answer.error ?? {};
    if (status !== 400 || code !== 'invalid_parameter' || !/more than 10,000 values/.test(message))
      wrong.push(`${name}: ${status} ${message}`);
  }
  t.same(wrong, []);
});

t.test('a name that stands twice in one object is refused, and named', async (t) => {
  for (const [fields, param] of [
    ['"email": "eve@example.com"', 'email'],
    ['"em\\u0061il": "eve@example.com"', 'email'],
    ['"metadata": {"a": 1, "a": 1}', 'metadata.a'],
    ['"metadata": {"": 1, "b": 2, "": 3}', 'metadata.'],
    ['"metadata": {"list": [0, {"a": [], "b": {}, "a": {}}]}', 'metadata.list.1.a'],
    ['"metadata": {"quo\\"te": 1, "quo\\"te": 1}', 'metadata.quo"te'],
    ['"metadata": {"a": "}", "b": "\\\\", "a": "\\""}', 'metadata.a'],
  ] as const) {
    isRefused(t, await newPartner(fields), 'invalid_json', /^The body is not valid JSON: '.*' occurs twice/, param);
  }
});

t.test('the same name in different objects, and in texts, is no repetition', async (t) => {
  const metadata = '{"a": {"a": [{"a": 1}, {"a": 2}, "a"]}, "b": "a\\": {\\"a\\": 1", "c": {"a": 3}}';
  const partner = await merchant.request(
    'POST',
    '/v1/partners',
    `{"program_id": "${program.id}", "email": "a@example.com", "metadata": ${metadata}}`,
  );
  t.equal(partner.status, 201);
  t.same(partner.body.metadata, JSON.parse(metadata));
});

t.test('a text that cannot be stored is refused by the path of its field', async (t) => {
  for (const [fields, param] of [
    ['"first_name": "a\\u0000b"', 'first_name'],
    ['"metadata": {"list": ["a", {"note": "\\ud800"}]}', 'metadata.list.1.note'],
    ['"metadata": {"deep": {"a\\u0000b": 1}}', 'metadata.deep'],
  ] as const) {
    isRefused(t, await newPartner(fields), 'invalid_parameter', /NUL or malformed Unicode/, param);
  }
  isRefused(t, await merchant.request('POST', '/v1/programs', '{"a\\u0000": 1}'), 'invalid_parameter', /NUL/);
});
