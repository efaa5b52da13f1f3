import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { parseAllDocuments } from 'yaml';
import { readConfig, secret_settings, settings } from '../../src/config.ts';
import { command } from '../command_process.ts';
import { encryption_key, type Json, startRail } from '../harness.ts';
import { Manifest } from './kubernetes_schema.ts';

const rail = await startRail({ worker: false });
const directory = await mkdtemp(join(tmpdir(), 'rail-deploy-'));
t.teardown(() => rm(directory, { recursive: true }));

const environment = {
  BASE_URL: 'https://rail.example.com',
  TRUSTED_PROXIES: '1',
  SMTP_URL: 'smtps://rail:hidden@smtp.example.com',
  MAIL_FROM: 'Rail 100% <rail@example.com>',
  RAIL_ENCRYPTION_KEY: encryption_key.toString('base64'),
};
const hidden = ['hidden', environment.RAIL_ENCRYPTION_KEY];
const image = `registry.example.com:5000/acme/rail:1.2@sha256:${'0f'.repeat(32)}`;
const names = settings.map(({ name }) => name);

async function printed(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await command(['deploy', ...args], environment);
  t.same({ code, stderr }, { code: 0, stderr: '' });
  for (const secret of hidden) t.notMatch(stdout, secret, 'no secret is printed');
  return stdout;
}

