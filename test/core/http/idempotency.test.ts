import pg from 'pg';
import t from 'tap';
import { type Answer, type Caller, eventually, type Json, sql, startRail, startReceiver } from '../../harness.ts';

const rail = await startRail();
const receiver = await startReceiver();

const acme = { name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' };
const withKey = (key: string) => ({ 'Idempotency-Key': key });
const create = (caller: Caller, key: string, body: unknown = acme) =>
  caller.request('POST', '/v1/programs', body, withKey(key));

const programsOf = async ({ organization_id }: Caller): Promise<number> => {
  const [row] = await rail.query<{ count: number }>(
    sql`select count(*) as count from program.program where organization_id = ${organization_id}`,
  );
  return row?.count as number;
};

t.test('the same key replays the first status and body, and has no second effect', async (t) => {
  const merchant = await rail.organization();
  const first = await create(merchant, 'one');
  t.equal(first.status, 201);
  t.equal(first.headers['idempotent-replayed'], undefined);
  const again = await create(merchant, 'one');
  t.equal(again.status, 201);
  t.equal(again.headers['idempotent-replayed'], 'true');
  t.equal(again.text, first.text);
  t.equal(await programsOf(merchant), 1);
});

t.test('a replay tells what was, not what is', async (t) => {
  const merchant = await rail.organization();
  const { body } = await create(merchant, 'one');
  await merchant.patch(`/v1/programs/${body.id}`, { name: 'Renamed' });
  t.equal((await create(merchant, 'one')).body.name, 'Acme');
});

t.test('a reply is replayed to the API key that got it, and to no other', async (t) => {
  const merchant = await rail.organization();
  const first = await create(merchant, 'shared');
  for (const mode of ['live', 'test'] as const) {
    const colleague = await rail.key(merchant.organization_id, { mode });
    const refused = await create(colleague, 'shared');
    t.match(refused, { status: 422, body: { error: { code: 'idempotency_key_reused' } } });
  }
  const stranger = await rail.organization();
  const other = await create(stranger, 'shared');
  t.equal(other.headers['idempotent-replayed'], undefined);
  t.not(other.body.id, first.body.id);
});

t.test('a replay needs the scope, as the first request did', async (t) => {
  const merchant = await rail.organization();
  await create(merchant, 'one');
  const reader = await rail.key(merchant.organization_id, { scopes: ['*:read'] });
  t.equal((await create(reader, 'one')).status, 403);
});

t.test('the same key with another request answers 422 idempotency_key_reused', async (t) => {
  const merchant = await rail.organization();
  await create(merchant, 'one');
  const others: [string, () => Promise<Answer>][] = [
    ['another body', () => create(merchant, 'one', { ...acme, name: 'Other' })],
    [
      'the same fields in another order',
      () => create(merchant, 'one', Object.fromEntries(Object.entries(acme).reverse())),
    ],
    ['a body that is not valid', () => create(merchant, 'one', { misspelt: 1 })],
    ['no body', () => merchant.request('POST', '/v1/programs', undefined, withKey('one'))],
    ['another path', () => merchant.request('POST', '/v1/partners', acme, withKey('one'))],
    ['another query', () => merchant.request('POST', '/v1/programs?misspelt=1', acme, withKey('one'))],
  ];
  for (const [what, send] of others) {
    const { status, body } = await send();
    t.equal(status, 422, what);
    t.match(body.error, { type: 'invalid_request_error', code: 'idempotency_key_reused', param: 'Idempotency-Key' });
  }
  t.equal((await create(merchant, 'one')).headers['idempotent-replayed'], 'true');
});

t.test('a failed request does not pin its key', async (t) => {
  const merchant = await rail.organization();
  const program = await merchant.post('/v1/programs', acme);
  const taken = { program_id: program.id, email: 'ada@example.com' };
  await merchant.post('/v1/partners', taken);
  const failures: [string, unknown, number][] = [
    ['/v1/programs', '{', 400],
    ['/v1/programs', { ...acme, misspelt: 1 }, 400],
    ['/v1/partners', { ...taken, program_id: 'prg_nothing' }, 404],
    ['/v1/partners', taken, 409],
  ];
  for (const [path, body, status] of failures) {
    t.equal((await merchant.request('POST', path, body, withKey('retried'))).status, status);
  }
  const right = await create(merchant, 'retried');
  t.equal(right.status, 201);
  t.equal(right.headers['idempotent-replayed'], undefined);
});

t.test('a key is 1 to 255 characters long', async (t) => {
  const merchant = await rail.organization();
  t.equal((await create(merchant, 'k')).status, 201);
  t.equal((await create(merchant, 'k'.repeat(255))).status, 201);
  for (const key of ['', 'k'.repeat(256)]) {
    const { status, body } = await create(merchant, key);
    t.equal(status, 400);
    t.match(body.error, { code: 'invalid_parameter', param: 'Idempotency-Key' });
  }
});

t.test('what is not a POST takes no notice of a key', async (t) => {
  const merchant = await rail.organization();
  const { body } = await create(merchant, 'one');
  const path = `/v1/programs/${body.id}`;
  t.equal((await merchant.request('GET', path, undefined, withKey('one'))).status, 200);
  for (const name of ['First', 'Second']) {
    t.equal((await merchant.request('PATCH', path, { name }, withKey('one'))).body.name, name);
  }
});

t.test('a key is good for 24 hours', async (t) => {
  const merchant = await rail.organization();
  const first = await create(merchant, 'old');
  const age = (interval: string) =>
    rail.query(sql`
      update core.idempotency_key set created_at = clock_timestamp() - ${interval}::interval
      where organization_id = ${merchant.organization_id} returning key`);

  await age('23 hours 59 minutes');
  t.equal((await create(merchant, 'old')).headers['idempotent-replayed'], 'true');

  await age('24 hours 1 second');
  const second = await create(merchant, 'old', { ...acme, name: 'Another request under the same key' });
  t.equal(second.status, 201);
  t.equal(second.headers['idempotent-replayed'], undefined);
  t.not(second.body.id, first.body.id);
  const replayed = await create(merchant, 'old', { ...acme, name: 'Another request under the same key' });
  t.equal(replayed.text, second.text, 'the later reply is the one that is replayed from then on');

  t.test('and is forgotten afterwards', async (t) => {
    const kept = await rail.organization();
    await create(kept, 'young');
    await age('25 hours');
    await rail.tick('core/purge_expired', new Date().toISOString());
    await eventually(async () => (await keysOf(merchant)) === 0, 'the old key to be forgotten');
    t.equal(await keysOf(kept), 1);
  });
});

t.test('20 requests at once with one key have one effect', async (t) => {
  const merchant = await rail.organization();
  const answers = await Promise.all(Array.from({ length: 20 }, () => create(merchant, 'at once')));
  const made = answers.filter(({ status }) => status === 201);
  const in_flight = answers.filter(({ status }) => status === 409);
  t.equal(made.length + in_flight.length, 20);
  t.equal(made.filter(({ headers }) => headers['idempotent-replayed'] === undefined).length, 1);
  t.equal(new Set(made.map(({ text }) => text)).size, 1);
  t.ok(in_flight.every(({ body }) => body.error.code === 'idempotency_key_in_flight'));
  t.equal(await programsOf(merchant), 1);
  t.equal((await create(merchant, 'at once')).headers['idempotent-replayed'], 'true');
});

t.test('a secret that is shown once is replayed, and cannot be read in the table', async (t) => {
  const merchant = await rail.organization();
  const program = await merchant.post('/v1/programs', acme);
  const register = () =>
    merchant.post('/v1/webhook_endpoints', { program_id: program.id, url: receiver.url }, withKey('endpoint'));
  const { secret } = await register();
  t.match(secret, /^whsec_/);
  t.equal((await register()).secret, secret);
  const rows = await rail.query<{ reply: Buffer; row: string }>(
    sql`select k.reply, k::text as row from core.idempotency_key k where organization_id = ${merchant.organization_id}`,
  );
  t.equal(rows.length, 1);
  for (const { reply, row } of rows) {
    t.notOk(reply.includes('whsec_') || reply.includes(program.id) || row.includes('whsec_'));
  }
});

t.test('while the first request runs', async (t) => {
  const merchant = await rail.organization();
  const program = await merchant.post('/v1/programs', acme);
  const register = (key: string) =>
    merchant.request('POST', '/v1/webhook_endpoints', { program_id: program.id, url: receiver.url }, withKey(key));
  const endpoints = async () =>
    (await merchant.get(`/v1/webhook_endpoints?program_id=${program.id}`)).total_count as number;

  await t.test('the same key answers 409 idempotency_key_in_flight with Retry-After', async (t) => {
    const hold = await holdProgram(program);
    const first = register('held');
    await hold.untilSomebodyWaits();
    for (const second of [await register('held'), await create(merchant, 'held')]) {
      t.equal(second.status, 409);
      t.match(second.body.error, {
        type: 'conflict_error',
        code: 'idempotency_key_in_flight',
        param: 'Idempotency-Key',
      });
      t.match(second.headers['retry-after'], /^[1-9]\d*$/);
    }
    const stranger = await rail.organization();
    t.equal((await create(stranger, 'held')).status, 201, 'which is nothing to other organizations');
    await hold.release();
    t.equal((await first).status, 201);
    const replayed = await register('held');
    t.equal(replayed.headers['idempotent-replayed'], 'true');
    t.equal(replayed.text, (await first).text);
    t.equal(await endpoints(), 1);
  });

  await t.test('the death of its connection leaves nothing behind, and the key free', async (t) => {
    const hold = await holdProgram(program);
    const first = register('killed');
    const [pid] = await hold.untilSomebodyWaits();
    await rail.query(sql`select pg_terminate_backend(${pid})`);
    const { status, headers, body } = await first;
    t.equal(status, 503);
    t.equal(body.error.code, 'service_unavailable');
    t.match(headers['retry-after'], /^[1-9]\d*$/);
    await hold.release();
    t.equal(await endpoints(), 1);
    const retried = await register('killed');
    t.equal(retried.status, 201);
    t.equal(retried.headers['idempotent-replayed'], undefined);
    t.equal(await endpoints(), 2);
  });
});

async function keysOf({ organization_id }: Caller): Promise<number> {
  const [row] = await rail.query<{ count: number }>(
    sql`select count(*) as count from core.idempotency_key where organization_id = ${organization_id}`,
  );
  return row?.count as number;
}

/** Locks a program from outside, so that a request which needs it waits. */
async function holdProgram({ id }: Json): Promise<{
  untilSomebodyWaits(): Promise<number[]>;
  release(): Promise<void>;
}> {
  const client = new pg.Client({ connectionString: rail.url });
  await client.connect();
  await client.query('begin');
  await client.query('select from program.program where id = $1 for update', [id]);
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  const holder = rows[0]?.pid as number;
  return {
    async untilSomebodyWaits() {
      let waiting: number[] = [];
      await eventually(async () => {
        const found = await rail.query<{ pid: number }>(
          sql`select pid from pg_stat_activity where datname = current_database() and ${holder}::integer = any(pg_blocking_pids(pid))`,
        );
        waiting = found.map(({ pid }) => pid);
        return waiting.length > 0;
      }, 'a request to wait for the row');
      return waiting;
    },
    async release() {
      await client.query('rollback');
      await client.end();
    },
  };
}
