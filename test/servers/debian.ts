/** Programs of Debian's packages, unpacked and not installed: what soaks run that the machine does not have. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

export interface Unpacked {
  /** The directory of the programs. */
  bin: string;
  /** The directory of the libraries that came with them, for LD_LIBRARY_PATH. Empty where the machine has the programs. */
  libraries: string;
}

/**
 * @param bin the directory of the programs in the packages
 * @param packages the program's, and those of the libraries that the machine may lack
 * @throws Error where the machine does not have the program, and apt-get cannot download its packages
 */
export async function findOrUnpack(program: string, bin: string, packages: string[]): Promise<Unpacked> {
  const path = [...(process.env.PATH ?? '').split(':'), `/${bin}`];
  const found = path.find((directory) => existsSync(join(directory, program)));
  if (found !== undefined) return { bin: found, libraries: '' };
  const cwd = await mkdtemp(join(tmpdir(), `rail-${program}-`));
  await chmod(cwd, 0o755);
  await run('apt-get', ['download', ...packages], { cwd });
  const files = await readdir(cwd);
  for (const file of files.filter((name) => name.endsWith('.deb')))
    await run('dpkg-deb', ['--extract', file, 'unpacked'], { cwd });
  const [libraries = ''] = (await readdir(join(cwd, 'unpacked/usr/lib')).catch(() => [])).filter((name) =>
    name.includes('linux-gnu'),
  );
  return { bin: join(cwd, 'unpacked', bin), libraries: join(cwd, 'unpacked/usr/lib', libraries) };
}
