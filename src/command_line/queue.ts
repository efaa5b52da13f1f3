import { type Command, Option } from 'commander';
import { job_states } from '../core/jobs/job_state.ts';
import { duration, example, filled, integerUpTo, json, positiveInteger, time } from './arguments.ts';

/** Jobs, scheduled runs and deliveries, for operators. */
export function addQueueCommands(rail: Command): void {
  addJobCommands(rail);
  addRunCommands(rail);
  addDeliveryCommands(rail);
}

const delivery_statuses = ['pending', 'delivered', 'failed', 'cancelled'];

/** The options that say which jobs. */
const withFilter = (command: Command): Command =>
  command
    .option('--task <name>', 'only jobs of this task, such as webhooks/deliver', filled)
    .addOption(new Option('--state <states...>', 'only jobs in these states').choices(job_states))
    .option('--error <text>', 'only jobs whose last error contains this text', filled)
    .option(
      '--older-than <duration>',
      'only jobs that are due, run or have ended for longer, such as 10m or 2h',
      duration,
    )
    .option('--org, --organization <id>', 'only jobs of this organization')
    .option('--object <id>', 'only jobs about this object or scheduled run');

function addJobCommands(rail: Command): void {
  const jobs = rail
    .command('jobs')
    .summary('shows jobs, and runs or cancels those that fail')
    .description(
      'Shows the jobs that wait, run or have failed, and runs them again or cancels them. Jobs that are done are gone.',
    );

  withFilter(jobs.command('list'))
    .summary('lists jobs')
    .description(
      'Lists jobs, the oldest first, and why they failed. States: ready (runs as soon as a worker is free), running, later, retrying (failed, and runs again), ' +
        'failed (failed every attempt; nothing runs it again), cancelled.',
    )
    .option('--limit <number>', 'number of jobs', integerUpTo(10_000), 50)
    .addOption(json())
    .addHelpText(
      'after',
      example(
        'npx --no rail jobs list --state failed retrying',
        'npx --no rail jobs list --task core/send_mail --error ECONNREFUSED',
      ),
    )
    .action(async (options) => (await import('../commands/jobs/list.ts')).listJobs(options));

  jobs
    .command('show')
    .summary('shows a job')
    .description(
      'Shows a job: its attempts and last error, what it is about and whose it is, and its payload without texts.',
    )
    .argument('<id>', 'number of the job', positiveInteger)
    .addOption(json())
    .addHelpText('after', example('npx --no rail jobs show 4711'))
    .action(async (id, options) => (await import('../commands/jobs/show.ts')).showJob(id, options));

  jobs
    .command('stats')
    .summary('counts jobs')
    .description('Counts jobs by task and state, with the age of the oldest job of each task that is due.')
    .addOption(json())
    .addHelpText('after', example('npx --no rail jobs stats'))
    .action(async (options) => (await import('../commands/jobs/list.ts')).jobStats(options));

  const change = (name: 'retry' | 'cancel', summary: string, description: string) =>
    withFilter(
      jobs
        .command(name)
        .argument('[ids...]', 'numbers of the jobs; without any, those that match the options', manyIntegers),
    )
      .summary(summary)
      .description(
        `${description} Jobs that run are refused. With options in place of numbers, it shows how many jobs match; repeat it with --confirm and that number to change them.`,
      )
      .option('--confirm <number>', 'change the jobs that match, if they are this many', positiveInteger)
      .option('--dry-run', 'only show what would be changed')
      .addOption(json())
      .addHelpText(
        'after',
        example(
          `npx --no rail jobs ${name} 4711`,
          `npx --no rail jobs ${name} --task core/send_mail --state failed --confirm 12`,
        ),
      )
      .action(async (ids, options) => (await import('../commands/jobs/change.ts')).changeJobs(name, ids, options));

  change(
    'retry',
    'runs jobs that failed',
    'Runs jobs at once that failed, with all their attempts. What a job has done already it does not do again.',
  );
  change(
    'cancel',
    'has jobs never run',
    "Has jobs never run. They stay in the list as cancelled for 30 days, and 'retry' runs them after all. What they are about stays as it is.",
  );
}