t.test('refuses what names no image', async (t) => {
  const wrong = [
    'bad image name',
    'rail@sha256:abc',
    'Rail',
    'rail:',
    'rail:a b',
    'https://example.com/rail',
    'a//b',
    '',
  ];
  for (const name of wrong)
    t.match(await command(['deploy', 'kubernetes', '--image', name], environment), {
      ...{ code: 2, stdout: '', stderr: /^rail: option '--image .* such as registry\.example\.com\/rail:1\.2/ },
    });
  for (const name of ['rail', 'rail:2', 'localhost/rail', 'ghcr.io/acme/my-rail_x:v1.0-rc.1', '[::1]:5000/rail'])
    await printed('kubernetes', '--image', name);
});

t.test('prints manifests that Kubernetes can run: probed, confined, with limits, secrets as files', async (t) => {
  const text = await printed('kubernetes', '--image', image, '--apis', '3');
  const objects: Json[] = parseAllDocuments(text).map((document) => document.toJS());
  t.same(
    objects.map(
      ({ apiVersion, kind, metadata }) => `${apiVersion} ${kind} ${metadata.name.replace(/-[0-9a-f]{12}$/, '')}`,
    ),
    [
      'v1 ConfigMap rail',
      'v1 ServiceAccount rail',
      'batch/v1 Job rail-migrate-0-1-0',
      'apps/v1 Deployment rail-api',
      'apps/v1 Deployment rail-worker',
      'v1 Service rail-api',
      'policy/v1 PodDisruptionBudget rail-api',
      'policy/v1 PodDisruptionBudget rail-worker',
    ],
  );
  for (const one of objects) t.same(Manifest.safeParse(one).error?.issues, undefined, `the fields of ${one.kind}`);
  const misspelled = { ...objects[1], automountServiceAccountTokens: true };
  t.match(Manifest.safeParse(misspelled).error?.issues, [{ keys: ['automountServiceAccountTokens'] }]);
  const named = (kind: string, name: string) =>
    objects.find((one) => one.kind === kind && one.metadata.name === name) as Json;
  const { data } = named('ConfigMap', 'rail');
  t.match(data, { BASE_URL: environment.BASE_URL, TRUSTED_PROXIES: '1', MAIL_FROM: environment.MAIL_FROM });
  for (const [name, value] of Object.entries(data)) {
    t.ok(names.includes(name), `${name} is a setting`);
    t.type(value, 'string', `${name} is a string`);
  }
  t.equal(readConfig(data).PORT, 3000, 'the process takes them');
  t.equal(named('Deployment', 'rail-api').spec.replicas, 3);

  for (const one of objects.filter(({ spec }) => spec?.template)) {
    const { template, selector } = one.spec;
    const { containers, volumes, securityContext } = template.spec;
    const [container] = containers as [Json];
    const [sub] = container.args as [string];
    t.match((await command([sub, '--help'], {})).stdout, `Usage: npx --no rail ${sub}`);
    t.equal(container.image, image);
    t.match(securityContext, { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
    t.match(container.securityContext, { readOnlyRootFilesystem: true, allowPrivilegeEscalation: false });
    t.match(container.resources, { requests: { cpu: String, memory: String }, limits: { memory: String } });
    t.same(
      container.env.map(({ name }: Json) => name),
      ['DATABASE_URL_FILE', 'RAIL_ENCRYPTION_KEY_FILE', 'SMTP_URL_FILE'],
    );
    for (const { name, mountPath } of container.volumeMounts) {
      const volume = volumes.find((given: Json) => given.name === name);
      if (volume.secret) for (const { value } of container.env) t.ok(value.startsWith(`${mountPath}/`));
    }
    if (one.kind === 'Job') continue;
    t.same(selector.matchLabels, template.metadata.labels, 'it selects its own pods');
    t.match(template.metadata.annotations['rail/settings'], /^[0-9a-f]{12}$/);
    const budget = named('PodDisruptionBudget', one.metadata.name);
    t.same(budget.spec.selector, selector);
    const open = Object.fromEntries(
      container.ports.map(({ name, containerPort }: Json) => [name, String(containerPort)]),
    );
    for (const probe of ['readinessProbe', 'livenessProbe', 'startupProbe']) {
      const { path, port } = container[probe].httpGet;
      t.equal(open[port], sub === 'api' ? data.PORT : data.METRICS_PORT, `${probe} asks a port that is open`);
      t.equal((await fetch(`${rail.address}${path}`)).status, 200, `${path} answers`);
    }
  }
  const [exposed] = named('Service', 'rail-api').spec.ports as [Json];
  const [served] = named('Deployment', 'rail-api').spec.template.spec.containers as [Json];
  t.ok(
    served.ports.some(({ name }: Json) => name === exposed.targetPort),
    'the service leads to a port that is open',
  );
  t.same(named('Service', 'rail-api').spec.selector, named('Deployment', 'rail-api').spec.selector.matchLabels);
});

t.test('other settings are other pods, which restart, and another image migrates by another job', async (t) => {
  const hashesIn = async (TRUSTED_PROXIES: string, ...image: string[]) => {
    const { stdout } = await command(['deploy', 'kubernetes', ...image], { ...environment, TRUSTED_PROXIES });
    const [job, api, worker] = stdout.match(/(?<=name: rail-migrate-|rail\/settings: ).*/g) ?? [];
    t.equal(api, worker);
    return { job, api };
  };
  const one = await hashesIn('1');
  t.same(await hashesIn('1'), one);
  const [other, of_image] = [await hashesIn('2'), await hashesIn('1', '--image', 'rail:2')];
  t.equal(other.job, one.job);
  t.not(other.api, one.api);
  t.not(of_image.job, one.job, 'a Job cannot be changed');
  t.equal(of_image.api, one.api);
});

t.test('prints units that systemd takes, which start what there is', async (t) => {
  const output = join(directory, 'units');
  const me = process.env.USER ?? 'root';
  const said = await printed('systemd', '--output', output, '--user', me, '--apis', '2', '--workers', '3');
  t.match(said, 'rail-api@.service, for /etc/systemd/system/rail-api@.service');
  const read = (name: string) => readFile(join(output, name), 'utf8');
  const target = await read('rail.target');
  t.same(target.match(/rail-\w+@\d+\.service/g), [
    ...['rail-api@3000.service', 'rail-api@3001.service'],
    ...['rail-worker@9464.service', 'rail-worker@9465.service', 'rail-worker@9466.service'],
  ]);
  t.match(
    await read('rail.env'),
    /^BASE_URL=https:\/\/rail\.example\.com\n(.*\n)*MAIL_FROM="Rail 100% <rail@example\.com>"\n/,
  );
  for (const name of ['rail-migrate.service', 'rail-api@.service', 'rail-worker@.service']) {
    const unit = await read(name);
    const [, node = '', file = '', sub = ''] = /^ExecStart=(\S+) (\S+) (\w+)$/m.exec(unit) ?? [];
    t.ok(existsSync(node) && existsSync(file), `${name} starts files that there are`);
    t.match((await promisify(execFile)(node, [file, sub, '--help'])).stdout, `Usage: npx --no rail ${sub}`);
    for (const secret of ['database_url', 'rail_encryption_key', 'smtp_url'])
      t.match(
        unit,
        `LoadCredential=${secret}:/etc/rail/${secret}\nEnvironment=${secret.toUpperCase()}_FILE=%d/${secret}\n`,
      );
    t.match(unit, '\nNoNewPrivileges=yes\n');
    t.notMatch(unit, 'Requires=', 'a migration that runs again stops nothing');
  }
  const verify = promisify(execFile)('systemd-analyze', [
    'verify',
    ...['migrate', 'api@', 'worker@'].map((name) => join(output, `rail-${name}.service`)),
  ]);
  const verified = await verify.catch((error) => error);
  if (verified.code === 'ENOENT') t.comment('systemd is not here to verify the units');
  else t.same({ ...verified }, { stdout: '', stderr: '' });
});

t.test('says what is missing', async (t) => {
  t.match(await command(['deploy', 'kubernetes'], {}), { code: 2, stderr: /^rail: Set BASE_URL / });
  t.match(await command(['deploy', 'systemd'], { BASE_URL: 'rail' }), { code: 1, stderr: /BASE_URL: must be a URL/ });
});

t.test('reads settings from files', async (t) => {
  const file = async (name: string, text: string) => {
    const path = join(directory, name);
    await writeFile(path, text);
    return path;
  };
  const url = new URL(rail.url);
  const password = decodeURIComponent(url.password);
  url.password = '';
  const files = {
    DATABASE_URL_FILE: await file('database_url', `${url.href}\n`),
    DATABASE_PASSWORD_FILE: await file('database_password', password),
    RAIL_ENCRYPTION_KEY_FILE: await file('rail_encryption_key', `${environment.RAIL_ENCRYPTION_KEY}\n`),
  };
  t.match(await command(['org', 'list', '--json'], files), { code: 0, stderr: '' }, 'a command reaches Postgres');
  t.equal(
    new URL(readConfig({ DATABASE_URL: 'postgres://rail:own@db/rail', DATABASE_PASSWORD: 'x' }).DATABASE_URL ?? '')
      .password,
    'own',
  );
  const odd = readConfig({ DATABASE_URL: 'postgres://rail@db/rail', DATABASE_PASSWORD: 'a/b#c@%' }).DATABASE_URL ?? '';
  t.equal(decodeURIComponent(new URL(odd).password), 'a/b#c@%');

  const refused: [NodeJS.ProcessEnv, RegExp][] = [
    [
      { ...files, DATABASE_URL: rail.url },
      /^rail: Invalid environment\. Set DATABASE_URL or DATABASE_URL_FILE, and not both\.\n$/,
    ],
    [{ SMTP_URL_FILE: join(directory, 'none') }, /SMTP_URL_FILE: the file .*none cannot be read \(ENOENT\)\.\n$/],
    [{ SMTP_URL_FILE: await file('empty', '\n') }, /SMTP_URL_FILE: the file .*empty is empty\.\n$/],
    [{ SMTP_URL_FILE: await file('smtp', 'hidden') }, /SMTP_URL: must be a URL such as/],
  ];
  for (const [given, message] of refused) {
    const { code, stderr } = await command(['org', 'list'], given);
    t.equal(code, 1);
    t.match(stderr, message);
    t.notMatch(stderr, 'hidden');
  }
  for (const name of secret_settings) t.ok(names.includes(name));
});
