import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import t from 'tap';
import { command } from '../command_process.ts';
import { encryption_key, type Json, startRail } from '../harness.ts';
import { environmentOf } from '../rail_process.ts';
import { openShop } from '../shop.ts';

const service = await startRail({ worker: false, audit: false });
const environment = { DATABASE_URL: service.url, RAIL_ENCRYPTION_KEY: encryption_key.toString('base64') };
const rail = (...args: string[]) => command(['data', 'export', ...args], environment);
const shop = await openShop(service);
const { organization_id } = shop.merchant;

interface Exported {
  rows: Json[];
  position: string;
}

/** Returns the output of the command: objects, and on the last line the position. */
async function exported(resource: string, ...options: string[]): Promise<Exported> {
  const { code, stdout, stderr } = await rail(resource, ...options);
  t.same({ code, stderr }, { code: 0, stderr: '' });
  t.ok(stdout.endsWith('\n'));
  const rows = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  const end = rows.pop();
  t.match(end, { object: 'export_position', resource, position: /^pos_/ });
  return { rows, position: end.position };
}

const tagNamed = (name: string): Promise<Json> =>
  shop.merchant.post('/v1/tags', { program_id: shop.program_id, name, color: '#336699' });

/** Applies an export to a copy, as a warehouse would. */
function replay(copy: Map<string, Json>, rows: Json[]): void {
  for (const row of rows) {
    if (row.deleted) copy.delete(row.id);
    else copy.set(row.id, row);
  }
}

t.test('prints every object, then what changed since a position, deletions too', async (t) => {
  const [vip, old, gone] = [await tagNamed('VIP'), await tagNamed('Old'), await tagNamed('Gone')];
  const copy = new Map<string, Json>();
  const all = await exported('tags');
  replay(copy, all.rows);
  t.same([...copy.keys()].sort(), [vip.id, old.id, gone.id].sort());
  t.same(await exported('tags', '--since', all.position), { rows: [], position: all.position }, 'nothing changed');

  const changed = await shop.merchant.patch(`/v1/tags/${old.id}`, { name: 'New' });
  await shop.merchant.delete(`/v1/tags/${gone.id}`);
  const added = await tagNamed('Added');
  const next = await exported('tags', '--since', all.position, '--organization', organization_id);
  t.same(new Set(next.rows.map(({ id }) => id)), new Set([changed.id, gone.id, added.id]));
  replay(copy, next.rows);
  const { data } = await shop.merchant.get(`/v1/tags?program_id=${shop.program_id}`);
  t.same(new Map(data.map((tag: Json) => [tag.id, tag])), copy);

  const { data: by_api } = await shop.merchant.get(`/v1/exports/tags?since=${all.position}`);
  t.same(new Set(by_api.slice(0, -1)), new Set(next.rows), 'a position is of the API too');
});

t.test('exports personal data only where that is asked for', async (t) => {
  const partner = await shop.partner();
  const landing_url =
    'https://acme.example.com/welcome?email=grace%40secret.example.com&utm_content=grace@secret.example.com';
  await shop.click(partner, { landing_url, referrer: 'https://acme.example.com/u/grace@secret.example.com' });
  const refused = await rail('partners');
  t.match(refused, { code: 2, stdout: '', stderr: /^rail: .*'partners' has personal data.*--personal-data\.\n$/ });
  t.match((await exported('partners', '--personal-data')).rows, [{ id: partner.id, email: partner.email }]);
  t.match((await exported('clicks', '--personal-data')).rows, [{ landing_url }]);
  t.match((await exported('clicks')).rows, [
    {
      landing_url: 'https://acme.example.com/welcome?email=hidden&utm_content=hidden',
      referer: 'https://acme.example.com/u/hidden',
    },
  ]);
});

t.test('says in one line what is wrong', async (t) => {
  const { position } = await exported('tags');
  t.match(await rail('bogus'), {
    ...{ code: 2, stdout: '' },
    stderr: /^rail: There is no resource 'bogus' to export\. Resources: programs, groups, tags, .*, sale_claims\.\n$/,
  });
  t.match(await rail('tags', '--since', 'pos_unknown'), {
    ...{ code: 2, stdout: '' },
    stderr: /^rail: The position 'pos_unknown' is unknown: .* Export 'tags' without --since\.\n$/,
  });
  t.match(await rail('programs', '--since', position), { code: 2, stdout: '', stderr: /is of 'tags'\..*\n$/ });
  t.match(await rail(), { code: 2, stdout: '', stderr: /resource/ });
  t.match(await rail('tags', '--organization', 'org_unknown'), {
    ...{ code: 1, stdout: '' },
    stderr: "rail: There is no organization 'org_unknown'. 'npx --no rail org list' lists them.\n",
  });
  const help = await rail('--help');
  t.match(help.stdout, '$ npx --no rail data export clicks > clicks.ndjson');
  await service.organization();
  t.match(await rail('tags'), { code: 2, stdout: '', stderr: /^rail: Which organization\? Give --organization/ });
});

t.test('ends quietly when its reader does', async (t) => {
  await service.store.database.query(
    `insert into program.tag (organization_id, id, program_id, name, color)
    select $1, 'tag_' || n, $2, 'Tag ' || n, '#336699' from generate_series(1, 20000) as n`,
    [organization_id, shop.program_id],
  );
  const main = join(import.meta.dirname, '../../src/main.ts');
  const child = spawn(process.execPath, [main, 'data', 'export', 'tags', '--organization', organization_id], {
    env: environmentOf(environment),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk;
  });
  child.stdout.once('data', () => child.stdout.destroy());
  const [code] = await once(child, 'close');
  t.same({ code, stderr }, { code: 0, stderr: '' });
});
