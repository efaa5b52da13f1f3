import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdir, mkdtemp, readdir, readFile, readlink, rm, rmdir, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import pg from 'pg';
import t, { type Test } from 'tap';
import { type EmbeddedPostgres, openEmbeddedPostgres } from '../../src/embedded_postgres/embedded_postgres.ts';
import { copyPrepared } from '../postgres.ts';

const NOBODY = 65534;
const isRoot = process.getuid?.() === 0;
const settings = { fsync: 'off' };

const CHILD = `
  const { openEmbeddedPostgres } = await import(process.argv[1]);
  const { stop, ...rest } = await openEmbeddedPostgres(JSON.parse(process.argv[2])).catch(({ message }) => ({ message }));
  process.on('message', async () => { await stop?.(); process.disconnect(); });
  process.send(rest);
`;

interface Answer {
  url: string;
  origin: EmbeddedPostgres['origin'];
  message?: string;
}

interface Child extends Answer {
  process: ChildProcess;
  stop(): Promise<void>;
  kill(): Promise<void>;
}

/** A process of its own that opens the data directory, and keeps it open until told otherwise. */
async function openInChild(t: Test, dataDir: string, mode: 'own' | 'use', uid?: number): Promise<Child> {
  const script = new URL('../../src/embedded_postgres/embedded_postgres.ts', import.meta.url).href;
  const args = ['--input-type=module', '--eval', CHILD, script, JSON.stringify({ dataDir, mode, settings })];
  // Without NODE_OPTIONS tap does not load itself into the child, where it would write into the checkout as any user.
  const child = spawn('env', ['-u', 'NODE_OPTIONS', process.execPath, ...args], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    ...(uid && { uid, gid: uid, cwd: '/', env: { HOME: dataDir, PATH: process.env.PATH } }),
  });
  const exit = once(child, 'exit');
  t.teardown(() => child.kill('SIGKILL'));
  const [answer] = (await Promise.race([once(child, 'message'), exit])) as [Answer];
  const leave = async (how: () => unknown) => {
    how();
    await exit;
  };
  return {
    ...answer,
    process: child,
    stop: () => leave(() => child.send('stop')),
    kill: () => leave(() => child.kill('SIGKILL')),
  };
}

/**
 * A data directory, whose Postgres, if it still runs, is stopped after the test.
 * @param content `prepared` where the test is not about the first start, which takes long
 */
async function makeDataDir(t: Test, content: 'empty' | 'prepared'): Promise<string> {
  const dataDir = await mkdtemp(join(tmpdir(), 'rail-postgres-'));
  if (content === 'prepared') await copyPrepared(dataDir);
  t.teardown(async () => {
    const pid = await postmasterPid(dataDir);
    if (pid) process.kill(pid, 'SIGQUIT');
    await rm(dataDir, { recursive: true, maxRetries: 5 });
  });
  return dataDir;
}

async function postmasterPid(dataDir: string): Promise<number | undefined> {
  const text = await readFile(join(dataDir, 'postgres/postmaster.pid'), 'utf8').catch(() => undefined);
  return text ? Number(text.split('\n')[0]) : undefined;
}

async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new pg.Client(url);
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query({ text: sql, rowMode: 'array' })).rows.flat();
  } finally {
    await client.end();
  }
}

t.test(
  'keeps what was committed from one start to the next, durable, deterministic, and closed to others',
  async (t) => {
    const dataDir = await makeDataDir(t, 'empty');
    const first = await openEmbeddedPostgres({ dataDir, mode: 'own' });
    t.equal(first.origin, 'started');
    await query(first.url, 'create table kept as select 7 as number');
    await first.stop();
    await first.stop();
    t.equal(await postmasterPid(dataDir), undefined, 'and is down once stopped');
    const second = await openEmbeddedPostgres({ dataDir, mode: 'own' });
    t.equal(second.origin, 'started');
    t.same(await query(second.url, 'select number from kept'), [7]);

    const shown = async (name: string) => (await query(second.url, `show ${name}`))[0];
    t.match(await shown('server_version'), /^18\./);
    t.equal(await shown('fsync'), 'on');
    t.equal(await shown('synchronous_commit'), 'on');
    t.equal(await shown('listen_addresses'), '127.0.0.1');
    t.equal(await shown('unix_socket_directories'), '');
    const database = `select pg_encoding_to_char(encoding), datlocale from pg_database where datname = 'rail'`;
    t.same(await query(second.url, database), ['UTF8', 'C.UTF-8']);
    await t.rejects(query(second.url.replace(/:[^:@]+@/, ':wrong@'), 'select 1'), { code: '28P01' });
    t.equal((await stat(join(dataDir, 'postgres.json'))).mode & 0o777, 0o600);
    t.equal((await stat(dataDir)).mode & 0o066, 0, 'nobody else lists the data directory');
    await second.stop();

    const stranger = isRoot ? await openInChild(t, dataDir, 'use', NOBODY) : undefined;
    t.match(stranger?.message ?? '', isRoot ? `${dataDir} belongs to another user (uid 0` : '');
    await stranger?.stop();
  },
);

