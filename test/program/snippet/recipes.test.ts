import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { openTab } from '../../browser.ts';
import { eventually, sql, startRail } from '../../harness.ts';
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

/** The text between the fences of the example after a line that begins with a name. */
function exampleOf(name: string): string {
  const [, example = ''] = new RegExp(`^${name},.*?^\`\`\`\\w+\\n(.*?)^\`\`\`$`, 'ms').exec(guide) ?? [];
  return example.replaceAll('https://rail.example.com', rail.address);
}

type Handler = (request: Request) => Promise<Response>;

/** Sends a request on to another address, as a rewrite does: `:path*` and `*` are the rest of the path. */
function rewritten(source: string, destination: string, rest: string): Handler {
  const [before = '', after = ''] = source.split(/:path\*|\*/);
  return (request) => {
    const { pathname, search } = new URL(request.url);
    if (!pathname.startsWith(before) || !pathname.endsWith(after)) throw new Error(`${pathname} is not ${source}`);
    return fetch(new Request(destination.replace(rest, pathname.slice(before.length)) + search, request));
  };
}

/** The recipes that are code or lines of a host: the worker as it stands in the guide; the rewrites as their documentation says that they are read. */
const handlers: Record<string, (folder: string) => Promise<Handler> | Handler> = {
  async Cloudflare(folder) {
    const file = join(folder, 'worker.mjs');
    await writeFile(file, exampleOf('Cloudflare'));
    return (await import(pathToFileURL(file).href)).default.fetch;
  },
  Vercel() {
    const { rewrites, ...others } = JSON.parse(exampleOf('Vercel'));
    const [{ source, destination, ...more }, ...rest] = rewrites;
    if (Object.keys({ ...others, ...more }).length + rest.length > 0) throw new Error('more than was thought');
    return rewritten(source, destination, ':path*');
  },
  Netlify() {
    const [from = '', to = '', status, ...rest] = exampleOf('Netlify').trim().split(/\s+/);
    if (status !== '200' || rest.length > 0) throw new Error('no rewrite');
    return rewritten(from, to, ':splat');
  },
};

for (const [name, open] of Object.entries(handlers)) {
  t.test(`the recipe for ${name} passes on the script, and clicks with their cookie`, async (t) => {
    const handler = await open(t.testdir({}));
    const shop = await openShop(rail);
    const partner = await shop.partner();
    const origin = 'https://acme.example.com';
    const { key } = await shop.merchant.post('/v1/publishable_keys', {
      ...{ program_id: shop.program_id, allowed_origins: [origin] },
    });
    const ask = (path: string, init: RequestInit = {}) => handler(new Request(`${origin}/_rail/${path}`, init));
    t.match(await (await ask('rail.js?v=1')).text(), /rail_click/);
    const headers = {
      Origin: origin,
      'User-Agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
    };
    const answer = await ask('v1/c', {
      ...{ method: 'POST', headers: { ...headers, 'CF-Connecting-IP': '93.184.216.34' } },
      body: JSON.stringify({ key, value: partner.handle, url: `${origin}/` }),
    });
    const { click_id } = (await answer.json()) as { click_id: string };
    t.match(click_id, /^clk_/);
    t.match(answer.headers.get('set-cookie'), `rail_click=${click_id}; Path=/; `);
    const link = await shop.link(partner, { destination_url: `${origin}/pricing` });
    const [row] = await rail.query<{ ip_hash: string | null }>(sql`
      select ip_hash from program.click where id = ${click_id}`);
    const expected = name === 'Cloudflare' ? rail.services.vault.hash('93.184.216.34') : null;
    t.equal(row?.ip_hash, expected, 'whose address the visitor has, where the recipe says it');
    if (name !== 'Cloudflare') return;
    const redirected = await ask(`r/${link.short_slug}`, { headers });
    t.equal(redirected.status, 302, 'a redirect is for the browser');
    t.match(redirected.headers.get('location'), `${origin}/pricing?`);
  });
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGTERM');
  await gone;
}
