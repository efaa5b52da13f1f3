import { type Command, Option } from 'commander';
import { example, integerUpTo, json, listed, wholeNumber } from './arguments.ts';

/** The recruitment service. */
export function addRecruitmentCommands(rail: Command): void {
  const search = rail
    .command('search')
    .enablePositionalOptions()
    .summary('starts a search for prospects, and shows searches')
    .description(
      'Starts a search for prospects of a brand, as POST /recruitment/v1/searches does. It costs a credit. The worker runs it, then a scan visits what it found. ' +
        'With --follow, shows the progress of both until they end; exit code 1 if one of them failed. Ctrl-C ends the command and leaves the search to the worker.',
    )
    .option('--brand <id>', 'id of the brand (default: the only one)')
    .addOption(
      new Option('--type <type>', 'what is searched for')
        .choices(['keyword', 'competitor', 'lookalike', 'channel', 'url_list'])
        .default('keyword'),
    )
    .option('--query <text>', 'words to search for; with --type url_list, URLs separated by white space')
    .option('--competitor <domain>', 'with --type competitor: domain of the competitor')
    .option('--like <prospect>', 'with --type lookalike: id of the prospect that others should be like')
    .option('--channels <names...>', 'only these channels, such as website,youtube', listed)
    .option('--countries <codes...>', 'countries to search for, such as US,DE', listed)
    .option('--languages <codes...>', 'languages to search for, such as en,de', listed)
    .option('--max-results <number>', 'maximum number of results, up to 500 (default: 50)', integerUpTo(500))
    .option('--ceiling-minor <number>', 'maximum to spend on providers, in US cents', wholeNumber)
    .option('--follow', 'show the progress until the search and its scan end')
    .addOption(json())
    .addHelpText(
      'after',
      example(
        "npx --no rail search --brand fbr_… --type keyword --query 'espresso machine review' --countries US,GB --follow",
        'npx --no rail search --brand fbr_… --type competitor --competitor rival.example.com --ceiling-minor 50',
        'npx --no rail search --brand fbr_… --type url_list --query "$(cat urls.txt)" --max-results 500 --json',
        'npx --no rail search status fsc_… --follow',
      ),
    )
    .action(async (options) => {
      await (await import('../commands/recruitment/search.ts')).startSearch({
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
    .addHelpText('after', example('npx --no rail search status fsc_…'))
    .action(async (id, options) => (await import('../commands/recruitment/search.ts')).showSearch(id, options));

  search
    .command('list')
    .summary('lists searches')
    .description('Lists the latest searches, at most 20.')
    .option('--brand <id>', 'only searches of this brand')
    .addOption(json())
    .addHelpText('after', example('npx --no rail search list --brand fbr_…'))
    .action(async (options) => (await import('../commands/recruitment/search.ts')).listSearches(options));

  search
    .command('cancel')
    .summary('cancels a search')
    .description('Cancels a search that is queued or running. Results so far are kept.')
    .argument('<id>', 'id of the search: fsc_…')
    .addOption(json())
    .addHelpText('after', example('npx --no rail search cancel fsc_…'))
    .action(async (id, options) => (await import('../commands/recruitment/search.ts')).stopSearch(id, options));

  const scan = rail
    .command('scan')
    .enablePositionalOptions()
    .summary('starts a scan of a brand, and shows scans')
    .description(
      'Starts a scan of a brand, as POST /recruitment/v1/scans does. It costs a credit. The worker looks for prospects and visits their pages. ' +
        'With --follow, shows the progress until it ends; exit code 1 if it failed. Ctrl-C ends the command and leaves the scan to the worker.',
    )
    .option('--brand <id>', 'id of the brand (default: the only one)')
    .option('--follow', 'show the progress until the scan ends')
    .addOption(json())
    .addHelpText('after', example('npx --no rail scan --brand fbr_… --follow', 'npx --no rail scan status fsc_…'))
    .action(async (options) => {
      await (await import('../commands/recruitment/scan.ts')).startScan(options);
    });

  scan
    .command('status')
    .summary('shows a scan')
    .description('Shows a scan: its state, visits and what it found. With --follow, until it ends.')
    .argument('<id>', 'id of the scan: fsc_…')
    .option('--follow', 'show the progress until the scan ends')
    .addOption(json())
    .addHelpText('after', example('npx --no rail scan status fsc_… --follow'))
    .action(async (id, options) => (await import('../commands/recruitment/scan.ts')).showScan(id, options));

  scan
    .command('list')
    .summary('lists scans')
    .description('Lists the latest scans, at most 20.')
    .option('--brand <id>', 'only scans of this brand')
    .addOption(json())
    .addHelpText('after', example('npx --no rail scan list --brand fbr_… --json'))
    .action(async (options) => (await import('../commands/recruitment/scan.ts')).listScans(options));

  const prospects = rail
    .command('prospects')
    .summary('imports, lists and exports prospects')
    .description('Imports, lists and exports the prospects of a brand.');

  const brand = () => new Option('--brand <id>', 'id of the brand (default: the only one)');

  prospects
    .command('import')
    .summary('imports prospects from a CSV or NDJSON file')
    .description(
      'Imports prospects from a CSV file whose first line names the columns, or from NDJSON: at most 100,000 rows and 32 MiB, in UTF-8. ' +
        'Columns are recognized by their names: url, key, channel, name, email, country_code, language_code, timezone, followers, description, custom.<name>. ' +
        'Follows the import until it ends, then shows how many rows were imported, and which were refused. Requires a running worker, such as that of npm start. ' +
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
        'npx --no rail prospects import blogs.csv --brand fbr_… --dry-run',
        'npx --no rail prospects import blogs.csv --brand fbr_… --mapping Blog=url Owner=name Notes=',
      ),
    )
    .action(async (file, options) =>
      (await import('../commands/recruitment/import_prospects.ts')).importProspects(file, { mapping: [], ...options }),
    );

  prospects
    .command('list')
    .summary('shows the newest prospects of a brand')
    .description('Shows the newest prospects of a brand, or those that contain all words of a text.')
    .addOption(brand())
    .option('--q <text>', 'only prospects that contain these words')
    .option('--stage <stage>', 'only prospects in this stage')
    .option('--limit <number>', 'number of prospects, up to 100', integerUpTo(100), 25)
    .addOption(json())
    .addHelpText('after', example('npx --no rail prospects list --brand fbr_… --stage found'))
    .action(async (options) => (await import('../commands/recruitment/list_prospects.ts')).listProspects(options));

  prospects
    .command('export')
    .summary('writes all prospects of a brand')
    .description('Writes all prospects of a brand as CSV or NDJSON, without their email addresses.')
    .addOption(brand())
    .addOption(new Option('--format <format>', 'csv or ndjson').choices(['csv', 'ndjson']).default('csv'))
    .option('--out <file>', 'write to this file, which only you can read (default: standard output)')
    .addHelpText('after', example('npx --no rail prospects export --brand fbr_… --out prospects.csv'))
    .action(async (options) => (await import('../commands/recruitment/list_prospects.ts')).exportProspects(options));
}
