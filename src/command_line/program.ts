import { type Command, Option } from 'commander';
import { example, httpUrl, integerUpTo, json, listed, port, time, timeOrDaysAgo } from './arguments.ts';

/** The affiliate program service. */
export function addProgramCommands(rail: Command): void {
  rail
    .command('listen')
    .summary('receives and verifies webhooks')
    .description(
      'Receives the webhooks of a program, or of the recruitment service with --recruitment, verifies their signatures and order, and prints a line for each. Registers a webhook endpoint and removes it when it ends. ' +
        'Exit code 1 if any webhook was invalid. With --forward-to, a local server gets the exact body and headers; if it does not answer 2xx, ' +
        'Rail retries later. The service must run with RAIL_WEBHOOK_ALLOW_PRIVATE=1, as npm start does.',
    )
    .option('--program <id>', "id of the program (default: the demo's, or the only program)")
    .option('--recruitment', 'receive the webhooks of the recruitment service')
    .option(
      '--org, --organization <id>',
      "with --recruitment: id of the organization (default: the demo's, or the only organization)",
    )
    .option('--test', 'with --recruitment: receive test events only')
    .option('--port <number>', 'port to receive on; 0 selects a free port', port, 0)
    .option('--events <types...>', 'event types to receive, separated by spaces or commas (default: all)', listed)
    .option('--forward-to <url>', 'forward verified webhooks to a local server, and return its response', httpUrl)
    .option('--print-secret', 'print the signing secret, for a local server that verifies signatures')
    .addOption(new Option('--json', 'print one JSON document per line'))
    .addHelpText(
      'after',
      example(
        'npx --no rail listen --program prg_… --events sale.created,commission.created',
        'npx --no rail listen --forward-to localhost:4000/webhooks --print-secret',
        'npx --no rail listen --recruitment --events reply.received,deal.agreed',
      ),
    )
    .action(async (options) => (await import('../commands/listen/listen.ts')).listen({ events: [], ...options }));

  rail
    .command('report')
    .summary('prints a report of a program')
    .description(
      'Prints a report of a program: totals with their change from the window before (— where they were 0 then), and rows with bars. ' +
        'Reports: overview, partners, groups, links, coupons, countries, landing_pages, products, customers, payouts.',
    )
    .argument('[name]', 'name of the report, such as overview')
    .option('--program <id>', "id of the program (default: the demo's, or the only program)")
    .option('--from <time>', 'start of the window: an ISO 8601 time with a time zone', time)
    .option('--to <time>', 'end of the window, exclusive (default: now)', time)
    .option(
      '--days <number>',
      'length of the window in days, up to 9000, unless --from is given',
      integerUpTo(9_000),
      30,
    )
    .addOption(
      new Option('--interval <interval>', 'what each row of an overview covers')
        .choices(['day', 'week', 'month'])
        .default('day'),
    )
    .option('--timezone <name>', 'IANA time zone of days, weeks and months', 'UTC')
    .option(
      '--sort <metric>',
      'metric that rows are ordered by, with - in front of it for descending (default: -revenue_minor; of payouts, -paid_minor; of an overview, by time)',
    )
    .option(
      '--limit <number>',
      'maximum number of rows, up to 10000 (default: 20; an overview has all)',
      integerUpTo(10_000),
    )
    .option('--filter <name=value...>', 'filters of GET /v1/reports, such as country=DE')
    .addOption(new Option('--csv', 'print all rows as CSV, whatever --limit says').conflicts('json'))
    .addOption(json())
    .addHelpText(
      'after',
      example(
        'npx --no rail report overview --days 90 --interval week',
        'npx --no rail report partners --sort=-clicks --csv > partners.csv',
      ),
    )
    .action(async (name, options) =>
      (await import('../commands/report/report.ts')).report(name, { filter: [], ...options }),
    );

  rail
    .command('processor')
    .summary('takes in the history of a billing processor')
    .description('Works with the billing processors that programs are connected to.')
    .command('backfill')
    .summary('takes in what happened before the program was connected')
    .description(
      'Reads customers, payments, refunds and disputes of a billing processor since a time, and takes them in as its webhooks are: those of customers whom a partner brought become sales. ' +
        'What is known already is left out, so that it may be run again. A run that was ended goes on where it was, if it is started with the same --since. Requires a running worker.',
    )
    .argument('<name>', 'billing processor: stripe, paddle or chargebee')
    .requiredOption('--program <id>', 'id of the program')
    .requiredOption(
      '--since <time>',
      'read what happened since this ISO 8601 time, or since as many days ago: 30d',
      timeOrDaysAgo,
    )
    .option('--dry-run', 'count what is new, and take in nothing')
    .addOption(json())
    .addHelpText('after', example('npx --no rail processor backfill stripe --program prg_… --since 30d --dry-run'))
    .action(async (name, options) => (await import('../commands/backfill.ts')).backfillProcessor(name, options));
}
