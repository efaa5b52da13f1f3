import { readdirSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';

const root = join(import.meta.dirname, '..');
const most_mb = 150;
/** The size beyond which a package has a line in the guide for contributors that says why it stays. */
const heavy_mb = 5;

const block = 4_096;
const mb = 2 ** 20;

interface Locked {
  packages: Record<string, { dev?: boolean; devOptional?: boolean; optional?: boolean }>;
}

/** Returns the packages of a production installation, with the space of each: those that the lock file does not keep for development. */
async function productionPackages(): Promise<{ name: string; size: number }[]> {
  const { packages } = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as Locked;
  return Object.entries(packages)
    .filter(([path, { dev, optional }]) => path !== '' && !dev && !optional)
    .map(([path]) => ({ name: path.slice(path.lastIndexOf('node_modules/') + 13), size: sizeOf(join(root, path)) }));
}

/** In blocks, as `du` counts: of a folder and all in it, but for the packages that it has installed. */
function sizeOf(folder: string): number {
  let size = block;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) size += entry.name === 'node_modules' ? block : sizeOf(path);
    else if (entry.isFile()) size += Math.ceil(statSync(path).size / block) * block;
  }
  return size;
}

t.test(`a production installation takes at most ${most_mb} MB, and the guide says what is heavy in it`, async (t) => {
  const packages = await productionPackages();
  const total = packages.reduce((sum, { size }) => sum + size, 0) / mb;
  t.ok(packages.some(({ name }) => name === 'postgraphile') && total > 50, `${packages.length} packages are counted`);
  t.ok(total <= most_mb, `${total.toFixed(1)} MB`);
  const guide = await readFile(join(root, '.github/CONTRIBUTING.md'), 'utf8');
  const named = [...guide.matchAll(/^\| `([^`]+)` \| \d+ \|/gm)].map(([, name]) => name);
  const heavy = packages.filter(({ size }) => size > heavy_mb * mb).map(({ name }) => name);
  t.same(named.toSorted(), heavy.toSorted());
});