t.test('listens on the same port at each start, and on another where that is taken, which it says', async (t) => {
  const dataDir = await makeDataDir(t, 'prepared');
  const lines: string[] = [];
  const portOf = async (mode: 'own' | 'use') => {
    const { url, stop } = await openEmbeddedPostgres({ dataDir, mode, settings, log: (line) => lines.push(line) });
    await query(url, 'select 1');
    await stop();
    return Number(new URL(url).port);
  };
  const port = await portOf('own');
  t.equal(await portOf('use'), port);
  t.equal(await portOf('own'), port);
  t.notOk(lines.some((line) => line.includes(`${port}`)));

  const other = createServer((socket) => socket.destroy()).listen(port, '127.0.0.1');
  t.teardown(() => other.close());
  await once(other, 'listening');
  const next = await portOf('own');
  t.not(next, port);
  t.match(lines.at(-1), new RegExp(`Port ${port}, .+ is taken\\. It listens on ${next} `));
  other.close();
  await once(other, 'close');
  t.equal(await portOf('own'), next, 'and keeps that');

  await writeFile(join(dataDir, 'postgres.port'), '70000');
  t.ok((await portOf('own')) > 0, 'and takes nothing else from the file than a port');
});

t.test('refuses a second owner, naming the first and the remedy', async (t) => {
  const dataDir = await makeDataDir(t, 'empty');
  const children = await Promise.all([openInChild(t, dataDir, 'own'), openInChild(t, dataDir, 'own')]);
  const [owner, loser] = children[0].url ? children : [children[1], children[0]];
  t.equal(owner.origin, 'started');
  t.match(loser.message, `pid ${owner.process.pid}`);
  t.match(loser.message, 'RAIL_DATA_DIR');
  await loser.stop();

  const command = await openEmbeddedPostgres({ dataDir, mode: 'use' });
  t.equal(command.origin, 'found', 'while a command finds the first one');
  await command.stop();
  t.same(await query(owner.url, 'select 1'), [1], 'and leaves it running');
  await owner.stop();
});

t.test('takes over from an owner that was killed, and is the one that stops it', async (t) => {
  const dataDir = await makeDataDir(t, 'prepared');
  const killed = await openInChild(t, dataDir, 'own');
  const pid = await postmasterPid(dataDir);
  await killed.kill();
  const lines: string[] = [];
  const heir = await openEmbeddedPostgres({ dataDir, mode: 'own', log: (line) => lines.push(line) });
  t.equal(heir.origin, 'taken_over');
  t.equal(heir.url, killed.url);
  t.match(lines, [`Took over the Postgres (pid ${pid})`]);
  await heir.stop();
  t.equal(await postmasterPid(dataDir), undefined);
});

t.test('starts again after Postgres itself was killed, with what was committed', async (t) => {
  const dataDir = await makeDataDir(t, 'prepared');
  const owner = await openInChild(t, dataDir, 'own');
  await query(owner.url, 'create table kept as select 7 as number');
  const busy = query(owner.url, 'select sum(n) from generate_series(1, 2000000) n').catch(() => {});
  process.kill((await postmasterPid(dataDir)) ?? 0, 'SIGKILL');
  await owner.kill();
  const next = await openEmbeddedPostgres({ dataDir, mode: 'own', settings });
  t.equal(next.origin, 'started');
  t.same(await query(next.url, 'select number from kept'), [7]);
  await next.stop();
  await busy;
});

