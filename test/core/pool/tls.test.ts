import { chown, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import t from 'tap';
import { createAuthority } from '../../../src/demo/authority.ts';
import { openEmbeddedPostgres } from '../../../src/embedded_postgres/embedded_postgres.ts';
import { reachPostgres } from '../../../src/service.ts';
import { log } from '../../harness.ts';
import { serverUrl } from '../../postgres.ts';

const dataDir = await mkdtemp(join(tmpdir(), 'rail-tls-'));
const postgres = await openEmbeddedPostgres({ dataDir, mode: 'own' });
t.teardown(async () => {
  await postgres.stop();
  await rm(dataDir, { recursive: true, maxRetries: 5 });
});
const authority = createAuthority();
const { key, cert } = authority.issue({ name: 'localhost' });
const roots = { own: join(dataDir, 'own.pem'), other: join(dataDir, 'other.pem') };
await writeFile(roots.own, authority.cert);
await writeFile(roots.other, createAuthority().cert);

/** Writes a file that Postgres reads. */
async function give(name: string, text: string): Promise<void> {
  const { uid, gid } = await stat(join(dataDir, 'postgres/PG_VERSION'));
  const path = join(dataDir, 'postgres', name);
  await writeFile(path, text, { mode: 0o600 });
  await chown(path, uid, gid);
}

async function change(...statements: string[]): Promise<void> {
  const client = new pg.Client({ connectionString: postgres.url });
  await client.connect();
  for (const statement of [...statements, 'select pg_reload_conf()']) await client.query(statement);
  await client.end();
}

/** Returns whether a connection by this `sslmode` is encrypted. */
async function isEncrypted(query: string, { url = postgres.url, host = 'localhost' } = {}): Promise<boolean> {
  const asked = new URL(url);
  asked.hostname = host;
  asked.search = query;
  const reached = await reachPostgres({ url: '' }, { DATABASE_URL: asked.href }, { log, max_wait_ms: 0 });
  const client = new pg.Client({ connectionString: reached });
  await client.connect();
  const { rows } = await client.query('select ssl from pg_stat_ssl where pid = pg_backend_pid()');
  await client.end();
  return rows[0].ssl;
}

t.test('a server without TLS is reached by the modes that do without', async (t) => {
  const url = await serverUrl(t);
  for (const mode of ['', 'sslmode=disable', 'sslmode=allow', 'sslmode=prefer'])
    t.equal(await isEncrypted(mode, { url }), false, mode);
  await t.rejects(isEncrypted('sslmode=require', { url }), /does not support SSL/);
});

t.test('a server with a certificate of its own authority is verified as the mode says', async (t) => {
  await give('server.key', key);
  await give('server.crt', cert);
  await change('alter system set ssl = on');
  const root = `sslrootcert=${roots.own}`;
  for (const mode of ['prefer', 'require', `require&${root}`, `verify-ca&${root}`, `verify-full&${root}`])
    t.equal(await isEncrypted(`sslmode=${mode}`), true, mode);
  for (const mode of ['', 'sslmode=disable', 'sslmode=allow']) t.equal(await isEncrypted(mode), false, mode);
  t.equal(await isEncrypted(`sslmode=verify-ca&${root}`, { host: '127.0.0.1' }), true, 'the name does not matter');
  await t.rejects(isEncrypted(`sslmode=verify-full&${root}`, { host: '127.0.0.1' }), /altnames|match/);
  for (const mode of ['require', 'verify-ca', 'verify-full'])
    await t.rejects(isEncrypted(`sslmode=${mode}&sslrootcert=${roots.other}`), /certificate/, mode);
  await t.rejects(isEncrypted('sslmode=verify-full'), /certificate/, 'no public authority knows it');
  await t.rejects(isEncrypted('sslmode=verify-ca'), /needs sslrootcert/);
  for (const name of ['sslrootcert', 'sslcert', 'sslkey'])
    await t.rejects(
      isEncrypted(`sslmode=require&${name}=/none.pem`),
      `${name} names /none.pem, where there is no file.`,
    );
  await t.rejects(isEncrypted('sslmode=verified'), /Set it to one of disable, allow/);
});

t.test('a server that insists on TLS is reached without a mode', async (t) => {
  const hba = await readFile(join(dataDir, 'postgres/pg_hba.conf'), 'utf8');
  await give('pg_hba.conf', hba.replaceAll(/^host\b/gm, 'hostssl'));
  await change();
  t.equal(await isEncrypted(''), true);
  t.equal(await isEncrypted('sslmode=allow'), true);
  await t.rejects(isEncrypted('sslmode=disable'), /no encryption/);
});

t.test('a server that asks for a client certificate lets in who has the one of its user', async (t) => {
  const user = authority.issue({ name: 'rail' });
  const stranger = createAuthority().issue({ name: 'rail' });
  const paths: Record<string, string> = {};
  for (const [name, text] of Object.entries({
    cert: user.cert,
    key: user.key,
    other: stranger.cert,
    other_key: stranger.key,
  })) {
    paths[name] = join(dataDir, `${name}.pem`);
    await writeFile(paths[name], text, { mode: 0o600 });
  }
  await give('authority.crt', authority.cert);
  const client = new pg.Client({
    connectionString: postgres.url,
    ssl: { ca: authority.cert, servername: 'localhost' },
  });
  await client.connect();
  await client.query("alter system set ssl_ca_file = 'authority.crt'");
  await give('pg_hba.conf', 'hostssl all all all cert\n');
  await client.query('select pg_reload_conf()');
  await client.end();
  const root = `sslmode=verify-full&sslrootcert=${roots.own}`;
  t.equal(await isEncrypted(`${root}&sslcert=${paths.cert}&sslkey=${paths.key}`), true);
  await t.rejects(isEncrypted(root), /certificate/);
  await t.rejects(isEncrypted(`${root}&sslcert=${paths.other}&sslkey=${paths.other_key}`));
});
