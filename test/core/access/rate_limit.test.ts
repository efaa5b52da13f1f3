import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Sql } from 'sql-template-tag';
import t from 'tap';
import { buildApi } from '../../../src/api.ts';
import { revokeKey } from '../../../src/core/access/api_key.ts';
import {
  type Answer,
  type Caller,
  callerOf,
  closeApi,
  log,
  patient_api,
  services,
  sql,
  startRail,
} from '../../harness.ts';

const rail = await startRail({ worker: false });

/** Another replica, and the same key there. */
async function anotherApi(): Promise<(caller: Caller) => Caller> {
  const api = await buildApi({ store: rail.store, services, log, limits: patient_api });
  await api.listen({ port: 0, host: '127.0.0.1' });
  t.teardown(() => closeApi(api));
  const url = `http://127.0.0.1:${(api.server.address() as AddressInfo).port}`;
  return ({ key, organization_id }) => callerOf(url, key, organization_id);
}
const atSecondApi = await anotherApi();
const atThirdApi = await anotherApi();

const resetOf = ({ headers }: Answer): string => headers['x-ratelimit-reset'] as string;

/** The answers, by the second of the database's clock that they were counted in. */
const bySecond = (answers: Answer[]): Map<string, Answer[]> => Map.groupBy(answers, resetOf);

/** Waits for a second of the database's clock to begin. */
async function beginningOfSecond(): Promise<void> {
  const [row] = await rail.query<{ rest_ms: number }>(
    sql`select ceil(1000 - extract(milliseconds from clock_timestamp())::numeric % 1000)::integer as rest_ms`,
  );
  await sleep(row?.rest_ms ?? 0);
}

t.test('25 requests in each second per key, exact across replicas', async (t) => {
  /** More answers of one second than may pass, which a busy machine does not give each time. */
  const more_than_pass = async (): Promise<Answer[]> => {
    for (;;) {
      const first = await rail.organization({ rate_limit: 25 });
      const second = atSecondApi(first);
      await beginningOfSecond();
      const answers = await Promise.all(
        Array.from({ length: 40 }, (_, nth) => (nth % 2 === 0 ? first : second).request('GET', '/v1/programs')),
      );
      for (const group of bySecond(answers).values()) {
        const passed = group.filter(({ status }) => status === 200);
        const refused = group.filter(({ status }) => status === 429);
        t.equal(passed.length + refused.length, group.length);
        t.equal(passed.length, Math.min(25, group.length), 'no second has more than 25, nor fewer than it may have');
      }
      const more = [...bySecond(answers).values()].find(({ length }) => length > 25);
      if (more) return more;
    }
  };

  const answers = await more_than_pass();
  const passed = answers.filter(({ status }) => status === 200);
  t.equal(passed.length, 25);
  t.same(
    passed.map(({ headers }) => Number(headers['x-ratelimit-remaining'])).sort((a, b) => a - b),
    Array.from({ length: 25 }, (_, nth) => nth),
    'each success counts one down',
  );
  for (const { status, headers, body } of answers) {
    t.equal(headers['x-ratelimit-limit'], '25');
    if (status !== 429) continue;
    t.equal(headers['x-ratelimit-remaining'], '0');
    t.match(headers['retry-after'], /^[1-9]\d*$/);
    t.match(body.error, { type: 'rate_limit_error', code: 'rate_limit_exceeded' });
  }
});

t.test(
  'of three replicas, each lets through what it was granted, and none a key that was revoked a second ago',
  async (t) => {
    const { organization_id } = await rail.organization();
    // So high that each is granted some more than wait in it.
    const limit = 64;
    const at_first = await rail.key(organization_id, { rate_limit: limit });
    const [{ id } = { id: '' }] = await rail.query<{ id: string }>(
      sql`select id from core.api_key where organization_id = ${organization_id} and rate_limit = ${limit}`,
    );
    let asked_until = Number.POSITIVE_INFINITY;
    const answers: (Answer & { asked: number })[] = [];
    const ask = async (replica: Caller) => {
      for (let asked = performance.now(); asked < asked_until; asked = performance.now())
        answers.push({ ...(await replica.request('GET', '/v1/programs?limit=1')), asked });
    };
    const replicas = [at_first, atSecondApi(at_first), atThirdApi(at_first)];
    const asking = Promise.all([...replicas, ...replicas].map(ask));
    await sleep(2_500);
    await revokeKey(rail.store.database, id);
    const revoked = performance.now();
    asked_until = revoked + 1_500;
    await asking;

    const passed = answers.filter(({ status }) => status === 200);
    for (const [second, those] of bySecond(passed)) t.ok(those.length <= limit, `${those.length} in ${second}`);
    t.equal(
      new Set(passed.map((answer) => `${resetOf(answer)} ${answer.headers['x-ratelimit-remaining']}`)).size,
      passed.length,
    );
    t.ok(answers.some(({ status }) => status === 429));
    const late = answers.filter(({ asked }) => asked > revoked + 1_000);
    t.ok(late.length > 0);
    t.same([...new Set(late.map(({ body }) => body.error?.code))], ['revoked_api_key']);
  },
);

