#!/usr/bin/env node
/** The command line. Each command's code is loaded when it is asked for. */
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import pkg from '../package.json' with { type: 'json' };
import { settings, wantsStacks } from './config.ts';

const rail = new Command('rail')
  .description('Affiliate program service: clicks, sales, commissions and signed webhooks on one Postgres.')
  .version(pkg.version)
  .exitOverride()
  .showHelpAfterError('--help shows what there is.')
  .configureHelp({ helpWidth: 120 })
  .addHelpText('after', environmentText);

const json = () => new Option('--json', 'answer with one JSON document');

const example = (...lines: string[]): string =>
  `\nExample:\n${lines.map((line) => `  $ ${line}`).join('\n')}\n\nSettings come from the environment: rail --help lists them.\n`;

rail
  .command('start')
  .summary('runs the whole service in one process')
  .description(
    'Runs the whole service in one process: the API and a worker, on an embedded Postgres 18 unless DATABASE_URL names another. ' +
      'Brings the database up to date, and makes a demo organization with a program and keys on the first start; demo.json in RAIL_DATA_DIR holds them. ' +
      'Takes the next free port where PORT is taken. Ctrl-C stops it.',
  )
  .addHelpText('after', example('rail start', 'PORT=4000 RAIL_DATA_DIR=/var/lib/rail rail start'))
  .action(async () => (await import('./commands/start.ts')).start());

rail
  .command('api')
  .summary('runs the API alone')
  .description(
    'Runs the API alone. Needs DATABASE_URL and RAIL_ENCRYPTION_KEY, or finds the embedded Postgres of RAIL_DATA_DIR. ' +
      'GET /readyz tells whether the migrations are in.',
  )
  .addHelpText(
    'after',
    example('DATABASE_URL=postgres://rail:secret@db/rail RAIL_ENCRYPTION_KEY=… HOST=0.0.0.0 rail api'),
  )
  .action(async () => (await import('./commands/api.ts')).startApi());

rail
  .command('worker')
  .summary('runs jobs alone')
  .description(
    'Runs jobs: attribution, commissions, webhooks, and what goes by the clock. Any number of workers share one database. ' +
      'Needs DATABASE_URL and RAIL_ENCRYPTION_KEY, or finds the embedded Postgres of RAIL_DATA_DIR.',
  )
  .addHelpText('after', example('DATABASE_URL=postgres://rail:secret@db/rail RAIL_ENCRYPTION_KEY=… rail worker'))
  .action(async () => {
    (await import('./commands/small_memory.ts')).keepMemorySmall();
    await (await import('./commands/worker.ts')).startWorkerAlone();
  });

rail
  .command('migrate')
  .summary('brings the database up to date')
  .description('Brings the database up to date. Safe to run at any time, and by many at once.')
  .addOption(json())
  .addHelpText('after', example('DATABASE_URL=postgres://rail:secret@db/rail rail migrate'))
  .action(async (options) => (await import('./commands/migrate.ts')).runMigrate(options));

const org = rail.command('org').description('Organizations: the tenants that own everything.');

org
  .command('create')
  .description('Creates an organization and its owner.')
  .requiredOption('--name <name>', 'what it is called')
  .requiredOption('--owner-email <email>', 'who is told when something is wrong')
  .addOption(json())
  .addHelpText('after', example("rail org create --name 'Acme Inc.' --owner-email ada@acme.example.com"))
  .action(async (options) => (await import('./commands/org.ts')).createOrg(options));

org
  .command('list')
  .description('Lists the organizations.')
  .addOption(json())
  .addHelpText('after', example('rail org list --json'))
  .action(async (options) => (await import('./commands/org.ts')).listOrgs(options));

const key = rail.command('key').description('API keys of organizations.');

key
  .command('create')
  .description('Creates a key and shows it, this once.')
  .requiredOption('--org <id>', "whose it is: 'rail org list' shows them")
  .requiredOption('--name <name>', 'what it is for')
  .addOption(new Option('--mode <mode>', 'live or test').choices(['live', 'test']).default('live'))
  .option('--scope <scope...>', "what it may do, as in partners:read; '*' is everything", ['*'])
  .option('--rate-limit <number>', 'requests in each second (25 unless said otherwise)', positiveInteger)
  .addOption(json())
  .addHelpText('after', example("rail key create --org org_… --name 'Checkout' --scope sales:write customers:write"))
  .action(async (options) => (await import('./commands/key.ts')).createApiKey(options));

key
  .command('list')
  .description('Lists keys: never what they are, only whose and what for.')
  .option('--org <id>', 'of this organization alone')
  .addOption(json())
  .addHelpText('after', example('rail key list --org org_…'))
  .action(async (options) => (await import('./commands/key.ts')).listApiKeys(options));

key
  .command('revoke')
  .description('Ends a key at once.')
  .argument('<id>', "the key's id, key_…")
  .addOption(json())
  .addHelpText('after', example('rail key revoke key_…'))
  .action(async (id, options) => (await import('./commands/key.ts')).revokeApiKey(id, options));