t.test(
  'starts where the pid of an earlier Postgres now is of another program, and where initdb was killed',
  async (t) => {
    const dataDir = await makeDataDir(t, 'empty');
    await mkdir(join(dataDir, 'postgres.new-1/base'), { recursive: true });
    const first = await openEmbeddedPostgres({ dataDir, mode: 'own', settings });
    const pidFile = join(dataDir, 'postgres/postmaster.pid');
    const lines = (await readFile(pidFile, 'utf8')).split('\n');
    await first.stop();
    const { uid, gid } = await stat(join(dataDir, 'postgres'));
    const other = spawn('sleep', ['600'], { uid, gid });
    t.teardown(() => other.kill());
    await writeFile(pidFile, [other.pid, ...lines.slice(1)].join('\n'));
    await chown(pidFile, uid, gid);
    const second = await openEmbeddedPostgres({ dataDir, mode: 'own', settings });
    t.equal(second.origin, 'started');
    t.notOk((await readdir(dataDir)).some((name) => name.startsWith('postgres.new')));
    t.equal(other.exitCode, null, 'and leaves that program alone');
    await second.stop();
  },
);

t.test('serves commands at once, and stops with the last one out', async (t) => {
  const dataDir = await makeDataDir(t, 'prepared');
  const commands = await Promise.all([openInChild(t, dataDir, 'use'), openInChild(t, dataDir, 'use')]);
  t.same(commands.map(({ origin }) => origin).sort(), ['found', 'started']);
  const [starter, finder] = commands[0].origin === 'started' ? commands : [commands[1], commands[0]];
  await starter.stop();
  t.same(await query(finder.url, 'select 1'), [1]);
  await finder.stop();
  t.equal(await postmasterPid(dataDir), undefined);
});

t.test('lets an owner take over from a command that still uses it', async (t) => {
  const dataDir = await makeDataDir(t, 'prepared');
  const command = await openInChild(t, dataDir, 'use');
  t.equal(command.origin, 'started');
  const owner = await openEmbeddedPostgres({ dataDir, mode: 'own' });
  t.equal(owner.origin, 'taken_over');
  await command.stop();
  t.same(await query(owner.url, 'select 1'), [1]);
  await owner.stop();
  t.equal(await postmasterPid(dataDir), undefined);
});

t.test('says what Postgres says when it does not start', async (t) => {
  const dataDir = await makeDataDir(t, 'prepared');
  const opened = openEmbeddedPostgres({ dataDir, mode: 'own', settings: { shared_buffers: 'plenty' } });
  await t.rejects(opened, { message: /invalid value for parameter "shared_buffers": "plenty"/ });
  const next = await openEmbeddedPostgres({ dataDir, mode: 'own', settings });
  t.equal(next.origin, 'started', 'and lets go of the data directory');
  await next.stop();
});

t.test('runs for a user without privileges, and for root as the user its data belongs to', async (t) => {
  const dataDir = await makeDataDir(t, 'empty');
  if (isRoot) await chown(dataDir, NOBODY, NOBODY);
  const owner = await openInChild(t, dataDir, 'own', isRoot ? NOBODY : undefined);
  t.equal(owner.origin, 'started');
  t.equal((await stat(dataDir)).mode & 0o777, 0o700);
  await owner.stop();
  if (!isRoot) return;
  const asRoot = await openEmbeddedPostgres({ dataDir, mode: 'own' });
  t.equal(asRoot.origin, 'started');
  t.equal((await stat(`/proc/${await postmasterPid(dataDir)}`)).uid, NOBODY);
  await asRoot.stop();
});

t.test('runs in a directory that only its user can enter', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'rail-private-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const dataDir = join(directory, 'made/data');
  const lines: string[] = [];
  const open = () => openEmbeddedPostgres({ dataDir, mode: 'own', settings, log: (line) => lines.push(line) });
  const first = await open();
  const away = isRoot ? await readlink(join(dataDir, 'postgres')) : undefined;
  t.teardown(async () => {
    if (!away) return;
    for (const end of ['', '.users', '.turn', '.owner']) await rm(`${away}${end}`, { recursive: true });
    await rmdir(dirname(away)).catch(() => {}); // others may be in it
  });
  t.match(lines.join(), away ?? '');
  await query(first.url, 'create table kept as select 7 as number');
  await first.stop();
  const second = await open();
  t.same(await query(second.url, 'select number from kept'), [7]);
  await second.stop();
});