function manyIntegers(text: string, before: number[] = []): number[] {
  return [...before, positiveInteger(text)];
}

function addRunCommands(rail: Command): void {
  const runs = rail
    .command('runs')
    .summary('shows scheduled runs')
    .description("Shows scheduled runs: 'npx --no rail run' makes one by hand.");

  runs
    .command('list', { isDefault: true })
    .summary('lists schedules and runs')
    .description(
      'Shows the latest run of each schedule: when, its state, how many of its jobs are left, and why they fail. With --schedule, the latest runs of that one.',
    )
    .option('--schedule <name>', 'the latest runs of this schedule', filled)
    .option('--limit <number>', 'number of runs', integerUpTo(10_000), 20)
    .addOption(json())
    .addHelpText(
      'after',
      example('npx --no rail runs list', 'npx --no rail runs list --schedule program/mature_commissions'),
    )
    .action(async (options) => (await import('../commands/jobs/runs.ts')).listRuns(options));

  runs
    .command('show')
    .summary('shows a run')
    .description('Shows a run and the jobs that it has caused and that are not done.')
    .argument('<id>', 'id of the run: run_…')
    .addOption(json())
    .addHelpText('after', example('npx --no rail runs show run_…'))
    .action(async (id, options) => (await import('../commands/jobs/runs.ts')).showRun(id, options));
}

function addDeliveryCommands(rail: Command): void {
  const deliveries = rail
    .command('deliveries')
    .summary('shows deliveries of webhooks, and sends them again')
    .description('Shows deliveries of webhooks of all organizations, and sends them again.');

  deliveries
    .command('list')
    .summary('lists deliveries')
    .description('Lists the newest deliveries, with what the endpoint answered last.')
    .option('--endpoint <id>', 'only deliveries to this endpoint')
    .option('--org, --organization <id>', 'only deliveries of this organization')
    .addOption(new Option('--status <statuses...>', 'only deliveries with these statuses').choices(delivery_statuses))
    .option('--type <type>', 'only deliveries of this event type, such as sale.created', filled)
    .addOption(new Option('--within <duration>', 'how far to look back').argParser(duration).default(86_400, '1d'))
    .option('--older-than <duration>', 'only deliveries that are older, such as 10m', duration)
    .option('--limit <number>', 'number of deliveries', integerUpTo(10_000), 50)
    .addOption(json())
    .addHelpText(
      'after',
      example(
        'npx --no rail deliveries list --status failed pending',
        'npx --no rail deliveries list --endpoint whe_… --within 7d',
      ),
    )
    .action(async (options) => (await import('../commands/deliveries/list.ts')).listDeliveries(options));

  deliveries
    .command('show')
    .summary('shows a delivery')
    .description('Shows a delivery and its attempts.')
    .argument('<id>', 'id of the delivery: whd_… or fwd_…')
    .addOption(json())
    .addHelpText('after', example('npx --no rail deliveries show whd_…'))
    .action(async (id, options) => (await import('../commands/deliveries/list.ts')).showDelivery(id, options));

  deliveries
    .command('replay')
    .summary('sends deliveries again')
    .description(
      'Sends a delivery again, as a new delivery of the same event at the end of the queue; or the deliveries of an endpoint that failed, or that were created in a window. The same as the replay of the API.',
    )
    .argument('[id]', 'id of the delivery: whd_… or fwd_…')
    .option('--endpoint <id>', 'deliveries to this endpoint')
    .option('--failed-since <time>', 'those that have failed since this ISO 8601 time', time)
    .option('--from <time>', 'those created from this ISO 8601 time on, also if they were delivered', time)
    .option('--to <time>', 'those created before this ISO 8601 time', time)
    .addOption(json())
    .addHelpText(
      'after',
      example(
        'npx --no rail deliveries replay whd_…',
        'npx --no rail deliveries replay --endpoint whe_… --failed-since 2027-01-01T00:00:00Z',
      ),
    )
    .action(async (id, options) => (await import('../commands/deliveries/replay.ts')).replayDeliveries(id, options));
}
