import sql from 'sql-template-tag';
import t from 'tap';
import { publicationStatements } from '../../src/commands/data/publication.ts';
import { exported } from '../../src/products.ts';
import { encryption_key, type Json, linesOf, startRail } from '../harness.ts';
import { rail as runRail } from '../rail_process.ts';

t.setTimeout(120_000);

const service = await startRail({ worker: false });
const environment = { DATABASE_URL: service.url, RAIL_ENCRYPTION_KEY: encryption_key.toString('base64') };
const rail = (...args: string[]) => runRail(t, args, environment);
const merchant = await service.organization();
const program = await merchant.post('/v1/programs', {
  ...{ name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' },
});
const tagNamed = (name: string): Promise<Json> => merchant.post('/v1/tags', { program_id: program.id, name });

t.test('rail data export prints everything, then what changed since the position', async (t) => {
  const first = await tagNamed('First');
  const organization = ['--organization', merchant.organization_id];
  const { code, stdout } = await rail('data', 'export', 'tags', ...organization);
  t.equal(code, 0);
  const [row, end] = linesOf(stdout);
  t.strictSame(row, await merchant.get(`/v1/tags/${first.id}`));
  t.match(end, { object: 'export_position', resource: 'tags' });
  const second = await tagNamed('Second');
  const next = await rail('data', 'export', 'tags', ...organization, '--since', end?.position);
  t.same(
    linesOf(next.stdout).map(({ id }) => id),
    [second.id, undefined],
  );
  const { data } = await merchant.get(`/v1/exports/tags?since=${end?.position}`);
  t.same(data[0], linesOf(next.stdout)[0], 'as the API has it');
});

t.test('rail data export says what is wrong', async (t) => {
  const organization = ['--organization', merchant.organization_id];
  const unknown = await rail('data', 'export', 'nothing', ...organization);
  t.match(unknown, { code: 2, stderr: /can be exported: programs, .*sales/ });
  const refused = await rail('data', 'export', 'tags', ...organization, '--since', 'pos_unknown');
  t.match(refused, { code: 1, stderr: /'pos_unknown' is unknown/ });
});

t.test('rail data publication prints SQL that Postgres takes, with what the API shows and nothing else', async (t) => {
  const { code, stdout } = await rail('data', 'publication', '--name', 'warehouse');
  t.equal(code, 0);
  for (const word of ['max_slot_wal_keep_size', 'ignores row-level security', 'wal_level = logical'])
    t.match(stdout, word);
  t.equal((await rail('data', 'publication', '--name', 'a; drop')).code, 2);
  const statements = await publicationStatements(service.store.database, 'warehouse');
  const { statement } = statements.find((one) => one.statement.startsWith('create publication')) as {
    statement: string;
  };
  await service.store.database.query(statement);
  const published = await service.query<{ name: string; columns: string[] }>(sql`
    select format('%s.%s', schemaname, tablename) as name, attnames::text[] as columns from pg_publication_tables`);
  t.same(published.map(({ name }) => name).sort(), exported.map(({ table }) => table).sort());
  const columns = new Set(published.flatMap((one) => one.columns));
  for (const name of ['organization_id', 'id', 'amount_minor', 'deleted_at']) t.ok(columns.has(name), name);
  for (const name of ['ip_hash', 'visitor_token', 'mailbox', 'changed_in']) t.notOk(columns.has(name), name);
});
