import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { command } from '../command_process.ts';
import { encryption_key, startRail } from '../harness.ts';

const service = await startRail();
const environment = { DATABASE_URL: service.url, RAIL_ENCRYPTION_KEY: encryption_key.toString('base64') };
const rail = (...args: string[]) => command(['prospects', ...args], environment);

t.test('imports a file, lists what came of it, and writes it out', async (t) => {
  const caller = await service.organization();
  const given = { name: 'Acme', website_url: 'https://acme.example.com' };
  // The only brand, so that it need not be named.
  const { id: brand } = await caller.post('/recruitment/v1/brands', given);
  const directory = t.testdir();
  const file = join(directory, 'blogs.csv');
  await writeFile(file, 'Blog,Owner,Mood\nbaking.com,Ada,good\n-,Bob,bad\n');
  const unmapped = await rail('import', file, '--brand', brand);
  t.match(unmapped, { code: 1, stderr: /'Blog' is not known/ });
  const imported = await rail('import', file, '--mapping', 'Blog=url', 'Owner=name', 'Mood=');
  t.equal(imported.code, 0);
  t.match(imported.stderr, /^Created fim_\S+\. Ctrl-C[^\n]*\n(.*\n)?2 of 2 rows read, 1 refused\n$/);
  t.match(
    imported.stdout,
    /is done\.\n\nROWS +CREATED +UPDATED +UNCHANGED +REFUSED\n +2 +1 +0 +0 +1\n\nLINE +FIELD +REFUSED BECAUSE IT\n +3 +url +/,
  );
  const again = ['--mapping', 'Blog=url', 'Owner=name', 'Mood=', '--dry-run', '--json'];
  t.match(JSON.parse((await rail('import', file, '--brand', brand, ...again)).stdout), {
    ...{ state: 'done', dry_run: true, created: 0, unchanged: 1, refused: 1 },
  });
  t.match((await rail('list')).stdout, /\nfdi_\S+ +website +baking\.com +Ada +found +none\n$/);
  const out = join(directory, 'out.ndjson');
  await rail('export', '--format', 'ndjson', '--out', out);
  t.match(JSON.parse(await readFile(out, 'utf8')), { key: 'baking.com', source: 'csv_import' });
  t.match(await rail('list', '--brand', brand, '--stage', 'won'), {
    ...{ code: 2, stderr: /^rail: --stage must be one of: found, contacted,/ },
  });
  t.match(await rail('list', '--brand', 'fbr_unknown'), { code: 1, stderr: /There is no brand 'fbr_unknown'/ });
});
