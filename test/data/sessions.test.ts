/** Sessions of logins that hold up the service are ended. */
import pg from 'pg';
import { raw } from 'sql-template-tag';
import t from 'tap';
import { eventually, sql, startRail } from '../harness.ts';
import { connectAs, newLogin } from './tenant.ts';

// Without a worker: it would end them before the test sees why.
const rail = await startRail({ worker: false });
const one = { caller: await rail.organization() };

/** It needs no memory. */
const endless = 'with recursive r (n) as (select 1::bigint union all select n + 1 from r) select count(*) from r';

/** Settles when the session is ended, for this reason. */
const endOf = (pid: number, reason: string) =>
  eventually(async () => {
    const ended = await rail.query(sql`select pid, reason from data.end_sessions()`);
    return ended.some((session) => session.pid === pid && session.reason === reason);
  }, reason);

t.test('ends what its user lets run for too long', async (t) => {
  const short = await connectAs(await newLogin(rail, { ...one.caller, statement_timeout_ms: 200 }));
  t.equal(await short.codeOf(endless), '57014', 'the timeout that it begins with');
  await short.query('set statement_timeout = 0');
  const running = short.codeOf(endless);
  await endOf(short.pid, 'the statement runs too long');
  t.equal(await running, '57P01');
});

t.test('ends a function that is called by its message of the protocol', async (t) => {
  const short = await newLogin(rail, { ...one.caller, statement_timeout_ms: 200 });
  const client = new pg.Client({ connectionString: short.url });
  const failure = Promise.withResolvers<Error>();
  client.on('error', failure.resolve);
  await client.connect();
  const { rows } = await client.query<{ pid: number; called: number }>(`
    select pg_backend_pid() as pid, 'factorial(bigint)'::regprocedure::oid::integer as called`);
  const [{ pid, called }] = rows as [{ pid: number; called: number }];
  await client.query('set statement_timeout = 0');
  client.connection.stream.write(functionCall(called, '32000'));
  const state = sql`select state from pg_stat_activity where pid = ${pid}`;
  await eventually(async () => (await rail.query(state))[0]?.state === 'fastpath function call', 'the call');
  await endOf(pid, 'the statement runs too long');
  t.match(await failure.promise, { code: '57P01' });
});

/** The message FunctionCall of the protocol. @param called the function's oid @param values of its arguments, as text */
function functionCall(called: number, ...values: string[]): Buffer {
  const given = values.map((value) => [int32(Buffer.byteLength(value)), Buffer.from(value)]);
  const body = Buffer.concat([int32(called), int16(0), int16(values.length), ...given.flat(), int16(0)]);
  return Buffer.concat([Buffer.from('F'), int32(body.length + 4), body]);
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeInt16BE(value);
  return bytes;
}

t.test('ends a transaction that is open for too long, whatever it did last', async (t) => {
  const open = await connectAs(await newLogin(rail, { ...one.caller, statement_timeout_ms: 1_000 }));
  await open.query('set statement_timeout = 0; set idle_in_transaction_session_timeout = 0');
  await open.query('begin; select 1 from data.click limit 1');
  const [before] = await rail.query<{ definition: string }>(
    sql`select pg_get_functiondef('data.end_sessions()'::regprocedure) as definition`,
  );
  const { definition } = before as { definition: string };
  // A minute is long for a test.
  await rail.query(raw(definition.replace("interval '1 minute'", "interval '1 second'")));
  t.teardown(() => rail.query(raw(definition)));
  await eventually(async () => {
    await open.codeOf('select 1');
    const ended = await rail.query(sql`select pid, reason from data.end_sessions()`);
    return ended.some(({ pid, reason }) => pid === open.pid && reason === 'the transaction is open for too long');
  }, 'the end of the transaction');
});

t.test('keeps logins out of the other databases of the server, and ends them there', async (t) => {
  const { user, url } = await newLogin(rail, one.caller);
  const databases = await rail.query<{ name: string }>(sql`
    select datname::text as name from pg_database where datallowconn and datname <> current_database() and datname !~ '^test_'`);
  t.ok(databases.length >= 2);
  const elsewhere = (name: string) => connectAs({ url: Object.assign(new URL(url), { pathname: `/${name}` }).href });
  for (const { name } of databases) await t.rejects(elsewhere(name), { code: '42501' }, name);
  await rail.query(sql`grant connect on database postgres to ${raw(user)}`);
  const { pid } = await elsewhere('postgres');
  await rail.query(sql`revoke connect on database postgres from ${raw(user)}`);
  await endOf(pid, 'it is connected to another database');
});

t.test('ends a session that notifies', async (t) => {
  for (const notifying of ['notify a', "select 1; NOTIFY a, 'x'", '/* */ notify a', '-- x\nnotify a']) {
    const client = await connectAs(await newLogin(rail, one.caller));
    await client.query(notifying);
    await endOf(client.pid, 'it notifies');
    t.not(await client.codeOf('select 1'), 'allowed', notifying);
  }
  const reading = await connectAs(await newLogin(rail, one.caller));
  await reading.query("select 'to notify', id from data.organization");
  const ended = await rail.query(sql`select pid from data.end_sessions()`);
  t.notOk(ended.some(({ pid }) => pid === reading.pid));
});

t.test('ends a session whose commits take the lock of NOTIFY, whatever its statement looks like', async (t) => {
  const [before] = await rail.query<{ definition: string }>(
    sql`select pg_get_functiondef('data.end_sessions()'::regprocedure) as definition`,
  );
  const { definition } = before as { definition: string };
  const by_statement = /when a\.query ~\* .* then/;
  t.match(definition, by_statement);
  await rail.query(raw(definition.replace(by_statement, 'when false then')));
  t.teardown(() => rail.query(raw(definition)));
  const client = await connectAs(await newLogin(rail, one.caller));
  // A commit holds the lock for less than a look takes, so they go on until one is seen.
  const notifying = (async () => {
    let code = 'allowed';
    while (code === 'allowed') code = await client.codeOf('notify a; commit; '.repeat(1_000));
    return code;
  })();
  await endOf(client.pid, 'it notifies');
  t.equal(await notifying, '57P01');
});
