#!/usr/bin/env node
/** The command line. Each command's code is loaded only when the command runs, compiled by an earlier one where that could be kept. */
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import pkg from '../package.json' with { type: 'json' };
import { keepMemorySmall } from './commands/small_memory.ts';

// Beside the packages, because only who may write those may say what runs.
enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/rail'));
if (process.argv[2] === 'worker') keepMemorySmall();
const { Command, CommanderError, InvalidArgumentError, Option } = await import('commander');
const { settings, wantsStacks } = await import('./config.ts');

const rail = new Command('rail')
  .description(
    'Affiliate program and recruitment service: clicks, sales, commissions, prospects and signed webhooks on one Postgres.',
  )
  .version(pkg.version)
  .exitOverride()
  .enablePositionalOptions()
  .showHelpAfterError('Run it with --help for usage.')
  .configureHelp({ helpWidth: 120 })
  .addHelpText('after', environmentText);

const json = () => new Option('--json', 'print one JSON document');

const example = (...lines: string[]): string =>
  `\nExample:\n${lines.map((line) => `  $ ${line}`).join('\n')}\n\nSettings come from the environment: rail --help lists them.\n`;

rail
  .command('start')
  .summary('runs the whole service in one process')
  .description(
    'Runs the whole service in one process: the API and a worker, on an embedded Postgres 18 unless DATABASE_URL names another. ' +
      'Migrates the database, and on the first start creates a demo organization with a program and keys, which it writes to demo.json in RAIL_DATA_DIR. ' +
      'If PORT is in use, it takes the next free port. Ctrl-C stops it.',
  )
  .addHelpText('after', example('rail start', 'PORT=4000 RAIL_DATA_DIR=/var/lib/rail rail start'))
  .action(async () => (await import('./commands/start.ts')).start());

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
      'DATABASE_URL=postgres://rail:secret@db/rail RAIL_ENCRYPTION_KEY=… HOST=0.0.0.0 BASE_URL=https://rail.example.com rail api',
    ),
  )
  .action(async () => (await import('./commands/api.ts')).startApi());

rail
  .command('worker')
  .summary('runs only jobs')
  .description(
    'Runs jobs: attribution, commissions, webhooks, and scheduled jobs. Any number of workers can share one database. ' +
      'Requires DATABASE_URL and RAIL_ENCRYPTION_KEY, or uses the embedded Postgres of RAIL_DATA_DIR.',
  )
  .addHelpText('after', example('DATABASE_URL=postgres://rail:secret@db/rail RAIL_ENCRYPTION_KEY=… rail worker'))
  .action(async () => (await import('./commands/worker.ts')).startWorkerAlone());

rail
  .command('migrate')
  .summary('migrates the database')
  .description('Applies the migrations that the database is missing. Safe to run at any time, also concurrently.')
  .addOption(json())
  .addHelpText('after', example('DATABASE_URL=postgres://rail:secret@db/rail rail migrate'))
  .action(async (options) => (await import('./commands/migrate.ts')).runMigrate(options));

const org = rail
  .command('org')
  .summary('manages organizations')
  .description('Manages organizations, the tenants of the service.');

org
  .command('create')
  .summary('creates an organization')
  .description('Creates an organization and its owner.')
  .requiredOption('--name <name>', 'name of the organization')
  .requiredOption('--owner-email <email>', 'address that is notified of problems')
  .addOption(json())
  .addHelpText('after', example("rail org create --name 'Acme Inc.' --owner-email ada@acme.example.com"))
  .action(async (options) => (await import('./commands/access/org.ts')).createOrg(options));

org
  .command('list')
  .summary('lists organizations')
  .description('Lists the organizations.')
  .addOption(json())
  .addHelpText('after', example('rail org list --json'))
  .action(async (options) => (await import('./commands/access/org.ts')).listOrgs(options));

