import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, readdir, readFile, rm, stat, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { type Lock, tryLock } from '../../src/embedded_postgres/lock.ts';

const stop_ms = 15_000;
/** A disk that Linux keeps in memory. */
const memory = '/dev/shm';
/** The most disk space of a run at a time. */
const room = 4 * 2 ** 30;

/**
 * A directory for all that a run of the tests writes, and for the Postgres servers that it starts. Directories of runs that were killed are
 * removed first, with the servers that still run in them.
 *
 * It is in memory where that has room and TMPDIR does not name another place: each test file's database is a copy of 1,500 files, which takes
 * ten times the CPU time on a disk.
 */
export async function makeRunDirectory(): Promise<string> {
  const isNamed = process.env.TMPDIR !== undefined;
  for (const place of isNamed ? [tmpdir()] : [tmpdir(), memory]) await removeAbandoned(place);
  const place = !isNamed && (await hasRoom(memory)) ? memory : tmpdir();
  const directory = join(place, `rail-run-${randomBytes(6).toString('hex')}`);
  locks.set(directory, tryLock(`${directory}.lock`, 'exclusive')); // held before another run can see the directory
  await mkdir(directory);
  await chmod(directory, 0o711); // Postgres runs as another user than root
  return directory;
}

async function hasRoom(place: string): Promise<boolean> {
  // Some tests run programs that they have put there.
  const mounts = await readFile('/proc/mounts', 'utf8').catch(() => '');
  const [options] = new RegExp(`(?<=^\\S+ ${place} \\S+ )\\S+`, 'm').exec(mounts) ?? [];
  if (options === undefined || options.split(',').includes('noexec')) return false;
  const { bavail, bsize } = await statfs(place);
  return bavail * bsize >= room;
}

async function removeAbandoned(place: string): Promise<void> {
  for (const name of await readdir(place).catch(() => [])) {
    const path = join(place, name);
    if (/^rail-run-\w+$/.test(name) && (await isAbandoned(path))) await removeRunDirectory(path);
  }
}

const locks = new Map<string, Lock | undefined>();

async function isAbandoned(directory: string): Promise<boolean> {
  const owner = await stat(directory).catch(() => undefined); // another run may have removed it just now
  if (!owner || (process.getuid && owner.uid !== process.getuid())) return false;
  locks.set(directory, tryLock(`${directory}.lock`, 'exclusive'));
  return locks.get(directory) !== undefined;
}

/** Stops every Postgres in a run's directory, by a signal that saves nothing, and removes the directory. */
export async function removeRunDirectory(directory: string): Promise<void> {
  const postmasters = await Promise.all((await readdir(directory)).map((name) => postgresOf(join(directory, name))));
  for (const pid of postmasters.filter((pid) => pid !== undefined)) {
    if (!(await commandOf(pid)).includes(directory)) continue; // another process has been given the id since
    process.kill(pid, 'SIGQUIT');
    for (const end = Date.now() + stop_ms; isAlive(pid) && Date.now() < end; ) await sleep(10);
  }
  await rm(directory, { recursive: true, force: true, maxRetries: 5 });
  await rm(`${directory}.lock`, { force: true });
  locks.get(directory)?.release();
  locks.delete(directory);
}

/** The process id of the Postgres that runs on a data directory. */
export async function postgresOf(dataDir: string): Promise<number | undefined> {
  const text = await readFile(join(dataDir, 'postgres/postmaster.pid'), 'utf8').catch(() => '');
  return Number.parseInt(text, 10) || undefined;
}

/** Empty where there is no such process. */
async function commandOf(pid: number): Promise<string> {
  const ps = () => promisify(execFile)('ps', ['-o', 'command=', '-p', String(pid)]).then(({ stdout }) => stdout);
  return readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => ps().catch(() => ''));
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
