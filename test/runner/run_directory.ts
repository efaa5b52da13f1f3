import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { type Lock, tryLock } from '../../src/embedded_postgres/lock.ts';

const stop_ms = 15_000;

/**
 * A directory for all that a run of the tests writes, and for the Postgres servers that it starts. Directories of runs that were killed are
 * removed first, with the servers that still run in them.
 */
export async function makeRunDirectory(): Promise<string> {
  for (const name of await readdir(tmpdir())) {
    const path = join(tmpdir(), name);
    if (/^rail-run-\w+$/.test(name) && (await isAbandoned(path))) await removeRunDirectory(path);
  }
  const directory = join(tmpdir(), `rail-run-${randomBytes(6).toString('hex')}`);
  locks.set(directory, tryLock(`${directory}.lock`, 'exclusive')); // held before another run can see the directory
  await mkdir(directory);
  await chmod(directory, 0o711); // Postgres runs as another user than root
  return directory;
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