org
  .command('plan')
  .summary('shows or changes the plan of an organization')
  .description('Shows the plan of an organization in the recruitment service, or changes it.')
  .requiredOption('--org, --organization <id>', "id of the organization; 'rail org list' lists them")
  .addOption(new Option('--plan <name>', 'the new plan').choices(['starter', 'grow', 'enterprise']))
  .addOption(json())
  .addHelpText('after', example('rail org plan --organization org_… --plan grow'))
  .action(async (options) => (await import('./commands/access/plan.ts')).showPlan(options));

const user = rail
  .command('user')
  .summary('manages the users of organizations')
  .description('Manages the users of organizations: the people whom keys belong to.');

user
  .command('create')
  .summary('adds a person to an organization')
  .description(
    'Adds a person to an organization. A key can then belong to them, and approve the payouts that others created.',
  )
  .requiredOption('--org, --organization <id>', "id of the organization; 'rail org list' lists them")
  .requiredOption('--email <email>', "the person's email address")
  .option('--name <name>', "the person's name")
  .addOption(json())
  .addHelpText(
    'after',
    example("rail user create --organization org_… --email grace@acme.example.com --name 'Grace Hopper'"),
  )
  .action(async (options) => (await import('./commands/access/user.ts')).createOrgUser(options));

user
  .command('list')
  .summary('lists users')
  .description('Lists users.')
  .option('--org, --organization <id>', 'only users of this organization')
  .addOption(json())
  .addHelpText('after', example('rail user list --organization org_…'))
  .action(async (options) => (await import('./commands/access/user.ts')).listOrgUsers(options));

const key = rail.command('key').summary('manages API keys').description('Manages the API keys of organizations.');

key
  .command('create')
  .summary('creates a key')
  .description('Creates a key and prints it. It cannot be shown again.')
  .requiredOption('--org, --organization <id>', "id of the organization; 'rail org list' lists them")
  .requiredOption('--name <name>', 'name of the key')
  .addOption(new Option('--mode <mode>', 'live or test').choices(['live', 'test']).default('live'))
  .option('--scope <scope...>', "scopes, such as partners:read; '*' allows everything", ['*'])
  .option('--rate-limit <number>', 'requests per second (default: 25)', positiveInteger)
  .option(
    '--user <id>',
    "the person whose key it is: it can approve payouts and, in the recruitment service, requests with it act as that person; 'rail user list' lists them",
  )
  .addOption(json())
  .addHelpText(
    'after',
    example("rail key create --organization org_… --name 'Checkout' --scope sales:write customers:write"),
  )
  .action(async (options) => (await import('./commands/access/key.ts')).createApiKey(options));

key
  .command('list')
  .summary('lists keys')
  .description('Lists keys, without their secrets.')
  .option('--org, --organization <id>', 'only keys of this organization')
  .addOption(json())
  .addHelpText('after', example('rail key list --organization org_…'))
  .action(async (options) => (await import('./commands/access/key.ts')).listApiKeys(options));

key
  .command('revoke')
  .summary('revokes a key')
  .description('Revokes a key immediately.')
  .argument('<id>', 'id of the key: key_…')
  .addOption(json())
  .addHelpText('after', example('rail key revoke key_…'))
  .action(async (id, options) => (await import('./commands/access/key.ts')).revokeApiKey(id, options));

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
      'rail listen --program prg_… --events sale.created,commission.created',
      'rail listen --forward-to localhost:4000/webhooks --print-secret',
      'rail listen --recruitment --events reply.received,deal.agreed',
    ),
  )
  .action(async (options) => (await import('./commands/listen/listen.ts')).listen({ events: [], ...options }));

rail
  .command('run')
  .summary('runs a scheduled job now')
  .description(
    'Runs a scheduled job now, optionally as if it were another time. Requires a running worker, such as that of rail start.',
  )
  .argument('<schedule>', 'name of the schedule; an unknown name prints the list')
  .option('--at <time>', 'ISO 8601 time to run the job at (default: now)', time)
  .option('--wait', 'wait until the job is done')
  .addOption(json())
  .addHelpText('after', example('rail run program/mature_commissions --at 2027-01-01T00:00:00Z --wait'))
  .action(async (schedule, options) => (await import('./commands/run.ts')).runSchedule(schedule, options));

