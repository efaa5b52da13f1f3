import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';

const src = join(import.meta.dirname, '../../src');

/** Prints the packages that a module loads, and those that they load. */
const tracer = `
  import { registerHooks } from 'node:module';
  const packages = new Set();
  registerHooks({
    load(url, context, next) {
      const found = /.*node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(url);
      if (found) packages.add(found[1]);
      return next(url, context);
    },
  });
  await import(process.argv[1]);
  console.log(JSON.stringify([...packages]));
  process.exit();`;

async function packagesOf(module: string): Promise<string[]> {
  const { stdout } = await promisify(execFile)(process.execPath, [
    ...['--input-type=module', '--eval', tracer],
    join(src, module),
  ]);
  return JSON.parse(stdout);
}

/** What takes long to load, and where it may be loaded only by the work that needs it. */
const spared = {
  'commands/access/org.ts': ['fastify', 'graphile-worker', 'prom-client', 'undici'],
  'commands/access/user.ts': ['fastify', 'graphile-worker', 'prom-client', 'undici'],
  'commands/api.ts': ['fastify', 'graphile-worker', 'prom-client', 'undici'],
  'commands/worker.ts': ['fastify', 'graphile-worker', 'prom-client', 'undici'],
  'api.ts': ['graphile-worker', 'graphql', 'nodemailer', 'pdfkit', 'postgraphile', 'prom-client', 'stripe', 'undici'],
  'worker.ts': ['fastify', 'graphql', 'nodemailer', 'pdfkit', 'postgraphile', 'prom-client', 'stripe', 'undici'],
};

for (const [module, packages] of Object.entries(spared))
  t.test(`src/${module} loads nothing that takes long and that it does not need`, async (t) => {
    const loaded = await packagesOf(module);
    t.ok(loaded.includes('pg'), 'what it loads is seen');
    t.same(
      packages.filter((name) => loaded.includes(name)),
      [],
      'load it by `await import(…)` where it is needed',
    );
  });
