import { type Command, Option } from 'commander';
import { example, json, positiveInteger, time } from './arguments.ts';
import { addDeployCommands } from './deploy.ts';

/** Adds the commands that operators run beside the service. */
export function addOperatingCommands(rail: Command): void {
  rail
    .command('doctor')
    .summary('checks whether all is well')
    .description(
      'Checks the settings, this machine, Postgres, the processes, the queues and what each product waits for. Prints a line for each check: ok, warning or error, and what to do. ' +
        'Changes nothing, and holds no lock. Each check is limited to five seconds. Exit code 1 if there is an error, else 0. If Postgres does not answer, it says so and checks the rest.',
    )
    .addOption(json())
    .addHelpText('after', example('npx --no rail doctor', 'npx --no rail doctor --json'))
    .action(async (options) => (await import('../commands/doctor/doctor.ts')).doctor(options));

  rail
    .command('run')
    .summary('runs a scheduled job now')
    .description(
      'Runs a scheduled job now, optionally as if it were another time. Requires a running worker, such as that of npm start.',
    )
    .argument('[schedule]', 'name of the schedule; without one, prints the list')
    .option(
      '--at <time>',
      'ISO 8601 time to run the job at, not in the future except for program/mature_commissions (default: now)',
      time,
    )
    .option('--wait', 'wait until the job is done')
    .addOption(json())
    .addHelpText('after', example('npx --no rail run program/mature_commissions --at 2027-01-01T00:00:00Z --wait'))
    .action(async (schedule, options) => (await import('../commands/run.ts')).runSchedule(schedule, options));

  rail
    .command('audit')
    .summary('checks the consistency of the data')
    .description(
      'Recomputes the invariants of the whole database (such as those of sales, commissions, payouts, sums of reports and deliveries), and lists violations as it finds them. ' +
        "Exit code 1 if there are any; otherwise 0, and prints 'clean'. It reads one state of the database and blocks nobody. Ctrl-C ends it, and its statement.",
    )
    .addOption(json())
    .addHelpText('after', example('npx --no rail audit', 'npx --no rail audit --json'))
    .action(async (options) => (await import('../commands/audit.ts')).audit(options));

  const metrics = rail
    .command('metrics')
    .summary('prints a Grafana dashboard, and alert rules for Prometheus')
    .description(
      'Prints the dashboard, or the alerts, for the metrics of GET /metrics: see METRICS_PORT. Set BASE_URL, which they link to.',
    );
  metrics
    .command('grafana')
    .description('Prints a Grafana dashboard as JSON, to be imported. It asks for the Prometheus data source.')
    .addHelpText('after', example('npx --no rail metrics grafana > rail.json'))
    .action(async () => (await import('../commands/metrics.ts')).printDashboard());
  metrics
    .command('alerts')
    .description(
      'Prints alert rules for Prometheus as YAML. The operations guide lists them, and what to do about each.',
    )
    .addHelpText('after', example('npx --no rail metrics alerts > rail.rules.yml'))
    .action(async () => (await import('../commands/metrics.ts')).printRules());

  addDeployCommands(rail);

  rail
    .command('hold')
    .summary('holds emails and payouts')
    .description(
      "Holds emails and payouts until 'npx --no rail resume'. Run it after you put back a disk or a copy of the files of Postgres, before any process of " +
        'Rail starts: other restores are found by themselves.',
    )
    .addOption(json())
    .addHelpText('after', example('npx --no rail hold'))
    .action(async (options) => (await import('../commands/resume.ts')).hold(options));

  rail
    .command('resume')
    .summary('lets emails and payouts go on after a restore')
    .description(
      'After the database was restored to an older state, emails and payouts are held. Prints what waits, and lets it go on: what may have been sent ' +
        'before is looked up first, in the Sent folders of inboxes and at the payout providers. Payouts created since the restore stay held if they pay what ' +
        'was due before it, until --payouts-compared.',
    )
    .option('--dry-run', 'only print what waits')
    .option(
      '--payouts-compared',
      'you have compared the payouts of the providers since the restored state with those in Rail, and recorded what Rail has lost: payouts created since may be sent',
    )
    .option(
      '--nothing-lost',
      'the database has lost nothing (as after pg_upgrade or a planned switchover): look nothing up',
    )
    .addOption(json())
    .addHelpText('after', example('npx --no rail resume --dry-run', 'npx --no rail resume'))
    .action(async (options) => (await import('../commands/resume.ts')).resume(options));

  rail
    .command('rotate-encryption-key')
    .summary('re-encrypts stored secrets with the first key')
    .description(
      'Re-encrypts every stored secret that is not encrypted with the first key of RAIL_ENCRYPTION_KEY, while APIs and workers run. Run it again if it ' +
        'was interrupted. Then it prints how many values each key encrypts: a key that encrypts none can be removed. Exit code 1 if any value ' +
        'is not encrypted with the first key. Values that no key decrypts stay unchanged.',
    )
    .option('--dry-run', 'only count')
    .addOption(
      new Option('--new-key', 'generate a new key for the data directory, and remove the old one at the end').conflicts(
        'dryRun',
      ),
    )
    .option('--batch <number>', 'rows per transaction', positiveInteger, 500)
    .addOption(json())
    .addHelpText(
      'after',
      example('npx --no rail rotate-encryption-key --dry-run', 'npx --no rail rotate-encryption-key'),
    )
    .action(async (options) => (await import('../commands/rotate_encryption_key.ts')).rotateEncryptionKey(options));
}