rail
  .command('report')
  .summary('prints a report of a program')
  .description(
    'Prints a report of a program: totals, what changed since the window before, and rows with bars. ' +
      'Reports: overview, partners, groups, links, coupons, countries, landing_pages, products, customers, payouts.',
  )
  .argument('<name>', 'name of the report, such as overview')
  .option('--program <id>', "id of the program (default: the demo's, or the only program)")
  .option('--from <time>', 'ISO 8601 time that the window begins at', time)
  .option('--to <time>', 'ISO 8601 time that the window ends at (default: now)', time)
  .option('--days <number>', 'length of the window in days, unless --from is given', positiveInteger, 30)
  .addOption(
    new Option('--interval <interval>', 'rows of an overview').choices(['day', 'week', 'month']).default('day'),
  )
  .option('--timezone <name>', 'IANA time zone', 'UTC')
  .option('--sort <metric>', 'metric that rows are ordered by; -revenue_minor is descending')
  .option('--limit <number>', 'number of rows', positiveInteger, 20)
  .option('--filter <name=value...>', 'filters of the API, such as country=DE')
  .option('--csv', 'print all rows as CSV')
  .addOption(json())
  .addHelpText(
    'after',
    example(
      'rail report overview --days 90 --interval week',
      'rail report partners --sort=-clicks --csv > partners.csv',
    ),
  )
  .action(async (name, options) =>
    (await import('./commands/report/report.ts')).report(name, { filter: [], ...options }),
  );

rail
  .command('audit')
  .summary('checks the consistency of the data')
  .description(
    'Recomputes the invariants of sales, commissions, refunds, referrals and deliveries over the whole database, and lists violations as it finds them. ' +
      "Exit code 1 if there are any; otherwise 0, and prints 'clean'. It reads one state of the database and blocks nobody. Ctrl-C ends it, and its statement.",
  )
  .addOption(json())
  .addHelpText('after', example('rail audit', 'rail audit --json'))
  .action(async (options) => (await import('./commands/audit.ts')).audit(options));

const mail = rail.command('mail').summary('classifies incoming mail').description('Classifies incoming mail.');

mail
  .command('judge')
  .summary('classifies each mail: own copy, complaint, bounce, automatic reply, unsubscribe or reply')
  .description(
    'Classifies incoming mail. Each mail is an own copy (sent from an address of --own), a complaint, a bounce (of which address, and whether it is permanently ' +
      'undeliverable), an automatic reply (until when), an unsubscribe, or a reply (the new text, its language and kind). ' +
      'The service classifies mail by the same code. Reads no database. ' +
      'Exit code 1 if a file could not be read.',
  )
  .argument('[files...]', 'files that hold one mail each (RFC 5322); - is standard input (default: -)')
  .option(
    '--jsonl',
    'read texts instead, from standard input: a JSON document per line with id, text and optionally subject; takes no files',
  )
  .option('--own <address>', 'address of the inbox, whose mail is an own copy; can be given several times', repeated)
  .addOption(new Option('--json', 'print one JSON document per line'))
  .addHelpText(
    'after',
    example(
      'rail mail judge mailbox/*.eml',
      'rail mail judge --json - < bounce.eml',
      `echo '{"id": "1", "subject": "Re: Program", "text": "Sounds good!"}' | rail mail judge --jsonl --json`,
    ),
  )
  .action(async (files, options) => (await import('./commands/mail/judge.ts')).judge(files, options));

