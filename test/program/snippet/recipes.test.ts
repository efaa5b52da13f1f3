import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { openTab } from '../../browser.ts';
import { eventually, startRail } from '../../harness.ts';
import { stablePort } from '../../ports.ts';
import { openShop } from '../../shop.ts';

const rail = await startRail({ worker: false });
const guide = await readFile(join(import.meta.dirname, '../../../src/guides/snippet.md'), 'utf8');

/** The example of the guide, with the service where it is here. */
function recipe(language: string): string {
  const [, example = ''] = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'ms').exec(guide) ?? [];
  return example.replaceAll('https://rail.example.com', rail.address);
}

interface Proxy {
  program: string;
  /** The whole configuration: a website of one page, with the recipe in it. */
  configuration(port: number, folder: string, page: string): string;
  run(file: string, folder: string): string[];
}

const proxies: Record<string, Proxy> = {
  nginx: {
    program: 'nginx',
    configuration: (port, folder) => `
      daemon off; pid ${folder}/nginx.pid; error_log stderr; events {}
      http {
        access_log off; default_type text/html;
        client_body_temp_path ${folder}/a; proxy_temp_path ${folder}/b; fastcgi_temp_path ${folder}/c; uwsgi_temp_path ${folder}/d; scgi_temp_path ${folder}/e;
        server { listen 127.0.0.1:${port}; root ${folder}; ${recipe('nginx')} }
      }`,
    run: (file, folder) => ['-c', file, '-p', folder, '-e', 'stderr'],
  },
  caddy: {
    program: 'caddy',
    configuration: (port, folder) => `
{
  admin off
  auto_https off
}
http://acme.test:${port} {
  bind 127.0.0.1
${recipe('caddy')}
  root * ${folder}
  file_server
}`,
    run: (file) => ['run', '--config', file, '--adapter', 'caddyfile'],
  },
};

for (const [name, { program, configuration, run }] of Object.entries(proxies)) {
  const is_there = spawnSync(program, ['-h']).error === undefined;
  t.test(
    `the recipe for ${name} makes the snippet first party`,
    { skip: is_there ? false : `${program} is not installed` },
    async (t) => {
      const port = await stablePort();
      const folder = join(t.testdir({}), 'site');
      await mkdir(folder);
      const shop = await openShop(rail);
      const partner = await shop.partner();
      const origin = `http://acme.test:${port}`;
      const key = await shop.merchant.post('/v1/publishable_keys', {
        program_id: shop.program_id,
        allowed_origins: [origin],
      });
      const tag = `<script async src="/_rail/rail.js" data-key="${key.key}"></script>`;
      await writeFile(join(folder, 'index.html'), `<link rel="icon" href="data:,">${tag}`);
      const file = join(folder, 'proxy.conf');
      await writeFile(file, configuration(port, folder, tag));
      const server = spawn(program, run(file, folder), {
        stdio: ['ignore', 'ignore', 'pipe'],
        env: { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
      });
      let said = '';
      server.stderr.on('data', (chunk) => {
        said += chunk;
      });
      t.teardown(() => ended(server));
      const answers = () =>
        fetch(`http://127.0.0.1:${port}/`, { headers: { Host: `acme.test:${port}` } }).then(
          () => true,
          () => false,
        );
      await eventually(answers, `${program} to listen`).catch((error) => {
        throw new Error(said, { cause: error });
      });
      const { page, context, errors } = await openTab();
      const answered = page.waitForResponse(/\/_rail\/v1\/c$/);
      await page.goto(`${origin}/?ref=${partner.handle}`);
      const click = await page.evaluate(
        'new Promise((done) => (window.Rail ||= []).push((rail) => rail.click().then(done)))',
      );
      t.match(click, /^clk_/, said);
      t.match(await context.cookies(), [{ name: 'rail_click', value: click, domain: '.acme.test' }]);
      t.ok(((await context.cookies())[0]?.expires ?? 0) > Date.now() / 1_000 + 59 * 86_400);
      t.match(await (await answered).headerValue('set-cookie'), `rail_click=${click}`, 'set by the website itself');
      t.same(errors, []);
    },
  );
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGTERM');
  await gone;
}
