import type { Command } from 'commander';
import { example, json } from './arguments.ts';

/** Adds the commands that run the service. */
export function addProcessCommands(rail: Command): void {
  rail
    .command('start')
    .summary('runs the whole service in one process')
    .description(
      'Runs the whole service in one process: the API and a worker, on an embedded Postgres 18 unless DATABASE_URL names another. ' +
        'Migrates the database, and on the first start creates a demo organization with a program and keys, which it writes to demo.json in RAIL_DATA_DIR. ' +
        'If PORT is in use, it takes the next free port. Ctrl-C stops it.',
    )
    .addHelpText('after', example('npx --no rail start', 'PORT=4000 RAIL_DATA_DIR=/var/lib/rail npx --no rail start'))
    .action(async () => (await import('../commands/start.ts')).start());

  rail
    .command('api')
    .summary('runs only the API')
    .description(
      'Runs only the API. Requires DATABASE_URL and RAIL_ENCRYPTION_KEY, or uses the embedded Postgres of RAIL_DATA_DIR. ' +
        'GET /readyz answers 200 once Postgres is reachable and migrated.',
    )
    .addHelpText(
      'after',
      example(
        'DATABASE_URL=postgres://rail:secret@db/rail RAIL_ENCRYPTION_KEY=… HOST=0.0.0.0 BASE_URL=https://rail.example.com npx --no rail api',
      ),
    )
    .action(async () => (await import('../commands/api.ts')).startApi());

  rail
    .command('worker')
    .summary('runs only jobs')
    .description(
      'Runs jobs: attribution, commissions, webhooks, and scheduled jobs. Any number of workers can share one database. ' +
        'Requires DATABASE_URL and RAIL_ENCRYPTION_KEY, or uses the embedded Postgres of RAIL_DATA_DIR.',
    )
    .addHelpText(
      'after',
      example('DATABASE_URL=postgres://rail:secret@db/rail RAIL_ENCRYPTION_KEY=… npx --no rail worker'),
    )
    .action(async () => (await import('../commands/worker.ts')).startWorkerAlone());

  rail
    .command('migrate')
    .summary('migrates the database')
    .description(
      'Applies the migrations that the database is missing. Safe to run at any time, also concurrently. ' +
        'With --plan, it changes nothing, and shows which tables it would lock, whom that would keep waiting, and for how long at most.',
    )
    .option('--plan', 'show what would be locked, and change nothing')
    .addOption(json())
    .addHelpText(
      'after',
      example(
        'DATABASE_URL=postgres://rail:secret@db/rail npx --no rail migrate --plan',
        'DATABASE_URL=postgres://rail:secret@db/rail npx --no rail migrate',
      ),
    )
    .action(async (options) => (await import('../commands/migrate.ts')).runMigrate(options));
}