const search = rail
  .command('search')
  .enablePositionalOptions()
  .summary('starts a search for prospects, and shows searches')
  .description(
    'Starts a search for prospects of a brand, as POST /recruitment/v1/searches does. It costs a credit. The worker runs it, then a scan visits what it found. ' +
      'With --follow, shows the progress of both until they end; exit code 1 if one of them failed. Ctrl-C ends the command and leaves the search to the worker.',
  )
  .option('--brand <id>', 'id of the brand (required)')
  .addOption(
    new Option('--type <type>', 'what is searched for')
      .choices(['keyword', 'competitor', 'lookalike', 'channel', 'url_list'])
      .default('keyword'),
  )
  .option('--query <text>', 'words to search for; with --type url_list, URLs separated by white space')
  .option('--competitor <domain>', 'with --type competitor: domain of the competitor')
  .option('--like <prospect>', 'with --type lookalike: id of the prospect that others should be like')
  .option('--channels <names...>', 'only these channels, such as website,youtube', listed)
  .option('--countries <codes...>', 'countries that providers are asked for, such as US,DE', listed)
  .option('--languages <codes...>', 'languages that providers are asked for, such as en,de', listed)
  .option('--max-results <number>', 'most results, up to 500 (default: 50)', positiveInteger)
  .option('--ceiling-minor <number>', 'most to spend on providers, in US cents', wholeNumber)
  .option('--follow', 'show the progress until the search and its scan end')
  .addOption(json())
  .addHelpText(
    'after',
    example(
      "rail search --brand fbr_… --type keyword --query 'espresso machine review' --countries US,GB --follow",
      'rail search --brand fbr_… --type competitor --competitor rival.example.com --ceiling-minor 50',
      'rail search --brand fbr_… --type url_list --query "$(cat urls.txt)" --max-results 500 --json',
      'rail search status fsc_… --follow',
    ),
  )
  .action(async (options) => {
    requireBrand(options);
    await (await import('./commands/recruitment/search.ts')).startSearch({
      channels: [],
      countries: [],
      languages: [],
      ...options,
    });
  });

search
  .command('status')
  .summary('shows a search')
  .description('Shows a search: its state, results and spending. With --follow, until it and its scan end.')
  .argument('<id>', 'id of the search: fsc_…')
  .option('--follow', 'show the progress until the search and its scan end')
  .addOption(json())
  .addHelpText('after', example('rail search status fsc_…'))
  .action(async (id, options) => (await import('./commands/recruitment/search.ts')).showSearch(id, options));

search
  .command('list')
  .summary('lists searches')
  .description('Lists the latest searches, at most 20.')
  .option('--brand <id>', 'only searches of this brand')
  .addOption(json())
  .addHelpText('after', example('rail search list --brand fbr_…'))
  .action(async (options) => (await import('./commands/recruitment/search.ts')).listSearches(options));

search
  .command('cancel')
  .summary('cancels a search')
  .description('Cancels a search that is queued or running. Results so far are kept.')
  .argument('<id>', 'id of the search: fsc_…')
  .addOption(json())
  .addHelpText('after', example('rail search cancel fsc_…'))
  .action(async (id, options) => (await import('./commands/recruitment/search.ts')).stopSearch(id, options));

const scan = rail
  .command('scan')
  .enablePositionalOptions()
  .summary('starts a scan of a brand, and shows scans')
  .description(
    'Starts a scan of a brand, as POST /recruitment/v1/scans does. It costs a credit. The worker looks for prospects and visits their pages. ' +
      'With --follow, shows the progress until it ends; exit code 1 if it failed. Ctrl-C ends the command and leaves the scan to the worker.',
  )
  .option('--brand <id>', 'id of the brand (required)')
  .option('--follow', 'show the progress until the scan ends')
  .addOption(json())
  .addHelpText('after', example('rail scan --brand fbr_… --follow', 'rail scan status fsc_…'))
  .action(async (options) => {
    requireBrand(options);
    await (await import('./commands/recruitment/scan.ts')).startScan(options);
  });

scan
  .command('status')
  .summary('shows a scan')
  .description('Shows a scan: its state, visits and what it found. With --follow, until it ends.')
  .argument('<id>', 'id of the scan: fsc_…')
  .option('--follow', 'show the progress until the scan ends')
  .addOption(json())
  .addHelpText('after', example('rail scan status fsc_… --follow'))
  .action(async (id, options) => (await import('./commands/recruitment/scan.ts')).showScan(id, options));