t.test('X-RateLimit-Reset is the Unix second in which the count begins anew', async (t) => {
  const merchant = await rail.organization({ rate_limit: 25 });
  const [before, answer, after] = [
    await databaseSecond(),
    await merchant.request('GET', '/v1/programs'),
    await databaseSecond(),
  ];
  const reset = Number(resetOf(answer));
  t.ok(reset > before && reset <= after + 1, `${reset} follows ${before} to ${after}`);
});

t.test('a key row may carry another number', async (t) => {
  const merchant = await rail.organization({ rate_limit: 3 });
  const answers = await Promise.all(Array.from({ length: 12 }, () => merchant.request('GET', '/v1/programs')));
  for (const group of bySecond(answers).values()) {
    t.equal(group.filter(({ status }) => status === 200).length, Math.min(3, group.length));
  }
});

t.test('another key of the same organization is not affected', async (t) => {
  const exhausted = await rail.organization({ rate_limit: 1 });
  const other = await rail.key(exhausted.organization_id, { rate_limit: 1_000 });
  const [refused, answered] = await Promise.all([
    Promise.all(Array.from({ length: 10 }, () => exhausted.request('GET', '/v1/programs'))),
    Promise.all(Array.from({ length: 10 }, () => other.request('GET', '/v1/programs'))),
  ]);
  t.ok(refused.some(({ status }) => status === 429));
  t.ok(answered.every(({ status }) => status === 200));
});

t.test('requests that fail count too', async (t) => {
  const merchant = await rail.organization({ rate_limit: 1, scopes: ['programs:read'] });
  const failing = () => [
    merchant.request('GET', '/v1/programs/prg_nothing'),
    merchant.request('GET', '/v1/programs?misspelt=1'),
    merchant.request('POST', '/v1/programs', '{'),
    merchant.request('GET', '/v1/partners?program_id=prg_nothing'),
  ];
  const answers = await Promise.all([...failing(), ...failing(), ...failing(), ...failing()]);
  for (const group of bySecond(answers).values()) {
    t.equal(group.filter(({ status }) => status !== 429).length, Math.min(1, group.length));
  }
  t.ok(answers.some(({ status }) => status === 429));
});

t.test('refused requests have no effect', async (t) => {
  const merchant = await rail.organization({ rate_limit: 1 });
  const create = { name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' };
  const answers = await Promise.all(Array.from({ length: 12 }, () => merchant.request('POST', '/v1/programs', create)));
  const made = answers.filter(({ status }) => status === 201).length;
  const [row] = await rail.query<{ count: number }>(
    sql`select count(*) as count from program.program where organization_id = ${merchant.organization_id}`,
  );
  t.equal(row?.count, made);
  t.ok(made < 12);
});

/** The blocks that a statement reads. */
async function blocksOf(statement: Sql): Promise<number> {
  const [row] = await rail.query<{ 'QUERY PLAN': { Plan: Record<string, number> }[] }>(
    sql`explain (analyze, buffers, format json) ${statement}`,
  );
  const plan = row?.['QUERY PLAN'][0]?.Plan;
  return (plan?.['Shared Hit Blocks'] ?? 0) + (plan?.['Shared Read Blocks'] ?? 0);
}

/** Returns the blocks that a statement reads before and after `work` that another transaction was open for. */
async function blocksBeside(statement: Sql, work: () => Promise<unknown>): Promise<[number, number]> {
  const snapshot = await rail.store.database.connect();
  try {
    await blocksOf(statement);
    await snapshot.query('begin isolation level repeatable read; select count(*) from core.rate_limit_window');
    const before = await blocksOf(statement);
    await work();
    return [before, await blocksOf(statement)];
  } finally {
    await snapshot.query('rollback');
    snapshot.release();
  }
}

t.test('a request costs the same however long another transaction has been open', async (t) => {
  const { key } = await rail.organization({ rate_limit: 1_000 });
  const once = sql`core.authenticate(sha256(convert_to(${key}, 'utf8')), 1)`;
  const [before, after] = await blocksBeside(sql`select from ${once}`, async () => {
    for (let second = 0; second < 3; second++) {
      await rail.query(sql`select ${once} from generate_series(1, 900)`);
      await beginningOfSecond();
    }
  });
  t.ok(after <= before + 5, `${before} blocks before 2,700 requests, ${after} after`);
});

async function databaseSecond(): Promise<number> {
  const [row] = await rail.query<{ second: number }>(
    sql`select floor(extract(epoch from clock_timestamp()))::bigint as second`,
  );
  return row?.second as number;
}