rail
  .command('listen')
  .summary("receives and verifies a program's webhooks")
  .description(
    "Receives a program's webhooks here, verifies signature and order, and prints a line for each. Registers an endpoint for itself and removes it when it ends, " +
      'with exit code 1 if anything was at fault. A local server that it forwards to gets the exact body and headers; where that does not answer 2xx, ' +
      'Rail tries again later. The service must run with RAIL_WEBHOOK_ALLOW_PRIVATE=1, as npm start does.',
  )
  .option('--program <id>', "whose events (the demo's, or the only one)")
  .option('--port <number>', 'port to receive on; 0 takes a free one', port, 0)
  .option('--events <types...>', 'event types to receive, also comma-separated (all)', listed, [])
  .option('--forward-to <url>', 'pass what is verified on to a local server, and answer what that answers', httpUrl)
  .option('--print-secret', 'show the signing secret, for a local server that verifies by itself')
  .addOption(new Option('--json', 'print one JSON document a line'))
  .addHelpText(
    'after',
    example(
      'rail listen --program prg_… --events sale.created,commission.created',
      'rail listen --forward-to localhost:4000/webhooks --print-secret',
    ),
  )
  .action(async (options) => (await import('./commands/listen/listen.ts')).listen(options));

rail
  .command('run')
  .summary('runs a scheduled job now')
  .description('Runs a scheduled job now, as if the clock showed another time. A worker must run; see rail start.')
  .argument('<schedule>', 'its name; a wrong one gets the list')
  .option('--at <time>', 'ISO 8601 time that the job goes by (now)', time)
  .option('--wait', 'wait until it is done')
  .addOption(json())
  .addHelpText('after', example('rail run program/mature_commissions --at 2027-01-01T00:00:00Z --wait'))
  .action(async (schedule, options) => (await import('./commands/run.ts')).runSchedule(schedule, options));

rail
  .command('audit')
  .summary('checks that the data is as it must always be')
  .description(
    'Recomputes what must always hold of sales, commissions, refunds, referrals and deliveries over the whole database, and lists what does not. ' +
      "Exit code 1 when there is anything, 0 and 'clean' otherwise.",
  )
  .addOption(json())
  .addHelpText('after', example('rail audit', 'rail audit --json'))
  .action(async (options) => (await import('./commands/audit.ts')).audit(options));

rail
  .command('rotate-encryption-key')
  .summary('encrypts what is stored anew, with the first key')
  .description(
    'Encrypts every stored secret anew that is not under the first key of RAIL_ENCRYPTION_KEY, while APIs and workers run. Begin it again if it ' +
      'was interrupted. Afterwards it counts what lies under which key: the others can be dropped once nothing does. Exit code 1 while something ' +
      'is not under the first key, also where no key opens it: that is left as it is.',
  )
  .option('--dry-run', 'count only')
  .addOption(
    new Option('--new-key', 'make a new key for the data directory, and drop the old one at the end').conflicts(
      'dryRun',
    ),
  )
  .option('--batch <number>', 'rows in a transaction', positiveInteger, 500)
  .addOption(json())
  .addHelpText('after', example('rail rotate-encryption-key --dry-run', 'rail rotate-encryption-key'))
  .action(async (options) => (await import('./commands/rotate_encryption_key.ts')).rotateEncryptionKey(options));

function positiveInteger(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number above 0.');
}

function port(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new InvalidArgumentError('It must be a number from 0 to 65535.');
}

function listed(text: string, before: string[]): string[] {
  return [...before, ...text.split(',').filter(Boolean)];
}

function httpUrl(text: string): URL {
  const url = URL.parse(/^\w+:\/\//.test(text) ? text : `http://${text}`);
  if (url && /^https?:$/.test(url.protocol)) return url;
  throw new InvalidArgumentError('It must be an http or https address, as in localhost:4000/webhooks.');
}

function time(text: string): string {
  const at = Date.parse(text);
  if (/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/.test(text) && at > 0)
    return new Date(at).toISOString();
  throw new InvalidArgumentError('It must be a time with its zone, as in 2027-01-01T00:00:00Z.');
}

function environmentText(): string {
  const width = Math.max(...settings.map(({ name }) => name.length));
  const lines = settings.map(({ name, meaning, default_value }) => {
    const shown = default_value === undefined || default_value === false ? '' : ` (${default_value})`;
    return `  ${name.padEnd(width)}  ${meaning}${shown}`;
  });
  return `\nEnvironment:\n${lines.join('\n')}\n`;
}

/** 0 for help, 1 for what failed, 2 for a command that was called wrongly. Nobody is shown a stack who has not asked for it. */
function fail(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  const { message, code, stack, name, exitCode } = error as Error & { code?: string; exitCode?: number };
  console.error(`rail: ${wantsStacks() ? stack : message || code || name}`);
  return exitCode ?? 1;
}

/** A reader that has seen enough (`rail key list | head`) ends the command. */
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));

await rail.parseAsync().catch((error) => {
  process.exitCode = fail(error);
});
process.exit();