scan
  .command('list')
  .summary('lists scans')
  .description('Lists the latest scans, at most 20.')
  .option('--brand <id>', 'only scans of this brand')
  .addOption(json())
  .addHelpText('after', example('rail scan list --brand fbr_… --json'))
  .action(async (options) => (await import('./commands/recruitment/scan.ts')).listScans(options));

/** It is mandatory where the command itself runs: its subcommands do without. */
function requireBrand({ brand }: { brand?: string }): void {
  if (brand === undefined) rail.error("error: required option '--brand <id>' not specified");
}

const prospects = rail
  .command('prospects')
  .summary('imports, lists and exports prospects')
  .description('Imports, lists and exports the prospects of a brand.');

const brand = () => new Option('--brand <id>', 'id of the brand').makeOptionMandatory();

prospects
  .command('import')
  .summary('imports prospects from a CSV or NDJSON file')
  .description(
    'Imports prospects from a CSV file whose first line names the columns, or from NDJSON: at most 100,000 rows and 32 MiB, in UTF-8. ' +
      'Columns are known by their names: url, key, channel, name, email, country_code, language_code, timezone, followers, description, custom.<name>. ' +
      'Follows the import until it ends, then shows what became of the rows and which were refused. Requires a running worker, such as that of rail start. ' +
      'Ctrl-C ends the command and leaves the import to the worker.',
  )
  .argument('<file>', 'the file; - is standard input')
  .addOption(brand())
  .option('--mapping <column=field...>', 'import a column as a field; column= leaves it out')
  .option('--dry-run', 'only report what the import would do')
  .option('--update-existing', 'update prospects that exist')
  .addOption(json())
  .addHelpText(
    'after',
    example(
      'rail prospects import blogs.csv --brand fbr_… --dry-run',
      'rail prospects import blogs.csv --brand fbr_… --mapping Blog=url Owner=name Notes=',
    ),
  )
  .action(async (file, options) =>
    (await import('./commands/recruitment/import_prospects.ts')).importProspects(file, { mapping: [], ...options }),
  );

prospects
  .command('list')
  .summary('shows the newest prospects of a brand')
  .description('Shows the newest prospects of a brand, or those that contain all words of a text.')
  .addOption(brand())
  .option('--q <text>', 'only prospects that contain these words')
  .option('--stage <stage>', 'only prospects in this stage')
  .option('--limit <number>', 'number of prospects, at most 100', positiveInteger, 25)
  .addOption(json())
  .addHelpText('after', example('rail prospects list --brand fbr_… --stage found'))
  .action(async (options) => (await import('./commands/recruitment/list_prospects.ts')).listProspects(options));

prospects
  .command('export')
  .summary('writes all prospects of a brand')
  .description('Writes all prospects of a brand as CSV or NDJSON, without their email addresses.')
  .addOption(brand())
  .addOption(new Option('--format <format>', 'csv or ndjson').choices(['csv', 'ndjson']).default('csv'))
  .option('--out <file>', 'write to this file, which only you can read (default: standard output)')
  .addHelpText('after', example('rail prospects export --brand fbr_… --out prospects.csv'))
  .action(async (options) => (await import('./commands/recruitment/list_prospects.ts')).exportProspects(options));

const payouts = rail
  .command('payouts')
  .summary('previews, creates and follows payouts')
  .description('Previews, creates and follows payouts to partners.');

const program = () => new Option('--program <id>', 'id of the program').makeOptionMandatory();

payouts
  .command('preview')
  .summary('shows who would be paid what')
  .description(
    'Shows what a batch of payouts would contain: the sums by currency, who would be paid, and who would not and why. Creates nothing.',
  )
  .addOption(program())
  .option('--cutoff <time>', 'include commissions that are mature before this ISO 8601 time (default: now)', time)
  .addOption(json())
  .addHelpText('after', example('rail payouts preview --program prg_…', 'rail payouts preview --program prg_… --json'))
  .action(async (options) => (await import('./commands/payouts/preview.ts')).previewPayouts(options));

