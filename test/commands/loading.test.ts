import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';

const src = join(import.meta.dirname, '../../src');

/** Prints the packages and the files of src that a module loads, and those that they load. */
const tracer = `
  import { registerHooks } from 'node:module';
  const loaded = new Set();
  registerHooks({
    load(url, context, next) {
      const found = /.*node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(url) ?? /.*\\/src\\/(.*)/.exec(url);
      if (found) loaded.add(found[1]);
      return next(url, context);
    },
  });
  await import(process.argv[1]);
  console.log(JSON.stringify([...loaded]));
  process.exit();`;

async function loadedBy(module: string): Promise<string[]> {
  const { stdout } = await promisify(execFile)(process.execPath, [
    ...['--input-type=module', '--eval', tracer],
    join(src, module),
  ]);
  return JSON.parse(stdout);
}

/** Packages that take long to load or much memory: only the work that needs them may load them. */
const of_few = [
  ...['csv-parse', 'fast-xml-parser', 'graphql', 'html-to-text', 'htmlparser2', 'imapflow', 'liquidjs'],
  ...[
    '@fastify/otel',
    '@opentelemetry/sdk-node',
    'mailchecker',
    'nodemailer',
    'pdfkit',
    'postal-mime',
    'postgraphile',
    'prom-client',
  ],
];
const of_operations = ['program/api.ts', 'recruitment/api.ts'];
const spared = {
  'commands/access/org.ts': ['fastify', 'graphile-worker', 'prom-client', 'undici'],
  'commands/access/user.ts': ['fastify', 'graphile-worker', 'prom-client', 'undici'],
  'commands/api.ts': ['fastify', 'graphile-worker', 'prom-client', 'undici'],
  'commands/worker.ts': ['fastify', 'graphile-worker', 'prom-client', 'undici'],
  'api.ts': ['@fastify/swagger', 'graphile-worker', 'undici', ...of_few],
  'operations.ts': ['fastify', 'graphile-worker', 'undici', ...of_few],
  'worker.ts': ['fastify', 'undici', ...of_few, ...of_operations],
  'webhooks/queue/worker_extension.ts': ['fastify', 'undici', ...of_few, ...of_operations],
  // Of schedules: each worker at rest loads them.
  '../tasks/program/reconcile_processors.ts': ['program/processors/processors.ts'],
  '../tasks/program/sweep_processor_events.ts': ['program/processors/processors.ts'],
  '../tasks/recruitment/purge_expired.ts': ['recruitment/erase.ts'],
  '../tasks/recruitment/start_weekly_scans.ts': ['recruitment/brands/brand.ts'],
  'recruitment/worker_extension.ts': ['fastify', 'undici', ...of_few, ...of_operations],
};

for (const [module, names] of Object.entries(spared))
  t.test(`${join('src', module)} loads nothing that takes long and that it does not need`, async (t) => {
    const loaded = await loadedBy(module);
    t.ok(loaded.includes('pg'), 'what it loads is seen');
    t.same(
      names.filter((name) => loaded.includes(name)),
      [],
      'load it by `await import(…)` where it is needed',
    );
  });