payouts
  .command('run')
  .summary('creates a batch of payouts')
  .description(
    'Creates a batch of payouts and follows it until its payouts are created, then shows the sums by currency and the balances that are not paid. ' +
      'A payout is sent by a request, or when it is due if the program sends automatically. Requires a running worker, such as that of rail start. Ctrl-C ends the command and leaves the batch to the worker.',
  )
  .addOption(program())
  .option('--cutoff <time>', 'include commissions that are mature before this ISO 8601 time (default: now)', time)
  .option('--due-at <time>', "when the payouts are due (default: the cut-off plus the program's payout term)", time)
  .addOption(json())
  .addHelpText('after', example('rail payouts run --program prg_… --cutoff 2027-01-01T00:00:00Z'))
  .action(async (options) => (await import('./commands/payouts/run.ts')).runPayouts(options));

payouts
  .command('status')
  .summary('shows batches and what became of their payouts')
  .description(
    'Shows the latest batches, their payouts by status and currency, and the errors of those that failed. At most 20 batches.',
  )
  .option('--program <id>', 'only batches of this program')
  .option('--batch <id>', 'only this batch')
  .addOption(json())
  .addHelpText('after', example('rail payouts status --program prg_…', 'rail payouts status --batch batch_…'))
  .action(async (options) => (await import('./commands/payouts/status.ts')).showPayouts(options));

payouts
  .command('export')
  .summary("writes a batch's payment file")
  .description(
    'Writes the payment file of a batch whose payouts were sent: pain.001 for bank_transfer and wire, CSV for crypto, the same bytes each time. ' +
      'It holds the account numbers of partners.',
  )
  .requiredOption('--batch <id>', 'id of the batch')
  .option('--file <number>', 'number of the file, if the batch has several', positiveInteger)
  .option('--out <file>', 'write to this file, which only you can read (default: standard output)')
  .addHelpText('after', example('rail payouts export --batch batch_… --out payouts.xml'))
  .action(async (options) => (await import('./commands/payouts/export.ts')).exportPayouts(options));

const data = rail
  .command('data')
  .summary('serves data teams')
  .description('Serves data teams, who query the views of schema data in Postgres directly or by GraphQL.');

data
  .command('graphql-schema')
  .summary('prints the GraphQL schema')
  .description(
    'Prints the schema of POST /graphql in the schema definition language, for tools that generate code from it.',
  )
  .addHelpText('after', example('rail data graphql-schema > schema.graphql'))
  .action(async () => (await import('./commands/data/graphql_schema.ts')).printGraphqlSchema());

data
  .command('dictionary')
  .summary('prints what is in schema data')
  .description('Prints what is in schema data: every view and column with its description.')
  .addOption(
    new Option('--format <format>', 'markdown, json, or dbt for the sources.yml of a dbt project')
      .choices(['markdown', 'json', 'dbt'])
      .default('markdown'),
  )
  .addHelpText('after', example('rail data dictionary --format dbt > models/rail_sources.yml'))
  .action(async (options) => (await import('./commands/data/dictionary.ts')).dictionary(options));

const data_user = data
  .command('user')
  .summary('manages logins that read schema data')
  .description('Manages logins that read schema data of one organization.');

data_user
  .command('create')
  .summary('creates a login')
  .description(
    'Creates a login that reads schema data of one organization and nothing else, and prints its URL. The password cannot be shown again. ' +
      'If the user of DATABASE_URL may not create it, prints the SQL that a superuser runs.',
  )
  .requiredOption('--org, --organization <id>', "id of the organization; 'rail org list' lists them")
  .option('--name <name>', 'what the login is for', 'Data team')
  .option('--personal-data', 'show emails, names and other personal columns')
  .option(
    '--expires <time>',
    'when it ends: an ISO 8601 time, or a number of days such as 90d (default: never)',
    expiry,
  )
  .option('--statement-timeout <seconds>', 'how long a statement may run', seconds, 60)
  .option('--connections <number>', 'connections at a time', positiveInteger, 5)
  .addOption(json())
  .addHelpText('after', example("rail data user create --organization org_… --name 'Metabase' --expires 365d"))
  .action(async (options) => (await import('./commands/data/user.ts')).createDataUser(options));

data_user
  .command('list')
  .summary('lists logins')
  .description('Lists logins, without their passwords.')
  .option('--org, --organization <id>', 'only logins of this organization')
  .addOption(json())
  .addHelpText('after', example('rail data user list --organization org_…'))
  .action(async (options) => (await import('./commands/data/user.ts')).listDataUsers(options));

data_user
  .command('revoke')
  .summary('revokes a login')
  .description('Revokes a login immediately, and ends its sessions.')
  .argument('<user>', 'the login: rail_data_…')
  .addOption(json())
  .addHelpText('after', example('rail data user revoke rail_data_…'))
  .action(async (user, options) => (await import('./commands/data/user.ts')).revokeDataUser(user, options));

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
  .addHelpText('after', example('rail rotate-encryption-key --dry-run', 'rail rotate-encryption-key'))
  .action(async (options) => (await import('./commands/rotate_encryption_key.ts')).rotateEncryptionKey(options));

function positiveInteger(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be an integer greater than 0.');
}

function wholeNumber(text: string): number {
  return text === '0' ? 0 : positiveInteger(text);
}

function port(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new InvalidArgumentError('It must be an integer from 0 to 65535.');
}

function repeated(text: string, before: string[] = []): string[] {
  return [...before, text];
}

function listed(text: string, before: string[] = []): string[] {
  return [...before, ...text.split(',').filter(Boolean)];
}

function httpUrl(text: string): URL {
  const url = URL.parse(/^\w+:\/\//.test(text) ? text : `http://${text}`);
  if (url && /^https?:$/.test(url.protocol)) return url;
  throw new InvalidArgumentError('It must be an http or https URL, such as localhost:4000/webhooks.');
}

function time(text: string): string {
  const at = Date.parse(text);
  if (/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/.test(text) && at > 0)
    return new Date(at).toISOString();
  throw new InvalidArgumentError('It must be an ISO 8601 time with a time zone, such as 2027-01-01T00:00:00Z.');
}

function seconds(text: string): number {
  const value = positiveInteger(text);
  if (value <= 86_400) return value;
  throw new InvalidArgumentError('It must be at most 86400 seconds, which are a day.');
}

function expiry(text: string): string {
  const [, days] = /^(\d{1,5})d$/.exec(text) ?? [];
  const at = days === undefined ? time(text) : new Date(Date.now() + Number(days) * 86_400_000).toISOString();
  if (Date.parse(at) > Date.now()) return at;
  throw new InvalidArgumentError('It must lie in the future.');
}

function environmentText(): string {
  const width = Math.max(...settings.map(({ name }) => name.length));
  const lines = settings.map(({ name, meaning, default_value }) => {
    const shown = default_value === undefined || default_value === false ? '' : ` (${default_value})`;
    return `  ${name.padEnd(width)}  ${meaning}${shown}`;
  });
  return `\nEnvironment:\n${lines.join('\n')}\n`;
}

/** 0 for help, 1 for a failure, 2 for wrong usage. A stack is shown only where the log level asks for it. */
function fail(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  const { message, code, stack, name, exitCode } = error as Error & { code?: string; exitCode?: number };
  console.error(`rail: ${wantsStacks() ? stack : message || code || name}`);
  return exitCode ?? 1;
}

/** A closed pipe (`rail key list | head`) ends the command. */
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));

await rail.parseAsync().catch((error) => {
  process.exitCode = fail(error);
});
process.exit();
